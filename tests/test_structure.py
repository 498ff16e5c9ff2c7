"""The shape of the package: no cycle of imports, and no two public classes of one name."""

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


@pytest.mark.parametrize(
    "package", ["experiments", "cli", "datasets", "environments", "evaluation", "simulation", "theory"]
)
def test_no_import_leads_back_to_where_it_came_from(package: str) -> None:
    found = graph(package)
    assert len(found) > 3
    TopologicalSorter(found).prepare()


def test_nor_from_package_to_package() -> None:
    found = graph("experiments", "cli", "datasets", "environments", "evaluation", "simulation", "theory")
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
