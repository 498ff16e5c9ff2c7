"""What `coterie run` prints: a table, a chart, or the same as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape

from coterie.cli import chart as drawing
from coterie.cli.outcome import Outcome
from coterie.cli.plan import Plan
from coterie.cli.settings import Settings
from coterie.cli.terminal import console, table
from coterie.experiments.tables import known

COLUMNS = ("policy", "regret", "± s.e.", "clusters", "ARI", "µs/round", "constants")


def title(planned: Plan, settings: Settings) -> str:
    """The world in one line."""
    w, n = planned.environment, len(settings.seeds)
    return (
        f"{w.dataset}, {w.setting}: {w.n_users} users in {w.n_clusters} clusters, {w.n_arms} arms, "
        f"σ = {w.noise:g}, {settings.horizon:,} rounds, {n} seed{'s' * (n > 1)}"
    )


def record(
    planned: Plan, settings: Settings, outcomes: Sequence[Outcome], written: Sequence[Path]
) -> dict[str, Any]:
    """Everything as plain values."""
    return {
        "world": asdict(planned.environment),
        "horizon": settings.horizon,
        "seeds": list(settings.seeds),
        "policies": [outcome.record() for outcome in outcomes],
        "runs": [run.id for run in planned.runs],
        "written": [str(path) for path in written],
    }


def show(planned: Plan, settings: Settings, outcomes: Sequence[Outcome], chart: bool | None) -> None:
    """The table, least regret first, and the chart where it was asked for or someone is looking."""
    out = console()
    ranked = sorted(outcomes, key=lambda outcome: outcome.regret)
    shown = table(*COLUMNS, left=("constants",))
    for one in ranked:
        shown.add_row(*_row(one))
    out.print(f"[bold]{title(planned, settings)}[/bold]", soft_wrap=True)
    out.print(shown)
    if chart or (chart is None and out.is_terminal):
        names = max(len(one.label) for one in ranked)
        curves = [drawing.Curve(o.label, o.rounds, o.entry.band("regret").mean, o.colour) for o in ranked]
        for line in drawing.chart(curves, width=max(20, min(70, out.width - names - 12))):
            out.print(line, no_wrap=True, overflow="crop")


def _row(one: Outcome) -> tuple[str, ...]:
    return (
        f"[bold]{escape(one.label)}[/bold]",
        f"{one.regret:,.1f}",
        known(one.error, ",.1f"),
        known(one.clusters, ".1f"),
        known(one.ari, ".2f"),
        known(one.pace, ",.1f"),
        f"[dim]{escape(str(one.spec.params))}[/dim]",
    )
