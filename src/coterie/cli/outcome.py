"""What the runs found, a row for each policy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.experiments.results import Entry
from coterie.experiments.specs import PolicySpec
from coterie.policies.entries import Style
from coterie.types import Floats


class Outcome(NamedTuple):
    """A policy under its label, its traces, how it is drawn, and how fast it was."""

    label: str
    entry: Entry
    style: Style
    pace: float
    """Microseconds a round of the fastest seed; NaN where all of them were read back."""

    @property
    def spec(self) -> PolicySpec:
        """The policy and its parameters."""
        return self.entry.spec

    @property
    def colour(self) -> str:
        """The policy's colour, for a terminal: black is the colour of its text, whatever that is."""
        return "" if self.style.colour == "#000000" else self.style.colour

    @property
    def regret(self) -> float:
        """Mean final regret."""
        return self.entry.final("regret").mean

    @property
    def error(self) -> float:
        """Its standard error over seeds; NaN for a single seed, which tells nothing about it."""
        return self.entry.final("regret").error if len(self.entry.traces) > 1 else float("nan")

    @property
    def clusters(self) -> float:
        """Mean number of clusters at the end; NaN if the policy has no labels."""
        return self.entry.final("clusters").mean

    @property
    def ari(self) -> float:
        """Mean adjusted Rand index at the end; NaN if the policy has no labels."""
        return self.entry.final("ari").mean

    @property
    def rounds(self) -> Floats:
        """The rounds of the curve."""
        return np.asarray(self.entry.traces[0].rounds, np.float64)

    def record(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "label": self.label,
            "policy": self.spec.name,
            "constants": dict(self.spec.params),
            "regret": self.regret,
            "standard_error": self.error,
            "regret_by_seed": {str(trace.seed): float(trace.regret[-1]) for trace in self.entry.traces},
            "clusters": self.clusters,
            "ari": self.ari,
            "microseconds_a_round": self.pace,
            "curve": {
                "rounds": self.rounds.astype(int).tolist(),
                "regret": self.entry.band("regret").mean.tolist(),
            },
        }
