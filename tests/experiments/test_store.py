from __future__ import annotations

import os

import numpy as np
import pytest

from coterie.errors import DataError
from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.store import COLUMNS, Store, as_parquet
from coterie.storage import atomic_write


def test_a_kept_run_reads_back_as_it_was(run: Run, store: Store, shelf: Shelf) -> None:
    trace = run.play(shelf.dataset(run.environment))
    store.keep(run, trace)
    assert run in store
    back = store.read(run)
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(back, column), getattr(trace, column))


def test_the_file_tells_its_run(run: Run, store: Store, shelf: Shelf) -> None:
    store.keep(run, run.play(shelf.dataset(run.environment)))
    (finished,) = store
    assert (finished.id, finished.run) == (run.id, run)
    assert store.path(run).name == f"{run.id}.parquet"


def test_the_bytes_hold_no_clock(run: Run, shelf: Shelf) -> None:
    data = shelf.dataset(run.environment)
    assert as_parquet(run, run.play(data)) == as_parquet(run, run.play(data))


def test_a_missing_folder_is_an_empty_store(store: Store) -> None:
    assert list(store) == []


def test_a_file_that_is_no_result_is_said_to_be(store: Store, run: Run) -> None:
    atomic_write(store.path(run), b"PAR1 nonsense")
    with pytest.raises(DataError, match="delete it"):
        store.read(run)


def test_a_failed_write_leaves_nothing(
    store: Store, run: Run, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        store.keep(run, run.play(shelf.dataset(run.environment)))
    assert list(store.folder.iterdir()) == []
