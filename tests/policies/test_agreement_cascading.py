"""CascadeLinUCB and CLUBCascade against their naive transcriptions: the same lists and clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import coterie
from coterie.environments import Bernoulli, Cascade, Stochastic, lifted
from policies.agreeing import SEEDS, TIE, alpha, clusters, radius
from policies.test_agreement_lists import attractions
from reference.cascade import first_click
from reference.cascading import CascadeLinUCB, CLUBCascade
from reference.lists import ranked
from worlds import Array, World, world

Reference = CascadeLinUCB | CLUBCascade
BETAS = (0.3, 1.5, 4.0)


class Pair(NamedTuple):
    fast: coterie.LinearBandit
    slow: Reference


def linucb(w: World, seed: int, n_users: int) -> Pair:
    beta = BETAS[seed % 3]
    return Pair(
        coterie.CascadeLinUCB(n_users, w.dim, beta=beta, ridge=w.ridge),
        CascadeLinUCB(n_users, w.dim, ridge=w.ridge, beta=beta),
    )


def club(w: World, seed: int, n_users: int) -> Pair:
    beta = BETAS[seed % 3]
    confidence = coterie.Tuned(alpha=alpha(seed), beta=beta)
    return Pair(
        coterie.CLUBCascade(n_users, w.dim, confidence=confidence, ridge=w.ridge),
        CLUBCascade(n_users, w.dim, ridge=w.ridge, beta=beta, radius=radius(seed)),
    )


class Counted(NamedTuple):
    """Lists, those in which several arms are at the limit, those by another order, clicks above the end."""

    lists: int = 0
    tied: int = 0
    close: int = 0
    cut_short: int = 0


def assert_same(shown: list[int], free: Array) -> bool:
    """The list is that of the limited scores; where it is not, two arms are tied up to rounding."""
    expected = ranked(np.minimum(free, 1.0), len(shown))
    for fast, slow in zip(shown, expected, strict=True):
        if fast != slow:
            one, other = float(free[fast]), float(free[slow])
            assert min(abs(one - other), abs(one - 1.0), abs(other - 1.0)) < TIE
            return False
    return True


def walk(
    make: Callable[[World, int, int], Pair], w: World, seed: int, counted: Counted
) -> tuple[Reference, Counted]:
    """Show every list on both; some users come late, and lists are of one to five arms."""
    late = seed % 3 if w.n_users > 3 else 0
    fast, slow = make(w, seed, w.n_users - late)
    length, draws = min(1 + seed % 5, w.n_arms), np.random.default_rng([seed, 4])
    for t, turn in enumerate(w.rounds):
        if late and t == len(w.rounds) // 2:
            fast.add_users(late)
            slow.welcome(late)
        user = turn.user % slow.n_users
        scores = slow.scores(user, turn.arms)
        shown: list[int] = fast.recommend_list(user, turn.arms, length).tolist()
        same = assert_same(shown, slow.unlimited(user, turn.arms))
        assert fast.recommend_list(user, turn.arms, 1).tolist() == [fast.recommend(user, turn.arms)]
        np.testing.assert_allclose(fast.scores(user, turn.arms).ucb, scores, atol=1e-8)
        clicked = first_click(attractions(w, turn._replace(user=user))[shown], draws.random(length))
        fast.update_list(user, turn.arms[shown], clicked)
        slow.update_list(user, turn.arms[shown], clicked)
        assert clusters(fast) == slow.clusters()
        assert fast.rounds == slow.rounds
        counted = Counted(
            counted.lists + 1,
            counted.tied + (scores.tolist().count(1.0) > 1),
            counted.close + (not same),
            counted.cut_short + (clicked is not None and clicked < length - 1),
        )
    return slow, counted


@pytest.mark.parametrize("make", [linucb, club])
def test_lists_and_clusters_agree_with_their_reference_with_and_without_ties_at_the_limit(make: Any) -> None:
    counted, splits, deletions = Counted(), 0, 0
    for seed in SEEDS:
        slow, counted = walk(make, world(seed, 60), seed, counted)
        splits += slow.splits
        deletions += getattr(slow, "deletions", 0)
    assert counted.lists == 60 * len(SEEDS)
    assert counted.tied > 100
    assert counted.lists - counted.tied > 100
    assert counted.close < 0.02 * counted.lists
    assert counted.cut_short > 300
    if make is club:
        assert splits > 80
        assert deletions > 500


def test_arms_at_the_limit_are_tied_and_the_first_of_them_is_shown() -> None:
    """Small enough for paper: d = 1, λ = 1, β = 2, no data: xs of 0.4, 0.7, 0.9 score 0.8, 1 and 1."""
    arms = np.array([[0.4], [0.7], [0.9]])
    limited, free = coterie.CascadeLinUCB(2, 1, beta=2.0), coterie.LinUCBOne(2, 1, beta=2.0)
    assert limited.recommend_list(0, arms, 3).tolist() == [1, 2, 0]
    assert limited.recommend(0, arms) == 1
    assert limited.scores(0, arms).ucb.tolist() == [0.8, 1.0, 1.0]
    assert free.recommend_list(0, arms, 3).tolist() == [2, 1, 0]
    assert free.scores(0, arms).ucb.tolist() == [0.8, 1.4, 1.8]


@pytest.mark.parametrize("length", [1, 3])
def test_remembered_widths_change_nothing(length: int) -> None:
    """The simulator remembers widths of lasting items; called one by one, none is remembered."""
    data = lifted(coterie.datasets.load("synthetic", dim=4, n_users=40, n_items=60), 0.5)
    base = Stochastic(data, n_users=12, n_clusters=3, n_arms=10, noise=Bernoulli(), seed=3)
    place = base if length == 1 else Cascade(base, length)
    confidence = coterie.Tuned(alpha=1.0, beta=1.2)
    makers: list[Callable[[], coterie.LinearBandit]] = [
        lambda: coterie.CascadeLinUCB(12, 5, beta=1.2),
        lambda: coterie.CLUBCascade(12, 5, confidence=confidence),
    ]

    class Stepped:
        def __init__(self, policy: coterie.LinearBandit) -> None:
            self.recommend, self.update = policy.recommend, policy.update
            self.recommend_list, self.update_list = policy.recommend_list, policy.update_list

    for make in makers:
        whole = coterie.simulate(make(), place, 500, record=50)
        stepped = coterie.simulate(Stepped(make()), place, 500, record=50)
        np.testing.assert_array_equal(whole.reward, stepped.reward)
        np.testing.assert_array_equal(whole.regret, stepped.regret)
