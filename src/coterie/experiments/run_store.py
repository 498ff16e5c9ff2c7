"""A run, its id, which is a hash of everything that determines it, and the folder of finished runs.

Results are Parquet files, one a run, whole or absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from threading import Event
from traceback import extract_tb
from typing import NamedTuple

from coterie.atomic_files import atomic_write
from coterie.errors import ArgumentError, CoterieError, DataError, PolicyError
from coterie.experiments.fingerprint import fingerprint
from coterie.experiments.specs import Data, EnvironmentSpec, PolicySpec
from coterie.extras import need
from coterie.policies.factories import is_own
from coterie.progress import Progress
from coterie.simulation import Stopped, Trace, simulate
from coterie.validation import whole

KEY = "coterie"
"""The key of the Parquet metadata that holds the run's description."""

COLUMNS = ("rounds", "regret", "reward", "uniform", "clusters", "ari", "explored")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One policy in one environment with one seed: all that determines a result.

    Parameters
    ----------
    environment : EnvironmentSpec
        Environment, without its seed.
    policy : PolicySpec
        Policy and its parameters.
    horizon : int
        Number of rounds, at least 1.
    seed : int
        Seed of the environment and of the policy, at least 0.
    record : int, default 200
        Number of recorded points, at least 1.
    data : str, optional
        sha256 of the dataset's file; None where there is none.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Examples
    --------
    >>> policy = PolicySpec("LinUCBInd", {"beta": 0.1})
    >>> len(Run(environment=EnvironmentSpec(), policy=policy, horizon=1000, seed=0).id)
    64
    """

    environment: EnvironmentSpec
    policy: PolicySpec
    horizon: int
    seed: int
    record: int = 200
    data: str | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        whole("seed", self.seed, 0)
        whole("horizon", self.horizon, 1)
        whole("record", self.record, 1)

    @cached_property
    def description(self) -> str:
        """Everything that determines the result, as JSON in canonical form."""
        facts = {
            "environment": asdict(self.environment),
            "policy": {"name": self.policy.name, "params": dict(self.policy.params)},
            "horizon": self.horizon,
            "seed": self.seed,
            "record": self.record,
            "data": self.data,
            # The code belongs to the id: a change that may move numbers must not reuse old results.
            "fingerprint": fingerprint(self.policy.name, self.environment.dataset),
        }
        # Canonical form: the same facts must give the same bytes, and so the same id, everywhere.
        return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @cached_property
    def id(self) -> str:
        """sha256 of the description, and the name of the file that holds the result."""
        return sha256(self.description.encode()).hexdigest()

    def play(self, dataset: Data, *, stop: Event | None = None, progress: Progress | None = None) -> Trace:
        """Play the run; the trace is the same on every machine, except for `seconds`.

        Parameters
        ----------
        dataset : Dataset or PayoffTable
            Vectors of users and items, or for real feedback the payoffs.
        stop : threading.Event, optional
            Event that ends the run soon after it is set.
        progress : callable, optional
            Called as progress(rounds, regret) with the rounds just played and the regret so far.

        Returns
        -------
        Trace
            What was recorded.
        """
        # One seed for both is safe: `seeding.stream` draws environment and policy from separate streams.
        world = self.environment.make(dataset, self.seed)
        with naming_policy(self.policy.name, self.seed):
            policy = self.policy.make(world, self.seed)
            return simulate(policy, world, self.horizon, record=self.record, stop=stop, progress=progress)


@contextmanager
def naming_policy(name: str, seed: int) -> Iterator[None]:
    """Name the policy and the seed in errors that a policy from outside this library raises."""
    try:
        yield
    except Exception as error:
        # Errors of our own policies are bugs or wrong arguments, and keep their type and place.
        if not is_own(name) or isinstance(error, Stopped):
            raise
        if isinstance(error, CoterieError):
            raise ArgumentError(f"{name} (seed {seed}): {error}") from error
        last = extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        raise PolicyError(
            f"{name} (seed {seed}) raised {type(error).__name__}: {error}, at {where}"
        ) from error


def read_description(text: str) -> Run:
    """Read a run from its description; its id differs if the code has changed since.

    >>> policy = PolicySpec("LinUCBInd", {"beta": 0.1})
    >>> run = Run(environment=EnvironmentSpec(), policy=policy, horizon=1000, seed=0)
    >>> read_description(run.description) == run
    True
    """
    facts = json.loads(text)
    facts.pop("fingerprint")
    environment, policy = EnvironmentSpec(**facts.pop("environment")), PolicySpec(**facts.pop("policy"))
    return Run(environment=environment, policy=policy, **facts)


class FinishedRun(NamedTuple):
    """A finished run, as read from its file.

    Parameters
    ----------
    id : str
        Name of the file; it differs from `run.id` if the code has changed since.
    run : Run
        What was played.
    trace : Trace
        What was recorded.

    Examples
    --------
    >>> FinishedRun._fields
    ('id', 'run', 'trace')
    """

    id: str
    run: Run
    trace: Trace


class Store:
    """Results of runs in the subfolder `runs/` of a folder, as Parquet files named by the id of the run.

    Parameters
    ----------
    folder : Path
        Folder of the results; `runs/` is made when the first run is saved.

    Examples
    --------
    >>> import tempfile
    >>> policy = PolicySpec("LinUCBInd", {"beta": 0.1})
    >>> run = Run(environment=EnvironmentSpec(), policy=policy, horizon=1000, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run in Store(Path(folder))
    False
    """

    def __init__(self, folder: Path) -> None:
        """Open a folder."""
        need("polars", "keeping results")
        self.folder = folder / "runs"

    def path(self, run: Run) -> Path:
        """Build the path of a run's file, whether or not it is there.

        Parameters
        ----------
        run : Run
            The run.

        Returns
        -------
        Path
            Path of the Parquet file.
        """
        return self.folder / f"{run.id}.parquet"

    def __contains__(self, run: Run) -> bool:
        """Tell whether a run is finished."""
        return self.path(run).exists()

    def save(self, run: Run, trace: Trace) -> None:
        """Write a result, whole or not at all.

        Parameters
        ----------
        run : Run
            What was played.
        trace : Trace
            What was recorded.
        """
        atomic_write(self.path(run), as_parquet(run, trace))

    def read(self, run: Run) -> Trace:
        """Read the trace of a finished run.

        Parameters
        ----------
        run : Run
            The run.

        Returns
        -------
        Trace
            What was recorded; `seconds` is NaN, since it is not stored.
        """
        return read_file(self.path(run)).trace

    def __iter__(self) -> Iterator[FinishedRun]:
        """Iterate over all finished runs, in order of their ids."""
        for path in sorted(self.folder.glob("*.parquet")):
            yield read_file(path)


def as_parquet(run: Run, trace: Trace) -> bytes:
    """The bytes of the file: the trace as columns, the run in the metadata; no clock, no host."""
    import polars as pl

    frame = pl.DataFrame({name: getattr(trace, name) for name in COLUMNS})
    file = BytesIO()
    # No time stamp and no host name: the same run gives the same bytes on every machine.
    frame.write_parquet(file, compression="zstd", metadata={KEY: run.description})
    return file.getvalue()


def read_file(path: Path) -> FinishedRun:
    """A finished run from its file."""
    import polars as pl

    try:
        content = path.read_bytes()
        run = read_description(pl.read_parquet_metadata(BytesIO(content))[KEY])
        frame = pl.read_parquet(BytesIO(content))
        columns = {name: frame[name].to_numpy() for name in COLUMNS}
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"{path.name} is not a result of this version: {error}; delete it to run it again"
        ) from error
    trace = Trace(policy=run.policy.name, seed=run.seed, **columns, seconds=float("nan"))
    return FinishedRun(path.stem, run, trace)
