"""RCLUMB and RSCLUMB against their naive transcriptions: the same arms and clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

import coterie
from policies.agreeing import ROUNDS, SEEDS, TIE, Pair, alpha, clusters, radius
from policies.test_agreement_lists import show_all
from reference import rclumb
from worlds import World, world

pytestmark = pytest.mark.slow

EPSILONS = (0.0, 0.02, 0.1, 0.3)
Reference: TypeAlias = rclumb.RCLUMB | rclumb.RSCLUMB
MAKERS = {"RCLUMB": (coterie.RCLUMB, rclumb.RCLUMB), "RSCLUMB": (coterie.RSCLUMB, rclumb.RSCLUMB)}


def pair(name: str, w: World, seed: int, n_users: int) -> Pair:
    make, reference = MAKERS[name]
    epsilon, tolerance = EPSILONS[(seed // 3) % 4], (0.5, 1.5)[seed % 2]
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4)
    fast = make(
        n_users,
        w.dim,
        confidence=confidence,
        misspecification=epsilon,
        tolerance=tolerance,
        ridge=w.ridge,
    )
    slow = reference(
        n_users,
        w.dim,
        ridge=w.ridge,
        beta=0.4,
        radius=radius(seed),
        epsilon=epsilon,
        tolerance=tolerance,
    )
    return Pair(fast, slow)


def walk(name: str, w: World, seed: int) -> Reference:
    """Play every round on both; some users come late. The bounded bonus is never below the exact one."""
    late = seed % 3 if w.n_users > 3 else 0
    fast, slow = pair(name, w, seed, w.n_users - late)
    assert isinstance(slow, Reference)
    for t, turn in enumerate(w.rounds):
        if late and t == len(w.rounds) // 2:
            fast.add_users(late)
            slow.welcome(late)
        user = turn.user % slow.n_users
        scores = slow.scores(user, turn.arms)
        arm = fast.recommend(user, turn.arms)
        assert scores[arm] >= scores.max() - TIE
        np.testing.assert_allclose(fast.scores(user, turn.arms).ucb, scores, atol=1e-8)
        reward = w.reward(turn._replace(user=user), arm)
        fast.update(user, turn.arms[arm], reward)
        slow.update(user, turn.arms[arm], reward)
        assert clusters(fast) == slow.clusters()
    return slow


@pytest.mark.parametrize(("name", "splits", "merges"), [("RCLUMB", 1000, 0), ("RSCLUMB", 150, 30)])
def test_they_agree_with_their_reference_while_users_part_and_meet(
    name: str, splits: int, merges: int
) -> None:
    found = [walk(name, world(seed, ROUNDS), seed) for seed in SEEDS]
    assert sum(slow.splits for slow in found) > splits
    assert sum(slow.merges for slow in found) >= merges


@pytest.mark.parametrize(("name", "splits"), [("RCLUMB", 500), ("RSCLUMB", 100)])
def test_their_lists_agree_with_their_reference(name: str, splits: int) -> None:
    def make(w: World, seed: int) -> Pair:
        return pair(name, w, seed, w.n_users)

    counted, played = show_all(make, 60, lambda w: w)
    assert counted.decided == len(SEEDS) * 60
    assert sum(slow.splits for slow in played) > splits


@pytest.mark.parametrize("name", MAKERS)
def test_the_bonus_is_an_upper_bound_of_the_one_of_the_source(name: str) -> None:
    """ε*Σ|xᵀM⁻¹y| over all vectors played; the bound is tight where they have one length and one line."""
    ratios = []
    for seed in range(4, 12):
        w = world(seed, 100)
        make, reference = MAKERS[name]
        confidence, given = coterie.Tuned(alpha=alpha(seed), beta=0.0), (w.n_users, w.dim)
        fast = make(*given, confidence=confidence, misspecification=0.2, ridge=w.ridge)
        exact = reference(
            *given, ridge=w.ridge, beta=0.0, radius=radius(seed), epsilon=0.2, tolerance=1.5, exact=True
        )
        for turn in w.rounds:
            bound = fast.scores(turn.user, turn.arms)
            wanted = exact.scores(turn.user, turn.arms)
            assert (bound.ucb >= wanted - 1e-9).all()
            bonus = wanted - bound.mean
            ratios += (bound.width[bonus > 1e-6] / bonus[bonus > 1e-6]).tolist()
            arm = int(np.argmax(wanted))
            reward = w.reward(turn, arm)
            fast.update(turn.user, turn.arms[arm], reward)
            exact.update(turn.user, turn.arms[arm], reward)
            assert clusters(fast) == exact.clusters()
    assert 1.05 < np.median(ratios) < 1.6


@pytest.mark.parametrize("make", [coterie.RCLUMB, coterie.RSCLUMB])
def test_in_one_dimension_the_bound_is_exact(make: Callable[..., coterie.LinearBandit]) -> None:
    """After T rewards for x = 1, λ = 1: ε*Σ|xᵀM⁻¹y| = ε*T/(1 + T)."""
    policy = make(2, 1, confidence=coterie.Tuned(alpha=9.0, beta=0.0), misspecification=0.5)
    for pulls in range(1, 9):
        policy.update(pulls % 2, [1.0], 0.3)
        assert policy.scores(0, [[1.0]]).width[0] == pytest.approx(0.5 * pulls / (1 + pulls), abs=1e-12)


def test_without_deviations_they_are_phaseuniclub_and_a_set_policy_of_the_plain_bonus() -> None:
    confidence = coterie.Tuned(alpha=0.5, beta=0.4, explore=0)
    robust = coterie.RCLUMB(20, 4, confidence=confidence, misspecification=0.0)
    plain = coterie.PhaseUniCLUB(20, 4, confidence=confidence)
    rng = np.random.default_rng(2)
    tastes = rng.normal(size=(3, 4))
    for _ in range(800):
        user, arms = int(rng.integers(20)), rng.normal(size=(6, 4))
        arm = robust.recommend(user, arms)
        assert arm == plain.recommend(user, arms)
        for policy in (robust, plain):
            policy.update(user, arms[arm], float(arms[arm] @ tastes[user % 3]))
    assert np.array_equal(robust.labels(), plain.labels())
    assert len(set(robust.labels().tolist())) > 2
