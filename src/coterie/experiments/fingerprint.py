"""Which version of the code made a result: a hash of the files that can change its numbers.

Files of a policy are named after its family, the module of its maker: `club.py`, `_club.pyx`, `club/...`.
They count for policies of that family, and of families whose files import them; files of `coterie.policies`
that belong to no family count for all. Datasets are told apart in the same way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from coterie import datasets
from coterie.policies.makers import is_own, source_of
from coterie.policies.registry import REGISTRY, find

ROOT = Path(datasets.__file__).parents[1]
COMPILED = (".pyx", ".pxd", ".pxi", ".c", ".h")
DIRECTIVES = ("# cython:", "#cython:", "# distutils:", "#distutils:")
"""Comments that the compiler reads."""

IMPORTED = re.compile(r"^from coterie\.policies\._?(\w+) c?import", re.MULTILINE)
"""A line that imports from another module of policies."""
SPECS = ("experiments/specs.py", "seeding.py")
"""What turns data into policies and environments, whichever they are."""

IGNORED = {
    "policies": (
        "__init__",
        "entries",
        "explanations",
        "protocols",
        "registry",
        "snapshots",
        "snapshots_v1",
    ),
    "datasets": ("__init__", "cache", "catalogue"),
}
"""Files that change no number of a result."""


def fingerprint(policy: str, dataset: str) -> str:
    """The hash of all code behind a run: its policy, the environments, its dataset, the simulation.

    Comments, docstrings and layout do not count. Adding a policy in files of its own changes the
    fingerprint of no other.
    """
    if not is_own(policy):
        return _ours(family_of(find(policy).make), dataset)
    own = source_of(policy)
    return _hashed([_ours("", dataset), code(own) if own.suffix == ".py" else own.read_bytes().hex()])


@cache
def _ours(family: str, dataset: str) -> str:
    families = frozenset(family_of(entry.make) for entry in REGISTRY.values())
    files = sources(ROOT, family, families=families, dataset=dataset)
    return _hashed(f"{path.relative_to(ROOT).as_posix()}\n{_our_code(path)}" for path in files)


@cache
def _our_code(path: Path) -> str:
    """The code of a file of this library, which does not change while it runs."""
    return code(path)


def _hashed(parts: Iterable[str]) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:16]


def family_of(make: Callable[..., object]) -> str:
    """The family of a policy: the module of its maker, or the package that holds it.

    >>> family_of(find("UniCLUB").make)
    'club'
    """
    return make.__module__.removeprefix("coterie.policies.").split(".")[0]


def sources(root: Path, family: str, *, families: Iterable[str], dataset: str) -> list[Path]:
    """The files that count for a policy of this family on this dataset."""
    loaders, needed = datasets.names(), _imported_families(root, family, frozenset(families))
    return sorted(
        path
        for path in _files(root)
        if any(_counts(path.relative_to(root), "policies", one, families) for one in needed)
        or _counts(path.relative_to(root), "datasets", dataset, loaders)
        or _is_shared(path.relative_to(root))
    )


def _imported_families(root: Path, family: str, families: frozenset[str]) -> list[str]:
    """A family and those whose files it imports, directly or not."""
    found = [family]
    for own in found:
        for path in sorted((root / "policies").iterdir()):
            if path.suffix in (".py", *COMPILED) and own in _owners(path.stem, families):
                imported = IMPORTED.findall(path.read_text(encoding="utf-8"))
                needed = dict.fromkeys(one for name in imported for one in _owners(name, families))
                found += [one for one in needed if one not in found]
    return found


def _owners(stem: str, owners: Iterable[str]) -> list[str]:
    """Whose file one of this name is."""
    plain = stem.lstrip("_")
    return [owner for owner in owners if plain == owner or plain.startswith(f"{owner}_")]


def _files(root: Path) -> Iterator[Path]:
    """Everything that was written by hand: Python, Cython, and C that Cython has not made."""
    for path in root.rglob("*"):
        generated = path.suffix == ".c" and path.with_suffix(".pyx").exists()
        if path.suffix in (".py", *COMPILED) and not generated:
            yield path


def _counts(path: Path, package: str, own: str, owners: Iterable[str]) -> bool:
    """Is a file of this package the owner's, or nobody's?"""
    if len(path.parts) < 2 or path.parts[0] != package:
        return False
    stem = Path(path.parts[2 if path.parts[1] == "loaders" else 1]).stem
    belongs = _owners(stem, owners)
    return own in belongs or not (belongs or stem in IGNORED[package])


def _is_shared(path: Path) -> bool:
    """Does this file count for every run?"""
    where = path.parts[0]
    simulation = Path(where).stem.lstrip("_").startswith("simulation")
    specs = path.as_posix() in SPECS
    return where == "environments" or simulation or specs


def code(path: Path) -> str:
    """The code of a file alone: what a remark or another layout does not change."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return _python(content)
    is_comment = _is_c_comment if path.suffix in (".c", ".h") else _is_cython_comment
    lines = (line.rstrip() for line in content.splitlines())
    return "\n".join(line for line in lines if line and not is_comment(line.strip()))


def _python(content: str) -> str:
    """Python without docstrings and comments, in one layout."""
    tree = ast.parse(content)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [child for child in node.body if not _is_docstring(child)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_cython_comment(line: str) -> bool:
    return line.startswith("#") and not line.startswith(DIRECTIVES)


def _is_c_comment(line: str) -> bool:
    return line.startswith("//") or (line.startswith("/*") and line.endswith("*/"))
