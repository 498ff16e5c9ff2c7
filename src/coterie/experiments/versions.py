"""Which version of an algorithm made a result: a hash of the code that can change its numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from coterie.policies.base import MAKERS
from coterie.policies.catalogue import find

SILENT = frozenset(
    {"coterie", "coterie.errors", "coterie.progress", "coterie.traces", "coterie.datasets.progress"}
)
"""Modules that change no number."""

LEAVES = frozenset({"coterie.experiments.contenders"})
"""Modules that count, but not what they import: of all policies they take the one that is named."""


def algorithm(policy: str, setting: str, dataset: str) -> str:
    """The hash of all code behind a run: its policy, its environment, its dataset, and what these import.

    Comments, docstrings and layout do not count, nor does code of other policies that is in files of
    its own: adding a policy does not make finished runs of the others stale.
    """
    find(policy)
    roots = (
        MAKERS[policy].plan.__module__,
        f"coterie.environments.{setting}",
        f"coterie.datasets.{dataset}",
        "coterie.simulation",
        "coterie.experiments.worlds",
        "coterie.experiments.contenders",
    )
    return _combined(roots)


@cache
def _combined(roots: tuple[str, ...]) -> str:
    hasher = sha256()
    for name in sorted(_closure(roots)):
        hasher.update(f"{name}\n{_source(name)}\n".encode())
    return hasher.hexdigest()[:16]


def _closure(roots: tuple[str, ...]) -> set[str]:
    """The modules of this package that the roots import when they are loaded, and so on."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found and name not in SILENT:
            found.add(name)
            waiting += () if name in LEAVES else _imports(name)
    return found


@cache
def _tree(name: str) -> ast.Module:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module {name!r}", name=name)
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def _imports(name: str) -> Iterator[str]:
    for node in _tree(name).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "coterie":
            module = str(node.module)
            inner = [f"{module}.{alias.name}" for alias in node.names]
            modules = [path for path in inner if _is_module(path)]
            yield from modules if len(modules) == len(inner) else (module, *modules)


@cache
def _is_module(path: str) -> bool:
    try:
        return find_spec(path) is not None
    except ModuleNotFoundError:
        return False


@cache
def _source(name: str) -> str:
    """The code alone, written in one way."""
    tree = _tree(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [child for child in node.body if not _is_remark(child)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_remark(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
