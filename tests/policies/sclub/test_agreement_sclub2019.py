"""SCLUB2019 against its naive transcription: the same arms and clusters, for single arms and for lists."""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from inspection import state_arrays
from policies.agreeing import ROUNDS, SEEDS, TIE, Pair, alpha, clusters, radius
from policies.test_agreement_lists import show_all
from reference import sclub2019
from worlds import World, world

pytestmark = pytest.mark.slow


def pair(w: World, seed: int, n_users: int, *, arrivals: float | None) -> Pair:
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4)
    slow = sclub2019.SCLUB2019(
        n_users, w.dim, ridge=w.ridge, beta=0.4, radius=radius(seed), arrivals=arrivals
    )
    fast = coterie.SCLUB2019(n_users, w.dim, confidence=confidence, ridge=w.ridge, arrivals=arrivals)
    return Pair(fast, slow)


def walk(w: World, seed: int, arrivals: float | None) -> sclub2019.SCLUB2019:
    """Play every round on both; some users come late."""
    late = seed % 3 if w.n_users > 3 else 0
    fast, slow = pair(w, seed, w.n_users - late, arrivals=arrivals)
    assert isinstance(slow, sclub2019.SCLUB2019)
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


@pytest.mark.parametrize("test_arrivals", [False, True])
def test_sclub2019_agrees_with_its_reference_while_clusters_split_and_merge(test_arrivals: bool) -> None:
    splits = merges = 0
    for seed in SEEDS:
        arrivals = (0.02, 0.1, 0.3)[seed % 3] if test_arrivals else None
        slow = walk(world(seed, ROUNDS), seed, arrivals)
        splits += slow.splits
        merges += slow.merges
    assert splits > 200
    assert merges > 50


def test_lists_of_sclub2019_agree_with_their_reference() -> None:
    counted, played = show_all(lambda w, seed: pair(w, seed, w.n_users, arrivals=None), 80, lambda w: w)
    assert counted.decided == len(SEEDS) * 80
    assert sum(slow.splits for slow in played) > 150
    assert sum(slow.merges for slow in played) > 30


def test_a_user_is_compared_with_the_cluster_as_it_was_when_the_phase_began() -> None:
    """Small enough for paper: d = 1, x = 1, λ = 1, f(T) = 0.5 √((1 + ln(1 + T))/(1 + T)).

    The rounds 1 to 3 teach user 1 three rewards of 1; at t = 4 the snapshot is θ̃ = 3/4 with T̃ = 3, and its f
    is 0.386. User 0 gives −1 at t = 4: θ̂ = −1/2 with f = 0.460, which is 1.25 away, more than 0.846. With
    two users in the set, user 0 leaves it; the other keeps the snapshot.
    """
    policy = coterie.SCLUB2019(2, 1, confidence=coterie.Tuned(alpha=0.5, beta=0.1))
    for _ in range(3):
        policy.update(1, [1.0], 1.0)
        assert policy.cluster_of(0).tolist() == [0, 1]
    policy.update(0, [1.0], -1.0)
    assert policy.cluster_of(0).tolist() == [0]
    assert state_arrays(policy)["snapshots.pulls"].tolist() == [3, 1]
    assert state_arrays(policy)["snapshots.estimate"].ravel().tolist() == [0.75, -0.5]
