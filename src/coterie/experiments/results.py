"""What was found for a figure: panels of policies, each with a trace a seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.experiments.specs import PolicySpec
from coterie.simulation import Trace
from coterie.types import Floats


class Band(NamedTuple):
    """A mean and its standard error over seeds: the standard deviation divided by √n (Sec. 6.1)."""

    mean: Floats
    error: Floats


class Spread(NamedTuple):
    """The same for a single number."""

    mean: float
    error: float


class Entry(NamedTuple):
    """A policy in a panel: the parameters it was given and a trace a seed."""

    spec: PolicySpec
    traces: tuple[Trace, ...]

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self.spec.name

    @property
    def finals(self) -> Floats:
        """Regret at the horizon, one number a seed."""
        return np.array([trace.regret[-1] for trace in self.traces])

    def band(self, column: str) -> Band:
        """A column of the traces over rounds."""
        return over_seeds(np.array([getattr(trace, column) for trace in self.traces], np.float64))

    def final(self, column: str) -> Spread:
        """A column of the traces at the horizon; NaN where it is unknown."""
        mean, error = over_seeds(np.array([[at_the_end(trace, column)] for trace in self.traces]))
        return Spread(float(mean[0]), float(error[0]))

    def seconds(self) -> Spread:
        """How long a run took; NaN where nobody measured."""
        mean, error = over_seeds(np.array([[trace.seconds] for trace in self.traces]))
        return Spread(float(mean[0]), float(error[0]))


class Limit(NamedTuple):
    """The greatest regret wanted, as a multiple of that of the policy `of`; None: of the best other one."""

    factor: float
    of: str | None = None


class Panel(NamedTuple):
    """A dataset and a variation of the world, and how every policy fared there."""

    dataset: str
    label: str
    quantity: str
    value: float
    gamma: float
    entries: tuple[Entry, ...]
    limit: Limit | None = None

    @property
    def title(self) -> str:
        """The dataset, and the variation if there is one."""
        return (
            f"{NAMES.get(self.dataset, self.dataset)}, {self.label}"
            if self.label
            else NAMES.get(self.dataset, self.dataset)
        )

    def entry(self, policy: str) -> Entry | None:
        """A policy's entry; None if it did not take part."""
        return next((entry for entry in self.entries if entry.policy == policy), None)


NAMES = {"synthetic": "Synthetic", "movielens": "MovieLens", "lastfm": "Last.fm", "yelp": "Yelp"}
"""Datasets as people write them."""


def at_the_end(trace: Trace, column: str) -> float:
    """The last number of a column; NaN for clusters that are unknown, as for a policy without labels."""
    value = float(getattr(trace, column)[-1])
    return float("nan") if column == "clusters" and value < 0 else value


def over_seeds(rows: Floats) -> Band:
    """Mean and standard error of rows, one a seed; the error of a single seed is 0."""
    n = len(rows)
    error = rows.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(rows.shape[1])
    return Band(rows.mean(axis=0), error)
