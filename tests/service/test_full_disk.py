"""Snapshots that find no room: decisions go on, attempts become rare, and the service says so.

Files of this process may not grow beyond a limit meanwhile; the system enforces that as it does a quota.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from coterie import Recommender, StoreError
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.live_policy import LivePolicy
from coterie.service.settings import PolicySettings
from coterie.service.storage import copies, snapshot_writer
from coterie.service.storage import state_snapshots as snapshots
from coterie.service.storage.snapshot_writer import Retry
from coterie.service.storage.sqlite import SQLiteStore
from service.serving import served
from service.shops import abandon, arms, same_state

resource = pytest.importorskip("resource", reason="only POSIX limits the files of a process")

DIM, LIMIT = 20, 2**21
USERS = {"the copy": 700, "a part": 640}
"""Of 700 users the largest array is longer than the limit; of 640 only all arrays together are."""


def large(users: int) -> dict[str, Any]:
    return {"dim": DIM, "policy": "LinUCBInd", "users": [f"u{n}" for n in range(users)]}


def teach(one: Recommender, seed: int) -> None:
    one.feedback(f"u{seed % 7}", 1.0, x=arms(seed, dim=DIM)[0], feedback_id=f"f{seed}")


@contextmanager
def small_files() -> Iterator[None]:
    """No file may become longer than the limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
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
    teach(one, 0)
    with small_files():
        for seed in range(1, 4):
            with pytest.raises(StoreError, match="no snapshot of policy 'default'"):
                one._engine.snapshot("default")
            assert one._engine.journal.failure is None
            assert one._live.retry.failures == seed
            assert one._engine.store.query("SELECT seq FROM snapshot_part") == []
            teach(one, seed)
    for seed in range(4):
        teach(other, seed)
    assert one._live.snapshot_seq == 0
    one._engine.snapshot("default")
    assert one._live.retry == Retry()
    assert one._live.snapshot_seq == one._live.state.seq
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert again._live.snapshot_seq == one._live.snapshot_seq
        assert same_state(again, other)


def test_parts_of_a_snapshot_that_was_not_finished_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_part, written = SQLiteStore.put_part, []

    def put_two(self: SQLiteStore, policy: str, seq: int, part: int, content: bytes) -> None:
        if part == 2:
            raise sqlite3.OperationalError("database or disk is full")
        put_part(self, policy, seq, part, content)
        written.append(self.query("SELECT COUNT(*) FROM snapshot_part")[0][0])

    monkeypatch.setattr(snapshots, "PART", 500)
    with Recommender(dim=3, store=tmp_path / "a.db") as one:
        with monkeypatch.context() as patch:
            patch.setattr(SQLiteStore, "put_part", put_two)
            with pytest.raises(StoreError, match="disk is full"):
                one._engine.snapshot("default")
        assert written == [1, 2]
        assert one._engine.store.query("SELECT seq FROM snapshot_part") == []


