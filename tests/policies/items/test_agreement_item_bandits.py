"""ItemUCB and ItemTS against their naive transcription: the same arms, means and widths."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import numpy as np
import pytest

import coterie
from coterie.seeding import stream
from coterie.types import Floats, Ints
from policies.agreeing import TIE
from reference.items import Items

USERS, DIM, ITEMS, ARMS, ROUNDS, SEEDS = 4, 3, 30, 6, 220, range(12)


class Turn(NamedTuple):
    user: int
    items: Ints
    arms: Floats
    rewards: Floats


def turns(seed: int) -> Iterator[Turn]:
    """Items that differ in popularity, of clicks, ratings or rewards of any scale; one reward is wild."""
    rng = np.random.default_rng(seed)
    vectors, quality = rng.normal(size=(ITEMS, DIM)), rng.random(ITEMS) ** 3
    for t in range(ROUNDS):
        items = rng.choice(min(ITEMS, 8 + t // 4), ARMS, replace=False)  # new ones come all the time
        drawn = rng.random(ARMS)
        rewards = (
            (drawn < quality[items]).astype(float),
            np.round(4 * (quality[items] + 0.5 * drawn)),
            1e4 * (quality[items] + drawn - 7.0),
            np.zeros(ARMS) if t < 20 else quality[items],
        )[seed % 4]
        yield Turn(int(rng.integers(USERS)), items, vectors[items], rewards + 1e7 * (t == 90))


def learn(fast: coterie.LinearBandit, slow: Items, turn: Turn, arm: int, *, named: bool) -> None:
    item, reward = int(turn.items[arm]), float(turn.rewards[arm])
    fast.update(turn.user, turn.arms[arm], reward, item=item if named else None)
    slow.update(item, reward)


@pytest.mark.parametrize("named", [True, False])
def test_itemucb_agrees_with_its_page(named: bool) -> None:
    compared = clipped = 0
    for seed in SEEDS:
        fast = coterie.ItemUCB(USERS, DIM, scale=(0.05, 0.4, 1.0)[seed % 3], ridge=1.0 + seed % 4)
        slow = Items(ridge=1.0 + seed % 4, scale=(0.05, 0.4, 1.0)[seed % 3])
        for turn in turns(seed):
            ids = turn.items if named else None
            means = np.array([slow.mean(item) for item in turn.items.tolist()])
            scores = means + [slow.bonus(item) for item in turn.items.tolist()]
            arm, near = fast.recommend(turn.user, turn.arms, items=ids), TIE * max(1.0, abs(scores).max())
            assert scores[arm] >= scores.max() - near
            found = fast.scores(turn.user, turn.arms, items=ids)
            np.testing.assert_allclose(found.mean, means, atol=near)
            np.testing.assert_allclose(found.ucb, scores, atol=near)
            apart = min((scores.max() - score for score in np.delete(scores, arm)), default=inf)
            compared += apart > near
            learn(fast, slow, turn, arm, named=named)
        clipped += slow.sums.clipped
        assert fast.rounds == slow.rounds == ROUNDS
    assert compared > 1000
    assert clipped >= 6


def test_itemts_agrees_with_its_page_sample_by_sample() -> None:
    overruled = 0
    for seed in SEEDS:
        fast, rng = coterie.ItemTS(USERS, DIM, scale=0.5, ridge=2.0, seed=seed), stream(seed, "policy")
        slow = Items(ridge=2.0, scale=0.5)
        for turn in turns(seed):
            arm = fast.recommend(turn.user, turn.arms, items=turn.items)
            samples = np.array([slow.sample(item, rng) for item in turn.items.tolist()])
            assert samples[arm] >= samples.max() - TIE * max(1.0, abs(samples).max())
            means = [slow.mean(item) for item in turn.items.tolist()]
            overruled += means[arm] < max(means)
            learn(fast, slow, turn, arm, named=True)
    assert overruled > 500
