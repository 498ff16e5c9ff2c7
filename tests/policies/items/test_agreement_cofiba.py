"""COFIBA against its naive transcription: the same arms, clusters of items and clusters of users on them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import coterie
from policies.agreeing import TIE
from reference.cofiba import COFIBA
from reference.users import Array

pytestmark = pytest.mark.slow

ROUNDS, SEEDS = 140, range(12)
CLOSE = 1e-9
"""Nearer to its limit than this, rounding decides whether users agree."""


class World:
    """Users who differ on one half of the items only; some arms are in no catalogue."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_users, self.dim = int(self.rng.integers(2, 8)), int(self.rng.integers(2, 6))
        n_items = int(self.rng.integers(3, 70))
        self.catalogue = self.rng.normal(size=(n_items, self.dim)) / math.sqrt(self.dim)
        half = self.dim // 2
        self.catalogue[: n_items // 2, half:] *= 0.1
        self.catalogue[n_items // 2 :, :half] *= 0.1
        self.tastes = np.repeat(self.rng.normal(size=(1, self.dim)), self.n_users, axis=0)
        self.tastes[::2, :half] *= -1.0

    def offer(self) -> tuple[Array, list[int | None]]:
        """Some items, and now and then a vector that is none."""
        n = int(self.rng.integers(1, 8))
        chosen = self.rng.choice(len(self.catalogue), min(n, len(self.catalogue)), replace=False)
        arms, items = self.catalogue[chosen], [int(item) for item in chosen]
        if self.rng.random() < 0.2:
            return np.vstack([arms, self.rng.normal(size=self.dim)]), [*items, None]
        return arms, [*items]

    def reward(self, user: int, x: Array) -> float:
        return float(x @ self.tastes[user] + 0.05 * self.rng.normal())


def walk(seed: int, *, named: bool) -> tuple[int, COFIBA]:
    """Play on both up to the first tie; one user comes late."""
    w = World(seed)
    late = int(w.n_users > 2)
    alpha, ridge = (0.05, 0.15, 0.4)[seed % 3], (1.0, 0.1)[seed % 2]
    fast = coterie.COFIBA(w.n_users - late, w.dim, catalogue=w.catalogue, alpha=alpha, beta=0.2, ridge=ridge)
    slow = COFIBA(w.n_users - late, w.dim, catalogue=w.catalogue, alpha=alpha, beta=0.2, ridge=ridge)
    for t in range(ROUNDS):
        if late and t == ROUNDS // 3:
            fast.add_users(late)
            slow.welcome(late)
        user, (arms, items) = int(w.rng.integers(slow.n_users)), w.offer()
        ids = [len(w.catalogue) + 5 if item is None else item for item in items] if named else None
        scores = slow.scores(user, arms, items)
        np.testing.assert_allclose(fast.scores(user, arms, items=ids).ucb, scores, atol=1e-8)
        arm = fast.recommend(user, arms, items=ids)
        assert scores[arm] >= scores.max() - TIE
        reward = w.reward(user, arms[arm])
        fast.update(user, arms[arm], reward, item=None if ids is None else ids[arm])
        slow.update(user, arms[arm], reward, items[arm])
        if slow.margin < CLOSE:
            return t, slow
        agree_on_clusters(fast, slow)
    return ROUNDS, slow


def agree_on_clusters(fast: coterie.COFIBA, slow: COFIBA) -> None:
    labels = fast.item_labels()
    assert {frozenset(np.flatnonzero(labels == k).tolist()) for k in set(labels.tolist())} == set(slow.graphs)
    for item in range(0, len(labels), 3):
        for user in range(slow.n_users):
            assert set(fast.cluster_on(user, item).tolist()) == slow.neighbourhood(user, item)


@pytest.mark.parametrize("named", [True, False], ids=["by id", "by vector"])
def test_cofiba_agrees_with_its_reference_while_users_and_items_come_apart(named: bool) -> None:
    compared = cuts = item_cuts = splits = shared = 0
    for seed in SEEDS:
        rounds, slow = walk(seed, named=named)
        compared += rounds
        cuts, item_cuts, splits = cuts + slow.cuts, item_cuts + slow.item_cuts, splits + slow.item_splits
        shared += slow.shared
    assert compared > 0.95 * ROUNDS * len(SEEDS)
    assert cuts > 100
    assert item_cuts > 1000
    assert splits > 50
    assert shared > 300


def test_items_that_part_users_and_items_that_do_not_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    catalogue = np.vstack([np.eye(2)[[0] * 5], np.eye(2)[[1] * 5]])
    policy = coterie.COFIBA(6, 2, catalogue=catalogue, alpha=0.3, beta=0.1)
    for t in range(600):
        user, item = t % 6, int(rng.integers(10))
        mean = (1.0 if user < 3 else -1.0) if item < 5 else 0.5
        policy.update(user, catalogue[item], mean + 0.1 * rng.normal(), item=item)
    labels = policy.item_labels()
    assert not set(labels[:5].tolist()) & set(labels[5:].tolist())
    assert policy.cluster_on(0, 0).tolist() == [0, 1, 2]
    assert policy.cluster_on(0, 9).tolist() == [0, 1, 2, 3, 4, 5]


def test_an_item_that_is_not_in_the_catalogue_is_refused() -> None:
    policy = coterie.COFIBA(2, 1, catalogue=[[1.0], [2.0]])
    with pytest.raises(coterie.ArgumentError, match="item must be at most 1, got 2"):
        policy.cluster_on(0, 2)
