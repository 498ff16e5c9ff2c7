"""What `coterie run` prints and writes: a table, a chart, a picture, or the same as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.markup import escape

from coterie.cli.output import Curve, chart, console, print_line, print_table
from coterie.cli.real_worlds import real_notes
from coterie.cli.run_plan import RunPlan
from coterie.experiments.plotting import draw, styles_of
from coterie.experiments.results import Panel, PolicyResult
from coterie.experiments.run_store import Store
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.tables import known, summary_csv, summary_rows
from coterie.extras import is_installed
from coterie.policies.entries import Style
from coterie.storage import atomic_write
from coterie.validation import counted

COLUMNS = ("policy", "regret", "± s.e.", "clusters", "ARI", "µs/round", "constants")
REAL_COLUMNS = ("policy", "regret", "± s.e.", "reward", "× uniform", "clusters", "µs/round", "constants")
OPTIONAL = ("constants", "µs/round", "ARI", "clusters", "reward", "± s.e.")
"""Columns that a narrow terminal does without, the least important first."""


class LabelledResult(NamedTuple):
    """The result of a policy, with its label and how it is drawn."""

    label: str
    result: PolicyResult
    style: Style

    @property
    def colour(self) -> str:
        """The policy's colour for a terminal; black is whatever colour the terminal writes in."""
        return "" if self.style.colour == "#000000" else self.style.colour

    @property
    def microseconds(self) -> float:
        """Microseconds a round of the fastest seed; NaN where all of them were read back."""
        horizon = int(self.result.traces[0].rounds[-1])
        spent = [trace.seconds for trace in self.result.traces if trace.seconds == trace.seconds]
        return 1e6 * min(spent, default=float("nan")) / horizon

    def row(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """The line of the table."""
        regret, final = self.result.final("regret"), self.result.final
        every = {
            "policy": f"[bold]{escape(self.label)}[/bold]",
            "regret": f"{regret.mean:,.1f}",
            "± s.e.": known(regret.error, ",.1f"),
            "reward": f"{final('reward').mean:,.1f}",
            "× uniform": known(final("relative").mean, ".3f"),
            "clusters": known(final("clusters").mean, ".1f"),
            "ARI": known(final("ari").mean, ".2f"),
            "µs/round": known(self.microseconds, ",.1f"),
            "constants": f"[dim]{escape(str(self.result.spec.params))}[/dim]",
        }
        return tuple(every[name] for name in columns)

    def record(self) -> dict[str, Any]:
        """All of it as plain values."""
        result, regret = self.result, self.result.final("regret")
        return {
            "label": self.label,
            "policy": result.policy,
            "constants": dict(result.spec.params),
            "regret": regret.mean,
            "standard_error": regret.error,
            "regret_by_seed": {str(trace.seed): float(trace.regret[-1]) for trace in result.traces},
            "reward": result.final("reward").mean,
            "relative_to_uniform": result.final("relative").mean,
            "clusters": result.final("clusters").mean,
            "ari": result.final("ari").mean,
            "microseconds_a_round": self.microseconds,
            "curve": {
                "rounds": result.traces[0].rounds.tolist(),
                "regret": result.band("regret").mean.tolist(),
            },
        }


class RunResults(NamedTuple):
    """Everything that was found."""

    plan: RunPlan
    horizon: int
    seeds: tuple[int, ...]
    results: tuple[LabelledResult, ...]

    @property
    def title(self) -> str:
        """The world in one line."""
        w = self.plan.environment
        if w.is_real:
            return (
                f"{w.dataset}, {w.setting}: {counted(w.n_users, 'user')}, {counted(w.n_arms, 'arm')}, "
                f"{counted(self.horizon, 'round')}, {counted(len(self.seeds), 'seed')}"
            )
        return (
            f"{w.dataset}, {w.setting}: {counted(w.n_users, 'user')} in {counted(w.n_clusters, 'cluster')}, "
            f"{counted(w.n_arms, 'arm')}, {rewards_line(w)}, {counted(self.horizon, 'round')}, "
            f"{counted(len(self.seeds), 'seed')}"
        )

    @property
    def caution(self) -> str:
        """What is made up, what was left out, and whether arms have an intercept."""
        environment = self.plan.environment
        parts: list[str] = []
        if environment.is_real:
            parts += real_notes(self.plan.environment, self.plan.data)
        elif environment.dataset != "synthetic":
            parts.append("Rewards are simulated from your data; the clusters are made up, not found in it.")
        if environment.intercept:
            parts.append(
                "Arms have an intercept, since rewards are not centred; --no-intercept leaves it out."
            )
        elif environment.offset:
            parts.append("Rewards are not centred and arms have no intercept: expect much regret.")
        return " ".join(parts)

    def show(self, draw_chart: bool | None) -> None:
        """Print the table, least regret first, and the chart where it was asked for or someone is looking."""
        out = console()
        ranked = sorted(self.results, key=lambda one: one.result.mean_regret)
        print_line(f"[bold]{escape(self.title)}[/bold]")
        if self.caution:
            print_line(self.caution)
        columns = REAL_COLUMNS if self.plan.environment.is_real else COLUMNS
        rows = [one.row(columns) for one in ranked]
        print_table(columns, rows, prose=("constants",), optional=OPTIONAL)
        if draw_chart or (draw_chart is None and out.is_terminal):
            names = max(len(one.label) for one in ranked)
            curves = [_curve(one) for one in ranked]
            for line in chart(curves, width=max(20, min(70, out.width - names - 12))):
                out.print(line, no_wrap=True, overflow="crop")

    def record(self, written: list[Path]) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "world": asdict(self.plan.environment),
            "caution": self.caution,
            "horizon": self.horizon,
            "seeds": list(self.seeds),
            "policies": [one.record() for one in self.results],
            "runs": [run.id for run in self.plan.runs],
            "written": [str(path) for path in written],
        }

    def write(self, folder: Path) -> list[Path]:
        """Write `summary.csv` and the pictures; without matplotlib the table alone."""
        plan = self.plan
        worlds = [plan.environment.make(plan.data.dataset(plan.environment), seed) for seed in self.seeds]
        gamma = sum(world.gamma for world in worlds) / len(worlds)
        results = tuple(one.result for one in self.results)
        panel = Panel(plan.environment.dataset, "", "", 0.0, gamma, results)
        written = [folder / "summary.csv"]
        atomic_write(written[0], summary_csv(summary_rows([panel])).encode())
        if is_installed("matplotlib"):
            written += draw("curves", self.title, [panel], folder, "regret")
        return written


