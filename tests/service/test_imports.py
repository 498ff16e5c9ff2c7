"""While a policy learns from an imported log, others serve; an import that breaks off leaves nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from coterie import Recommender, StoreError
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.imports import import_log
from coterie.service.settings import PolicySettings
from coterie.service.storage.event_store import Event
from coterie.service.storage.location import open_store
from inspection import before_pieces, engine_of, live_of, stop_housekeeping, store_of
from service.serving import served
from service.shops import ITEMS, same_state, shop

BUSY = "policy 'default' is learning from an imported log; try again soon"
NDJSON = {"Content-Type": "application/x-ndjson"}
OF_DEFAULT = (
    ("POST", "/decisions", {"user": "alice"}),
    ("POST", "/rewards", {"rewards": [{"user": "alice", "item": "tea", "reward": 1}]}),
    ("GET", "", None),
    ("GET", "/users/alice", None),
    ("GET", "/history/alice", None),
    ("PUT", "/items", {"items": [{"id": "tea", "x": [1, 0]}]}),
    ("PATCH", "", {"mode": "frozen"}),
    ("POST", "/import", {"user": "bob", "reward": 1, "x": [0, 1]}),
    ("DELETE", "/users/alice", None),
    ("DELETE", "", None),
)


def log(lines: int, seed: int = 0) -> bytes:
    """Lines of an import."""
    rng = np.random.default_rng(seed)
    made = [
        {
            "user": f"u{n % 7}",
            "reward": float(rng.random()),
            "x": rng.normal(size=2).tolist(),
            "decision_id": f"i{n}",
        }
        for n in range(lines)
    ]
    return "\n".join(json.dumps(line) for line in made).encode()


@contextmanager
def halted(patch: pytest.MonkeyPatch, piece: int) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Let an import halt before a piece: an event for when it has got there, and one that lets it go on."""
    arrived, go_on, pieces = threading.Event(), threading.Event(), iter(range(10_000))

    def halt() -> None:
        if next(pieces) == piece:
            arrived.set()
            go_on.wait()

    before_pieces(patch, halt)
    try:
        yield arrived, go_on
    finally:
        go_on.set()


def test_other_policies_decide_and_this_one_says_503(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        served(str(tmp_path / "a.db"), dim=2) as one,
        httpx.Client(base_url=one.url, trust_env=False) as http,
    ):
        one.engine.find("default").change_items(ITEMS)
        http.post("/v1/policies/default/decisions", json={"user": "alice"}).raise_for_status()
        http.post("/v1/policies", json={"name": "other", "dim": 2}).raise_for_status()
        answers: list[httpx.Response] = []

        def bring_in() -> None:
            path = f"{one.url}/v1/policies/default/import"
            answers.append(httpx.post(path, content=log(500), headers=NDJSON, trust_env=False, timeout=None))

        with halted(monkeypatch, 3) as (arrived, go_on):
            importing = threading.Thread(target=bring_in)
            importing.start()
            arrived.wait()
            for n in range(20):
                arms = [{"id": "a", "x": [1.0, 0.0]}]
                body = {"user": "bob", "arms": arms, "decision_id": f"d{n}"}
                assert http.post("/v1/policies/other/decisions", json=body).status_code == 200
            for method, path, content in OF_DEFAULT:
                refused = http.request(method, f"/v1/policies/default{path}", json=content)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "1"), path
                assert refused.json()["detail"] == BUSY
            ready = http.get("/health/ready")
            assert ready.status_code == 200
            assert ready.json()["warnings"] == ["policies out of service: 1; the list of policies says why"]
            listed = http.get("/v1/policies").json()
            assert [one["name"] for one in listed["policies"]] == ["other"]
            assert [one["reason"] for one in listed["failed"]] == [BUSY]
            go_on.set()
            importing.join()
        assert answers[0].json() == {"counted": 500, "duplicates": 0}
        assert http.get("/v1/policies/default").json()["events"]["feedback"] == 500
        assert http.post("/v1/policies/default/decisions", json={"user": "alice"}).status_code == 200


def test_an_import_between_other_events_is_replayed_bit_for_bit(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = shop(store=where)
    engine = engine_of(one)
    other = engine.settle(engine.create("other", PolicySettings(dim=2, policy="LinUCBInd")))
    before_pieces(monkeypatch, lambda: other.decide("bob", arms=np.eye(2)))
    assert import_log(live_of(one), log(1_050)) == (1_050, 0)
    one.reward(one.decide("u1").id, 0.5)
    stop_housekeeping(engine)
    rewards = [event.reward for event in store_of(one).read("default") if event.kind == "feedback"]
    assert rewards == [json.loads(line)["reward"] for line in log(1_050).splitlines()]
    store_of(one).close()
    with Recommender(store=where) as again:
        assert same_state(one, again)
        assert import_log(live_of(again), log(1_100)) == (50, 1_050)


def test_a_piece_that_breaks_off_leaves_nothing_of_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    one = shop()
    pieces = iter(range(100))

    def break_off() -> None:
        if next(pieces) == 4:
            raise ZeroDivisionError

    one.feedback("alice", 1.0, item="tea")
    with monkeypatch.context() as patch:
        before_pieces(patch, break_off)
        with pytest.raises(ZeroDivisionError):
            import_log(live_of(one), log(1_000))
    one.feedback("alice", 0.0, item="coffee")
    engine_of(one).wait()
    assert (one.policy.rounds, one.users) == (2, ("alice",))
    assert [event.kind for event in store_of(one).read("default") if event.user] == ["feedback"] * 2
    assert import_log(live_of(one), log(1_000)) == (1_000, 0)


def test_a_store_that_fails_in_the_middle_leaves_nothing_of_the_import(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(where)
    engine = PolicyEngine(store, tick=0.01)
    live = engine.settle(engine.create("default", PolicySettings(dim=2, policy="LinUCBInd")))
    engine.settle(live.feedback("alice", 1.0, x=[1.0, 0.0]))
    append, commits = store.append, iter(range(10_000))

    def fail(events: Sequence[Event]) -> None:
        if next(commits) == 3:
            raise OSError("the disk is gone")
        append(events)

    monkeypatch.setattr(store, "append", fail)
    with pytest.raises(StoreError):
        import_log(live, log(1_000))
    while not (engine.lifecycle.serving and live.lifecycle.serving):
        pass
    assert (live.state.policy.rounds, live.state.users.ids) == (1, ("alice",))
    assert import_log(live, log(1_000)) == (1_000, 0)
    engine.close()


def test_a_recovery_in_the_middle_ends_the_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = PolicyEngine(open_store(str(tmp_path / "a.db")), tick=1e9)
    live = engine.settle(engine.create("default", PolicySettings(dim=2, policy="LinUCBInd")))
    pieces = iter(range(100))

    def recover() -> None:
        if next(pieces) == 4:
            engine.journal.doubt(OSError("gone for a moment"))
            engine.recover()

    before_pieces(monkeypatch, recover)
    with pytest.raises(StoreError, match="the import was broken off, and nothing of it was counted"):
        import_log(live, log(1_000))
    assert live.lifecycle.serving
    assert live.state.policy.rounds == 0
    assert import_log(live, log(1_000)) == (1_000, 0)
    stop_housekeeping(engine)
    engine.journal.close()
