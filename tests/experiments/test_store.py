from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coterie.errors import DataError
from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.store import COLUMNS, Store, as_parquet, place


def test_a_kept_run_reads_back_as_it_was(run: Run, store: Store, shelf: Shelf) -> None:
    trace = run.play(shelf.dataset(run.world))
    store.keep(run, trace)
    assert run in store
    back = store.read(run)
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(back, column), getattr(trace, column))


def test_the_file_tells_its_run(run: Run, store: Store, shelf: Shelf) -> None:
    store.keep(run, run.play(shelf.dataset(run.world)))
    (finished,) = store
    assert (finished.id, finished.run) == (run.id, run)
    assert store.path(run).name == f"{run.id}.parquet"


def test_the_bytes_hold_no_clock(run: Run, shelf: Shelf) -> None:
    data = shelf.dataset(run.world)
    assert as_parquet(run, run.play(data)) == as_parquet(run, run.play(data))


def test_a_missing_folder_is_an_empty_store(store: Store) -> None:
    assert list(store) == []


def test_a_file_that_is_no_result_is_said_to_be(store: Store, run: Run) -> None:
    place(store.path(run), b"PAR1 nonsense")
    with pytest.raises(DataError, match="delete it"):
        store.read(run)


def test_a_failed_write_leaves_nothing(
    store: Store, run: Run, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        store.keep(run, run.play(shelf.dataset(run.world)))
    assert list(store.folder.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from coterie.experiments import store
def die(draft, path): os.kill(os.getpid(), signal.SIGKILL)
os.replace = die
store.place(Path(sys.argv[1]), b"whole")
"""


def test_a_process_killed_before_the_rename_leaves_no_result(store: Store, run: Run) -> None:
    path = store.path(run)
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert run not in store
    assert list(store) == []
    place(path, b"whole")
    assert path.read_bytes() == b"whole"


def test_files_obey_the_umask(tmp_path: Path) -> None:
    place(tmp_path / "a", b"")
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode
