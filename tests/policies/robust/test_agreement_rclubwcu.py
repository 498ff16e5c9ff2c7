"""RCLUBWCU and OCCUD against their naive transcription: the same arms, clusters and suspects."""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from policies.agreeing import ROUNDS, SEEDS, TIE, Pair, alpha, clusters, radius
from policies.test_agreement_lists import show_all
from reference import rclubwcu
from worlds import World, world


def pair(w: World, seed: int, n_users: int) -> Pair:
    threshold, corruption = (0.1, 0.4, 1.0)[seed % 3], (0.0, 0.5)[(seed // 4) % 2]
    fast = coterie.RCLUBWCU(
        n_users,
        w.dim,
        confidence=coterie.Tuned(alpha=alpha(seed), beta=0.4),
        threshold=threshold,
        corruption=corruption,
        ridge=w.ridge,
    )
    slow = rclubwcu.RCLUBWCU(
        n_users,
        w.dim,
        ridge=w.ridge,
        beta=0.4,
        radius=radius(seed),
        threshold=threshold,
        corruption=corruption,
    )
    return Pair(fast, slow)


def walk(w: World, seed: int) -> tuple[rclubwcu.RCLUBWCU, int]:
    """Play every round on both; some users come late, every fifth lies. Also counts suspects."""
    late, suspects = seed % 3 if w.n_users > 3 else 0, 0
    fast, slow = pair(w, seed, w.n_users - late)
    assert isinstance(fast, coterie.RCLUBWCU)
    assert isinstance(slow, rclubwcu.RCLUBWCU)
    for t, turn in enumerate(w.rounds):
        if late and t == len(w.rounds) // 2:
            fast.add_users(late)
            slow.welcome(late)
        user = turn.user % slow.n_users
        scores = slow.scores(user, turn.arms)
        arm = fast.recommend(user, turn.arms)
        assert scores[arm] >= scores.max() - TIE
        np.testing.assert_allclose(fast.scores(user, turn.arms).ucb, scores, atol=1e-8)
        reward = w.reward(turn._replace(user=user), arm) * (-4.0 if user % 5 == 4 else 1.0)
        fast.update(user, turn.arms[arm], reward)
        slow.update(user, turn.arms[arm], reward)
        assert clusters(fast) == slow.clusters()
        if t % 40 == 39:
            found = fast.suspects(0.2, noise=0.05).tolist()
            assert found == slow.suspects(0.2, 0.05)
            suspects += len(found)
    return slow, suspects


@pytest.mark.slow
def test_it_agrees_with_its_reference_while_edges_are_cut_and_users_are_suspected() -> None:
    played = [walk(world(seed, ROUNDS), seed) for seed in SEEDS]
    assert sum(slow.splits for slow, _ in played) > 500
    assert sum(slow.weighed for slow, _ in played) > 1000
    assert sum(suspects for _, suspects in played) > 20


@pytest.mark.slow
def test_its_lists_agree_with_their_reference() -> None:
    counted, played = show_all(lambda w, seed: pair(w, seed, w.n_users), 60, lambda w: w)
    assert counted.decided == len(SEEDS) * 60
    assert sum(slow.splits for slow in played) > 300


def liars(policy: coterie.LinearBandit, rounds: int) -> coterie.LinearBandit:
    """Twenty users of one taste, of whom 3 and 11 tell the contrary of what they feel."""
    rng = np.random.default_rng(8)
    taste = np.array([0.8, -0.6, 0.0])
    for _ in range(rounds):
        user, arms = int(rng.integers(20)), rng.normal(size=(8, 3)) / 3**0.5
        x = arms[policy.recommend(user, arms)]
        sign = -1.0 if user in (3, 11) else 1.0
        policy.update(user, x, float(sign * (x @ taste) + 0.1 * rng.normal()))
    return policy


def test_liars_are_found_and_nobody_else_is_suspected() -> None:
    confidence = coterie.Tuned(alpha=9.0, beta=0.1)  # so large that nobody parts: they lie within a cluster
    policy = coterie.RCLUBWCU(20, 3, confidence=confidence, threshold=0.3)
    assert policy.suspects(noise=0.1).tolist() == []
    liars(policy, 3_000)
    assert set(policy.labels().tolist()) == {0}
    assert policy.suspects(noise=0.1).tolist() == [3, 11]


def test_only_rclubwcu_knows_suspects() -> None:
    assert not hasattr(coterie.LinUCBInd(3, 2), "suspects")
    policy = coterie.RCLUBWCU(3, 2, confidence=coterie.Tuned(alpha=1.0, beta=0.1))
    for delta, noise in ((0.0, 1.0), (1.0, 1.0), (0.1, -1.0)):
        with pytest.raises(coterie.ArgumentError):
            policy.suspects(delta, noise=noise)


def test_a_threshold_above_all_widths_is_club() -> None:
    confidence = coterie.Tuned(alpha=0.4, beta=0.1)
    robust = coterie.RCLUBWCU(20, 3, confidence=confidence, threshold=1e6)
    assert np.array_equal(
        liars(robust, 800).labels(), liars(coterie.CLUB(20, 3, confidence=confidence), 800).labels()
    )
