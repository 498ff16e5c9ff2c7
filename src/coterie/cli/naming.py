"""Names for shell completion, found without importing what they name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import coterie

PAPER = ("synthetic", "movielens", "lastfm", "yelp")
DATASETS = (*PAPER, "interactions")
FIGURES = ("fig-1", "fig-2", "fig-3", "fig-4", "fig-5", "table-1", "table-2", "clusters", "gap", "auto")
ENGINES = ("local", "ray")
SETTINGS = ("stochastic", "smoothed")
SCALES = ("unit", "raw", "sqrt-s")
"""Written out here; a test holds them against what they name."""


def policy_names() -> list[str]:
    """The registered policies, read from the imports of the registry: NumPy takes longer than TAB may."""
    registry = Path(coterie.__file__).parent / "policies" / "registry.py"
    return re.findall(
        r"^from coterie\.policies\.\w+ import (\w+) as \1$", registry.read_text("utf-8"), re.MULTILINE
    )


def complete_policy(incomplete: str) -> list[str]:
    """Policies that begin like this, in whatever case it was typed."""
    return [name for name in policy_names() if name.lower().startswith(incomplete.lower())]


def complete_dataset(incomplete: str) -> list[str]:
    """Datasets that begin like this."""
    return _beginning(DATASETS, incomplete)


def complete_datasets(incomplete: str) -> list[str]:
    """What is typed so far, with a dataset of the paper after its last comma that is not named yet.

    >>> complete_datasets("synthetic,m")
    ['synthetic,movielens']
    """
    before, comma, last = incomplete.rpartition(",")
    left = [name for name in PAPER if name not in before.split(",")]
    return [f"{before}{comma}{name}" for name in _beginning(left, last)]


def complete_figure(incomplete: str) -> list[str]:
    """Figures and tables that begin like this, or all of them."""
    return _beginning((*FIGURES, "all"), incomplete)


def complete_engine(incomplete: str) -> list[str]:
    """Engines that begin like this."""
    return _beginning(ENGINES, incomplete)


def complete_setting(incomplete: str) -> list[str]:
    """Settings of a world that begin like this."""
    return _beginning(SETTINGS, incomplete)


def complete_scale(incomplete: str) -> list[str]:
    """Scales of vectors that begin like this."""
    return _beginning(SCALES, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete.lower())]
