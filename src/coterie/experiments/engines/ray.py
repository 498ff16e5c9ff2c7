"""Runs on a Ray cluster: each run is one task, and a lost worker's run is played again."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from coterie.datasets.dataset import Dataset
from coterie.errors import ArgumentError
from coterie.experiments.execute import Played
from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.watching import Watch
from coterie.simulation import Trace

RETRIES = 5
"""How often a run is played again when its worker, or the worker's machine, is lost."""

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""For a Ray that we start ourselves: it reports to nobody, asks for no token and does not warn about GPUs."""


class Ray:
    """The cluster at $RAY_ADDRESS, or a Ray of `jobs` processors started here for the time being."""

    def __init__(self, jobs: int | None = None) -> None:
        """Nothing is started yet."""
        if find_spec("ray") is None:
            raise ArgumentError("--engine ray needs Ray, which is not installed: pip install 'coterie[ray]'")
        self.jobs = jobs

    def play(self, runs: Sequence[Run], shelf: Shelf, watch: Watch) -> Iterator[Played]:
        """Results as they finish, for the caller to keep: workers write no files."""
        import ray

        if not runs:
            return
        waiting: dict[Any, Run] = {}
        started = self._connect()
        try:
            waiting.update(submitted(runs, shelf))  # one by one: what went out before an error is known
            while waiting:
                ready, _ = ray.wait(list(waiting), num_returns=1)
                run = waiting.pop(ready[0])
                trace = ray.get(ready[0])
                watch.advance(run, run.horizon, float(trace.regret[-1]))
                yield Played(run, trace)
        finally:
            for left in waiting:
                ray.cancel(left, force=True)
            if started:
                ray.shutdown()

    def _connect(self) -> bool:
        """Join a Ray that is there, or start one; says whether it was started here."""
        if os.environ.get("RAY_ADDRESS"):
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        else:
            for name, value in QUIET.items():
                os.environ.setdefault(name, value)
        import ray

        if ray.is_initialized():
            return False
        if os.environ.get("RAY_ADDRESS"):
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
            return True
        ray.init(
            num_cpus=self.jobs, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
        )
        return True


def submitted(runs: Sequence[Run], shelf: Shelf) -> Iterator[tuple[Any, Run]]:
    """Each run as a task of Ray; vectors are sent once, however many runs draw from them."""
    import ray

    task = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(play_one)
    shared = {run.environment: shelf.dataset(run.environment) for run in runs}
    placed = {id(dataset): ray.put(dataset) for dataset in shared.values()}
    for run in runs:
        yield task.remote(run, placed[id(shared[run.environment])]), run


def play_one(run: Run, dataset: Dataset) -> Trace:
    """The task: one run, from its description and the dataset's vectors."""
    return run.play(dataset)
