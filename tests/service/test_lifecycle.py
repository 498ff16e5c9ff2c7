"""Recovery is one state machine: nothing is acknowledged unless memory is what the store says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie import Recommender, StoreError, UnknownName
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.lifecycle import Lifecycle, Phase
from coterie.service.settings import PolicySettings
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event
from coterie.service.storage.sqlite import SQLiteStore
from inspection import engine_of, live_of, never_keep_house, replace_choice, store_of
from service.serving import served
from service.shops import ITEMS, same_state, shop
from service.test_faults import eventually


class Flaky(SQLiteStore):
    """A file whose next appends, or next reads of the log, fail."""

    appends = reads = 0

    def append(self, added: Any) -> None:
        if self.appends:
            self.appends -= 1
            raise OSError("the connection was lost")
        super().append(added)

    def read(self, policy: str, after: int = 0) -> Any:
        if self.reads:
            self.reads -= 1
            raise StoreError("too many connections")
        return super().read(policy, after)


def test_a_recovery_that_fails_halfway_is_not_a_recovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_keep_house(monkeypatch)
    store = Flaky(tmp_path / "a.db")
    one, other = shop(store=store), shop()
    engine = engine_of(one)
    store.appends, store.reads = 1, 1
    with pytest.raises(StoreError):
        one.decide("alice", decision_id="d1")
    with pytest.raises(StoreError, match="too many connections"):
        engine.recover()  # the store can be opened again, and cannot be read
    assert engine.lifecycle.phase is Phase.SUSPECT
    with pytest.raises(StoreError, match="too many connections"):
        one.decide("alice", decision_id="d1")  # it was not stored: memory alone knows it
    with pytest.raises(StoreError):
        one.reward("d1", 1.0)
    assert not store.find("default", "d1")
    engine.recover()
    assert engine.lifecycle.serving
    with pytest.raises(UnknownName):
        one.reward("d1", 1.0)
    assert one.decide("alice", decision_id="d1").chosen == other.decide("alice").chosen
    assert len(store.find("default", "d1")) == 1
    one.close()
    with Recommender(store=tmp_path / "a.db") as again:
        assert same_state(again, other)


def test_the_service_is_not_ready_until_the_log_was_read_again(tmp_path: Path) -> None:
    store = Flaky(tmp_path / "a.db")
    with served(store, dim=2) as one, httpx.Client(base_url=one.url) as client:
        store.appends, store.reads = 1, 3
        told = {"user": "alice", "arms": [{"id": "a", "x": [1.0, 0.0]}], "decision_id": "d1"}
        url = "/v1/policies/default/decisions"
        assert client.post(url, json=told).status_code == 503
        assert client.get("/health/ready").status_code == 503
        statuses = [503]
        while statuses[-1] == 503:
            statuses.append(client.post(url, json=told).status_code)
            assert statuses[-1] == 503 or len(store.find("default", "d1")) == 1
        assert statuses[-1] == 200
        assert store.reads == 0  # all attempts that failed left it as it was


def test_an_event_that_was_given_up_is_not_acknowledged_by_a_later_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_keep_house(monkeypatch)
    store = Flaky(tmp_path / "a.db")
    one = shop(store=store)
    engine, live = engine_of(one), live_of(one)
    store.appends = 1
    lost = live.decide("alice", decision_id="d1")
    with pytest.raises(StoreError):
        engine.wait()
    engine.recover()
    one.decide("bob", decision_id="d2")
    assert engine.journal.durable > lost.seq
    with pytest.raises(StoreError, match="nothing was counted: the connection was lost"):
        engine.settle(lost)
    repeated = live.decide("alice", decision_id="d1")
    assert engine.settle(repeated).chosen == lost.result.chosen
    one.close()


def test_a_request_waits_for_its_own_event_alone(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db")
    first = one.decide("alice", decision_id="d1")
    live, engine = live_of(one), engine_of(one)
    live.decide("bob")  # on its way
    again = live.decide("alice", decision_id="d1")
    assert again.seq <= engine.journal.durable
    assert engine.settle(again) == first
    one.close()
    with Recommender(store=tmp_path / "a.db") as later:
        assert live_of(later).decide("alice", decision_id="d1").seq == 0  # it is in the store


def insert(path: Path, *rows: Event) -> None:
    """Write events past any check."""
    store = SQLiteStore(path)
    store.open()
    store.append(rows)
    store.close()


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (
            Event(90, "broken", events.REWARD, 1.0, "nowhere", "ann", None, 1.0),
            r"event 90 \(reward\): a reward for 'nowhere', a decision that is not in the log before it",
        ),
        (Event(90, "broken", "surprise", 1.0), r"event 90 \(surprise\): an event of a kind that"),
        (Event(90, "broken", events.ITEMS, 1.0, x=b"12345", detail='{"put":["a"]}'), "event 90"),
        (Event(90, "broken", events.CONFIGURED, 1.0, detail="{}"), "event 90"),
        (Event(90, "broken", events.DECISION, 1.0, detail="nonsense"), "event 90"),
    ],
)
def test_a_policy_whose_log_makes_no_sense_is_quarantined(bad: Event, why: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    engine = PolicyEngine(SQLiteStore(path))
    for name in ("broken", "sound"):
        engine.settle(engine.create(name, PolicySettings(dim=2)))
        engine.settle(engine.find(name).change_items(ITEMS))
    engine.close(snapshot=False)
    insert(path, bad)
    with served(str(path)) as one:
        listed = httpx.get(f"{one.url}/v1/policies").json()
        assert [policy["name"] for policy in listed["policies"]] == ["sound"]
        assert [policy["name"] for policy in listed["failed"]] == ["broken"]
        refused = httpx.post(f"{one.url}/v1/policies/broken/decisions", json={"user": "ann"})
        assert refused.status_code == 503
        assert refused.json()["detail"] == listed["failed"][0]["reason"]
        with pytest.raises(StoreError, match=f"policy 'broken' is out of service: .*{why}"):
            one.engine.find("broken")
        decided = httpx.post(f"{one.url}/v1/policies/sound/decisions", json={"user": "ann"})
        assert decided.status_code == 200
        assert httpx.get(f"{one.url}/health/ready").json()["warnings"]
        assert httpx.delete(f"{one.url}/v1/policies/broken").status_code == 204
        assert not one.engine.out_of_service()


def test_memory_that_runs_out_in_one_policy_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_keep_house(monkeypatch)
    engine = PolicyEngine(SQLiteStore(tmp_path / "a.db"), patience=0.25)
    for name in ("small", "large"):
        engine.settle(engine.create(name, PolicySettings(dim=2)))
        engine.settle(engine.find(name).change_items(ITEMS))
    small, large = engine.find("small"), engine.find("large")

    def no_room(*_: object) -> None:
        raise MemoryError

    replace_choice(monkeypatch, no_room)
    with pytest.raises(StoreError, match=r"policy 'large' .* there is not enough memory"):
        large.decide("ann")
    monkeypatch.undo()
    never_keep_house(monkeypatch)
    engine.settle(small.decide("ann"))
    with pytest.raises(StoreError, match="policy 'large'"):
        large.decide("ann")
    assert engine.lifecycle.serving
    assert list(engine.out_of_service()) == ["large"]
    large.recover_due()
    engine.settle(large.decide("ann"))
    engine.close()


def test_a_store_that_lost_acknowledged_events_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_keep_house(monkeypatch)
    store = Flaky(tmp_path / "a.db")
    one = shop(store=store)
    one.decide("alice", decision_id="d1")
    engine = engine_of(one)
    with closing(sqlite3.connect(tmp_path / "a.db")) as other:  # as after a failover
        other.execute("DELETE FROM log WHERE decision = 'd1'")
        other.commit()
    store.appends = 1
    with pytest.raises(StoreError):
        one.decide("bob")
    with pytest.raises(StoreError, match="the store has lost events that were acknowledged"):
        engine.recover()
    assert engine.lifecycle.phase is Phase.FAILED
    with pytest.raises(StoreError, match="Restore the store, or start the service again"):
        one.decide("bob")
    one.close()


def test_removing_the_last_event_on_purpose_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_keep_house(monkeypatch)
    store = Flaky(tmp_path / "a.db")
    one = shop(store=store)
    one.decide("alice")
    one.remove_user("alice")
    store.appends = 1
    with pytest.raises(StoreError):
        one.decide("bob")
    engine_of(one).recover()
    one.decide("bob")
    assert store_of(one).history("default", "bob", 10)
    one.close()


def test_a_doubt_during_a_recovery_outlasts_it() -> None:
    one = Lifecycle()
    one.doubt(StoreError("first"))
    one.begin()
    one.doubt(StoreError("second"))
    with pytest.raises(StoreError, match="second"):
        one.serve()
    assert one.phase is Phase.SUSPECT
    one.begin()
    one.serve()
    assert one.serving
    one.fail(StoreError("gone"))
    one.doubt(StoreError("third"))
    with pytest.raises(StoreError, match="gone"):
        one.begin()


def test_a_retry_gets_503_or_an_answer_that_is_stored(tmp_path: Path) -> None:
    store = Flaky(tmp_path / "a.db")
    one = shop(store=store)
    for number in range(20):
        store.appends, store.reads = number % 2, number % 3
        decision = f"d{number}"
        eventually(partial(one.decide, "alice", decision_id=decision))
        assert store.find("default", decision)
    one.close()
