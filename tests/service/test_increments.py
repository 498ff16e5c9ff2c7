"""Increments: only what has changed is written, and a base with its increment is the whole state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import Recommender, SnapshotError
from coterie.policies.array_files import Archive, Array, Arrays, FileArray, write_arrays
from coterie.service.storage import increments
from coterie.service.storage import state_snapshots as snapshots
from coterie.service.storage.copies import DiskCopy
from coterie.service.storage.event_store import Content, StoredSnapshot
from coterie.service.storage.increments import Base, PatchedArrays, base_of, checksums
from service.shops import abandon, arms, same_state


def same(one: Arrays, other: Arrays) -> bool:
    return list(one) == list(other) and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name]) for name in one
    )


def stored(arrays: Mapping[str, Array | FileArray]) -> Archive:
    """The arrays in a file."""
    file = BytesIO()
    write_arrays(file, arrays)
    return Archive(file, len(file.getvalue()))


def increment(arrays: Arrays, base: Base) -> Arrays | None:
    """An increment, read back."""
    made = increments.increment(arrays, base)
    if made is None:
        return None
    source = stored(made)
    return {name: source.read(name) for name in source.stored}


def applied(made: Arrays, base: Arrays) -> Arrays:
    """The arrays of a base and its increment."""
    source = PatchedArrays(stored(made), stored(base))
    return {name: source.read(name) for name in source.stored}


def sample(n: int = 2_000, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    return {"a": rng.random((n, 3)), "b": rng.integers(9, size=n), "c": np.zeros(0), "d": rng.random(n) < 0.5}


@pytest.mark.parametrize("length", [1_000, 1_999, 2_000, 2_001, 2_600])
def test_a_base_and_its_increment_are_the_arrays_as_they_are_now(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(increments, "CHUNK", 256)
    old = sample()
    now = {name: np.resize(array, (length, *array.shape[1:])) for name, array in old.items() if name != "c"}
    now |= {"c": np.zeros(0), "new": np.arange(5)}
    now["a"][[7, 900]] += 1.0
    now["b"][-1] += 1
    made = increment(now, base_of(5, "digest", old))
    assert made is not None
    assert same(applied(made, old), {name: now[name] for name in now})


def test_only_chunks_that_differ_are_in_an_increment() -> None:
    old = sample()
    now = {name: array.copy() for name, array in old.items()}
    now["a"][1_000, 1] += 1e-12
    made = increment(now, base_of(5, "digest", old))
    assert made is not None
    assert made["chunks/a"].tolist() == [1_000 * 24 // increments.CHUNK]
    assert len(made["bytes/a"]) == increments.CHUNK
    assert sum(len(made[f"bytes/{name}"]) for name in "bcd") == 0


def test_nothing_is_gained_where_nearly_everything_differs() -> None:
    assert increment(sample(seed=1), base_of(5, "digest", sample())) is None


def test_two_sign_changes_in_a_chunk_are_no_same_chunk() -> None:
    array = np.ones(512)
    before = checksums(array, 4096)
    array[[3, 400]] *= -1
    assert (checksums(array, 4096) != before).any()


EDITS: dict[str, Any] = {
    "a chunk beyond the end": lambda made, header: made.update({"chunks/b": made["chunks/b"] + 10**6}),
    "a chunk before the beginning": lambda made, header: made.update({"chunks/a": -1 - made["chunks/a"]}),
    "chunks of another type": lambda made, header: made.update({"chunks/a": made["chunks/a"] * 1.0}),
    "bytes missing": lambda made, header: made.update({"bytes/a": made["bytes/a"][:-1]}),
    "a chunk missing": lambda made, header: made.update(
        {"chunks/a": made["chunks/a"][:-1], "bytes/a": made["bytes/a"][: -made["bytes/a"].size // 2]}
    ),
    "a longer array": lambda made, header: header["arrays"].update(b=["<i8", [2_100]]),
    "an array beyond all memory": lambda made, header: header["arrays"].update(b=["<i8", [2**60]]),
    "a negative length": lambda made, header: header["arrays"].update(b=["<i8", [-1]]),
    "objects": lambda made, header: header["arrays"].update(b=["|O", [2_000]]),
    "no chunk size": lambda made, header: header.update(chunk=0),
    "chunks beyond all memory": lambda made, header: header.update(chunk=2**70),
    "a later version": lambda made, header: header.update(version=2),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_increment_that_contradicts_itself_is_refused(edit: str) -> None:
    old = sample()
    now = {name: array.copy() for name, array in old.items()}
    now["a"] = np.concatenate([now["a"], np.ones((2, 3))])
    now["b"][0] += 1
    made = increment(now, base_of(5, "digest", old))
    assert made is not None
    header = json.loads(made["increment"].tobytes())
    EDITS[edit](made, header)
    made["increment"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with pytest.raises((SnapshotError, ValueError)):
        applied(made, old)


def teach(one: Recommender, users: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(12):
        one.feedback(f"u{rng.integers(users)}", float(rng.random()), x=arms(int(rng.integers(100)))[0])


def bases(one: Recommender) -> dict[int, int]:
    return dict(one._engine.store.query("SELECT seq, base FROM snapshot_base"))


def test_the_service_writes_what_has_changed_and_prunes_bases_with_their_increments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(increments, "CHUNK", 64)
    options: dict[str, Any] = {"dim": 3, "policy": "LinUCBInd", "users": [f"u{n}" for n in range(300)]}
    one, other = Recommender(**options, store=tmp_path / "a.db"), Recommender(**options)
    seqs = []
    for seed in range(4):
        for each in (one, other):
            teach(each, 300, seed)
        one._engine.snapshot("default")
        seqs.append(one._live.state.seq)
    assert bases(one) == {seqs[2]: seqs[0], seqs[3]: seqs[0]}
    sizes = dict(one._engine.store.query("SELECT seq, SUM(LENGTH(content)) FROM snapshot_part GROUP BY seq"))
    assert list(sizes) == [seqs[0], *seqs[2:]]
    assert sizes[seqs[3]] < 0.5 * sizes[seqs[0]]
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert same_state(again, other)
        monkeypatch.setattr(increments, "SHARE", 0.0)
        for seed in (5, 6):
            teach(again, 300, seed)
            again._engine.snapshot("default")
        assert bases(again) == {}
        assert len(again._engine.store.query("SELECT seq FROM snapshot")) == 2


def test_an_increment_whose_base_is_damaged_is_left_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(increments, "CHUNK", 64)
    monkeypatch.setattr(increments, "SHARE", 2.0)
    one, other = Recommender(dim=3, store=tmp_path / "a.db"), Recommender(dim=3)
    for seed in range(2):
        for each in (one, other):
            teach(each, 5, seed)
        one._engine.snapshot("default")
    (base,) = bases(one).values()
    damage = "UPDATE snapshot_part SET content = ? WHERE seq = ?"
    one._engine.journal.run(lambda: one._engine.store.execute(damage, [(b"not a snapshot", base)]))
    assert list(one._engine.store.snapshots("default")) == []
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert same_state(again, other)


def test_after_a_user_is_removed_the_next_snapshot_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(increments, "CHUNK", 64)
    monkeypatch.setattr(increments, "SHARE", 2.0)
    one = Recommender(dim=3, store=tmp_path / "a.db")
    for seed in range(2):
        teach(one, 5, seed)
        one._engine.snapshot("default")
    assert bases(one)
    one.remove_user(one.users[0])
    assert bases(one) == {}
    teach(one, 5, 3)
    one._engine.snapshot("default")
    assert bases(one) == {}
    one.close()


def test_a_snapshot_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """It had the policy as a file within the file, and users in its header."""
    from coterie.policies import snapshot_format

    one = Recommender(dim=3)
    teach(one, 5, 1)
    with DiskCopy(tmp_path) as copy:
        captured = snapshots.capture(one._live.state, copy)
        whole = stored(snapshots.arrays_of(captured))
    arrays = {name: whole.read(name) for name in whole.stored}
    header = json.loads(arrays["header"].tobytes()) | {"version": 1, "users": captured.users}
    old: Arrays = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "items": arrays["items"],
        "waiting": arrays["waiting"],
        "policy": np.frombuffer(snapshot_format.dumps(snapshot_format.captured(one.policy)), np.uint8),
    }
    parts: list[bytes] = []
    _, digest = snapshots.write(old, lambda number, part: parts.append(part))
    content = b"".join(parts)
    again = snapshots.load(StoredSnapshot(captured.seq, Content(BytesIO(content), len(content), digest)))
    assert again.users.ids == captured.users
    assert (again.seq, again.policy.rounds) == (captured.seq, one.policy.rounds)
    assert again.policy.estimates.tolist() == one.policy.estimates.tolist()
