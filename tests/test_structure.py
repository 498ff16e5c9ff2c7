"""The shape of the package: no cycle of imports, small folders, and one meaning for each name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import coterie

ROOT = Path(coterie.__file__).parent
TESTS = Path(__file__).parent
CLASS = re.compile(r"^(?:cdef )?class ([A-Z]\w*)", re.MULTILINE)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in ROOT.rglob("*.py")}


def imported(path: Path) -> Iterator[str]:
    """Every module of ours that a file imports: at its top, in a function, or for the types alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                longer = f"{node.module}.{alias.name}"
                yield longer if longer in MODULES else node.module


def graph(*packages: str) -> dict[str, set[str]]:
    """Who imports whom among the modules of these packages."""
    inside = {name for name in MODULES if name.startswith(tuple(f"coterie.{one}" for one in packages))}
    return {name: inside & set(imported(MODULES[name])) - {name} for name in inside}


PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_leads_back_to_where_it_came_from(package: str) -> None:
    found = graph(package)
    assert len(found) > 3
    TopologicalSorter(found).prepare()


def test_nor_from_package_to_package() -> None:
    found = graph(*PACKAGES)
    assert found["coterie.cli.run"] >= {
        "coterie.experiments.run_store",
        "coterie.cli.run_settings",
    }  # lazy ones
    TopologicalSorter(found).prepare()


def test_a_cycle_through_a_function_would_be_seen() -> None:
    found = {**graph("experiments"), "coterie.experiments.specs": {"coterie.experiments.reproduction"}}
    with pytest.raises(CycleError):
        TopologicalSorter(found).prepare()


def test_no_two_public_classes_have_the_same_name() -> None:
    homes = defaultdict(list)
    for path in (*ROOT.rglob("*.py"), *ROOT.rglob("*.pyx")):
        for name in CLASS.findall(path.read_text(encoding="utf-8")):
            homes[name].append(path.relative_to(ROOT).as_posix())
    assert len(homes) > 80
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


MOST_FILES = 24
"""Files that a folder of the package may show."""


def sources() -> list[Path]:
    return sorted(path for path in (*ROOT.rglob("*.py"), *ROOT.rglob("*.pyx")))


def test_no_folder_shows_more_files_than_can_be_taken_in() -> None:
    folders = {path.parent for path in sources()}
    assert len(folders) > 8
    sizes = {
        folder.relative_to(ROOT).as_posix(): sum(path.is_file() for path in folder.iterdir())
        for folder in folders
    }
    assert {name: size for name, size in sizes.items() if size > MOST_FILES} == {}


def test_no_two_modules_have_the_same_name() -> None:
    homes = defaultdict(list)
    for path in sources():
        if not path.stem.startswith("__"):
            homes[path.stem].append(path.relative_to(ROOT).as_posix())
    assert len(homes) > 100
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


ONE_A_MODULE = {"ABOUT", "EPILOG"}
"""Constants that every module of a catalogue has: of each dataset, of each command."""


def constants(path: Path) -> Iterator[tuple[str, str]]:
    """The constants that a module assigns, with their values as they are written."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for name, written in pairs:
            if isinstance(name, ast.Name) and name.id.isupper() and len(name.id) > 1 and written is not None:
                yield name.id, ast.unparse(written)


FOLDERS = (
    *("cli", "datasets", "environments", "evaluation", "experiments", "simulation", "theory"),
    *("service", "service/core", "service/http", "service/storage"),
)


@pytest.mark.parametrize("package", FOLDERS)
def test_a_constant_is_defined_once_in_a_package(package: str) -> None:
    homes = defaultdict(list)
    for path in sorted((ROOT / package).glob("*.py")):
        for name, _ in constants(path):
            homes[name].append(path.name)
    twice = {name: where for name, where in homes.items() if len(where) > 1 and name not in ONE_A_MODULE}
    assert twice == {}


TESTED_FROM_OUTSIDE = ("cli", "contracts", "docs", "service")
"""Folders of tests that a rename of a private attribute must not break."""

NAMED_TUPLE_METHODS = ("_asdict", "_fields", "_make", "_replace")


def private_uses(path: Path) -> Iterator[str]:
    """Each use of a private attribute of another object: `one._name`, or `setattr(one, "_name", ...)`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = ""
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls"):
            name = node.attr
        elif isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            called = ast.unparse(node.func).rpartition(".")[2]
            name = str(node.args[1].value) if called in ("setattr", "getattr", "delattr") else ""
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = ast.unparse(node.func).rpartition(".")[2]
            name = str(node.args[0].value).rpartition(".")[2] if called == "setattr" else ""
        if re.match(r"_[a-z]", name) and name not in NAMED_TUPLE_METHODS:
            yield f"{path.relative_to(TESTS).as_posix()}: {ast.unparse(node)}"


@pytest.mark.parametrize("folder", TESTED_FROM_OUTSIDE)
def test_tests_use_what_is_public(folder: str) -> None:
    found = [use for path in sorted((TESTS / folder).rglob("*.py")) for use in private_uses(path)]
    assert found == []
