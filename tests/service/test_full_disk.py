"""Snapshots that find no room: decisions go on, attempts become rare, and the service says so.

Files of this process may not grow beyond a limit meanwhile; the system enforces that as it does a quota.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie import Recommender, StoreError, UnknownName
from coterie.service.core.engine import PolicyEngine
from coterie.service.settings import PolicySettings
from coterie.service.storage.snapshot_writer import Retry
from coterie.service.storage.sqlite import SQLiteStore
from inspection import (
    abandon,
    break_expiry_once,
    broken_change,
    engine_of,
    free_disk_space,
    keep_house_every,
    live_of,
    pause_between_snapshots,
    refuse_temporary_files,
    snapshot_seqs,
    store_of,
    take_snapshot,
)
from service.serving import served
from service.shops import arms, same_state

resource = pytest.importorskip("resource", reason="only POSIX limits the files of a process")

DIM, LIMIT = 20, 2**21
USERS = {"the copy": 700, "a part": 640}
"""Of 700 users the largest array is longer than the limit; of 640 only all arrays together are."""


def large(users: int) -> dict[str, Any]:
    return {"dim": DIM, "policy": "LinUCBInd", "users": [f"u{n}" for n in range(users)]}


def teach(one: Recommender, seed: int) -> None:
    one.feedback(f"u{seed % 7}", 1.0, x=arms(seed, dim=DIM)[0], feedback_id=f"f{seed}")


@contextmanager
def small_files(limit: int = LIMIT) -> Iterator[None]:
    """No file may become longer than the limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def soon(what: Callable[[], object]) -> None:
    """Wait until it is so, for some seconds."""
    for _ in range(1_000):
        if what():
            return
        time.sleep(0.01)
    assert what()


@pytest.mark.parametrize("where", USERS)
def test_without_room_for_a_snapshot_events_go_on_and_no_part_is_left(where: str, tmp_path: Path) -> None:
    options = large(USERS[where])
    one, other = Recommender(**options, store=tmp_path / "a.db"), Recommender(**options)
    for each in (one, other):
        for n, user in enumerate(options["users"]):  # or most chunks would be the same
            live_of(each).feedback(user, 1.0, x=arms(n, dim=DIM)[0])
        engine_of(each).wait()
    teach(one, 0)
    with small_files():
        for seed in range(1, 4):
            with pytest.raises(StoreError, match="no snapshot of policy 'default'"):
                take_snapshot(one)
            assert engine_of(one).lifecycle.serving
            assert live_of(one).snapshots.retry.failures == seed
            assert store_of(one).chunk_digests("default") == set()
            teach(one, seed)
    for seed in range(4):
        teach(other, seed)
    assert live_of(one).snapshots.seq == 0
    take_snapshot(one)
    assert live_of(one).snapshots.retry == Retry()
    assert live_of(one).snapshots.seq == live_of(one).state.seq
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert live_of(again).snapshots.seq == live_of(one).snapshots.seq
        assert same_state(again, other)


@pytest.mark.parametrize("again", ["asked again", "after a restart", "by itself"])
def test_a_user_removed_on_a_full_disk_is_erased_when_there_is_room(again: str, tmp_path: Path) -> None:
    user, folder = "Wilhelmina-8d4f", tmp_path / "store"
    one = Recommender(dim=DIM, policy="LinUCBInd", store=folder / "a.db")
    for n in range(2_000):  # 1 MB
        live_of(one).feedback(user if n < 20 else f"user-{n % 20}", 1.0, x=arms(n, dim=DIM)[0])
    one.close()  # the write-ahead log is empty then
    one = Recommender(store=folder / "a.db")
    keep_house_every(engine_of(one), 0.05)

    def traces() -> int:
        return sum(file.read_bytes().count(user.encode()) for file in folder.iterdir())

    with small_files(400_000):  # room for the removal, not for a second file
        for _ in range(2):  # asking again is no error of the client
            with pytest.raises(StoreError, match="still in the files of the store, and is overwritten later"):
                one.remove_user(user)
        assert user not in one.users
        assert engine_of(one).lifecycle.serving
        assert engine_of(one).erasure.retry.failures >= 2
        teach(one, 0)
        assert traces() > 0
        if again == "after a restart":
            abandon(one)
    if again == "after a restart":
        one = Recommender(store=folder / "a.db")
    if again == "asked again":
        one.remove_user(user)
    else:
        soon(lambda: not engine_of(one).erasure.pending)
    assert traces() == 0
    with pytest.raises(UnknownName, match="it has not been seen, or was removed"):
        one.remove_user(user)
    one.close()


