"""What `coterie evaluate` prints and writes: a table, a figure, or the same as plain values."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.markup import escape

from coterie.cli.output import console, print_note, print_table
from coterie.evaluation import Estimate, Evaluation, Log
from coterie.experiments.plotting import RC_PARAMS, save_figure, styles_of
from coterie.experiments.results import labels_of
from coterie.experiments.specs import PolicySpec
from coterie.experiments.tables import known
from coterie.extras import install_command
from coterie.storage import atomic_write
from coterie.validation import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = 30
"""Characters of an interval in the table."""

PANEL = 2.5
"""Inches of a panel of the figure."""

ABOUT = {
    "replay": "its first rounds",
    "ips": "after all earlier events",
    "snips": "after all earlier events",
    "dr": "after all earlier events",
}
"""What each estimator is about, as its panel's second line says."""


class EvaluateResults(NamedTuple):
    """The estimates, beside what they are of."""

    name: str
    log: Log
    specs: tuple[PolicySpec, ...]
    found: Evaluation

    @property
    def title(self) -> str:
        """The log in one line."""
        log = self.log
        sizes = " to ".join(dict.fromkeys(f"{size:,}" for size in (log.sizes.min(), log.sizes.max())))
        return (
            f"{self.name}: {counted(len(log), 'event')} of {counted(log.n_users, 'user')}, "
            f"{sizes} arms of dim {log.dim}, mean reward {log.rewards.mean():.4g}"
        )

    def rows(self) -> list[Estimate]:
        """The estimates, the policy of the highest last estimate first, then the baselines."""
        last = {one.policy: one.reward for one in self.found.estimates}
        ranked = sorted(self.found.estimates, key=lambda one: -last[one.policy])
        return [*ranked, *self.found.baselines]

    def show(self) -> None:
        """Print the table."""
        interval = f"{self.found.level:.0%} interval"
        columns = ("policy", "estimator", "reward", interval, "effective", "")
        rows = self.rows()
        ends = [end for one in rows for end in (one.low, one.high) if end == end]
        low, high = min(ends, default=0.0), max(ends, default=0.0)
        console().print(f"[bold]{escape(self.title)}[/bold]", soft_wrap=True)
        shown = [
            (
                f"[bold]{escape(one.policy)}[/bold]",
                one.estimator,
                known(one.reward, ".4g"),
                "–" if one.low != one.low else f"{one.low:.4g} to {one.high:.4g}",
                f"{one.effective:,.0f}",
                f"[dim]{drawn_interval(one, low, high)}[/dim]",
            )
            for one in rows
        ]
        print_table(columns, shown, left=("estimator", ""), optional=("", "effective"))

    def record(self, written: list[Path]) -> dict[str, Any]:
        """Everything as plain values."""
        specs = dict(zip(labels_of(self.specs), self.specs, strict=True))
        return {
            "log": self.name,
            "events": self.found.events,
            "users": self.log.n_users,
            "dim": self.log.dim,
            "level": self.found.level,
            "policies": {label: {"name": s.name, "params": dict(s.params)} for label, s in specs.items()},
            "estimates": [one._asdict() for one in self.found.estimates],
            "baselines": [one._asdict() for one in self.found.baselines],
            "warnings": list(self.found.warnings),
            "written": [str(path) for path in written],
        }

    def write(self, folder: Path) -> list[Path]:
        """Write `evaluation.csv` and the pictures; without matplotlib the table alone."""
        table = folder / "evaluation.csv"
        atomic_write(table, self.found.to_frame().write_csv().encode())
        if find_spec("matplotlib") is None:
            print_note(f"coterie: no picture was drawn, it needs matplotlib: {install_command('matplotlib')}")
            return [table]
        return [table, *self._draw(folder)]

    def _draw(self, folder: Path) -> list[Path]:
        """Draw a panel for each estimator, policies below each other."""
        from matplotlib.figure import Figure
        from matplotlib.style import context as style_context

        names = list(dict.fromkeys(one.estimator for one in self.found.estimates))
        with style_context(dict(RC_PARAMS)):
            size = (max(PANEL * len(names) + 0.8, 5.2), 1.7 + 0.3 * len(self.specs))
            canvas = Figure(figsize=size)
            panels = canvas.subplots(1, len(names), squeeze=False, sharey=True, sharex=True)[0]
            for axes, name in zip(panels, names, strict=True):
                self._draw_panel(axes, name)
            canvas.supxlabel("mean reward a round; dashed: as logged, dotted: uniform play", fontsize=8.5)
            return save_figure(canvas, self.title, folder, "evaluation")

    def _draw_panel(self, axes: Axes, name: str) -> None:
        by_policy = {one.policy: one for one in self.found.estimates if one.estimator == name}
        labels, styles = labels_of(self.specs), styles_of(self.specs)
        for row, (label, style) in enumerate(zip(labels, styles, strict=True)):
            one = by_policy[label]
            axes.hlines(row, one.low, one.high, color=style.colour, linewidth=1.6)
            axes.plot([one.reward], [row], marker=style.marker, color=style.colour, markersize=5)
        for baseline, line in zip(self.found.baselines, ("--", ":"), strict=True):
            axes.axvline(baseline.reward, color="#777777", linestyle=line, linewidth=0.9)
        axes.set_yticks(range(len(styles)), [style.label for style in styles])
        axes.set_ylim(len(styles) - 0.4, -0.6)
        axes.set_title(f"{name}\n{ABOUT[name]}", fontsize=8.5)


def drawn_interval(one: Estimate, low: float, high: float) -> str:
    """An interval as a line of text between two values that all intervals lie between.

    >>> drawn_interval(Estimate("CLUB", "ips", 0.5, 0.25, 0.75, 100.0), 0.0, 1.0)
    '       ├──────●───────┤'
    """
    if one.low != one.low or high <= low:
        return ""
    left, middle, right = (
        round((min(max(value, low), high) - low) / (high - low) * (DRAWN - 1))
        for value in (one.low, one.reward, one.high)
    )
    line = [" "] * left + ["─"] * (right - left + 1)
    line[left], line[right] = "├", "┤"
    line[min(max(middle, left), right)] = "●"
    return "".join(line)
