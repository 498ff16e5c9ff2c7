"""Duels against naive transcriptions: the same pairs and clusters, for COLDB and for any partition."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from scipy.special import expit

import coterie
from policies.agreeing import ROUNDS, SEEDS, TIE, Pair, alpha, clusters, radius
from policies.test_agreement_lists import show_all
from reference import club, linucb, sclub
from reference.coldb import COLDB, ExactCOLDB, pair_scores
from worlds import Array, World, world

Slow: TypeAlias = club.CLUB | sclub.SCLUB | linucb.LinUCB
SHARPNESS = 8.0
BETA = 0.4


def confidence(seed: int) -> coterie.Tuned:
    return coterie.Tuned(alpha=alpha(seed), beta=BETA)


def coldb(w: World, seed: int, n_users: int) -> tuple[coterie.LinearBandit, COLDB]:
    fast = coterie.COLDB(n_users, w.dim, confidence=confidence(seed), ridge=w.ridge)
    return fast, COLDB(n_users, w.dim, ridge=w.ridge, beta=BETA, radius=radius(seed))


def linear(kind: str, w: World, seed: int) -> tuple[coterie.LinearBandit, Slow]:
    n, d, ridge = w.n_users, w.dim, w.ridge
    fast: coterie.LinearBandit
    if kind == "CLUB":
        fast = coterie.CLUB(n, d, confidence=confidence(seed), ridge=ridge)
        return fast, club.CLUB(n, d, ridge=ridge, beta=BETA, radius=radius(seed))
    if kind == "SCLUB":
        fast = coterie.SCLUB(n, d, confidence=confidence(seed), ridge=ridge)
        return fast, sclub.SCLUB(n, d, ridge=ridge, beta=BETA, radius=radius(seed))
    alone = coterie.LinUCBInd(n, d, beta=BETA, ridge=ridge)
    return alone, linucb.LinUCB(n, d, ridge=ridge, beta=BETA, labels=list(range(n)))


def outcomes(w: World, seed: int) -> Array:
    return np.random.default_rng([seed, 4]).random(len(w.rounds))


def first_wins(w: World, user: int, apart: Array, uniform: float) -> bool:
    return bool(uniform < expit(SHARPNESS * (apart @ w.preferences[w.labels[user]])))


def check_pair(fast: coterie.LinearBandit, means: Array, challenge: Array, pair: tuple[int, int]) -> None:
    """Both arms are the best there are, up to ties."""
    assert means[pair[0]] >= means.max() - TIE
    if pair[0] == int(np.argmax(means)):
        assert challenge[pair[1]] >= challenge.max() - TIE


def walk_coldb(w: World, seed: int) -> COLDB:
    """Play every round on both; some users come late."""
    late, uniforms = seed % 3 if w.n_users > 3 else 0, outcomes(w, seed)
    fast, slow = coldb(w, seed, w.n_users - late)
    for t, turn in enumerate(w.rounds):
        if late and t == len(w.rounds) // 2:
            fast.add_users(late)
            slow.welcome(late)
        user = turn.user % slow.n_users
        pair = fast.recommend_pair(user, turn.arms)
        check_pair(fast, *pair_scores(slow, user, turn.arms), pair)
        one, two = turn.arms[pair[0]], turn.arms[pair[1]]
        wins = first_wins(w, user, one - two, uniforms[t])
        fast.update_pair(user, *((one, two) if wins else (two, one)))
        slow.update(user, one - two, float(wins))
        assert clusters(fast) == slow.clusters()
        np.testing.assert_allclose(fast.estimates[user], slow.estimate(user), atol=1e-8)
    return slow


@pytest.mark.slow
def test_coldb_agrees_with_its_reference_while_edges_are_cut() -> None:
    played = [walk_coldb(world(seed, ROUNDS), seed) for seed in SEEDS]
    assert sum(slow.deletions for slow in played) > 500
    assert sum(slow.splits for slow in played) > 50


@pytest.mark.slow
def test_its_lists_agree_with_their_reference() -> None:
    counted, played = show_all(lambda w, seed: Pair(*coldb(w, seed, w.n_users)), 60, lambda w: w)
    assert counted.decided == len(SEEDS) * 60
    assert sum(slow.splits for slow in played) > 50


@pytest.mark.parametrize("kind", ["CLUB", "SCLUB", "LinUCBInd"])
def test_any_partition_serves_duels_by_differences(kind: str) -> None:
    splits = 0
    for seed in range(12):
        w = world(seed, 80)
        (fast, slow), uniforms = linear(kind, w, seed), outcomes(w, seed)
        for t, turn in enumerate(w.rounds):
            pair = fast.recommend_pair(turn.user, turn.arms)
            check_pair(fast, *pair_scores(slow, turn.user, turn.arms), pair)
            one, two = turn.arms[pair[0]], turn.arms[pair[1]]
            wins = first_wins(w, turn.user, one - two, uniforms[t])
            fast.update_pair(turn.user, *((one, two) if wins else (two, one)))
            slow.update(turn.user, one - two, wins - 0.5)
            if kind != "LinUCBInd":
                assert clusters(fast) == slow.clusters()
        splits += slow.splits
    assert splits > 20 or kind == "LinUCBInd"


@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_of_the_outcomes_is_nearly_the_exact_fit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    theta, fast = rng.normal(size=4) / 2, coterie.COLDB(1, 4, confidence=coterie.Tuned(alpha=9.0, beta=1.0))
    slow = ExactCOLDB(1, 4, ridge=1.0, beta=1.0, radius=lambda pulls: 9.0)
    for _ in range(600):
        one, two = rng.normal(size=(2, 4))
        if rng.random() >= expit((one - two) @ theta):
            one, two = two, one
        fast.update_pair(0, one, two)
        slow.absorb(0, one - two, 1.0)
    exact, error = slow.estimate(0), float(np.linalg.norm(fast.estimates[0] - slow.estimate(0)))
    assert error < 0.04 * float(np.linalg.norm(exact))
    assert error < 0.5 * float(np.linalg.norm(exact - theta))  # below what 600 outcomes leave unknown


def test_sure_outcomes_and_rewards_outside_of_0_and_1_stay_finite() -> None:
    policy = coterie.COLDB(2, 2, confidence=coterie.Tuned(alpha=1.0, beta=1.0))
    for _ in range(50):
        policy.update_pair(0, [1e3, 0.0], [-1e3, 0.0])
        policy.update(1, [1.0, 0.0], 7.0)
    assert np.isfinite(policy.estimates).all()
    twin = coterie.COLDB(1, 2, confidence=coterie.Tuned(alpha=1.0, beta=1.0))
    for _ in range(50):
        twin.update(0, [1.0, 0.0], 1.0)
    assert np.array_equal(policy.estimates[1], twin.estimates[0])
