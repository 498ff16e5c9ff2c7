from __future__ import annotations

import os

import numpy as np
import pytest

from coterie.atomic_files import atomic_write
from coterie.errors import DataError
from coterie.experiments.run_store import COLUMNS, Run, Store, as_parquet
from coterie.experiments.runner import DataFiles


def test_a_kept_run_reads_back_as_it_was(run: Run, store: Store, data: DataFiles) -> None:
    trace = run.play(data.dataset(run.environment))
    store.save(run, trace)
    assert run in store
    back = store.read(run)
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(back, column), getattr(trace, column))


def test_the_file_tells_its_run(run: Run, store: Store, data: DataFiles) -> None:
    store.save(run, run.play(data.dataset(run.environment)))
    (finished,) = store
    assert (finished.id, finished.run) == (run.id, run)
    assert store.path(run).name == f"{run.id}.parquet"


def test_the_bytes_hold_no_clock(run: Run, data: DataFiles) -> None:
    dataset = data.dataset(run.environment)
    assert as_parquet(run, run.play(dataset)) == as_parquet(run, run.play(dataset))


def test_a_missing_folder_is_an_empty_store(store: Store) -> None:
    assert list(store) == []


def test_a_file_that_is_no_result_is_said_to_be(store: Store, run: Run) -> None:
    atomic_write(store.path(run), b"PAR1 nonsense")
    with pytest.raises(DataError, match="delete it"):
        store.read(run)


def test_a_failed_write_leaves_nothing(
    store: Store, run: Run, data: DataFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        store.save(run, run.play(data.dataset(run.environment)))
    assert list(store.folder.iterdir()) == []
