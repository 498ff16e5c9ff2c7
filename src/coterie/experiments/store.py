"""Finished runs in a folder: Parquet, one file a run, whole or absent."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from coterie.errors import DataError
from coterie.experiments.runs import Run, read_description
from coterie.simulation import Trace
from coterie.storage import atomic_write

KEY = "coterie"
"""Under this key of the file's metadata stands the run's description."""

COLUMNS = ("rounds", "regret", "reward", "clusters", "ari", "explored")


class Finished(NamedTuple):
    """A run and what it found, under the id that its file has."""

    id: str
    run: Run
    trace: Trace


class Store:
    """A folder `runs/` of results, named by the id of their run."""

    def __init__(self, folder: Path) -> None:
        """Open a folder; it is made when the first run is kept."""
        self.folder = folder / "runs"

    def path(self, run: Run) -> Path:
        """Where the result of a run is, or will be."""
        return self.folder / f"{run.id}.parquet"

    def __contains__(self, run: Run) -> bool:
        """Is the run finished?"""
        return self.path(run).exists()

    def keep(self, run: Run, trace: Trace) -> None:
        """Write a result, whole or not at all."""
        atomic_write(self.path(run), as_parquet(run, trace))

    def read(self, run: Run) -> Trace:
        """The trace of a finished run; its seconds are not kept."""
        return read_file(self.path(run)).trace

    def __iter__(self) -> Iterator[Finished]:
        """All finished runs, in order of their ids."""
        for path in sorted(self.folder.glob("*.parquet")):
            yield read_file(path)


def as_parquet(run: Run, trace: Trace) -> bytes:
    """The bytes of the file: the trace as columns, the run in the metadata; no clock, no host."""
    import polars as pl

    frame = pl.DataFrame({name: getattr(trace, name) for name in COLUMNS})
    file = BytesIO()
    frame.write_parquet(file, compression="zstd", metadata={KEY: run.description})
    return file.getvalue()


def read_file(path: Path) -> Finished:
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
    return Finished(path.stem, run, trace)
