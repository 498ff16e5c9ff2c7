"""Runs on the threads of this machine: the compiled rounds release the GIL."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event

from coterie.experiments.ahead import compile_ahead
from coterie.experiments.execute import Played
from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.watching import Watch


class Local:
    """`jobs` threads; as many as there are processors unless told."""

    here = True

    def __init__(self, jobs: int | None = None) -> None:
        """No thread is started yet."""
        self.jobs = jobs or os.cpu_count() or 1

    def prepare(self, runs: Iterable[Run], watch: Watch) -> None:
        """Compile what they need, side by side; threads would wait for each other."""
        compile_ahead(runs, self.jobs, watch)

    def play(self, runs: Sequence[Run], shelf: Shelf, watch: Watch) -> Iterator[Played]:
        """Results as they finish; when the caller stops listening, runs under way stop soon."""
        stop = Event()

        def one(run: Run) -> Played:
            def advance(rounds: int, regret: float) -> None:
                watch.advance(run, rounds, regret)

            return Played(run, run.play(shelf.dataset(run.world), stop=stop, progress=advance))

        for run in runs:
            shelf.dataset(run.world)  # loaded here, once, not by two threads at a time
        with ThreadPoolExecutor(self.jobs) as pool:
            futures = [pool.submit(one, run) for run in runs]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
