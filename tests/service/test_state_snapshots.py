"""Snapshots as chunks and a manifest: only new chunks are written, and nothing that is read is believed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import Recommender, SnapshotError
from coterie.policies.array_files import Array, Arrays
from coterie.service.storage.event_store import digest_of
from coterie.service.storage.state_snapshots import (
    CHUNK,
    DIGEST,
    ChunkedArrays,
    Manifest,
    unreferenced_chunks,
    write_chunks,
)
from inspection import abandon, engine_of, live_of, snapshot_seqs, store_of, take_snapshot
from service.shops import arms, same_state

Chunks = dict[bytes, bytes]


def same(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    return list(one) == list(other) and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name]) for name in one
    )


def written(arrays: Arrays, chunks: Chunks, size: int = CHUNK) -> Manifest:
    """Write arrays to a store of chunks that has some already."""
    return write_chunks(arrays, set(chunks), chunks.update, size)


def read(manifest: Manifest, chunks: Chunks) -> Arrays:
    source = ChunkedArrays(
        Manifest.decode(manifest.encode()),
        lambda some: {digest: chunks[digest] for digest in some if digest in chunks},
    )
    return {name: source.read(name) for name in source.stored}


def sample(n: int = 20_000, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    return {"a": rng.random((n, 3)), "b": rng.integers(9, size=n), "c": np.zeros(0), "d": rng.random(n) < 0.5}


@pytest.mark.parametrize("size", [1, 100, 256, 10**9])
@pytest.mark.parametrize("length", [0, 1, 31, 32, 33])
def test_what_was_written_is_read(size: int, length: int) -> None:
    arrays, chunks = sample(length), Chunks()
    assert same(read(written(arrays, chunks, size), chunks), arrays)


def test_rows_that_do_not_follow_each_other_are_written_in_order() -> None:
    matrix, chunks = np.arange(600.0).reshape(20, 30), Chunks()
    arrays = {"columns": np.asfortranarray(matrix), "some": matrix[::2, ::3]}
    assert same(read(written(arrays, chunks, 64), chunks), arrays)


@pytest.mark.parametrize("length", [10_000, 19_999, 20_000, 20_001, 26_000])
def test_a_second_snapshot_writes_what_has_changed(length: int) -> None:
    old, chunks = sample(), Chunks()
    first = written(old, chunks)
    before = len(chunks)
    now = {name: np.resize(array, (length, *array.shape[1:])) for name, array in old.items() if name != "c"}
    now |= {"c": np.zeros(0), "new": np.arange(5)}
    now["a"][[7, 600]] += 1.0
    second = written(now, chunks)
    assert same(read(second, chunks), now)
    assert same(read(first, chunks), old)
    if length == 20_000:
        assert len(chunks) == before + 2  # one of `a`, and the new array
    shared = len(first.digests() & second.digests())
    assert shared >= 0.35 * before


def test_a_chunk_that_occurs_often_is_written_once() -> None:
    chunks = Chunks()
    manifest = written({"zeros": np.zeros(10 * CHUNK, np.uint8), "more": np.zeros(CHUNK // 8)}, chunks)
    assert list(chunks) == [digest_of(bytes(CHUNK))]
    assert manifest.digests() == set(chunks)


def test_two_sign_changes_make_another_chunk() -> None:
    array, chunks = np.ones(512), Chunks()
    before = written({"a": array}, chunks)
    array[[3, 400]] *= -1
    assert written({"a": array}, chunks) != before


@pytest.mark.parametrize("damage", ["missing", "shorter", "another one"])
def test_a_chunk_that_is_not_what_it_should_be_is_noticed(damage: str) -> None:
    chunks = Chunks()
    manifest = written(sample(), chunks)
    victim = manifest.arrays["a"].digests[:DIGEST]
    content = chunks.pop(victim)
    if damage != "missing":
        chunks[victim] = content[:-1] if damage == "shorter" else b""
    with pytest.raises(SnapshotError, match="a chunk of 'a' is missing or damaged"):
        read(manifest, chunks)


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a longer array": lambda head: head["arrays"][1].__setitem__(2, [21_000]),
    "an array beyond all memory": lambda head: head["arrays"][1].__setitem__(2, [2**60]),
    "a negative length": lambda head: head["arrays"][1].__setitem__(2, [-1]),
    "objects": lambda head: head["arrays"][1].__setitem__(1, "|O"),
    "no type": lambda head: head["arrays"][1].__setitem__(1, "nothing"),
    "no chunk size": lambda head: head.update(chunk=0),
    "larger chunks": lambda head: head.update(chunk=2 * CHUNK),
    "an array less": lambda head: head["arrays"].pop(),
    "no arrays": lambda head: head.pop("arrays"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_manifest_that_contradicts_itself_is_refused(edit: str) -> None:
    head, _, digests = written(sample(), Chunks()).encode().partition(b"\n")
    described = json.loads(head)
    EDITS[edit](described)
    with pytest.raises(SnapshotError, match="the manifest contradicts itself"):
        Manifest.decode(json.dumps(described).encode() + b"\n" + digests)
    with pytest.raises(SnapshotError, match="the manifest contradicts itself"):
        Manifest.decode(b"not a manifest")


def teach(one: Recommender, users: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(12):
        one.feedback(f"u{rng.integers(users)}", float(rng.random()), x=arms(int(rng.integers(100)))[0])


def test_the_service_writes_what_has_changed_and_removes_what_no_snapshot_needs(where: str) -> None:
    options: dict[str, Any] = {"dim": 3, "policy": "LinUCBInd", "users": [f"u{n}" for n in range(3_000)]}
    one, other = Recommender(**options, store=where), Recommender(**options)
    store, seqs, chunks = store_of(one), [], []
    for seed in range(4):
        for each in (one, other):
            teach(each, 300, seed)
        take_snapshot(one)
        seqs.append(live_of(one).state.seq)
        chunks.append(store.chunk_digests("default"))
    assert snapshot_seqs(store) == [seqs[3], seqs[2]]
    assert len(chunks[3] - chunks[2]) < 0.5 * len(chunks[0])
    assert unreferenced_chunks(store, "default") == []
    listed = [Manifest.decode(manifest).digests() for _, manifest in store.manifests("default")]
    assert listed[0] | listed[1] == chunks[3]
    abandon(one)
    with Recommender(store=where) as again:
        assert live_of(again).snapshots.seq == seqs[3]
        assert same_state(again, other)
        take_snapshot(again)
        assert store_of(again).chunk_digests("default") == chunks[3]  # the next process writes no chunk again


def test_a_damaged_chunk_leaves_its_snapshots_aside(tmp_path: Path) -> None:
    one, other = Recommender(dim=3, store=tmp_path / "a.db"), Recommender(dim=3)
    for seed in range(2):
        for each in (one, other):
            teach(each, 5, seed)
        take_snapshot(one)
    store = store_of(one)
    damage = "UPDATE chunk SET content = ? WHERE LENGTH(content) > 100"
    engine_of(one).journal.run(lambda: store.execute(damage, [(b"not a chunk",)]))
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert live_of(again).snapshots.seq == 0  # all of the log was replayed
        assert same_state(again, other)


def test_after_a_user_is_removed_no_chunk_is_left(tmp_path: Path) -> None:
    one = Recommender(dim=3, store=tmp_path / "a.db")
    for seed in range(2):
        teach(one, 5, seed)
        take_snapshot(one)
    store = store_of(one)
    assert store.chunk_digests("default")
    one.remove_user(one.users[0])
    assert store.chunk_digests("default") == set()
    assert snapshot_seqs(store) == []
    teach(one, 5, 3)
    take_snapshot(one)
    assert len(snapshot_seqs(store)) == 1
    one.close()
