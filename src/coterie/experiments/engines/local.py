"""Runs on the threads of this machine: the compiled rounds release the GIL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

from coterie.experiments.execute import Played
from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.watching import Watch
from coterie.parallel import run_all
from coterie.validation import whole


class Local:
    """`jobs` threads; as many as there are processors unless told."""

    def __init__(self, jobs: int | None = None) -> None:
        """No thread is started yet."""
        self.jobs = jobs if jobs is None else whole("jobs", jobs, 1)

    def play(self, runs: Sequence[Run], shelf: Shelf, watch: Watch) -> Iterator[Played]:
        """Results as they finish; when the caller stops listening, runs under way stop soon."""
        stop = Event()

        def one(run: Run) -> Played:
            def advance(rounds: int, regret: float) -> None:
                watch.advance(run, rounds, regret)

            return Played(run, run.play(shelf.dataset(run.environment), stop=stop, progress=advance))

        for run in runs:
            shelf.dataset(run.environment)  # loaded here, once, not by two threads at a time
        return run_all(runs, one, jobs=self.jobs, stop=stop)
