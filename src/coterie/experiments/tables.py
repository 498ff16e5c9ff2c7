"""The numbers of a figure as tables: for summary.csv, the terminal, Markdown and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite, isnan
from types import MappingProxyType
from typing import NamedTuple

from coterie.experiments.claims import Finding, compared
from coterie.experiments.results import (
    AUTO,
    DATASET_NAMES,
    Panel,
    PolicyResult,
    RegretRatio,
    multiples,
    regret_ratios,
)
from coterie.experiments.specs import EnvironmentSpec, Value, World
from coterie.policies.factories import TUNED
from coterie.theory import BoundRow, Setup, table_1

PARAMETERS = (*TUNED, "ridge")
"""Parameters that have a column in every summary."""

MOST_COLUMNS = 4
"""Panels that fit beside each other in a terminal."""

BOUNDS_HEADING = (
    "algorithms",
    "contexts",
    "assumption",
    "clustering regret",
    "in numbers",
    "constants",
    "full bound",
)


class SummaryRow(NamedTuple):
    """A policy in a panel, in numbers: a line of summary.csv; errors are standard errors over seeds.

    `relative` is reward as a multiple of that of uniform play.
    """

    dataset: str
    variation: str
    policy: str
    seeds: int
    horizon: int
    gamma: float
    regret: float
    regret_error: float
    reward: float
    relative: float
    relative_error: float
    clusters: float
    ari: float
    explored: float
    seconds: float
    params: Mapping[str, Value]

    def record(self) -> dict[str, str | float | None]:
        """The row by columns: the parameters have one each, empty where they are not set."""
        plain = self._asdict()
        params = plain.pop("params")
        return {**plain, **dict.fromkeys(PARAMETERS), **params}


class TextTable(NamedTuple):
    """A table of text; `detail` if it is not for the terminal, `prose` names columns that may be folded."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    detail: bool = False
    prose: tuple[str, ...] = ()


def summary_rows(panels: Sequence[Panel]) -> Iterator[SummaryRow]:
    """One row a policy and panel."""
    for panel in panels:
        for result in panel.results:
            yield _summary_row(panel, result)


def _summary_row(panel: Panel, result: PolicyResult) -> SummaryRow:
    regret, relative = result.final("regret"), result.final("relative")
    return SummaryRow(
        dataset=panel.dataset,
        variation=panel.label,
        policy=result.policy,
        seeds=len(result.traces),
        horizon=int(result.traces[0].rounds[-1]),
        gamma=panel.gamma,
        regret=regret.mean,
        regret_error=regret.error,
        reward=result.final("reward").mean,
        relative=relative.mean,
        relative_error=relative.error,
        clusters=result.final("clusters").mean,
        ari=result.final("ari").mean,
        explored=result.final("explored").mean,
        seconds=result.seconds().mean,
        params=result.spec.params,
    )


def summary_csv(rows: Iterable[SummaryRow]) -> str:
    """The rows with a heading: the same columns whichever command writes them."""
    records = [row.record() for row in rows]
    columns = list(dict.fromkeys(name for record in records for name in record))
    return _csv(columns, [[cell(record.get(name)) for name in columns] for record in records])


def tables_csv(tables: Sequence[TextTable]) -> str:
    """Tables of one heading below each other, the title of each as its first column."""
    rows = [[table.title, *row] for table in tables for row in table.rows]
    return _csv(["table", *tables[0].heading], rows)


