"""Progress of experiments and of passes over events: bars on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Lock, Thread
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from coterie.cli.output import console
from coterie.experiments.run_store import Run
from coterie.experiments.runner import Callback, cost
from coterie.simulation import Trace

Label = Callable[[Run], str]

INTERVAL = 30.0
"""Seconds between the lines of a log."""

DELAY = 2.0
"""Seconds before a bar is shown."""


class LineProgress:
    """For a pipe or a log: a line on stderr every half minute."""

    def __init__(self) -> None:
        """Nothing has begun yet."""
        self._lock = Lock()
        self._title, self._total, self._work, self._done = "reading data", 0, 0.0, 0.0
        self._finished, self._began = 0, monotonic()

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """Start to count."""
        with self._lock:
            self._title, self._total = title, len(runs)
            self._work, self._done = sum(cost(run) * run.horizon for run in runs), 0.0
            self._finished, self._began = 0, monotonic()

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Count the rounds."""
        with self._lock:
            self._done += cost(run) * rounds

    def finish(self, run: Run, trace: Trace) -> None:
        """Count the run."""
        with self._lock:
            self._finished += 1

    def __str__(self) -> str:
        """The line: the stage, its progress, and the time left once that can be estimated."""
        with self._lock:
            gone = monotonic() - self._began
            if not self._work:
                return f"coterie: {self._title}, {_clock(gone)} gone"
            share = min(1.0, self._done / self._work)
            left = f", about {_clock(gone * (1 - share) / share)} left" if share else ""
            return (
                f"coterie: {self._title}, {self._finished} of {self._total} runs, {share:.0%} of the work, "
                f"{_clock(gone)} gone{left}"
            )


@contextmanager
def printed(progress: LineProgress, interval: float) -> Iterator[LineProgress]:
    """Print the line every so many seconds until the end, from a thread of its own."""
    stop = Event()

    def print_lines() -> None:
        # A thread of its own: the work may be in compiled code that calls back rarely.
        while not stop.wait(interval):
            print(progress, file=sys.stderr, flush=True)

    thread = Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        stop.set()
        thread.join()


@dataclass(slots=True)
class Tally:
    """Progress of the runs of one label."""

    task: TaskID
    runs: int
    finished: list[float] = field(default_factory=list)
    """The regret of each finished run."""
    under_way: dict[str, tuple[int, float]] = field(default_factory=dict)
    """The rounds and the regret of each run under way, by its id."""

    def __str__(self) -> str:
        """Runs finished, their mean regret, and that of the furthest run under way."""
        parts = [f"{len(self.finished):>{len(str(self.runs))}}/{self.runs} runs"]
        if self.finished:
            parts.append(f"regret {sum(self.finished) / len(self.finished):,.0f}")
        if self.under_way:
            rounds, regret = max(self.under_way.values())
            parts.append(f"now {regret:,.0f} at {rounds:,}")
        return ", ".join(parts)


class BarProgress:
    """The stage first, weighted by what a round costs; below it a line for each label."""

    def __init__(self, progress: Progress, label: Label) -> None:
        """Nothing is shown before the first stage begins."""
        self._progress, self._label, self._lock = progress, label, Lock()
        self._stage: TaskID | None = None
        self._tallies: dict[str, Tally] = {}

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """Bars for these runs in place of those before."""
        with self._lock:
            # A new stage begins with bars of its own; those of the stage before would stay at 100 %.
            for task in self._progress.task_ids:
                self._progress.remove_task(task)
            self._stage, self._tallies = None, {}
            if not runs:
                return
            work = sum(cost(run) * run.horizon for run in runs)
            note = f"{len(runs)} runs" + (f", {already} more were there" if already else "")
            self._stage = self._progress.add_task(title, total=work, note=note, timed=True)
            labelled = [(self._label(run), run.horizon) for run in runs]
            for name in dict.fromkeys(name for name, _ in labelled):
                lengths = [horizon for other, horizon in labelled if other == name]
                task = self._progress.add_task(name, total=sum(lengths), visible=False, timed=False)
                tally = self._tallies[name] = Tally(task, len(lengths))
                self._progress.update(task, note=str(tally), visible=True)

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Move the bars of the run and of the stage."""
        with self._lock:
            if self._stage is None:
                return
            tally = self._tallies[self._label(run)]
            before, _ = tally.under_way.get(run.id, (0, 0.0))
            tally.under_way[run.id] = before + rounds, regret
            self._progress.update(tally.task, advance=rounds, note=str(tally))
            self._progress.advance(self._stage, cost(run) * rounds)

    def finish(self, run: Run, trace: Trace) -> None:
        """The regret of the run joins the mean of its label."""
        with self._lock:
            if self._stage is None:
                return
            tally = self._tallies[self._label(run)]
            tally.under_way.pop(run.id, None)
            tally.finished.append(float(trace.regret[-1]))
            self._progress.update(tally.task, note=str(tally))


class NoteColumn(ProgressColumn):
    """The note of a line; before it, for a stage, the time gone and the time left."""

    def render(self, task: Task) -> Text:
        """A line of text."""
        gone, left = _clock(task.elapsed), _clock(task.time_remaining)
        times = f"{gone}, {left} left, " if task.fields["timed"] else ""
        return Text(times + task.fields["note"], style="dim", no_wrap=True, overflow="ellipsis")


def _clock(seconds: float | None) -> str:
    return "-:--:--" if seconds is None else str(timedelta(seconds=int(seconds)))


def display(shown: Console) -> Progress:
    """The bars as they are drawn on a console; gone when the work is done."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=14),
        TextColumn("{task.percentage:>3.0f} %"),
        NoteColumn(),
    )
    return Progress(*columns, console=shown, transient=True)


def policy_label(run: Run) -> str:
    """The usual label of a run."""
    return run.policy.label


@contextmanager
def progress_display(label: Label = policy_label, *, interval: float = INTERVAL) -> Iterator[Callback]:
    """Bars if stderr is a terminal, else a line every `interval` seconds."""
    if not sys.stderr.isatty():
        with printed(LineProgress(), interval) as lines:
            yield lines
        return
    with display(console(stderr=True)) as progress:
        yield BarProgress(progress, label)


class EventProgress:
    """Counts events; nothing is shown in the first two seconds."""

    def __init__(
        self,
        title: str,
        total: int,
        bar: Progress | None,
        *,
        interval: float = INTERVAL,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Nothing is shown yet; without a bar, lines are printed."""
        self._title, self._total, self._bar, self._interval = title, total, bar, interval
        self._done, self._clock = 0, clock
        self._began = clock()
        self._last = self._began
        self._task = None if bar is None else bar.add_task(title, total=total, note="", timed=True)

    def advance(self, events: int) -> None:
        """Count events that were just passed."""
        self._done += events
        now = self._clock()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, note=f"{self._done:,} of {self._total:,}")
            if now - self._began > DELAY and not self._bar.live.is_started:
                self._bar.start()
        elif now - self._last >= self._interval:
            self._last = now
            line = f"coterie: {self._title}, {self._done:,} of {self._total:,}"
            print(line, file=sys.stderr, flush=True)


@contextmanager
def event_progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function to be called with the number of events just passed."""
    bar = display(console(stderr=True)) if sys.stderr.isatty() else None
    try:
        yield EventProgress(title, total, bar).advance
    finally:
        if bar is not None:
            bar.stop()