def test_chunks_of_a_snapshot_that_was_not_finished_are_removed(tmp_path: Path) -> None:
    class FullSoon(SQLiteStore):
        """Takes a few chunks of a snapshot at a time, and is full after two lots."""

        def __init__(self, path: Path) -> None:
            super().__init__(path)
            self.written: list[int] = []

        def put_chunks(self, policy: str, chunks: Sequence[tuple[bytes, bytes]]) -> None:
            for start in range(0, len(chunks), 5):
                if len(self.written) == 2:
                    raise sqlite3.OperationalError("database or disk is full")
                super().put_chunks(policy, chunks[start : start + 5])
                self.written.append(len(self.chunk_digests(policy)))

    store = FullSoon(tmp_path / "a.db")
    with Recommender(dim=3, store=store) as one:
        with pytest.raises(StoreError, match="disk is full"):
            take_snapshot(one)
        assert store.written == [5, 10]
        assert store.chunk_digests("default") == set()


def test_attempts_become_rare_and_each_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    pause_between_snapshots(0.05, 0.4, monkeypatch)
    with Recommender(**large(700), store=tmp_path / "a.db", snapshot_every=1) as one:
        retry = live_of(one).snapshots.retry
        with small_files():
            keep_house_every(engine_of(one), 0.001)
            began = time.monotonic()
            teach(one, 0)
            soon(lambda: retry.failures >= 6)
            elapsed, failures = time.monotonic() - began, retry.failures
        assert elapsed > 0.05 + 0.1 + 0.2 + 2 * 0.4
        reported = [record.getMessage() for record in caplog.records if "failed" in record.getMessage()]
        assert failures <= len(reported) <= failures + 1
        assert "nothing is lost, and it is tried again in" in reported[0]
        soon(lambda: live_of(one).snapshots.seq == live_of(one).state.seq)
        soon(lambda: live_of(one).snapshots.retry.failures == 0)
        assert "written, after" in caplog.text


def test_pauses_double_up_to_five_minutes() -> None:
    retry, pauses = Retry(), []
    assert retry.is_due()
    for _ in range(11):
        retry.fail("full")
        pauses.append(retry.pause)
        assert not retry.is_due()
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_health_and_metrics_tell_of_a_snapshot_that_failed(tmp_path: Path) -> None:
    with (
        served(str(tmp_path / "a.db"), snapshot_every=1_000) as service,
        httpx.Client(base_url=service.url, trust_env=False) as http,
    ):
        made = http.post("/v1/policies", json={"name": "shop", **large(700)})
        assert made.status_code == 201
        assert http.get("/health/ready").json()["warnings"] == []
        with small_files(), pytest.raises(StoreError):
            service.engine.snapshot("shop")
        ready = http.get("/health/ready")
        assert ready.status_code == 200
        (warning,) = ready.json()["warnings"]
        assert warning == "snapshots fail, 1 in a row by now: [Errno 27] File too large"
        assert 'coterie_snapshot_failures{policy="shop"} 1' in http.get("/metrics").text.splitlines()
        service.engine.snapshot("shop")
        assert http.get("/health/ready").json()["warnings"] == []
        assert 'coterie_snapshot_failures{policy="shop"} 0' in http.get("/metrics").text.splitlines()


def test_a_snapshot_that_fails_keeps_no_other_policy_waiting(tmp_path: Path) -> None:
    engine = PolicyEngine(SQLiteStore(tmp_path / "a.db"), snapshot_every=1, tick=0.01)
    with small_files():
        first = engine.create("first", PolicySettings(**{**large(700), "users": large(700)["users"]})).result
        second = engine.create("second", PolicySettings(dim=2, reward_wait=0.01)).result
        soon(lambda: first.snapshots.retry.failures)
        second.decide("ann", arms=[[1.0, 0.0]])
        soon(lambda: second.state.counts["expired"])
        soon(lambda: second.snapshots.seq)
    engine.close()


