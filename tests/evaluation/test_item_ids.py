"""Logs that name items: policies that take ids are given them, others are asked as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.errors import DataError
from coterie.evaluation import Log, LoggingPolicy, evaluate, read_log
from coterie.evaluation.passes import progressive_pass, replay_pass
from coterie.types import Floats, Ints
from evaluation.worlds import Noting

N = 1500
LEARNERS = {
    "ItemUCB": lambda log, seed: coterie.ItemUCB(log.n_users, log.dim, seed=seed),
    "LinUCBOne": lambda log, seed: coterie.LinUCBOne(log.n_users, log.dim, beta=0.3, items=True),
    "HierUCB": lambda log, seed: coterie.HierUCB(log.n_users, log.dim),
}


class Shown:
    """A policy that takes ids and remembers all that it was told."""

    def __init__(self) -> None:
        self.offered: list[Any] = []
        self.learnt: list[Any] = []

    def recommend(self, user: int, arms: Floats, *, items: Ints | None = None) -> int:
        self.offered.append(None if items is None else items.tolist())
        return 0

    def update(self, user: int, x: Floats, reward: float, *, item: int | None = None) -> None:
        self.learnt.append(item)


def shop(*, named: bool) -> Log:
    """Three things with one vector, drawn uniformly; the second is bought most often."""
    rng, vector = np.random.default_rng(3), [1.0, 0.5]
    things, rates = ["tea", "coffee", "milk"], {"tea": 0.2, "coffee": 0.8, "milk": 0.3}
    offers = [rng.permutation(things).tolist() for _ in range(N)]
    chosen = rng.integers(3, size=N)
    bought = [float(rng.random() < rates[offer[k]]) for offer, k in zip(offers, chosen, strict=True)]
    rows = {"user": rng.integers(5, size=N), "arms": offers, "arm": chosen, "reward": bought}
    items = pl.DataFrame({"id": things, "a": [vector[0]] * 3, "b": [vector[1]] * 3})
    if named:
        return read_log(pl.DataFrame(rows), items=items, uniform=True)
    return read_log(pl.DataFrame({**rows, "arms": [[vector] * 3] * N}), uniform=True)


@pytest.mark.parametrize("name", LEARNERS)
def test_equal_vectors_with_different_ids_are_told_apart(name: str) -> None:
    by_id, by_vector = (
        evaluate(shop(named=named), {name: LEARNERS[name]}, resamples=20) for named in (True, False)
    )
    for estimator in ("replay", "ips", "snips", "dr"):
        assert by_id[name, estimator].reward > 0.6
        assert by_vector[name, estimator].reward < 0.5


def test_numbers_stand_for_ids_in_recommend_and_update() -> None:
    log = shop(named=True)
    policy = Shown()
    progressive_pass(log, policy)
    assert log.item_ids == ("tea", "coffee", "milk")
    assert [sorted(ids) for ids in policy.offered] == [[0, 1, 2]] * N
    ids = [[log.item_ids[number] for number in numbers] for numbers in policy.offered]
    coffee = [offer[k] == "coffee" for offer, k in zip(ids, log.chosen, strict=True)]
    assert log.rewards[coffee].mean() > 0.7 > 0.4 > log.rewards[np.logical_not(coffee)].mean()
    assert policy.learnt == [numbers[k] for numbers, k in zip(policy.offered, log.chosen, strict=True)]


def test_in_replay_the_item_of_a_match_is_learnt() -> None:
    log, policy = shop(named=True), Shown()
    counted = replay_pass(log, policy, np.zeros(N))
    assert policy.learnt == [numbers[0] for numbers, hit in zip(policy.offered, counted, strict=True) if hit]


def test_without_ids_none_are_given_and_policies_that_take_none_are_asked_as_before() -> None:
    unnamed, policy = shop(named=False), Shown()
    progressive_pass(unnamed, policy)
    assert policy.offered == policy.learnt == [None] * N
    plain = [Noting(coterie.LinUCBOne(5, 2, beta=0.3)) for _ in range(2)]
    named = shop(named=True)
    assert (
        progressive_pass(named, plain[0]).arms.tolist() == progressive_pass(unnamed, plain[1]).arms.tolist()
    )


def test_events_with_an_arm_without_id_are_given_no_ids() -> None:
    fields: dict[str, Any] = {
        "user_ids": ["a"],
        "users": [0, 0, 0],
        "items": np.eye(4),
        "offers": [0, 1, 0, 2, 3, 1],
        "starts": [0, 2, 4, 6],
        "chosen": [0, 1, 1],
        "propensities": [0.5, 0.5, 0.5],
        "rewards": [1.0, 0.0, 1.0],
        "times": [1, 2, 3],
        "item_ids": ["x", "y"],
        "item_of": [0, 1, -1, 0],
    }
    log = Log(**fields)
    policy = Shown()
    progressive_pass(log, policy)
    assert policy.offered == [[0, 1], None, [0, 1]]  # rows 0 and 3 are two vectors of one item
    assert policy.learnt == [0, None, 1]


def test_an_item_that_is_offered_twice_is_refused() -> None:
    rows = {"user": [1, 1], "arms": [["a", "b"], ["b", "b"]], "arm": [0, 1], "reward": [1.0, 0.0]}
    items = pl.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0]})
    with pytest.raises(DataError, match=r"the data frame: event 1 \(from 0\): item 'b' is offered twice"):
        read_log(pl.DataFrame(rows), items=items, uniform=True)


def test_a_saved_log_keeps_its_ids(tmp_path: Path) -> None:
    for named in (True, False):
        log = shop(named=named)
        log.save(tmp_path / "log.parquet")
        again = read_log(tmp_path / "log.parquet")
        for t in range(N):
            ids, kept = log.ids(t), again.ids(t)
            assert (ids is None) == (kept is None) == (not named)
            if ids is not None and kept is not None:
                assert [log.item_ids[k] for k in ids] == [again.item_ids[k] for k in kept]


def test_a_logging_policy_passes_ids_on_and_logs_them() -> None:
    shown, rng = Shown(), np.random.default_rng(2)
    logger = LoggingPolicy(shown, 0.5, seed=1)
    for t in range(40):
        ids = rng.permutation([40, 50, 60])
        vectors = (
            np.ones((3, 2)) if t < 20 else np.full((3, 2), 2.0)
        )  # an item stays one when its vector changes
        arm = logger.recommend(0, vectors, items=ids)
        logger.update(
            0, np.zeros(2), float(ids[arm]), item=int(ids[arm])
        )  # rewards find their event by the id
    log = logger.log()
    assert len(log) == 40
    assert sorted(log.item_ids) == [40, 50, 60]
    for t in range(40):
        numbers = log.ids(t)
        assert numbers is not None
        assert [log.item_ids[number] for number in numbers] == shown.offered[t]
        assert log.item_ids[numbers[log.chosen[t]]] == log.rewards[t] == shown.learnt[t]


def test_simulations_name_the_items_of_a_log() -> None:
    data = coterie.datasets.load("synthetic", dim=3, n_users=10, n_items=30)
    world = coterie.environments.Stochastic(data, n_users=4, n_clusters=2, n_arms=5, seed=1)
    logger = LoggingPolicy(coterie.ItemUCB(4, 3), 0.5)
    coterie.simulate(logger, world, 300)
    log = logger.log()
    for t in range(0, 300, 37):
        numbers = log.ids(t)
        assert numbers is not None
        assert np.array_equal(data.items[[int(log.item_ids[number]) for number in numbers]], log.arms(t))