def test_attempts_become_rare_and_each_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(snapshot_writer, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(snapshot_writer, "LONGEST_PAUSE", 0.4)
    with Recommender(**large(700), store=tmp_path / "a.db", snapshot_every=1) as one:
        retry = one._live.retry
        with small_files():
            one._engine._tick = 0.001
            began = time.monotonic()
            teach(one, 0)
            soon(lambda: retry.failures >= 6)
            elapsed, failures = time.monotonic() - began, retry.failures
        assert elapsed > 0.05 + 0.1 + 0.2 + 2 * 0.4
        told = [record.getMessage() for record in caplog.records if "failed" in record.getMessage()]
        assert failures <= len(told) <= failures + 1
        assert "nothing is lost, and it is tried again in" in told[0]
        soon(lambda: one._live.snapshot_seq == one._live.state.seq)
        soon(lambda: one._live.retry.failures == 0)
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
        assert http.get("/health/ready").json() == {"status": "ready", "warnings": []}
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
        first = engine.create("first", PolicySettings(**{**large(700), "users": large(700)["users"]}))
        second = engine.create("second", PolicySettings(dim=2, reward_wait=0.01))
        soon(lambda: first.retry.failures)
        second.decide("ann", arms=[[1.0, 0.0]])
        soon(lambda: second.state.counts["expired"])
        soon(lambda: second.snapshot_seq)
    engine.close()


def test_a_copy_that_would_fill_the_disk_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Recommender(dim=3, store=tmp_path / "a.db") as one:
        size = sum(array.nbytes for array in one.policy.learner.arrays().values())
        with monkeypatch.context() as patch:
            patch.setattr(copies, "TemporaryFile", None)
            patch.setattr(copies, "disk_usage", lambda folder: SimpleNamespace(free=2 * size - 1))
            with pytest.raises(StoreError, match=f"{2 * size} bytes of disk are needed, and {2 * size - 1}"):
                one._engine.snapshot("default")
        with monkeypatch.context() as patch:
            patch.setattr(copies, "disk_usage", lambda folder: SimpleNamespace(free=2 * size))
            one._engine.snapshot("default")


def test_without_room_for_a_temporary_file_a_snapshot_is_read_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = Recommender(**large(700), store=tmp_path / "a.db")
    teach(one, 0)
    one.close()
    with small_files():
        again = Recommender(store=tmp_path / "a.db")
    assert "read into memory, the disk has no room: [Errno 27] File too large" in caplog.text
    assert again._live.snapshot_seq == again._live.state.seq
    assert same_state(again, one)
    again.close()


def test_a_service_starts_where_there_is_no_room_to_remove_parts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = Recommender(dim=3, store=tmp_path / "a.db")
    one.feedback("ann", 1.0, x=arms(0)[0])
    store = one._engine.store
    one._engine.journal.run(lambda: store.put_part("default", 999, 0, bytes(2 * LIMIT)))
    abandon(one)
    with small_files():
        again = Recommender(store=tmp_path / "a.db")
    assert "parts of a snapshot that was not finished stay" in caplog.text
    again.feedback("ann", 1.0, x=arms(1)[0])
    abandon(again)
    with Recommender(store=tmp_path / "a.db") as third:
        assert third.policy.rounds == 2
        assert third._engine.store.query("SELECT seq FROM snapshot_part") == []


def test_housekeeping_goes_on_after_an_error_that_nobody_expects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = iter([True])
    expire = LivePolicy.expire

    def expire_later(self: LivePolicy) -> int:
        if next(broken, False):
            raise RuntimeError("broken")
        return expire(self)

    monkeypatch.setattr(LivePolicy, "expire", expire_later)
    with Recommender(dim=2, store=tmp_path / "a.db", reward_wait=0.01) as one:
        one._engine._tick = 0.01
        soon(lambda: "housekeeping failed" in caplog.text)
        one.decide("ann", arms=[[1.0, 0.0]])
        soon(lambda: one._live.state.counts["expired"])


def test_a_state_that_is_distrusted_is_not_written(tmp_path: Path) -> None:
    with Recommender(dim=3, store=tmp_path / "a.db") as one:
        with suppress(ZeroDivisionError), one._engine.change:
            one._live.state.join(str(1 / 0))
        with pytest.raises(StoreError, match="a change has broken off"):
            one._engine.snapshot("default")
        assert list(one._engine.store.snapshots("default")) == []


def test_what_was_copied_before_the_store_failed_never_becomes_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold an event that was lost."""
    one, write = Recommender(dim=3, store=tmp_path / "a.db"), snapshots.write

    def write_late(arrays: Mapping[str, Any], put: Callable[[int, bytes], None]) -> tuple[int, str]:
        one._engine.recover()
        return write(arrays, put)

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "write", write_late)
        one._engine.snapshot("default")
    assert list(one._engine.store.snapshots("default")) == []
    assert one._live.snapshot_seq == 0
    one.close()
