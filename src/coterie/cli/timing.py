"""How fast runs were: seconds are not part of a result, so they are noted as runs finish."""

from __future__ import annotations

from collections.abc import Sequence

from coterie.experiments.contenders import Contender
from coterie.experiments.runs import Run
from coterie.experiments.watching import Watch
from coterie.traces import Trace


class Timed:
    """Passes everything on to another watch, and keeps the best pace of each contender."""

    def __init__(self, watch: Watch) -> None:
        """Nothing is timed yet."""
        self._watch = watch
        self._paces: dict[Contender, float] = {}

    def pace(self, contender: Contender) -> float:
        """Microseconds a round of its fastest run; NaN if none was played."""
        return self._paces.get(contender, float("nan"))

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """Passed on."""
        self._watch.begin(title, runs, already)

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Passed on."""
        self._watch.advance(run, rounds, regret)

    def finish(self, run: Run, trace: Trace) -> None:
        """Noted, and passed on."""
        pace = 1e6 * trace.seconds / run.horizon
        self._paces[run.contender] = min(pace, self._paces.get(run.contender, pace))
        self._watch.finish(run, trace)

    def say(self, line: str) -> None:
        """Passed on."""
        self._watch.say(line)
