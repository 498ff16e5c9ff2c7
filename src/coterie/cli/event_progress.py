"""The progress of a pass over events: a bar on a terminal after two seconds, a line now and then in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.progress import Progress

from coterie.cli.output import console
from coterie.cli.progress import INTERVAL, display

DELAY = 2.0
"""Seconds before a bar is shown."""


class EventProgress:
    """Counts events; shows nothing of what is done within two seconds."""

    def __init__(self, title: str, total: int, bar: Progress | None, interval: float = INTERVAL) -> None:
        """Nothing is shown yet; without a bar, lines are printed."""
        self._title, self._total, self._bar, self._interval = title, total, bar, interval
        self._done, self._began = 0, monotonic()
        self._last = self._began
        self._task = None if bar is None else bar.add_task(title, total=total, note="", timed=True)

    def advance(self, events: int) -> None:
        """Count events that were just passed."""
        self._done += events
        now = monotonic()
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
    """What to call with the number of events just passed."""
    bar = display(console(stderr=True)) if sys.stderr.isatty() else None
    try:
        yield EventProgress(title, total, bar).advance
    finally:
        if bar is not None:
            bar.stop()