def test_a_copy_that_would_fill_the_disk_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Recommender(dim=3, store=tmp_path / "a.db") as one:
        size = sum(array.nbytes for array in one.policy.learner.arrays().values())
        with monkeypatch.context() as patch:
            refuse_temporary_files(OSError("this must not be tried"), patch)
            free_disk_space(2 * size - 1, patch)
            with pytest.raises(StoreError, match=f"{2 * size} bytes of disk are needed, and {2 * size - 1}"):
                take_snapshot(one)
        with monkeypatch.context() as patch:
            free_disk_space(2 * size, patch)
            take_snapshot(one)


def test_without_room_for_a_temporary_file_a_snapshot_is_read_all_the_same(tmp_path: Path) -> None:
    one = Recommender(**large(700), store=tmp_path / "a.db")
    teach(one, 0)
    one.close()
    with small_files():
        again = Recommender(store=tmp_path / "a.db")
    assert live_of(again).snapshots.seq == live_of(again).state.seq
    assert same_state(again, one)
    again.close()


def test_a_service_starts_where_there_is_no_room_to_remove_chunks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = Recommender(dim=3, store=tmp_path / "a.db")
    one.feedback("ann", 1.0, x=arms(0)[0])
    store = store_of(one)
    left = (b"left behind", bytes(2 * LIMIT))
    engine_of(one).journal.run(lambda: store.put_chunks("default", [left]))
    abandon(one)
    with small_files():
        again = Recommender(store=tmp_path / "a.db")
    assert "chunks of an unfinished snapshot stay in the store" in caplog.text
    again.feedback("ann", 1.0, x=arms(1)[0])
    abandon(again)
    with Recommender(store=tmp_path / "a.db") as third:
        assert third.policy.rounds == 2
        assert store_of(third).chunk_digests("default") == set()


def test_housekeeping_goes_on_after_an_error_that_nobody_expects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    break_expiry_once(monkeypatch)
    with Recommender(dim=2, store=tmp_path / "a.db", reward_wait=0.01) as one:
        keep_house_every(engine_of(one), 0.01)
        soon(lambda: "housekeeping failed" in caplog.text)
        one.decide("ann", arms=[[1.0, 0.0]])
        soon(lambda: live_of(one).state.counts["expired"])


def test_a_state_that_is_suspect_is_not_written(tmp_path: Path) -> None:
    with Recommender(dim=3, store=tmp_path / "a.db") as one:
        with broken_change(one):
            live_of(one).state.join("ann")
        with pytest.raises(StoreError, match="a change broke off"):
            take_snapshot(one)
        assert snapshot_seqs(store_of(one)) == []


def test_what_was_copied_before_the_store_failed_never_becomes_a_snapshot(tmp_path: Path) -> None:
    """It may hold an event that was lost."""

    class RecoversMeanwhile(SQLiteStore):
        """The engine recovers after the copy is finished, before its chunks are written."""

        def chunk_digests(self, policy: str) -> set[bytes]:
            if recovering:
                engine = recovering.pop()
                engine.lifecycle.doubt(StoreError("a commit failed"))
                engine.recover()
            return super().chunk_digests(policy)

    recovering: list[PolicyEngine] = []
    one = Recommender(dim=3, store=RecoversMeanwhile(tmp_path / "a.db"))
    recovering.append(engine_of(one))
    with pytest.raises(StoreError, match="the log was changed meanwhile"):
        take_snapshot(one)
    assert recovering == []
    assert snapshot_seqs(store_of(one)) == []
    assert store_of(one).chunk_digests("default") == set()
    assert live_of(one).snapshots.seq == 0
    one.close()


def test_an_export_without_room_is_refused_and_a_broken_one_is_not_kept(tmp_path: Path) -> None:
    with (
        served(str(tmp_path / "a.db")) as service,
        httpx.Client(base_url=service.url, trust_env=False) as http,
    ):
        body = {"user": "alice", "arms": [{"id": "a", "x": [1.0] * 8}]}
        decision = http.post("/v1/policies/default/decisions", json=body).json()["decision_id"]
        http.post("/v1/policies/default/rewards", json={"rewards": [{"decision_id": decision, "reward": 1}]})
        with small_files(100):
            refused = http.get("/v1/policies/default/export?format=parquet")
        assert refused.status_code == 503
        assert "the export cannot be written to the disk" in refused.json()["detail"]
        with service.engine.store.export_folder() as folder:
            left = Path(folder).rename(f"{folder}-left")  # as after a kill
    assert left.exists()
    PolicyEngine(SQLiteStore(tmp_path / "a.db")).close()
    assert not left.exists()
