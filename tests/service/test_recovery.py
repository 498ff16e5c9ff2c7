"""State is the last snapshot and the log since: whatever the policy, the same to the last bit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import Recommender
from coterie.policies import REGISTRY
from service.shops import abandon, arms, same_state, shop

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
    "OffCLUB": {"params": TUNED},
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


@pytest.mark.parametrize("policy", REGISTRY)
def test_every_policy_goes_on_after_a_crash_as_if_there_had_been_none(policy: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"dim": 3, "policy": policy, "uniform_share": 0.2, **TOLD.get(policy, {})}
    whole = Recommender(**options)
    cut = Recommender(**options, store=tmp_path / "a.db")
    for seed in range(3):
        assert play(cut, 15, seed) == play(whole, 15, seed)
        if seed == 1:
            cut._engine.snapshot("default")
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
        again._engine.snapshot("default")
        assert play(again, 20, 2) == play(whole, 20, 2)
        user = again.users[0]
        again.remove_user(user)
        whole.remove_user(user)
        assert same_state(again, whole)


def test_the_snapshot_is_used_and_the_log_before_it_is_not_read(tmp_path: Path) -> None:
    one = Recommender(dim=3, store=tmp_path / "a.db")
    play(one, 10, 1)
    one._engine.snapshot("default")
    seq = one._live.state.seq
    play(one, 3, 2)
    rounds = one.policy.rounds
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert next(again._engine.store.snapshots("default")).seq == seq
        assert again.policy.rounds == rounds


def test_a_damaged_snapshot_is_left_aside_and_two_are_kept_with_their_base(tmp_path: Path) -> None:
    one = Recommender(dim=3, store=tmp_path / "a.db")
    for seed in range(4):
        play(one, 5, seed)
        one._engine.snapshot("default")
    kept = list(one._engine.store.snapshots("default"))
    assert [stored.base is None for stored in kept] == [False, False, True]
    last = one._live.state.seq
    damage = "UPDATE snapshot_part SET content = ? WHERE seq = ?"
    one._engine.journal.run(lambda: one._engine.store.execute(damage, [(b"not a snapshot", last)]))
    assert [stored.seq < last for stored in one._engine.store.snapshots("default")] == [True, True]
    copy = Recommender(dim=3)
    for seed in range(4):
        play(copy, 5, seed)
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert same_state(again, copy)


def test_a_snapshot_taken_while_a_user_is_removed_never_becomes_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coterie.service.storage import state_snapshots as snapshots

    one = Recommender(dim=3, store=tmp_path / "a.db")
    play(one, 10, 1)
    written = snapshots.write

    def write_late(arrays: Mapping[str, Any], put: Callable[[int, bytes], None]) -> tuple[int, str]:
        told = written(arrays, put)
        one.remove_user("u1")
        return told

    monkeypatch.setattr(snapshots, "write", write_late)
    one._engine.snapshot("default")
    monkeypatch.undo()
    assert list(one._engine.store.snapshots("default")) == []
    assert one._engine.store.query("SELECT * FROM snapshot_part") == []
    one.close()


def test_snapshots_are_taken_by_themselves(tmp_path: Path) -> None:
    one = Recommender(dim=3, store=tmp_path / "a.db", snapshot_every=10)
    one._engine._tick = 0.01
    play(one, 20, 1)
    for _ in range(500):
        if list(one._engine.store.snapshots("default")):
            break
        one._engine._stop.wait(0.01)
    assert next(one._engine.store.snapshots("default")).seq > 10
    one.close()


def test_events_that_were_replayed_count_towards_the_next_snapshot(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db", snapshot_every=1_000)
    for _ in range(6):
        one.feedback("alice", 1.0, item="tea")
    abandon(one)
    again = Recommender(store=tmp_path / "a.db", snapshot_every=5)
    again._engine._tick = 0.01
    for _ in range(500):
        if list(again._engine.store.snapshots("default")):
            break
        again._engine._stop.wait(0.01)
    assert again._live.snapshot_seq == again._live.state.seq
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
