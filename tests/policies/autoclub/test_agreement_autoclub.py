"""AutoCLUB against its naive transcription: the same arm, clusters and estimates in every round."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import coterie
from inspection import keep_posteriors_of, learner_of, state_arrays, state_numbers
from policies.agreeing import SEEDS, TIE, clusters
from reference import autoclub
from worlds import Round, World, world

pytestmark = pytest.mark.slow


def acting(policy: coterie.LinearBandit) -> NDArray[np.float64]:
    """The estimates of the clusters that users act on, as far as clusters are trusted."""
    held = state_arrays(policy)
    own = held["clusters.sums.estimates"][learner_of(policy).labels()]
    numbers = learner_of(policy).arrivals.of_all()
    weights = np.append(held["clusters.cluster_weights"], 1.0)[numbers]
    beside = np.vstack([held["clusters.alternatives"], np.zeros(policy.dim)])[numbers]
    return np.asarray(weights[:, None] * own + beside)


def compare_estimates(fast: coterie.LinearBandit, slow: autoclub.AutoCLUB) -> None:
    found, learner = state_numbers(fast), learner_of(fast)
    np.testing.assert_allclose(
        learner.noise_weights(), [slow.users[k].omega for k in slow.current], rtol=1e-7
    )
    np.testing.assert_allclose(
        [found["prior.noise2"], found["prior.precision"]], [slow.noise2, slow.lam], rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(found["prior.offset"], slow.offset, rtol=1e-8)
    np.testing.assert_allclose(found["weights.log_odds"], slow.odds, atol=1e-6)
    np.testing.assert_allclose(learner.items.variance, slow.items.tau2, rtol=1e-6)
    np.testing.assert_allclose(learner.pairs.variance, slow.pairs.tau2, rtol=1e-6)
    assert found["skipped"] == slow.skipped
    np.testing.assert_allclose(found["hierarchy.model.noise2"], slow.hierarchy.noise2, rtol=1e-6)
    assert found["hierarchy.model.due"] == slow.hierarchy.due


def step(fast: coterie.LinearBandit, slow: autoclub.AutoCLUB, w: World, turn: Round) -> None:
    """The same arm and the same scores, and what both learn from the reward."""
    scores = slow.scores(turn.user, turn.arms)
    arm = fast.recommend(turn.user, turn.arms)
    assert scores[arm] >= scores.max() - 1e-6
    np.testing.assert_allclose(fast.scores(turn.user, turn.arms).ucb, scores, atol=1e-6)
    reward = w.reward(turn, arm)
    fast.update(turn.user, turn.arms[arm], reward)
    slow.update(turn.user, turn.arms[arm], reward)


def keeping(policy: coterie.AutoCLUB, posteriors: int) -> coterie.AutoCLUB:
    """The policy with fewer posteriors in its hierarchical model than users."""
    keep_posteriors_of(policy, posteriors)
    return policy


def walk_by_evidence(
    w: World, seed: int, trusted: set[int], seats: int = 4096
) -> tuple[int, autoclub.AutoCLUB]:
    """Play on both up to the first tie; returns how many rounds were compared.

    In every other setup users are few and reviewed often, and one more is never seen; in two of three, users
    arrive at half-time. In every fourth, user 0 answers at random, and one reward is far too
    great; in every fifth, 2 is added to all rewards; in every sixth, the hierarchical model
    decides alone from half-time on, until it predicts worse.
    """
    crew = min(w.n_users, 4 + seed % 7) if seed % 2 else w.n_users
    late = seed % 3 if crew > 3 else 0
    fast = keeping(coterie.AutoCLUB(crew + seed % 2 - late, w.dim, ridge=w.ridge), seats)
    slow = autoclub.AutoCLUB(crew + seed % 2 - late, w.dim, ridge=w.ridge, slots=seats)
    half = len(w.rounds) // 2
    for t, turn in enumerate(w.rounds):
        if t == half and late:
            fast.add_users(late)
            slow.welcome(late)
        if t == half and seed % 6 == 5:
            slow.odds = learner_of(fast).weights.log_odds = 9.0
        present = crew if t >= half else crew - late
        turn = turn._replace(user=turn.user % present)
        if seed % 4 == 3 and (turn.user == 0 or t == half // 2):
            turn = turn._replace(noise=(30.0 if turn.user == 0 else 1000.0) * turn.noise)
        if seed % 5 == 4:
            turn = turn._replace(noise=turn.noise + 2.0)
        step(fast, slow, w, turn)
        trusted.add((slow.trust() > 0) + (slow.trust() == 1))
        if slow.margin < TIE:
            return t, slow
        assert clusters(fast) == slow.clusters()
        if t % 8 == 7:
            np.testing.assert_allclose(
                acting(fast), [slow.mixture(slow.users[k]) for k in slow.current], rtol=1e-6, atol=1e-6
            )
        compare_estimates(fast, slow)
    return len(w.rounds), slow


def test_autoclub_agrees_with_its_reference_while_users_move_and_clusters_merge() -> None:
    compared = moves = splits = merges = reweighted = limited = 0
    trusted: set[int] = set()
    for seed in SEEDS:
        rounds, slow = walk_by_evidence(world(seed, 300, noise=(0.1, 0.4)[seed % 2]), seed, trusted)
        compared += rounds
        moves += slow.moves
        splits += slow.splits
        merges += slow.merges
        reweighted += slow.reweighted
        limited += slow.limited
    assert compared > 0.9 * len(SEEDS) * 300
    assert moves > 450
    assert splits > 200
    assert merges > 20
    assert reweighted > 20
    assert limited > 20
    assert trusted == {0, 1, 2}  # clusters alone, both, the hierarchical model alone


class Rated(World):
    """A world where what a user thinks of an item is no linear function of its vector, and stays the same."""

    def reward(self, turn: Round, arm: int) -> float:
        swing = np.sin(9.0 * (turn.user + 1) * turn.arms[arm].sum())
        return float(np.round(2.0 + 2.0 * swing) / 4 + turn.noise)


def rated(seed: int, n_rounds: int) -> Rated:
    """Four of a few items each round; in every third world ratings differ a little each time, or much."""
    w, rng = world(seed, n_rounds), np.random.default_rng([seed, 1])
    dim, noise = min(w.dim, 4), (0.0, 0.05, 0.5)[seed % 3]
    items, crew = rng.normal(size=(int(rng.integers(6, 13)), dim)), min(w.n_users, 1 + seed % 8)
    rounds = []
    for turn in w.rounds:
        arms = items[rng.permutation(len(items))[:4]]
        rounds.append(Round(turn.user % crew, arms, 10.0 * noise * turn.noise))
    return Rated(crew, dim, 4, w.ridge, w.labels[:crew], w.preferences, rounds)


def test_autoclub_agrees_with_its_reference_where_ratings_repeat() -> None:
    compared = skipped = switched = noisy = 0
    for seed in SEEDS[:15]:
        w = rated(seed, 200)
        fast = coterie.AutoCLUB(w.n_users, w.dim, ridge=w.ridge)
        slow = autoclub.AutoCLUB(w.n_users, w.dim, ridge=w.ridge)
        for turn in w.rounds:
            before = slow.pairs.tau2 > 0
            step(fast, slow, w, turn)
            if slow.margin < TIE:
                break
            compare_estimates(fast, slow)
            compared += 1
            switched += before != (slow.pairs.tau2 > 0)
        assert fast.pulls.sum() == fast.rounds == slow.rounds
        skipped += slow.skipped
        noisy += slow.skipped if seed % 3 == 2 else 0
    assert compared > 0.9 * 15 * 200
    assert skipped > 150
    assert switched > 3
    assert noisy < 0.1 * skipped


def test_autoclub_agrees_with_its_reference_when_not_all_posteriors_are_kept() -> None:
    compared = returns = apart = 0
    for seed in SEEDS[:12]:
        seats = 2 + seed % 3
        rounds, slow = walk_by_evidence(world(seed, 250, noise=(0.1, 0.4)[seed % 2]), seed, set(), seats)
        compared += rounds
        returns += slow.hierarchy.returns
        apart += slow.hierarchy.apart
    assert compared > 0.9 * 12 * 250
    assert returns > 500
    assert apart > 100
