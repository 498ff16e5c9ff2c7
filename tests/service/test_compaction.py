"""A compacted log is shorter, and everything goes on as before."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from coterie import Conflict, Recommender, StoreError
from coterie.service.storage.compaction import compact
from coterie.service.storage.export import export_rows
from coterie.service.storage.location import open_store
from inspection import abandon, drop_snapshots
from service.shops import ITEMS, arms, same_state, shop

ALWAYS = 1e12


def visited(where: str | None = None) -> Recommender:
    """Decisions of all kinds: by name, inline, lists, drawn; with a reward, expired, waiting."""
    made = shop(
        store=where,
        policy="AutoCLUB",
        items={"tea": [1.0, 0.0, 0.0], "coffee": [0.0, 1.0, 0.0], "cocoa": [0.5, 0.5, 0.1]},
        uniform_share=0.3,
        default_reward=0.1,
    )
    for n in range(40):
        user, key = f"user-{n % 7}", f"d{n}"
        if n % 4 == 0:
            made.decide(user, decision_id=key)
        elif n % 4 == 1:
            made.decide(user, arms=arms(n), decision_id=key)
        else:
            made.decide(user, arms=arms(n), k=3, decision_id=key)
        if n % 4 < 2 and n < 36:
            made.reward(key, (n % 5) / 5)
        elif n < 36:
            made.reward(key, 0.0)
    return made


def test_state_and_what_follows_are_the_same_after_compaction(where: str) -> None:
    one, alone = visited(where), visited()
    assert same_state(one, alone)
    abandon(one)
    store = open_store(where)
    store.open()
    done = compact(store, ALWAYS)
    assert done.decisions == 36
    assert done.saved > 36 * 50
    assert compact(store, ALWAYS) == (0, 0)
    drop_snapshots(store)
    assert list(export_rows(store, "default", 3)) == []
    store.close()
    with Recommender(store=where) as again:
        assert same_state(again, alone)
        assert again.reward("d5", 0.0).status == "duplicate"
        for key in ("d36", "d37"):  # these were waiting
            assert again.reward(key, 0.5) == alone.reward(key, 0.5)
        for user in ("user-1", "new"):
            offered = arms(99)
            ours, theirs = again.decide(user, arms=offered), alone.decide(user, arms=offered)
            assert ours[1:-1] == theirs[1:-1]
        with pytest.raises(Conflict, match="'d0' was used before, and compaction has removed its answer"):
            again.decide("user-0", decision_id="d0")
        with pytest.raises(Conflict, match="'d0' was used for another request"):
            again.decide("user-1", decision_id="d0")
        again.remove_user("user-3")
        alone.remove_user("user-3")
        assert np.array_equal(again.policy.estimates, alone.policy.estimates)


def test_what_is_younger_stays_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    one = shop(store=path)
    one.reward(one.decide("alice", list(ITEMS), decision_id="d").id, 1.0)
    one.close()
    store = open_store(path)
    store.open()
    assert compact(store, 0.0) == (0, 0)
    assert len(list(export_rows(store, "default", 2))) == 1
    assert "scores" in json.loads(store.find("default", "d")[0].detail or "{}")
    store.close()


def test_a_store_in_use_is_not_compacted(tmp_path: Path) -> None:
    from coterie.cli.keys import opened

    path = str(tmp_path / "a.db")
    with shop(store=path), pytest.raises(StoreError, match="in use"), opened(path, lock=True):
        pass
