"""Two folders of results, run by run: which runs belong together, and how they differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from coterie.errors import ArgumentError, CoterieError, MissingData, unknown
from coterie.experiments.results import final_value
from coterie.experiments.run_store import COLUMNS, FinishedRun, Store
from coterie.experiments.specs import EnvironmentSpec, PolicySpec, format_value
from coterie.experiments.tuning import FIRST_SEED
from coterie.types import Floats

METRICS = (*(name for name in COLUMNS if name != "rounds"), "relative")


class RunGroup(NamedTuple):
    """What runs must have in common to be comparable; seeds and constants may differ."""

    environment: EnvironmentSpec
    data: str | None
    horizon: int
    policy: str

    def __str__(self) -> str:
        """The dataset and its size."""
        w = self.environment
        kind = "" if w.setting == "stochastic" else f" {w.setting}"
        return f"{w.dataset}{kind}, u {w.n_users}, K {w.n_arms}, T {self.horizon:,}"


RunsBySpec: TypeAlias = dict[PolicySpec, dict[int, FinishedRun]]
"""The runs of a group by policy and seed."""


class PolicyDifference(NamedTuple):
    """One policy in both folders, seed by seed."""

    environment: str
    policy: str
    seeds: tuple[int, ...]
    first: Floats
    second: Floats
    level: float

    @property
    def difference(self) -> float:
        """The mean of second − first."""
        return float((self.second - self.first).mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Student's interval of the paired difference; NaN for a single seed."""
        from scipy.stats import t

        n, apart = len(self.seeds), self.second - self.first
        if n < 2:
            return float("nan"), float("nan")
        reach = float(t.ppf(0.5 + self.level / 2, n - 1)) * float(apart.std(ddof=1)) / n**0.5
        return self.difference - reach, self.difference + reach

    def verdict(self) -> str:
        """The conclusion from the interval, in words."""
        if np.isnan(self.second - self.first).any():
            return "unknown"
        if np.array_equal(self.first, self.second):
            return "identical"
        low, high = self.interval
        if not (low > 0 or high < 0):
            return "may be chance" if low == low else "one seed says little"
        share = abs(self.difference) / abs(float(self.first.mean())) if self.first.mean() else float("nan")
        return f"second is {'higher' if low > 0 else 'lower'}" + (
            f" by {share:.1%}" if share == share else ""
        )

    def record(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "environment": self.environment,
            "policy": self.policy,
            "seeds": list(self.seeds),
            "first": self.first.tolist(),
            "second": self.second.tolist(),
            "difference": self.difference,
            "interval": list(self.interval),
        }


class Comparison(NamedTuple):
    """Results of `compare_results`.

    Parameters
    ----------
    differences : list of PolicyDifference
        Policies in both folders, with the paired difference and its interval.
    only_first, only_second : dict of str to list of int
        Seeds of the policies in one folder only.

    Examples
    --------
    >>> Comparison([], {}, {}).record()
    {'pairs': [], 'only_first': {}, 'only_second': {}}
    """

    differences: list[PolicyDifference]
    only_first: dict[str, list[int]]
    only_second: dict[str, list[int]]

    def record(self) -> dict[str, Any]:
        """Convert to plain values, for JSON.

        Returns
        -------
        dict
            pairs, only_first and only_second.
        """
        pairs = [one.record() for one in self.differences]
        return {"pairs": pairs, "only_first": self.only_first, "only_second": self.only_second}


def read_results(folder: Path) -> list[FinishedRun]:
    """Read all results in a folder.

    Parameters
    ----------
    folder : Path
        Folder that `coterie run` or `coterie reproduce` wrote.

    Returns
    -------
    list of FinishedRun
        Runs and their traces, in order of their ids.

    Raises
    ------
    MissingData
        If there are no results.

    Examples
    --------
    >>> read_results(Path("missing"))
    Traceback (most recent call last):
    coterie.errors.MissingData: no results in 'missing': `coterie run --out missing` puts them into its runs/
    """
    store = Store(folder.expanduser())
    if not store.folder.is_dir():
        raise MissingData(
            f"no results in {str(folder)!r}: `coterie run --out {folder}` puts them into its runs/"
        )
    return list(store)


