"""Measured results: panels of policies, each policy with one trace for each seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from coterie.experiments.specs import PolicySpec
from coterie.simulation import Trace
from coterie.types import Floats

AUTO, ORACLE = "AutoCLUB", "LinUCBOracle"
"""Our policy, and the one that knows the true clusters, which is excluded from rankings."""

DATASET_NAMES = {
    "synthetic": "Synthetic",
    "movielens": "MovieLens",
    "lastfm": "Last.fm",
    "yelp": "Yelp",
    "jester": "Jester",
    "polis": "Polis",
    "coat": "Coat",
    "movietweetings": "MovieTweetings",
}
"""Names of datasets in titles."""


class Band(NamedTuple):
    """Means over seeds and their standard errors: the standard deviation divided by √n (Sec. 6.1)."""

    mean: Floats
    error: Floats


class MeanError(NamedTuple):
    """A mean over seeds and its standard error; NaN for the error of a single seed."""

    mean: float
    error: float

    def __str__(self) -> str:
        """As in a table: the error to two digits at least, nothing where it is unknown.

        >>> print(MeanError(405.2, 0.31), MeanError(1166.4, 36.2), MeanError(405.2, float("nan")), sep="; ")
        405.2 ± 0.3; 1,166 ± 36; 405
        """
        if np.isnan(self.error):
            return f"{self.mean:,.0f}"
        steps = (1.0, 0.1, 0.01)
        digits = sum(self.error < step for step in steps) if self.error > 0 else 0
        return f"{self.mean:,.{digits}f} ± {self.error:,.{digits}f}"


class PolicyResult(NamedTuple):
    """A policy in a panel: its parameters and a trace for each seed."""

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

    @property
    def mean_regret(self) -> float:
        """Mean regret at the horizon."""
        return float(self.finals.mean())

    def band(self, column: str) -> Band:
        """A column of the traces over rounds."""
        return over_seeds(np.array([getattr(trace, column) for trace in self.traces], np.float64))

    def final(self, column: str) -> MeanError:
        """A column of the traces at the horizon; NaN where it is unknown."""
        return _mean_error([final_value(trace, column) for trace in self.traces])

    def seconds(self) -> MeanError:
        """Seconds of a run; NaN where they were not measured."""
        return _mean_error([trace.seconds for trace in self.traces])

    def microseconds(self) -> float:
        """Microseconds a round of the fastest seed; NaN where all traces were read from files."""
        spent = [trace.seconds for trace in self.traces if trace.seconds == trace.seconds]
        return 1e6 * min(spent, default=float("nan")) / int(self.traces[0].rounds[-1])


class Limit(NamedTuple):
    """An upper limit on regret, as a multiple of that of the policy `of`; None: of the best other one."""

    factor: float
    of: str | None = None


class Headline(NamedTuple):
    """A paper's claim about such a world: the regret of `lower` is below that of `higher`."""

    lower: str
    higher: str
    paper: str


class Panel(NamedTuple):
    """A dataset and a variation of the environment, with the results of every policy there."""

    dataset: str
    label: str
    quantity: str
    value: float
    gamma: float
    results: tuple[PolicyResult, ...]
    limit: Limit | None = None
    headlines: tuple[Headline, ...] = ()

    @property
    def dataset_name(self) -> str:
        """The dataset's name in titles."""
        return DATASET_NAMES.get(self.dataset, self.dataset)

    @property
    def title(self) -> str:
        """The dataset, and the variation if there is one."""
        return f"{self.dataset_name}, {self.label}" if self.label else self.dataset_name

    def result(self, policy: str) -> PolicyResult | None:
        """The result of a policy; None if it did not take part."""
        return next((result for result in self.results if result.policy == policy), None)

    def ranking(self) -> list[PolicyResult]:
        """The results by mean regret, least first, without the oracle's."""
        # The oracle knows the true clusters, so it cannot be outperformed fairly.
        rivals = [result for result in self.results if result.policy != ORACLE]
        return sorted(rivals, key=lambda result: result.mean_regret)


