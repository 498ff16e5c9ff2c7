"""The curve of a run as a picture and its numbers as a table, written beside the results."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path

from coterie.cli.outcome import Outcome
from coterie.experiments.specs import format_value
from coterie.experiments.tables import cell
from coterie.storage import atomic_write

ALIKE = ("-", "--", "-.", ":")  # lines of specs that share a policy, and so its colour


def write(outcomes: Sequence[Outcome], title: str, folder: Path) -> list[Path]:
    """`regret.png`, `regret.svg` and `summary.csv`; without matplotlib the table alone."""
    written = [folder / "summary.csv"]
    atomic_write(written[0], summary(outcomes).encode())
    if find_spec("matplotlib") is not None:
        for kind in ("png", "svg"):
            written.insert(-1, folder / f"regret.{kind}")
            atomic_write(folder / f"regret.{kind}", picture(outcomes, title, kind))
    return written


def summary(outcomes: Sequence[Outcome]) -> str:
    """A line for each policy."""
    file = StringIO()
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(("policy", "regret", "standard_error", "clusters", "ari", "seeds", "constants"))
    for one in outcomes:
        constants = " ".join(f"{name}={format_value(value)}" for name, value in one.spec.params.items())
        numbers = (one.regret, one.error, one.clusters, one.ari)
        lines.writerow((one.label, *map(cell, numbers), len(one.entry.traces), constants))
    return file.getvalue()


def picture(outcomes: Sequence[Outcome], title: str, kind: str) -> bytes:
    """Mean regret over rounds, with ± one standard error over seeds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    seen: list[str] = []
    for one in outcomes:
        policy = one.spec.name
        colour, line = one.style.colour, ALIKE[seen.count(policy) % len(ALIKE)]
        seen.append(policy)
        mean, error = one.entry.band("regret")
        axes.plot(one.rounds, mean, color=colour, label=one.label, linestyle=line, linewidth=1.6)
        axes.fill_between(one.rounds, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    axes.set(xlabel="round", ylabel="cumulative regret", xlim=(0, None), ylim=(0, None))
    axes.set_title(title, fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    file = BytesIO()
    figure.savefig(file, format=kind, dpi=160)
    return file.getvalue()
