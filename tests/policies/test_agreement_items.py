"""Policies with effects of items against naive transcriptions of the page: the same arms and scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import coterie
from policies.agreeing import TIE, alpha, radius
from reference.club import CLUB
from reference.effects import Linear, WithItems
from reference.hier import Hier
from reference.linucb import LinUCB
from reference.users import Array, Users, solve

USERS, DIM, ITEMS, ARMS, ROUNDS = 5, 3, 24, 6, 260
CLOSE = 1e-7
"""τ² is above 0 or not by comparing two sums; nearer to a tie than this, rounding decides."""


class Pair(NamedTuple):
    fast: coterie.LinearBandit
    slow: WithItems


def pooled(users: Users, members: Callable[[int], frozenset[int]], beta: float) -> Callable[..., Linear]:
    """What a ridge regression of the users who are pooled says of an arm."""

    def linear(user: int, x: Array) -> Linear:
        matrix, vector = users.pooled(members(user))
        return Linear(float(solve(matrix, vector) @ x), float(x @ solve(matrix, x)), beta)

    return linear


def linucb(seed: int) -> Pair:
    slow = LinUCB(USERS, DIM, ridge=1.0, beta=0.3, labels=[0] * USERS)
    linear = pooled(slow, lambda user: slow.clusters()[user], 0.3)
    return Pair(coterie.LinUCBOne(USERS, DIM, beta=0.3, items=True), WithItems(slow, linear))


def club(seed: int) -> Pair:
    slow = CLUB(USERS, DIM, ridge=1.0, beta=0.3, radius=radius(seed))
    fast = coterie.CLUB(USERS, DIM, alpha=alpha(seed), beta=0.3, items=True)
    return Pair(fast, WithItems(slow, pooled(slow, slow.component, 0.3)))


def hier(seed: int) -> Pair:
    intercept, growing = seed % 2 == 0, seed % 3 == 0
    slow = Hier(USERS, DIM, ridge=1.0, intercept=intercept, growing=growing)

    def linear(user: int, x: Array) -> Linear:
        m, V = slow.posterior(user)
        full = slow.lengthened(x)
        time2 = math.log(slow.rounds + 2) if slow.growing else 1.0
        return Linear(float(full @ m), max(float(full @ V @ full), 0.0), math.sqrt(slow.noise2 * time2))

    fast = coterie.HierUCB(USERS, DIM, intercept=intercept, growing=growing)
    return Pair(fast, WithItems(slow, linear))


def play(pair: Pair, seed: int, *, effect: float, noise: float, named: bool) -> int:
    """Play both up to the first tie; returns how many rounds were compared."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(ITEMS, DIM)) / math.sqrt(DIM)
    tastes, effects = rng.normal(size=(2, DIM)), effect * rng.normal(size=ITEMS)
    for t in range(ROUNDS):
        user, items = int(rng.integers(USERS)), rng.choice(ITEMS, ARMS, replace=False)
        arms = vectors[items]
        scores = pair.slow.scores(user, arms, items.tolist())
        given = items if named else None
        arm = pair.fast.recommend(user, arms, items=given)
        assert scores[arm] >= scores.max() - TIE
        np.testing.assert_allclose(pair.fast.scores(user, arms, items=given).ucb, scores, atol=1e-6)
        best = int(np.argmax(scores))
        assert arm == best or scores[best] - scores[arm] < TIE
        reward = float(arms[arm] @ tastes[user % 2] + effects[items[arm]] + noise * rng.normal())
        reward += 100.0 * (t == 60)
        pair.fast.update(user, arms[arm], reward, item=int(items[arm]) if named else None)
        pair.slow.update(user, arms[arm], reward, int(items[arm]))
        if min(pair.slow.effects.margin, getattr(pair.slow.base, "margin", math.inf)) < CLOSE:
            return t
    return ROUNDS


@pytest.mark.parametrize("make", [linucb, club, hier], ids=lambda make: make.__name__)
def test_effects_of_items_agree_with_the_page(make: Callable[[int], Pair]) -> None:
    compared = on = switches = clipped = 0
    for seed in range(8):
        pair = make(seed)
        compared += play(pair, seed, effect=1.0 if seed % 4 else 0.2, noise=0.2, named=seed % 2 == 0)
        on += pair.slow.on
        switches += pair.slow.switches
        clipped += pair.slow.effects.clipped
        assert pair.fast.learner.items is not None
        np.testing.assert_allclose(pair.fast.learner.items.variance, pair.slow.effects.tau2, rtol=1e-6)
    assert compared > 1000
    assert on > 60
    assert switches >= 4
    assert clipped >= 4