def final_value(trace: Trace, column: str) -> float:
    """The last number of a column; NaN for clusters that are unknown, as for a policy without labels."""
    value = float(getattr(trace, column)[-1])
    # A trace stores −1 where a policy has no labels, because its column holds whole numbers.
    return float("nan") if column == "clusters" and value < 0 else value


def over_seeds(rows: Floats) -> Band:
    """Mean and standard error of rows, one a seed; the error of a single seed is drawn as 0."""
    n = len(rows)
    error = rows.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(rows.shape[1])
    return Band(rows.mean(axis=0), error)


def _mean_error(values: Sequence[float]) -> MeanError:
    n = len(values)
    error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return MeanError(float(np.mean(values)), error)


class RegretRatio(NamedTuple):
    """The regret of a policy in a panel beside that of a rival, and the oracle's where it took part."""

    panel: Panel
    own: PolicyResult
    rival: PolicyResult
    oracle: PolicyResult | None

    @property
    def limit(self) -> Limit | None:
        """The upper limit of the ratio in this panel."""
        return self.panel.limit

    @property
    def value(self) -> float:
        """The policy's mean regret divided by its rival's."""
        return self.own.mean_regret / self.rival.mean_regret

    @property
    def within_limit(self) -> bool | None:
        """Whether the ratio is within the limit; None where there is no limit."""
        return None if self.limit is None else self.value <= self.limit.factor


def regret_ratio(panel: Panel, policy: str = AUTO) -> RegretRatio | None:
    """A policy beside the one that the limit names, or the best other one; None if either is absent."""
    own, named = panel.result(policy), panel.limit.of if panel.limit is not None else None
    rivals = [r for r in panel.ranking() if r.policy != policy and named in (None, r.policy)]
    if own is None or not rivals:
        return None
    return RegretRatio(panel, own, rivals[0], panel.result(ORACLE))


def regret_ratios(panels: Sequence[Panel], policy: str = AUTO) -> Iterator[RegretRatio]:
    """The ratios of a policy in all panels, those of one variation together."""
    labels = list(dict.fromkeys(panel.label for panel in panels))
    for panel in sorted(panels, key=lambda panel: labels.index(panel.label)):
        if (found := regret_ratio(panel, policy)) is not None:
            yield found


def multiples(panels: Sequence[Panel]) -> dict[str, list[float]]:
    """Regret of each policy as a multiple of the least of each panel, best policy first; NaN where absent.

    The oracle is never the least. Policies are ordered by the mean logarithm of their multiples, less the
    mean of each panel.
    """
    least = [panel.ranking()[0].mean_regret for panel in panels]
    found = {
        name: [
            float("nan") if (result := panel.result(name)) is None else result.mean_regret / unit
            for panel, unit in zip(panels, least, strict=True)
        ]
        for name in dict.fromkeys(result.policy for panel in panels for result in panel.results)
    }
    logs = np.log(list(found.values()))
    # Panels differ in difficulty and not every policy plays in each: compare with the mean of each panel.
    order = np.argsort(np.nanmean(logs - np.nanmean(logs, axis=0), axis=1), kind="stable")
    names = list(found)
    return {names[k]: found[names[k]] for k in order.tolist()}


def labels_of(specs: Sequence[PolicySpec]) -> tuple[str, ...]:
    """A distinct label for each spec: parameters are added where specs share a name.

    >>> labels_of([PolicySpec("CLUB", {"beta": 1}), PolicySpec("CLUB", {"beta": 2}), PolicySpec("SCLUB")])
    ('CLUB (beta 1)', 'CLUB (beta 2)', 'SCLUB')
    """
    short = [spec.label for spec in specs]
    longer = [f"{spec.label} ({spec.params})" if spec.params else spec.label for spec in specs]
    every = zip(short, longer, specs, strict=True)
    return tuple(
        one if short.count(one) == 1 else two if longer.count(two) == 1 else str(spec)
        for one, two, spec in every
    )
