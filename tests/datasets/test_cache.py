from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import polars as pl
import pytest

from coterie.datasets import Dataset, cache, load
from datasets import generated
from inspection import forbid_making_datasets

TABLE = generated.rows()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return generated.write(tmp_path / "ratings.csv", generated.movielens_csv(TABLE))


def small(path: Path, **options: Any) -> Dataset:
    return load("movielens", path, **{"dim": 5, "n_users": 20, "n_items": 40, **options})


def entries(folder: Path) -> list[Path]:
    return sorted((folder / "datasets").iterdir())


def same(one: Dataset, other: Dataset) -> bool:
    arrays = zip(one[1:5], other[1:5], strict=True)
    return one.provenance == other.provenance and all(np.array_equal(a, b) for a, b in arrays)


def test_a_second_load_comes_from_the_cache_and_is_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = small(path)
    forbid_making_datasets(monkeypatch)
    second = small(path)
    assert same(first, second)
    for array in second[1:5]:
        assert isinstance(array, np.ndarray)
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def test_text_ids_survive_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"user": ["a", "a", "b"], "item": ["ü", "y", "ü"]})
    first = load("interactions", frame, dim=1, n_users=2, n_items=2)
    forbid_making_datasets(monkeypatch)
    assert same(first, load("interactions", frame, dim=1, n_users=2, n_items=2))


def test_a_hit_needs_no_columnar_reader(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(path)
    monkeypatch.setitem(sys.modules, "polars", None)
    small(path)


def test_the_seed_does_not_change_what_a_file_gives(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = small(path, seed=1)
    forbid_making_datasets(monkeypatch)
    assert same(first, small(path, seed=2))


def test_a_renamed_file_is_the_same_file_and_its_new_name_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(path)
    forbid_making_datasets(monkeypatch)
    assert small(path.rename(path.with_name("other.csv"))).provenance.file == "other.csv"


@pytest.mark.parametrize("option", [{"dim": 4}, {"n_users": 19}, {"n_items": 39}, {"scale": "raw"}])
def test_every_parameter_has_an_entry_of_its_own(
    option: dict[str, Any], path: Path, cache_folder: Path
) -> None:
    small(path)
    small(path, **option)
    assert len(entries(cache_folder)) == 2


def test_a_changed_file_has_an_entry_of_its_own(path: Path, cache_folder: Path) -> None:
    small(path)
    with path.open("a") as file:
        file.write("1,1,5.0,964982703\n")
    assert small(path).provenance.rows == len(TABLE) + 1
    assert len(entries(cache_folder)) == 2


def test_threshold_and_columns_have_entries_of_their_own(cache_folder: Path) -> None:
    frame = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "a": [1, 5, 5], "b": [5, 5, 1]})
    choices: list[dict[str, Any]] = [{}, {"threshold": 3}, {"threshold": 0}]
    choices += [{"threshold": 3, "columns": ("user", "item", "b")}]
    for options in choices:
        load("interactions", frame, dim=1, n_users=2, n_items=2, **options)
    assert len(entries(cache_folder)) == 4


@pytest.mark.parametrize("damage", ["empty", "rubbish", "cut", "flipped", "other shapes", "no field"])
def test_an_entry_that_cannot_be_read_is_made_again(damage: str, path: Path, cache_folder: Path) -> None:
    first = small(path)
    (entry,) = entries(cache_folder)
    content = entry.read_bytes()
    if damage == "other shapes":
        with np.load(entry) as arrays:
            np.savez(entry, **{**arrays, "users": arrays["users"][:-1]})
    elif damage == "no field":
        np.savez(entry, users=np.zeros(3))
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
        broken = {"empty": b"", "rubbish": b"rubbish", "cut": content[:middle], "flipped": flipped}
        entry.write_bytes(broken[damage])
    assert same(first, small(path))
    assert entry.read_bytes() == content


def test_an_interrupted_write_leaves_neither_an_entry_nor_a_draft(
    path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", stop)
        with pytest.raises(KeyboardInterrupt):
            small(path)
    assert entries(cache_folder) == []
    small(path)
    assert [entry.suffix for entry in entries(cache_folder)] == [".npz"]


def test_a_folder_that_cannot_be_written_is_a_warning_and_no_error(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = generated.write(tmp_path / "a file, not a folder", "")
    monkeypatch.setenv("COTERIE_CACHE", str(blocked))
    assert small(path).users.shape == (20, 5)
    assert "movielens could not be cached" in caplog.text


def test_the_folder_is_the_users_own_choice_or_that_of_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "own"))
    assert cache.folder() == tmp_path / "own"
    monkeypatch.delenv("COTERIE_CACHE")
    assert cache.folder() == platformdirs.user_cache_path("coterie", appauthor=False)
    assert cache.folder().name in ("coterie", "Cache")


@pytest.mark.slow
def test_two_processes_make_a_dataset_once(path: Path, cache_folder: Path, tmp_path: Path) -> None:
    code = """
import sys, time
from coterie.datasets import load, prepare
from pathlib import Path
build = prepare.build
def slowly(*arguments):
    Path(sys.argv[2], f"built-{time.monotonic_ns()}").touch()
    time.sleep(2.0)
    return build(*arguments)
prepare.build = slowly
load("movielens", sys.argv[1], dim=5, n_users=20, n_items=40)
"""
    command = [sys.executable, "-c", code, str(path), str(tmp_path)]
    for process in [subprocess.Popen(command) for _ in range(2)]:
        assert process.wait() == 0
    assert len(list(tmp_path.glob("built-*"))) == 1
    assert len(entries(cache_folder)) == 1


def test_a_lock_that_a_killed_process_held_is_free_again(path: Path, cache_folder: Path) -> None:
    code = "import os, sys\nfrom coterie.datasets import cache\nwith cache.locked(sys.argv[1]): os._exit(0)"
    small(path)
    (entry,) = entries(cache_folder)
    subprocess.run([sys.executable, "-c", code, entry.stem], check=True)
    entry.unlink()
    assert small(path).users.shape == (20, 5)