def _csv(columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> str:
    import polars as pl

    # Polars writes null as an empty field and an empty string as "".
    empty_as_null = [[value or None for value in row] for row in rows]
    return pl.DataFrame(empty_as_null, schema=dict.fromkeys(columns, pl.String), orient="row").write_csv()


def cell(value: str | float | None) -> str | None:
    """A value in a CSV file: numbers to six digits, nothing for what is unknown or not finite.

    >>> [cell(value) for value in (0.1234567, float("nan"), None, 7, "CLUB")]
    ['0.123457', None, None, '7', 'CLUB']
    """
    if isinstance(value, float):
        return f"{value:.6g}" if isfinite(value) else None
    return None if value is None or value == "" else str(value)


def known(value: float, form: str) -> str:
    """A number in this form; a dash where it is unknown.

    >>> known(1234.5, ",.1f"), known(float("nan"), ".1f")
    ('1,234.5', '–')
    """
    return "–" if isnan(value) else format(value, form)


def regret_table(panels: Sequence[Panel]) -> TextTable:
    """Regret at the horizon: policies down, panels across."""
    return _across(
        "Cumulative regret at the horizon, mean ± standard error", panels, lambda r: str(r.final("regret"))
    )


def relative_table(panels: Sequence[Panel]) -> TextTable:
    """Reward relative to uniform play at the horizon: policies down, panels across."""
    return _across(
        "Reward at the horizon as a multiple of that of uniform play, mean ± standard error",
        panels,
        lambda r: str(final) if (final := r.final("relative")).mean == final.mean else "–",
    )


def time_table(panels: Sequence[Panel]) -> TextTable:
    """Seconds a run: policies down, panels across."""
    return _across(
        "Seconds a run, mean over seeds, one run at a time", panels, lambda r: f"{r.seconds().mean:.2f}"
    )


def cluster_table(panels: Sequence[Panel]) -> TextTable:
    """Clusters and adjusted Rand index at the horizon: policies down, panels across."""
    return _across(
        "Clusters at the horizon (adjusted Rand index), means over seeds",
        panels,
        lambda r: f"{known(r.final('clusters').mean, '.1f')} ({known(r.final('ari').mean, '.2f')})",
    )


def group_table(panels: Sequence[Panel]) -> TextTable:
    """As `cluster_table`, of the panels whose data has groups of users; without rows if none has."""
    grouped = [
        panel for panel in panels if any(r.final("ari").mean == r.final("ari").mean for r in panel.results)
    ]
    return cluster_table(grouped)


def parameter_table(panels: Sequence[Panel]) -> TextTable:
    """The parameters of every policy: policies down, panels across."""
    table = _across("Constants, as tuned", panels, lambda result: str(result.spec.params) or "none")
    return table._replace(detail=True)


def ratio_table(panels: Sequence[Panel]) -> TextTable:
    """AutoCLUB beside the policy that it is compared with and beside the oracle: panels down."""
    beside = ("rival", "regret", "ratio", "wanted", "kept")
    return TextTable(
        f"{AUTO}'s regret ± standard error, its rival's and the oracle's, each with {AUTO}'s ratio to it",
        ("environment", "dataset", AUTO, *beside, "oracle", "ratio", "ARI"),
        tuple(_ratio_row(found) for found in regret_ratios(panels)),
    )


def _ratio_row(found: RegretRatio) -> tuple[str, ...]:
    own, oracle = found.own.mean_regret, found.oracle
    return (
        found.panel.label,
        found.panel.dataset_name,
        str(found.own.final("regret")),
        found.rival.policy,
        f"{found.rival.mean_regret:,.0f}",
        f"{found.value:.2f}",
        "–" if found.limit is None else f"≤ {found.limit.factor:.2f}",
        {True: "yes", False: "no", None: "–"}[found.within_limit],
        "" if oracle is None else f"{oracle.mean_regret:,.0f}",
        "" if oracle is None else f"{own / oracle.mean_regret:.2f}",
        known(found.own.final("ari").mean, ".2f"),
    )


def winner_table(panels: Sequence[Panel]) -> TextTable:
    """The best policy of each panel, those not distinguishable from it, and the next one."""
    return TextTable(
        "Winners: the least regret, mean ± standard error, and the next policy distinguishable from it",
        ("environment", "least regret", "regret", "not distinguishable", "next", "ratio"),
        tuple(_winner_row(panel) for panel in panels),
        prose=("not distinguishable",),
    )


def _winner_row(panel: Panel) -> tuple[str, ...]:
    first, *others = panel.ranking()
    alike = [one.policy for one in others if compared(first, one)[0] == "undecided"]
    behind = [one for one in others if one.policy not in alike]
    beside = ("–", "–")
    if behind:
        beside = behind[0].policy, f"{behind[0].mean_regret / first.mean_regret:.2f}"
    return (panel.title, first.policy, str(first.final("regret")), ", ".join(alike) or "–", *beside)


def multiple_table(panels: Sequence[Panel]) -> TextTable:
    """Regret as a multiple of the least in each panel: policies down, panels across."""
    rows = [(name, *(known(value, ".2f") for value in values)) for name, values in multiples(panels).items()]
    return TextTable(
        "Regret as a multiple of the least in each environment, not counting the oracle",
        ("policy", *(panel.title for panel in panels)),
        tuple(rows),
    )


def _across(title: str, panels: Sequence[Panel], text: Callable[[PolicyResult], str]) -> TextTable:
    """Policies down and panels across, or the other way round where panels are many."""
    policies = tuple(dict.fromkeys(result.policy for panel in panels for result in panel.results))
    found = [[panel.result(policy) for panel in panels] for policy in policies]
    lines = [["" if result is None else text(result) for result in row] for row in found]
    titles = tuple(panel.title for panel in panels)
    if len(panels) <= MOST_COLUMNS:
        rows = zip(policies, *zip(*lines, strict=True), strict=True)
        return TextTable(title, ("policy", *titles), tuple(rows))
    return TextTable(title, ("environment", *policies), tuple(zip(titles, *lines, strict=True)))


VIEW_TABLES: Mapping[str, tuple[Callable[[Sequence[Panel]], TextTable], ...]] = MappingProxyType(
    {
        "times": (time_table, parameter_table),
        "clusters": (cluster_table, regret_table, parameter_table),
        "ratios": (ratio_table, parameter_table),
        "relative": (relative_table, regret_table, group_table, parameter_table),
        "winners": (winner_table, multiple_table, parameter_table),
    }
)
"""The tables of a view; of any other: regrets and parameters."""


def tables_of(view: str, panels: Sequence[Panel]) -> list[TextTable]:
    """The tables that go with a view."""
    made = (make(panels) for make in VIEW_TABLES.get(view, (regret_table, parameter_table)))
    return [table for table in made if table.rows]


def bounds_table(environment: EnvironmentSpec, world: World, horizon: int) -> TextTable:
    """Table 1 of the paper with the numbers of one environment."""
    setup = Setup(
        n_users=environment.n_users,
        dim=world.dim,
        n_clusters=environment.n_clusters,
        n_arms=environment.n_arms,
        horizon=horizon,
        gamma=world.gamma,
        lambda_x=world.lambda_x,
        sigma=environment.sigma,
        truncation=environment.truncation,
    )
    title = (
        f"{DATASET_NAMES.get(environment.dataset, environment.dataset)}: u = {setup.n_users}, "
        f"d = {setup.dim}, m = {setup.n_clusters}, K = {setup.n_arms}, T = {setup.horizon:,}, "
        f"γ = {setup.gamma:.3g}, λ_x = {setup.lambda_x:.3g}"
    )
    rows = tuple(_bounds_row(row) for row in table_1(setup))
    return TextTable(title, BOUNDS_HEADING, rows, prose=BOUNDS_HEADING[1:4])


def _bounds_row(row: BoundRow) -> tuple[str, ...]:
    return (
        ", ".join(row.algorithms),
        row.contexts,
        row.assumption,
        f"Õ({row.formula})",
        f"{row.clustering:.2g}",
        row.constants,
        ", ".join(f"{bound.total:.2g}" for bound in row.bounds) or "–",
    )


def verdict_table(findings: Sequence[Finding]) -> TextTable:
    """Every claim in every panel, with the evidence."""
    return TextTable(
        "Claims (undecided: within two standard errors, or a single seed)",
        ("claim", "where", "answer", "evidence"),
        tuple(
            (v.claim, DATASET_NAMES.get(v.where, v.where), v.answer, v.evidence)
            for finding in findings
            for v in finding.verdicts
        ),
        detail=True,
    )


def markdown_page(sentence: str, tables: Sequence[TextTable]) -> str:
    """A sentence and tables as Markdown, to be pasted into a page or an issue."""
    parts = [sentence, *("\n".join(markdown_lines(table)) for table in tables if table.rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_lines(table: TextTable) -> Iterator[str]:
    """A table as Markdown, its title above.

    >>> list(markdown_lines(TextTable("Ages", ("who", "years"), (("a|b", "7"),))))
    ['Ages:', '', '| who | years |', '|---|---|', '| a\\\\|b | 7 |']
    """
    yield f"{table.title}:"
    yield ""
    yield _markdown_line(table.heading)
    yield f"|{'---|' * len(table.heading)}"
    yield from (_markdown_line(row) for row in table.rows)


def _markdown_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
