"""How a long experiment goes, live on a terminal; one line a stage elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from coterie.experiments.runs import Run
    from coterie.experiments.watching import Watch
    from coterie.traces import Trace


class Lines:
    """For a pipe or a log: only what a person must know."""

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """Nothing: a log needs no progress."""

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Nothing."""

    def finish(self, run: Run, trace: Trace) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """The line, on stderr."""
        print(line, file=sys.stderr)


class Bars:
    """A bar a stage, with time left, the last finished run and its regret."""

    def __init__(self, progress: Progress) -> None:
        """Draw on this progress display."""
        self._progress, self._lock = progress, Lock()
        self._task: TaskID | None = None
        self._finished = 0

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """A new bar, as long as the work is expected to be."""
        from coterie.experiments.execute import cost

        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task, self._finished = None, 0
        if runs:
            total = sum(cost(run) * run.horizon for run in runs)
            note = f"{len(runs)} runs" + (f", {already} already there" if already else "")
            self._task = self._progress.add_task(title, total=total, note=note)

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Move the bar."""
        from coterie.experiments.execute import cost

        if self._task is not None:
            with self._lock:
                self._progress.advance(self._task, cost(run) * rounds)

    def finish(self, run: Run, trace: Trace) -> None:
        """Tell of a finished run."""
        if self._task is not None:
            with self._lock:
                self._finished += 1
                told = f"{self._finished} done, last: {run.contender.policy} on {run.world.dataset}"
                regret = f"regret {trace.regret[-1]:,.0f} at {trace.rounds[-1]:,}"
                self._progress.update(self._task, note=f"{told}, {regret}")

    def say(self, line: str) -> None:
        """The line, above the bar."""
        self._progress.console.print(line, soft_wrap=True)


@contextmanager
def watching() -> Iterator[Watch]:
    """Bars if stderr is a terminal, else lines."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from coterie.cli.terminal import console

    columns = (
        TextColumn("[bold]{task.description}[/bold]"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[note]}[/dim]"),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        yield Bars(progress)
