"""State is the last snapshot and the log since: whatever the policy, the same to the last bit."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import ArgumentError, Recommender, StoreError
from coterie.policies import REGISTRY
from coterie.service.storage.sqlite import SQLiteStore
from inspection import abandon, engine_of, keep_house_every, live_of, snapshot_seqs, store_of, take_snapshot
from service.shops import arms, same_state, shop

USERS = [f"u{n}" for n in range(6)]
RING = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
TUNED = {"alpha": 0.4, "beta": 0.3}
TOLD: dict[str, dict[str, Any]] = {
    "DynUCB": {"params": {"n_clusters": 3}},
    "LinUCBOracle": {"params": {"labels": [0, 1, 0, 1, 0, 1]}, "users": USERS},
    "LinTSOracle": {"params": {"labels": [0, 1, 0, 1, 0, 1]}, "users": USERS},
    "GOBLin": {"params": {"graph": RING.tolist()}, "users": USERS},
    "GraphUCB": {"params": {"graph": RING.tolist()}, "users": USERS},
    "CLUB": {"params": TUNED},
    "LOCB": {"params": TUNED},
    "CLUBCascade": {"params": TUNED},
    "OffC2LUB": {"params": TUNED},
    "OffCLUB": {"params": TUNED},
    "FCLUBDC": {"params": TUNED},
    "SCLUB": {"params": TUNED},
    "SCLUB2019": {"params": TUNED},
    "COLDB": {"params": TUNED},
    "RCLUBWCU": {"params": TUNED},
    "RCLUMB": {"params": TUNED},
    "RSCLUMB": {"params": TUNED},
    "UniCLUB": {"params": {**TUNED, "explore": 12}},
    "UniSCLUB": {"params": {**TUNED, "explore": 12}},
    "PhaseUniCLUB": {"params": {**TUNED, "explore": 12, "phase": 4, "growth": 1}},
    "SACLUB": {"params": TUNED},
    "SASCLUB": {"params": TUNED},
}


def play(recommender: Recommender, rounds: int, seed: int) -> list[Any]:
    """Serve users for some rounds; the answers, but for their ids."""
    rng = np.random.default_rng(seed)
    answers: list[Any] = []
    for number in range(rounds):
        k = 1 + number % 2
        user = USERS[rng.integers(6)]
        decision = recommender.decide(user, arms=arms(int(rng.integers(1000))), k=k)
        labels = recommender.policy.labels()
        assert decision.cluster == (labels == labels[recommender.users.index(user)]).argmax()
        answers.append(decision[1:])
        if rng.random() < 0.8:
            click = decision.ranking[0] if k == 2 else None
            recommender.reward(decision.id, float(rng.random() < 0.5) if k == 1 else 1.0, item=click)
    return answers


def test_a_policy_with_a_catalogue_of_its_own_is_refused() -> None:
    with pytest.raises(ArgumentError, match="COFIBA needs a catalogue that never changes"):
        Recommender(dim=3, policy="COFIBA")


@pytest.mark.parametrize("policy", [name for name in REGISTRY if name != "COFIBA"])
def test_every_policy_goes_on_after_a_crash_as_if_there_had_been_none(policy: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"dim": 3, "policy": policy, "uniform_share": 0.2, **TOLD.get(policy, {})}
    whole = Recommender(**options)
    cut = Recommender(**options, store=tmp_path / "a.db")
    for seed in range(3):
        assert play(cut, 15, seed) == play(whole, 15, seed)
        if seed == 1:
            take_snapshot(cut)
            assert play(cut, 5, 9) == play(whole, 5, 9)
        abandon(cut)
        cut = Recommender(store=tmp_path / "a.db")
        assert same_state(cut, whole)
    assert play(cut, 20, 7) == play(whole, 20, 7)
    cut.close()


def test_postgresql_recovers_in_the_same_way(postgres: str) -> None:
    whole, cut = Recommender(dim=3, policy="LinTSInd"), Recommender(dim=3, policy="LinTSInd", store=postgres)
    assert play(cut, 20, 1) == play(whole, 20, 1)
    abandon(cut)
    with Recommender(store=postgres) as again:
        assert same_state(again, whole)
        take_snapshot(again)
        assert play(again, 20, 2) == play(whole, 20, 2)
        user = again.users[0]
        again.remove_user(user)
        whole.remove_user(user)
        assert same_state(again, whole)


def test_the_snapshot_is_used_and_the_log_before_it_is_not_read(tmp_path: Path) -> None:
    one = Recommender(dim=3, store=tmp_path / "a.db")
    play(one, 10, 1)
    take_snapshot(one)
    seq = live_of(one).state.seq
    play(one, 3, 2)
    rounds = one.policy.rounds
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert snapshot_seqs(store_of(again))[0] == seq
        assert again.policy.rounds == rounds


def test_a_damaged_snapshot_is_left_aside_and_two_are_kept(tmp_path: Path) -> None:
    one, copy = Recommender(dim=3, store=tmp_path / "a.db"), Recommender(dim=3)
    for seed in range(4):
        play(one, 5, seed)
        play(copy, 5, seed)
        take_snapshot(one)
    store, last = store_of(one), live_of(one).state.seq
    assert len(snapshot_seqs(store)) == 2
    damage = "UPDATE snapshot SET manifest = ? WHERE seq = ?"
    engine_of(one).journal.run(lambda: store.execute(damage, [(b"not a manifest", last)]))
    assert [seq < last for seq in snapshot_seqs(store)] == [True]
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert live_of(again).snapshots.seq < last
        assert same_state(again, copy)


def test_a_snapshot_taken_while_a_user_is_removed_never_becomes_whole(tmp_path: Path) -> None:
    class RemovesMeanwhile(SQLiteStore):
        """The user is removed after the copy is finished, before its chunks are written."""

        def chunk_digests(self, policy: str) -> set[bytes]:
            if removing:
                one.remove_user(removing.pop())
            return super().chunk_digests(policy)

    removing: list[str] = []
    one = Recommender(dim=3, store=RemovesMeanwhile(tmp_path / "a.db"))
    play(one, 10, 1)
    removing.append("u1")
    with pytest.raises(StoreError, match="the log was changed meanwhile"):
        take_snapshot(one)
    assert snapshot_seqs(store_of(one)) == []
    assert store_of(one).chunk_digests("default") == set()
    assert "u1" not in one.users
    one.close()


def test_snapshots_are_taken_by_themselves(tmp_path: Path) -> None:
    one = Recommender(dim=3, store=tmp_path / "a.db", snapshot_every=10)
    keep_house_every(engine_of(one), 0.01)
    play(one, 20, 1)
    for _ in range(500):
        if snapshot_seqs(store_of(one)):
            break
        time.sleep(0.01)
    assert snapshot_seqs(store_of(one))[0] > 10
    one.close()


def test_events_that_were_replayed_count_towards_the_next_snapshot(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db", snapshot_every=1_000)
    for _ in range(6):
        one.feedback("alice", 1.0, item="tea")
    abandon(one)
    again = Recommender(store=tmp_path / "a.db", snapshot_every=5)
    keep_house_every(engine_of(again), 0.01)
    for _ in range(500):
        if snapshot_seqs(store_of(again)):
            break
        time.sleep(0.01)
    assert live_of(again).snapshots.seq == live_of(again).state.seq
    again.close()


def test_a_backup_taken_while_it_serves_goes_on_as_it_was(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db")
    first = one.decide("alice", decision_id="d")
    with (
        closing(sqlite3.connect(tmp_path / "a.db")) as source,
        closing(sqlite3.connect(tmp_path / "b.db")) as copy,
    ):
        source.backup(copy)  # as `.backup` of the program sqlite3 does
    one.feedback("alice", 1.0, item="tea")  # not in the backup
    restored, other = Recommender(store=tmp_path / "b.db"), shop()
    other.decide("alice", decision_id="d")
    assert restored.decide("alice", decision_id="d") == first
    assert same_state(restored, other)
    restored.close()
    one.close()
