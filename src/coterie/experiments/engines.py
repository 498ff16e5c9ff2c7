"""Where runs are played: on the threads of this machine, or on a Ray cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event
from types import MappingProxyType
from typing import Any

from coterie.errors import unknown
from coterie.experiments.runner import Callback, DataFiles, Engine, PlayedRun
from coterie.experiments.specs import Data
from coterie.experiments.store import Run
from coterie.extras import need
from coterie.parallel import run_all
from coterie.simulation import Trace
from coterie.validation import whole

RETRIES = 5
"""How often a run is played again when its worker, or the worker's machine, is lost."""

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""For a Ray that we start ourselves: it reports to nobody, asks for no token and does not warn about GPUs."""


class LocalEngine:
    """Engine that plays runs on the threads of this machine; compiled rounds release the GIL.

    Parameters
    ----------
    jobs : int, optional
        Runs at a time, at least 1; by default one for each processor.

    Examples
    --------
    >>> LocalEngine(2).jobs
    2
    """

    def __init__(self, jobs: int | None = None) -> None:
        """Check the number of jobs; no thread is started yet."""
        self.jobs = jobs if jobs is None else whole("jobs", jobs, 1)

    def play(self, runs: Sequence[Run], data: DataFiles, callback: Callback) -> Iterator[PlayedRun]:
        """Play runs; when the caller stops listening, runs under way stop soon.

        Parameters
        ----------
        runs : sequence of Run
            What to play.
        data : DataFiles
            Datasets of the runs.
        callback : Callback
            Told of progress.

        Returns
        -------
        iterator of PlayedRun
            A run and its trace, in the order in which they finish.
        """
        stop = Event()

        def play_run(run: Run) -> PlayedRun:
            def advance(rounds: int, regret: float) -> None:
                callback.advance(run, rounds, regret)

            return PlayedRun(run, run.play(data.dataset(run.environment), stop=stop, progress=advance))

        for run in runs:
            data.dataset(run.environment)  # loaded here, once, not by two threads at a time
        return run_all(runs, play_run, jobs=self.jobs, stop=stop)


class RayEngine:
    """Engine that plays runs on the Ray cluster at `$RAY_ADDRESS`, or on a Ray started here.

    Parameters
    ----------
    jobs : int, optional
        Processors of a Ray that is started here; by default all.

    Raises
    ------
    ArgumentError
        If Ray is not installed.

    Examples
    --------
    >>> ENGINES["ray"] is RayEngine
    True
    """

    def __init__(self, jobs: int | None = None) -> None:
        """Check that Ray is installed; nothing is started yet."""
        need("ray", "--engine ray")
        self.jobs = jobs

    def play(self, runs: Sequence[Run], data: DataFiles, callback: Callback) -> Iterator[PlayedRun]:
        """Play runs; workers write no files.

        Parameters
        ----------
        runs : sequence of Run
            What to play.
        data : DataFiles
            Datasets of the runs.
        callback : Callback
            Told of progress.

        Yields
        ------
        PlayedRun
            A run and its trace, in the order in which they finish.
        """
        import ray

        if not runs:
            return
        waiting: dict[Any, Run] = {}
        started = self._connect()
        try:
            waiting.update(submitted(runs, data))  # one by one: what went out before an error is known
            while waiting:
                ready, _ = ray.wait(list(waiting), num_returns=1)
                run = waiting.pop(ready[0])
                trace = ray.get(ready[0])
                callback.advance(run, run.horizon, float(trace.regret[-1]))
                yield PlayedRun(run, trace)
        finally:
            for left in waiting:
                ray.cancel(left, force=True)
            if started:
                ray.shutdown()

    def _connect(self) -> bool:
        """Join a Ray or start one; return whether it was started here."""
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


def submitted(runs: Sequence[Run], data: DataFiles) -> Iterator[tuple[Any, Run]]:
    """Submit each run as a Ray task; vectors are sent once, however many runs use them."""
    import ray

    task = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(play_task)
    shared = {run.environment: data.dataset(run.environment) for run in runs}
    placed = {id(dataset): ray.put(dataset) for dataset in shared.values()}
    for run in runs:
        yield task.remote(run, placed[id(shared[run.environment])]), run


def play_task(run: Run, dataset: Data) -> Trace:
    """Play one run, in a Ray worker."""
    return run.play(dataset)


ENGINES: Mapping[str, Callable[[int | None], Engine]] = MappingProxyType(
    {"local": LocalEngine, "ray": RayEngine}
)


def find_engine(name: str) -> Callable[[int | None], Engine]:
    """Find an engine by name; call it with the number of runs at a time."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES, "There are local and ray")
    return ENGINES[name]
