"""Everything that requests can make grow has a limit, and what is over it is refused or forgotten."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from coterie import ArgumentError, StoreError
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.live_policy import Limits, LivePolicy
from coterie.service.settings import PolicySettings
from coterie.service.storage.sqlite import SQLiteStore
from inspection import live_of
from service.shops import ITEMS, shop


@contextmanager
def engine_with(path: Path, limits: Limits) -> Iterator[tuple[PolicyEngine, LivePolicy]]:
    """An engine on a file with one policy."""
    engine = PolicyEngine(SQLiteStore(path), limits=limits)
    settings = PolicySettings(dim=2, policy="LinUCBInd")
    yield engine, engine.settle(engine.create("default", settings))
    engine.close(snapshot=False)


def test_what_was_offered_is_not_kept_in_memory(tmp_path: Path) -> None:
    with engine_with(tmp_path / "a.db", Limits()) as (engine, live):
        offer = np.random.default_rng(0).normal(size=(1_000, 2))
        engine.settle(live.decide("alice", arms=offer))
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(600):  # 17 MB of arms and their ids
            engine.settle(live.decide("alice", arms=offer, decision_id=f"d{number}"))
            engine.settle(live.reward(f"d{number}", 1.0))
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert taken - before < 4 * 2**20  # decoded details of the latest hundred events
        assert engine.settle(live.decide("alice", arms=offer, decision_id="d0")).id == "d0"
        assert engine.settle(live.reward("d0", 1.0)).status == "duplicate"


def test_timers_of_settled_decisions_go_before_their_time() -> None:
    one = shop(reward_wait=86_400.0)
    for number in range(3_000):
        one.decide("alice", ["tea"], decision_id=f"d{number}")
        one.reward(f"d{number}", 1.0)
    one.decide("alice", ["tea"])
    state = live_of(one).state
    assert len(state.waiting) == 1
    assert len(state.timers) < 1_100
    one.close()


def test_users_and_items_have_limits(tmp_path: Path) -> None:
    with engine_with(tmp_path / "a.db", Limits(users=3, items=3)) as (engine, live):
        live.change_items(ITEMS)
        with pytest.raises(ArgumentError, match="at most 3 items, got 4"):
            live.change_items({"milk": [0.5, 0.5]})
        live.change_items({"tea": [0.5, 0.5]})
        for user in ("alice", "bob", "eve", "alice"):
            engine.settle(live.decide(user))
        for _ in range(2):
            with pytest.raises(StoreError, match="a policy may have 3 users, and there are 3"):
                live.decide("mallory")
        with pytest.raises(StoreError, match="a policy may have 3 users"):
            live.feedback("mallory", 1.0, item="tea")
        assert live.state.users.ids == ("alice", "bob", "eve")
        assert engine.lifecycle.serving
        assert live.lifecycle.serving


def test_waiting_decisions_have_a_limit(tmp_path: Path) -> None:
    with engine_with(tmp_path / "a.db", Limits(waiting=2)) as (engine, live):
        live.change_items(ITEMS)
        first = engine.settle(live.decide("alice"))
        live.decide("alice")
        with pytest.raises(StoreError, match="2 decisions wait for a reward"):
            live.decide("alice")
        live.reward(first.id, 1.0)
        live.decide("alice")
