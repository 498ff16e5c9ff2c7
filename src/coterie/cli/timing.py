"""How fast runs were: seconds are not part of a result, so they are noted as runs finish."""

from __future__ import annotations

from collections.abc import Sequence

from coterie.experiments.runs import Run
from coterie.experiments.specs import PolicySpec
from coterie.experiments.watching import Watch
from coterie.simulation import Trace


class Timed:
    """Passes everything on to another watch, and keeps the best pace of each policy."""

    def __init__(self, watch: Watch) -> None:
        """Nothing is timed yet."""
        self._watch = watch
        self._paces: dict[PolicySpec, float] = {}

    def pace(self, policy: PolicySpec) -> float:
        """Microseconds a round of its fastest run; NaN if none was played."""
        return self._paces.get(policy, float("nan"))

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """Passed on."""
        self._watch.begin(title, runs, already)

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Passed on."""
        self._watch.advance(run, rounds, regret)

    def finish(self, run: Run, trace: Trace) -> None:
        """Noted, and passed on."""
        pace = 1e6 * trace.seconds / run.horizon
        self._paces[run.policy] = min(pace, self._paces.get(run.policy, pace))
        self._watch.finish(run, trace)

    def say(self, line: str) -> None:
        """Passed on."""
        self._watch.say(line)
