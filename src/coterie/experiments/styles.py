"""One colour, marker and line for each policy, everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from coterie.experiments.makers import is_own
from coterie.policies.entries import Style
from coterie.policies.registry import find

OWN = ("#8c564b", "#17a2a2", "#7a9a01", "#c2527d", "#3f51b5", "#a0522d")
"""Colours of policies that are not registered, in order of appearance."""


def styles(names: Iterable[str]) -> dict[str, Style]:
    """How these policies are drawn beside each other; own policies get colours of their own.

    >>> [style.label for style in styles(["LinUCBInd", "mine:Greedy"]).values()]
    ['LinUCB-Ind', 'Greedy']
    """
    found: dict[str, Style] = {}
    own = 0
    for name in dict.fromkeys(names):
        if is_own(name):
            found[name] = Style(name.rpartition(":")[2], OWN[own % len(OWN)], "h", "-")
            own += 1
        else:
            found[name] = find(name).style
    return found


def style(name: str) -> Style:
    """How one policy is drawn."""
    return styles([name])[name]
