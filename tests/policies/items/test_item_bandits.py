"""What ItemUCB and ItemTS are for: popularity alone, whoever is served and whatever vectors say."""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt

import numpy as np
import pytest

import coterie

POLICIES = (coterie.ItemUCB, coterie.ItemTS)
Make = Callable[..., coterie.LinearBandit]


def test_three_rewards_on_paper() -> None:
    policy = coterie.ItemUCB(2, 1, scale=1.0, ridge=1.0)
    for reward, item in ((0.0, 3), (4.0, 5), (0.0, 3)):
        policy.update(0, [1.0], reward, item=item)
    # m = (0 + 4)/2. Of the first four rewards only the last counts for s: it was 4 below the one before.
    scores = policy.scores(1, np.ones((3, 1)), items=[3, 5, 9])
    assert scores.mean == pytest.approx([2 / 3, 6 / 2, 2.0])
    # The fourth round is to be played, and two items have rewards.
    assert scores.width == pytest.approx([4 * sqrt(log(1 + 4 / (2 * w)) / w) for w in (3, 2, 1)])


@pytest.mark.parametrize("make", POLICIES)
def test_who_is_served_and_what_vectors_say_does_not_matter(make: Make) -> None:
    one, other, rng = make(5, 3, seed=2), make(9, 2, seed=2), np.random.default_rng(1)
    for _ in range(300):
        items, reward = rng.choice(40, 6, replace=False), float(rng.random())
        arm = one.recommend(int(rng.integers(5)), rng.normal(size=(6, 3)), items=items)
        assert arm == other.recommend(0, np.zeros((6, 2)), items=items)
        one.update(int(rng.integers(5)), rng.normal(size=3), reward, item=int(items[arm]))
        other.update(8, np.ones(2), reward, item=int(items[arm]))


@pytest.mark.parametrize("make", POLICIES)
@pytest.mark.parametrize("offset", [0.0, 1e4, -1e4])
@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_the_best_of_ten_items_is_found_whatever_the_scale_of_rewards(
    make: Make, offset: float, unit: float
) -> None:
    policy, rng, best = make(1, 1, seed=3), np.random.default_rng(4), 0
    for _ in range(3000):
        arm = policy.recommend(0, np.ones((10, 1)), items=np.arange(10))
        best += arm == 6
        reward = unit * (offset + 0.1 * arm * (arm <= 6) + 0.3 * rng.normal())
        policy.update(0, [1.0], reward, item=arm)
    assert best > 2000


@pytest.mark.parametrize("make", POLICIES)
def test_every_item_is_tried_while_rewards_are_all_the_same(make: Make) -> None:
    policy = make(1, 1, seed=1)
    tried = set()
    for _ in range(60):
        arm = policy.recommend(0, np.ones((12, 1)), items=np.arange(12))
        policy.update(0, [1.0], 0.7, item=arm)
        tried.add(arm)
    assert tried == set(range(12))


def test_an_item_that_is_new_is_tried_before_one_that_has_failed() -> None:
    policy = coterie.ItemUCB(1, 1)
    for item in range(10):
        policy.update(0, [1.0], 0.0, item=item)
    policy.update(0, [1.0], 1.0, item=10)
    assert policy.recommend(0, np.ones((4, 1)), items=[3, 4, 77, 5]) == 2
    assert policy.recommend(0, np.ones((3, 1)), items=[77, 10, 3]) == 1


def test_memory_is_constant_for_an_item_and_ids_need_no_bound() -> None:
    policy = coterie.ItemUCB(1, 2)
    ids = (2**62 - 1) - 10**9 * np.arange(20_000)
    policy.update_many(np.zeros(20_000, int), np.ones((20_000, 2)), np.ones(20_000), items=ids)
    parts = policy.memory().parts
    assert 24 * 40_000 <= parts["effects of items"] <= 24 * 80_000
    assert sum(parts.values()) - parts["effects of items"] - parts["work space"] == 8


def test_duels_teach_nothing_and_count() -> None:
    policy = coterie.ItemUCB(1, 2)
    policy.update_pair(0, [1.0, 0.0], [0.0, 1.0], items=[3, 4])
    assert policy.rounds == 1
    assert np.ptp(policy.scores(0, np.eye(2), items=[3, 4]).ucb) == 0
    assert policy.recommend_pair(0, np.eye(2), items=[3, 4]) == (0, 0)
