"""Playing runs: their datasets, the engine that plays them, and callbacks for progress."""

from __future__ import annotations

import json
import logging
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from coterie import datasets
from coterie.atomic_files import atomic_write
from coterie.datasets.sources import HOME
from coterie.errors import unknown
from coterie.experiments.run_store import Run, Store
from coterie.experiments.specs import Data, EnvironmentSpec
from coterie.extras import need
from coterie.parallel import run_all
from coterie.policies.factories import is_own
from coterie.policies.registry import find
from coterie.simulation import Trace
from coterie.validation import whole

SMOOTHED_COST, OWN_COST = 180.0, 100.0
"""Rough microseconds a round: smoothed arms besides the policy, and a policy in plain Python."""

USERS_STEP, USERS_SHARE = 50, 0.3
"""Policies that look for clusters take this share longer for each further 50 users."""

WARM_UP = 300
"""Rounds played before a run is timed, so that loading is not counted."""


class Callback(Protocol):
    """Protocol of an object that follows progress; its methods are called from any thread.

    Examples
    --------
    >>> callback: Callback = NoCallback()
    """

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """Called when a stage begins.

        Parameters
        ----------
        title : str
            Name of the stage, such as "playing".
        runs : sequence of Run
            Runs that will be played.
        already : int
            Number of further runs that are finished already.
        """

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Called when rounds of a run were played.

        Parameters
        ----------
        run : Run
            The run.
        rounds : int
            Rounds just played.
        regret : float
            Regret of the run so far.
        """

    def finish(self, run: Run, trace: Trace) -> None:
        """Called when a run is finished and stored.

        Parameters
        ----------
        run : Run
            The run.
        trace : Trace
            What was recorded.
        """


class NoCallback:
    """Callback that does nothing.

    Examples
    --------
    >>> NoCallback().begin("playing", [], 0)
    """

    def begin(self, title: str, runs: Sequence[Run], already: int) -> None:
        """Do nothing."""

    def advance(self, run: Run, rounds: int, regret: float) -> None:
        """Do nothing."""

    def finish(self, run: Run, trace: Trace) -> None:
        """Do nothing."""


class DataFiles:
    """Datasets of an experiment, each loaded once.

    Parameters
    ----------
    folder : Path, optional
        Folder to look for files in; by default `$COTERIE_DATA`, if that is set.
    files : mapping of str to Path, optional
        File, archive or folder of single datasets by name, instead of what `folder` holds.
    table_options : mapping, optional
        How the dataset 'interactions' is read: arguments of `coterie.datasets.load` such as `columns`.

    Examples
    --------
    >>> DataFiles().dataset(EnvironmentSpec(dim=3, pool_users=10, pool_items=20))
    <Dataset synthetic: 10 users and 20 items of 3 dimensions>
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        files: Mapping[str, Path] | None = None,
        table_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep where to look; nothing is read yet."""
        home = folder or os.environ.get(HOME)
        self._folder = Path(home).expanduser() if home else None
        self._files = dict(files or {})
        self._table_options = dict(table_options or {})
        self._loaded: dict[tuple[object, ...], Data] = {}

    def dataset(self, environment: EnvironmentSpec) -> Data:
        """Load the dataset of an environment.

        Parameters
        ----------
        environment : EnvironmentSpec
            Environment that names it.

        Returns
        -------
        Dataset or PayoffTable
            The vectors that the environment draws from, or for real feedback the payoffs.

        Raises
        ------
        MissingData
            If a file is not there; the message says how to get it.
        """
        name, options = environment.dataset, environment.data_options()
        key = (name, *options.values())
        if key not in self._loaded:
            own = self._table_options if name == "interactions" else {}
            load = datasets.load_payoffs if environment.is_real else datasets.load
            self._loaded[key] = load(name, self.path(name), **options, **own)
        return self._loaded[key]

    def path(self, name: str) -> Path | None:
        """Find the file or folder to look in for a dataset.

        Parameters
        ----------
        name : str
            Name of the dataset.

        Returns
        -------
        Path or None
            None if there is no file to look for.
        """
        if name in self._files:
            return self._files[name]
        return self._folder if datasets.about(name).files or name == "interactions" else None

    def sha256(self, environment: EnvironmentSpec) -> str | None:
        """Hash the file behind an environment, and how a table of your own was read.

        Parameters
        ----------
        environment : EnvironmentSpec
            Environment that names the dataset.

        Returns
        -------
        str or None
            None if there is no file.
        """
        found = self.dataset(environment).provenance.sha256
        if environment.dataset != "interactions":
            return found
        # The same file read with other columns or another threshold is other data.
        return sha256(repr((found, sorted(self._table_options.items()))).encode()).hexdigest()


class PlayedRun(NamedTuple):
    """A run and its trace, as it comes from an engine."""

    run: Run
    trace: Trace


class Engine(Protocol):
    """Protocol of an engine, which plays runs."""

    def play(self, runs: Sequence[Run], data: DataFiles, callback: Callback) -> Iterator[PlayedRun]:
        """Every run once, in whatever order they finish; closing the iterator stops the rest."""


class Runner(NamedTuple):
    """Plays runs on an engine and stores their results."""

    store: Store
    engine: Engine
    data: DataFiles
    callback: Callback

    def play(self, title: str, runs: Iterable[Run]) -> dict[str, float]:
        """Play the runs that are not stored yet, longest first, and store each as soon as it is finished.

        Returns the seconds of the runs that were played, by run id.
        """
        wanted = {run.id: run for run in runs}
        missing = [run for run in wanted.values() if run not in self.store]
        # Longest first, so that no long run is left over for one processor at the end.
        missing.sort(key=lambda run: -cost(run) * run.horizon)
        self.callback.begin(title, missing, len(wanted) - len(missing))
        seconds = {}
        for run, trace in self.engine.play(missing, self.data, self.callback):
            self.store.save(run, trace)
            self.callback.finish(run, trace)
            seconds[run.id] = trace.seconds
        return seconds

    def time(self, runs: Sequence[Run], folder: Path) -> dict[str, float]:
        """The seconds of each run by id, measured one run at a time or read from the folder `times/`."""
        known = {run.id: known_seconds(run, folder) for run in runs}
        missing = [run for run in runs if known[run.id] is None]
        self.callback.begin("timing", missing, len(runs) - len(missing))
        seconds = {name: found for name, found in known.items() if found is not None}
        for run in missing:
            trace = time_run(run, self.data.dataset(run.environment), folder)
            seconds[run.id] = trace.seconds
            self.callback.advance(run, run.horizon, float(trace.regret[-1]))
            self.callback.finish(run, trace)
        return seconds


def cost(run: Run) -> float:
    """About how many microseconds a round of this run takes: for the order of work and the time left."""
    environment = run.environment
    arms = SMOOTHED_COST * environment.n_arms / 100 if environment.setting == "smoothed" else 0.0
    if is_own(run.policy.name):
        return OWN_COST + arms
    entry = find(run.policy.name)
    more_users = max(0.0, environment.n_users / USERS_STEP - 1) if entry.clusters else 0.0
    return entry.cost * (1 + USERS_SHARE * more_users) + arms


def known_seconds(run: Run, folder: Path) -> float | None:
    """The seconds of a run as measured earlier on this kind of processor."""
    try:
        facts = json.loads(_time_file(run, folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    # Seconds measured on another processor say nothing about this one.
    return float(facts["seconds"]) if facts.get("processor") == processor() else None


def time_run(run: Run, dataset: Data, folder: Path) -> Trace:
    """Play a run with nothing beside it, and store how long it took."""
    # The first rounds load modules and fill caches, which is no time of the policy.
    replace(run, horizon=min(WARM_UP, run.horizon), record=1).play(dataset)
    trace = run.play(dataset)
    facts = json.dumps({"seconds": trace.seconds, "processor": processor(), "horizon": run.horizon})
    atomic_write(_time_file(run, folder), facts.encode())
    return trace


def _time_file(run: Run, folder: Path) -> Path:
    return folder / "times" / f"{run.id}.json"


@cache
def processor() -> str:
    """The model name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


RETRIES = 5
"""Times that a run is played again if its worker, or the worker's machine, is lost."""

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""For a Ray that is started here: no usage statistics, no authentication, no warning about GPUs."""


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
            Informed of progress.

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
            Informed of progress.

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
            waiting.update(submitted(runs, data))  # one by one, so that an error leaves those submitted known
            while waiting:
                ready, _ = ray.wait(list(waiting), num_returns=1)
                run = waiting.pop(ready[0])
                trace = ray.get(ready[0])
                callback.advance(run, run.horizon, float(trace.regret[-1]))
                yield PlayedRun(run, trace)
        finally:
            # Also after Ctrl-C or an error, since tasks would otherwise go on in the cluster.
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
    # Keyed by identity: environments that share vectors share one copy in the object store.
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