def compare_results(
    first: Iterable[FinishedRun], second: Iterable[FinishedRun], *, metric: str, level: float
) -> Comparison:
    """Pair the runs of two folders seed by seed, and compare a metric at the horizon.

    Parameters
    ----------
    first, second : iterable of FinishedRun
        Results, from `read_results`.
    metric : {"regret", "reward", "clusters", "ari", "explored"}
        What to compare.
    level : float
        Confidence level of the intervals, between 0 and 1; 0.95 is usual.

    Returns
    -------
    Comparison
        Differences of the policies in both folders, and what is in one of them only.

    Raises
    ------
    ArgumentError, UnknownName
        If the level is outside its range, or there is no such metric.

    Examples
    --------
    >>> compare_results([], [], metric="regret", level=0.95).differences
    []
    """
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS, f"The metrics are {', '.join(METRICS)}")
    if not 0 < level < 1:
        raise ArgumentError(f"level must be between 0 and 1, got {level!r}")
    ours, theirs = _groups(_reported(first)), _groups(_reported(second))
    found = Comparison([], {}, {})
    for group in {**ours, **theirs}:
        one, two = ours.get(group, {}), theirs.get(group, {})
        for a, b in _pair_specs(one, two):
            left, right = one[a] if a else {}, two[b] if b else {}
            _add_difference(found, group, (a, left), (b, right), metric, level)
    found.differences.sort(key=lambda one: (one.environment, one.policy))
    return found


def _reported(results: Iterable[FinishedRun]) -> list[FinishedRun]:
    """The runs without the trials of tuning, which were played to choose constants."""
    return [one for one in results if one.run.seed < FIRST_SEED]


def _groups(results: Iterable[FinishedRun]) -> dict[RunGroup, RunsBySpec]:
    """The runs by group, policy and seed; of several versions of a run, that of the present code."""
    groups: dict[RunGroup, RunsBySpec] = defaultdict(lambda: defaultdict(dict))
    for one in results:
        run = one.run
        group = RunGroup(run.environment, run.data, run.horizon, run.policy.name)
        seeds = groups[group][run.policy]
        # A folder may hold the same run by several versions of the code.
        if run.seed not in seeds or _is_current(one):
            seeds[run.seed] = one
    return groups


def _is_current(one: FinishedRun) -> bool:
    """Whether it was made by the present code; False for your own policy if its module is missing."""
    try:
        return one.id == one.run.id
    except CoterieError:
        return False


def _pair_specs(one: RunsBySpec, two: RunsBySpec) -> Iterator[tuple[PolicySpec | None, PolicySpec | None]]:
    """Policies with the same parameters; then, if one is left on each side, these two."""
    for spec in one:
        if spec in two:
            yield spec, spec
    left, right = [c for c in one if c not in two], [c for c in two if c not in one]
    # One policy whose constants changed between the folders: the usual reason to compare.
    if len(left) == len(right) == 1:
        yield left[0], right[0]
    else:
        yield from ((spec, None) for spec in left)
        yield from ((None, spec) for spec in right)


Side: TypeAlias = tuple[PolicySpec | None, dict[int, FinishedRun]]


def _add_difference(
    found: Comparison, group: RunGroup, one: Side, two: Side, metric: str, level: float
) -> None:
    (a, first), (b, second) = one, two
    both = sorted(set(first) & set(second))
    if both:
        name = _label(a, b)
        ends = [
            np.array([final_value(side[seed].trace, metric) for seed in both]) for side in (first, second)
        ]
        found.differences.append(PolicyDifference(str(group), name, tuple(both), ends[0], ends[1], level))
    for spec, mine, other, only in (
        (a, first, second, found.only_first),
        (b, second, first, found.only_second),
    ):
        if alone := sorted(set(mine) - set(other)):
            only[f"{spec} in {group}"] = alone


def _label(a: PolicySpec | None, b: PolicySpec | None) -> str:
    """The policy with its parameters, or with what changed about them."""
    if a is None or b is None or a == b:
        return str(a or b)
    before, after = ({name: format_value(value) for name, value in spec.params.items()} for spec in (a, b))
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    changes = [f"{name} {before.get(name, 'unset')} → {after.get(name, 'unset')}" for name in names]
    return f"{a.name} ({', '.join(changes)})"
