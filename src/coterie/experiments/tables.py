"""Numbers of a figure as rows: for summary.csv, the terminal and the report."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from math import isfinite, isnan
from types import MappingProxyType
from typing import NamedTuple

from coterie.experiments.makers import TUNED
from coterie.experiments.results import NAMES, Entry, Panel
from coterie.experiments.specs import Value
from coterie.experiments.standings import OWN, Standing, divided, standings

CONSTANTS = (*TUNED, "ridge")
"""Parameters that have a column in every summary."""

ACROSS = 4
"""Panels that fit beside each other in a terminal."""


class Row(NamedTuple):
    """A policy in a panel, in numbers; errors are standard errors over seeds."""

    dataset: str
    variation: str
    policy: str
    seeds: int
    horizon: int
    gamma: float
    regret: float
    regret_error: float
    clusters: float
    ari: float
    explored: float
    seconds: float
    params: Mapping[str, Value]

    def record(self) -> dict[str, str | float | None]:
        """The row by columns: the parameters have one each, empty where they are not set."""
        plain = self._asdict()
        params = plain.pop("params")
        return {**plain, **dict.fromkeys(CONSTANTS), **params}


class Table(NamedTuple):
    """A small table of text: a heading and rows; `aside` if it is for pages, not for the terminal."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    aside: bool = False


def rows(panels: Sequence[Panel]) -> Iterator[Row]:
    """One row a policy and panel."""
    for panel in panels:
        for entry in panel.entries:
            yield _row(panel, entry)


def _row(panel: Panel, entry: Entry) -> Row:
    regret = entry.final("regret")
    return Row(
        dataset=panel.dataset,
        variation=panel.label,
        policy=entry.policy,
        seeds=len(entry.traces),
        horizon=int(entry.traces[0].rounds[-1]),
        gamma=panel.gamma,
        regret=regret.mean,
        regret_error=regret.error,
        clusters=entry.final("clusters").mean,
        ari=entry.final("ari").mean,
        explored=entry.final("explored").mean,
        seconds=entry.seconds().mean,
        params=entry.spec.params,
    )


def as_csv(found: Iterable[Row]) -> str:
    """The rows with a heading."""
    records = [row.record() for row in found]
    columns = tuple(dict.fromkeys(name for record in records for name in record))
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(record.get(name)) for name in columns] for record in records)
    return file.getvalue()


def plain_csv(shown: Iterable[Table]) -> str:
    """Tables of text with their headings, the title of each as its first column."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for table in shown:
        writer.writerow(("table", *table.heading))
        writer.writerows((table.title, *row) for row in table.rows)
    return file.getvalue()


def cell(value: str | float | None) -> str:
    """A value in a CSV file: numbers to six digits, nothing for what is not known or not finite.

    >>> [cell(value) for value in (0.1234567, float("nan"), float("inf"), None, 7, "CLUB")]
    ['0.123457', '', '', '', '7', 'CLUB']
    """
    if isinstance(value, float):
        return f"{value:.6g}" if isfinite(value) else ""
    return "" if value is None else str(value)


def known(value: float, form: str) -> str:
    """A number in this form; a dash where it is not known.

    >>> known(1234.5, ",.1f"), known(float("nan"), ".1f")
    ('1,234.5', '–')
    """
    return "–" if isnan(value) else format(value, form)


def regrets(panels: Sequence[Panel]) -> Table:
    """Regret at the horizon: policies down, panels across."""
    return _across("Cumulative regret at the horizon, mean ± standard error", panels, _regret)


def times(panels: Sequence[Panel]) -> Table:
    """Seconds a run: policies down, panels across."""
    return _across(
        "Seconds a run, mean over seeds, one run at a time", panels, lambda e: f"{e.seconds().mean:.2f}"
    )


def recoveries(panels: Sequence[Panel]) -> Table:
    """Regret, clusters and adjusted Rand index at the horizon: policies down, panels across."""
    return _across(
        "Clusters at the horizon (adjusted Rand index), means over seeds",
        panels,
        lambda e: f"{known(e.final('clusters').mean, '.1f')} ({known(e.final('ari').mean, '.2f')})",
    )


def constants(panels: Sequence[Panel]) -> Table:
    """The constants that every policy was given: policies down, panels across."""
    made = _across(
        "Constants, as tuned",
        panels,
        lambda e: str(e.spec.params) or "none",
    )
    return made._replace(aside=True)


def standing(panels: Sequence[Panel]) -> Table:
    """AutoCLUB beside the policy it is measured against and beside the oracle: worlds down."""
    beside = ("rival", "regret", "ratio", "wanted", "kept")
    return Table(
        f"{OWN}'s regret ± standard error, then its rival's and the oracle's, each with {OWN}'s ratio to it",
        ("world", "dataset", OWN, *beside, "oracle", "ratio", "ARI"),
        tuple(_stands(found) for found in standings(panels)),
    )


def _stands(found: Standing) -> tuple[str, ...]:
    oracle = found.oracle
    return (
        found.panel.label,
        NAMES.get(found.panel.dataset, found.panel.dataset),
        _regret(found.own),
        found.rival.policy,
        f"{found.rival.final('regret').mean:,.0f}",
        f"{found.ratio:.2f}",
        "–" if found.limit is None else f"≤ {found.limit.factor:.2f}",
        {True: "yes", False: "no", None: "–"}[found.kept],
        _shown(oracle, lambda entry: f"{entry.final('regret').mean:,.0f}"),
        _shown(oracle, lambda entry: f"{divided(found.own, entry):.2f}"),
        known(found.own.final("ari").mean, ".2f"),
    )


def _regret(entry: Entry) -> str:
    regret = entry.final("regret")
    return f"{regret.mean:,.0f} ± {regret.error:,.0f}"


def _across(title: str, panels: Sequence[Panel], cell: Callable[[Entry], str]) -> Table:
    """Policies down and panels across, or the other way round where panels are many."""
    policies = tuple(dict.fromkeys(entry.policy for panel in panels for entry in panel.entries))
    lines = [[_shown(panel.entry(policy), cell) for panel in panels] for policy in policies]
    titles = tuple(panel.title for panel in panels)
    if len(panels) <= ACROSS:
        return Table(title, ("policy", *titles), tuple(zip(policies, *zip(*lines, strict=True), strict=True)))
    return Table(title, ("world", *policies), tuple(zip(titles, *lines, strict=True)))


def _shown(entry: Entry | None, cell: Callable[[Entry], str]) -> str:
    return "" if entry is None else cell(entry)


LISTED: Mapping[str, tuple[Callable[[Sequence[Panel]], Table], ...]] = MappingProxyType(
    {
        "times": (times, constants),
        "clusters": (recoveries, regrets, constants),
        "standings": (standing, constants),
    }
)
"""The tables of a view; of any other: regrets and constants."""


def listed(view: str, panels: Sequence[Panel]) -> list[Table]:
    """The tables that go with a view."""
    return [make(panels) for make in LISTED.get(view, (regrets, constants))]
