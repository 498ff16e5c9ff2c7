"""Names for shell completion, found without importing what they name."""

from __future__ import annotations

import ast
from pathlib import Path

import coterie

DATASETS = ("synthetic", "movielens", "lastfm", "yelp", "interactions")


def policy_names() -> list[str]:
    """The policies of the catalogue, read from its source: to import it takes longer than TAB may."""
    source = (Path(coterie.__file__).parent / "policies" / "catalogue.py").read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    entries = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Entry"]
    firsts = [entry.args[0] for entry in sorted(entries, key=lambda call: call.lineno) if entry.args]
    return [
        first.value for first in firsts if isinstance(first, ast.Constant) and isinstance(first.value, str)
    ]


def complete_policy(incomplete: str) -> list[str]:
    """Policies that begin like this, in whatever case it was typed."""
    return [name for name in policy_names() if name.lower().startswith(incomplete.lower())]


def complete_dataset(incomplete: str) -> list[str]:
    """Datasets that begin like this."""
    return [name for name in DATASETS if name.startswith(incomplete.lower())]
