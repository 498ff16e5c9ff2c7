"""How AutoCLUB stands in a panel: beside the policy it is measured against, and beside the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coterie.experiments.results import Entry, Limit, Panel

OWN, ORACLE = "AutoCLUB", "LinUCBOracle"
"""Whose standing it is, and who is told the true clusters and so is nobody's rival."""


class Standing(NamedTuple):
    """A policy's entry in a panel, that of its rival, and the oracle's where it took part."""

    panel: Panel
    own: Entry
    rival: Entry
    oracle: Entry | None

    @property
    def limit(self) -> Limit | None:
        """What the policy should keep here."""
        return self.panel.limit

    @property
    def ratio(self) -> float:
        """The policy's mean regret divided by its rival's."""
        return divided(self.own, self.rival)

    @property
    def kept(self) -> bool | None:
        """Is the ratio within the limit? None where there is no limit."""
        return None if self.limit is None else self.ratio <= self.limit.factor


def divided(entry: Entry, by: Entry) -> float:
    """The mean regret of the one as a multiple of the other's."""
    return entry.final("regret").mean / by.final("regret").mean


def standing(panel: Panel, policy: str = OWN) -> Standing | None:
    """A policy beside the one that the limit names, or the best other one; None if either is absent."""
    own, named = panel.entry(policy), panel.limit.of if panel.limit is not None else None
    others = [
        entry
        for entry in panel.entries
        if entry.policy not in (policy, ORACLE) and named in (None, entry.policy)
    ]
    if own is None or not others:
        return None
    rival = min(others, key=lambda entry: entry.final("regret").mean)
    return Standing(panel, own, rival, panel.entry(ORACLE))


def standings(panels: Sequence[Panel], policy: str = OWN) -> Iterator[Standing]:
    """The standings of a policy, those of one variation together."""
    labels = list(dict.fromkeys(panel.label for panel in panels))
    for panel in sorted(panels, key=lambda panel: labels.index(panel.label)):
        if (found := standing(panel, policy)) is not None:
            yield found
