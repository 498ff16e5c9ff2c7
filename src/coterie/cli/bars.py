"""The live display of `coterie run`: a bar for each policy, its regret so far, and the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from coterie.cli.live import Lines
from coterie.cli.terminal import console
from coterie.experiments.execute import cost
from coterie.experiments.runs import Run
from coterie.experiments.watching import Watch
from coterie.traces import Trace

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

ALL = "all"


class PolicyBars:
    """A bar for each label, and one for all of them, weighted by what a round costs."""

    def __init__(self, progress: Progress, label: Callable[[Run], str]) -> None:
        """Nothing is shown before the first stage begins."""
        self._progress, self._label = progress, label
        self._tasks: dict[str, TaskID] = {}
        self._regrets: dict[str, list[float]] = {}
        self._counts: dict[str, int] = {}
        self._lock = Lock()

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """Bars for these runs in place of those before."""
        for task in self._tasks.values():
            self._progress.remove_task(task)
        labels = [self._label(run) for run in runs]
        self._counts = {label: labels.count(label) for label in dict.fromkeys(labels)}
        self._regrets = {label: [] for label in self._counts}
        self._tasks = {}
        for label in self._counts:
            total = sum(run.horizon for run in runs if self._label(run) == label)
            self._tasks[label] = self._progress.add_task(label, total=total, found="")
        if runs:
            kept = f"{already} runs were finished before" if already else ""
            work = sum(cost(run) * run.horizon for run in runs)
            self._tasks[ALL] = self._progress.add_task(title, total=work, found=kept)

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Some rounds of a run were just played."""
        self._progress.advance(self._tasks[self._label(run)], rounds)
        self._progress.advance(self._tasks[ALL], cost(run) * rounds)

    def finish(self, run: Run, trace: Trace) -> None:
        """A run is finished: its regret joins the mean of its label."""
        label = self._label(run)
        with self._lock:
            done = self._regrets[label]
            done.append(float(trace.regret[-1]))
            found = f"{len(done)}/{self._counts[label]} runs, regret {sum(done) / len(done):,.0f}"
        self._progress.update(self._tasks[label], found=found)

    def say(self, line: str) -> None:
        """A line above the bars."""
        self._progress.console.print(line, markup=False)


@contextmanager
def policy_bars(label: Callable[[Run], str]) -> Iterator[Watch]:
    """Bars on stderr where that is a terminal, else only words."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("left", style="dim"),
        TextColumn("{task.fields[found]}", style="dim", markup=False),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        yield PolicyBars(progress, label)
