"""Who is told how an experiment goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from coterie.experiments.runs import Run
from coterie.simulation import Trace


class Watch(Protocol):
    """Told of progress, from any thread."""

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """A stage begins: these runs will be played, `already` more are finished."""

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Some rounds of a run were just played; its regret so far."""

    def finish(self, run: Run, trace: Trace) -> None:
        """A run is finished and kept."""

    def say(self, line: str) -> None:
        """Something a person should know."""


class Silence:
    """Nobody watches."""

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """Nothing."""

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Nothing."""

    def finish(self, run: Run, trace: Trace) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""
