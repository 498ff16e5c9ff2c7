"""Snapshots are streamed: no second copy of the arrays, progress told, each array checked by itself."""

from __future__ import annotations

import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import coterie
from contracts.examples import changed, make, play
from coterie import LinearBandit, SnapshotError
from coterie.policies import array_files
from inspection import state_arrays


def taught(n_users: int = 2_000, dim: int = 16) -> LinearBandit:
    """A policy of some megabytes."""
    policy = coterie.LinUCBInd(n_users, dim, beta=0.1)
    rng = np.random.default_rng(0)
    policy.update_many(rng.integers(n_users, size=500), rng.normal(size=(500, dim)), rng.random(500))
    return policy


def saved(policy: LinearBandit, folder: Path) -> Path:
    policy.save(folder / "policy")
    return folder / "policy"


def held(policy: LinearBandit) -> int:
    return sum(array.nbytes for array in state_arrays(policy).values())


def test_neither_saving_nor_loading_takes_a_second_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_files, "AT_ONCE", 2**16)
    policy = taught()
    size = held(policy)
    assert size > 4 * 2**20
    coterie.load(saved(taught(5), tmp_path))  # imports what it needs
    tracemalloc.start()
    try:
        policy.save(tmp_path / "policy")
        saving = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        again = coterie.load(tmp_path / "policy")
        loading = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert saving < 0.2 * size
    assert loading < 1.2 * size
    assert changed(policy, again) == []


def test_progress_tells_the_bytes_done_and_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "AT_ONCE", 2**16)
    policy = taught(200)
    written: list[tuple[int, int]] = []
    found: list[tuple[int, int]] = []
    policy.save(tmp_path / "policy", progress=lambda *told: written.append(told))
    coterie.load(tmp_path / "policy", progress=lambda *told: found.append(told))
    for told in (written, found):
        assert [done for done, _ in told] == sorted({done for done, _ in told})
        assert {total for _, total in told} == {told[0][1]}
        assert held(policy) <= told[-1][0] <= told[-1][1]
    assert written[-1][0] == written[-1][1]


@pytest.mark.parametrize("example", ["CLUB", "PhaseUniCLUB", "SCLUB", "LinUCBOracle", "GOBLin"])
def test_arrays_with_room_to_grow_are_written_as_far_as_they_are_used(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_files, "AT_ONCE", 64)
    policy = make(example)
    extra = {"labels": [0] * 130} if example == "LinUCBOracle" else {}
    policy.add_users(130, **extra)
    play(policy, 40)
    policy.save(tmp_path / "policy")
    assert changed(policy, coterie.load(tmp_path / "policy")) == []


def test_a_damaged_byte_anywhere_in_an_array_is_found_by_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    taught(50, 4).save(path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("state/pools.moment.npy")
    for at in np.linspace(entry.header_offset + 200, entry.header_offset + entry.file_size, 7).astype(int):
        damaged = bytearray(content)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(SnapshotError, match=r"is not a whole Coterie snapshot$"):
            coterie.load(path)


def test_other_threads_wait_while_a_policy_is_saved(tmp_path: Path) -> None:
    policy = taught(50, 4)
    started, waited = threading.Event(), []
    other = threading.Thread(target=lambda: policy.update(0, np.ones(4), 1.0))

    def progress(done: int, total: int) -> None:
        if not started.is_set():
            started.set()
            other.start()
            other.join(0.05)
            waited.append(other.is_alive())

    before = policy.rounds
    policy.save(tmp_path / "policy", progress=progress)
    other.join()
    assert waited == [True]
    assert policy.rounds == before + 1
    assert coterie.load(tmp_path / "policy").rounds == before


def test_a_file_that_promises_more_than_it_holds_takes_no_memory(tmp_path: Path) -> None:
    """It promises 512 MiB."""
    path = tmp_path / "policy"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("header", "state/labels"):
            header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (67108864,), }"
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    tracemalloc.start()
    try:
        with pytest.raises(SnapshotError, match="is not a whole Coterie snapshot"):
            coterie.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**26