def _curve(one: LabelledResult) -> Curve:
    rounds = np.asarray(one.result.traces[0].rounds, np.float64)
    return Curve(one.label, rounds, one.result.band("regret").mean, one.colour)


def rewards_line(environment: EnvironmentSpec) -> str:
    """How rewards scatter.

    >>> rewards_line(EnvironmentSpec(rewards="bernoulli")), rewards_line(EnvironmentSpec())
    ('0/1 rewards', 'σ = 0.1')
    """
    if environment.duels:
        return f"duels of sharpness {environment.duels:g}"
    return "0/1 rewards" if environment.rewards == "bernoulli" else f"σ = {environment.noise:g}"


def collect(
    plan: RunPlan, store: Store, seconds: Mapping[str, float], *, horizon: int, seeds: tuple[int, ...]
) -> RunResults:
    """Read the finished runs; those that were just played have their seconds."""
    results = []
    for label, spec, style in zip(plan.labels, plan.policies, styles_of(plan.policies), strict=True):
        runs = [run for run in plan.runs if run.policy == spec]
        traces = (replace(store.read(run), seconds=seconds.get(run.id, float("nan"))) for run in runs)
        results.append(LabelledResult(label, PolicyResult(spec, tuple(traces)), style))
    return RunResults(plan, horizon, seeds, tuple(results))
