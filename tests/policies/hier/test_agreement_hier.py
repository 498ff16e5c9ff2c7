"""HierUCB and HierTS against their naive transcription: the same arms, noise, mean and covariance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from coterie.seeding import stream
from inspection import learner_of
from policies.agreeing import SEEDS, TIE, Pair, clusters
from policies.test_agreement_lists import show_all
from reference import hier
from worlds import Round, World, world

ROUNDS = 120
CLOSE = 1e-7
"""Fits decide by comparing numbers; nearer to a tie than this, rounding decides."""


def settings(w: World, seed: int) -> dict[str, Any]:
    """An intercept in two of three setups; in some σ, μ or Σ is given."""
    intercept = seed % 3 != 1
    size = w.dim + intercept
    given: dict[str, Any] = {"intercept": intercept}
    if seed % 5 == 1:
        given["noise"] = 0.2
    if seed % 7 == 2:
        given["mean"] = np.linspace(-0.5, 0.5, size)
    if seed % 4 == 3:
        given["covariance"] = 0.3 * np.eye(size) + 0.1
    return given


def compare_priors(fast: coterie.LinearBandit, slow: hier.Hier) -> None:
    held = learner_of(fast)
    np.testing.assert_allclose(held.numbers()["noise2"], slow.noise2, rtol=1e-6)
    np.testing.assert_allclose(held.array("prior.mean"), slow.mu, atol=1e-6)
    scale = np.abs(slow.A).max()
    np.testing.assert_allclose(held.array("prior.covariance"), slow.A, atol=1e-6 * scale)
    assert held.numbers()["shrinkage"] == slow.epsilon


def play_bounds(fast: coterie.LinearBandit, slow: hier.Hier, w: World, turn: Round) -> None:
    scores = slow.scores(turn.user, turn.arms)
    arm = fast.recommend(turn.user, turn.arms)
    assert scores[arm] >= scores.max() - TIE
    np.testing.assert_allclose(fast.scores(turn.user, turn.arms).ucb, scores, atol=1e-6)
    reward = w.reward(turn, arm)
    fast.update(turn.user, turn.arms[arm], reward)
    slow.update(turn.user, turn.arms[arm], reward)


def walk(w: World, seed: int) -> tuple[int, hier.Hier]:
    """Play on both up to the first tie of a fit; returns how many rounds were compared.

    In every fourth setup the bonus grows.
    """
    late = seed % 3 if w.n_users > 3 else 0
    given, early, half = settings(w, seed), w.n_users - late, len(w.rounds) // 2
    given["growing"] = seed % 4 == 2
    fast = coterie.HierUCB(early, w.dim, ridge=w.ridge, **given)
    slow = hier.Hier(early, w.dim, ridge=w.ridge, **given)
    for t, turn in enumerate(w.rounds):
        if t == half and late:
            fast.add_users(late)
            slow.welcome(late)
        play_bounds(fast, slow, w, turn._replace(user=turn.user % slow.n_users))
        if slow.margin < CLOSE:
            return t, slow
        compare_priors(fast, slow)
    assert clusters(fast) == slow.clusters()
    return len(w.rounds), slow


def test_hierucb_agrees_with_its_reference_while_it_learns_its_prior() -> None:
    compared = fits = 0
    chosen = set()
    for seed in SEEDS:
        rounds, slow = walk(world(seed, ROUNDS, noise=(0.1, 0.4)[seed % 2]), seed)
        compared += rounds
        fits += slow.fits
        chosen.add(slow.epsilon / slow.size)
    assert compared > 0.9 * len(SEEDS) * ROUNDS
    assert fits > 7 * len(SEEDS)
    assert len(chosen) >= 3


def test_hierts_agrees_with_its_reference_sample_by_sample() -> None:
    compared = 0
    for seed in SEEDS:
        w = world(seed, ROUNDS)
        given, rng = settings(w, seed), stream(seed, "policy")
        scale = (0.25, 0.7, 1.0)[seed % 3]
        fast = coterie.HierTS(w.n_users, w.dim, ridge=w.ridge, scale=scale, seed=seed, **given)
        slow = hier.Hier(w.n_users, w.dim, ridge=w.ridge, **given)
        for turn in w.rounds:
            arm = fast.recommend(turn.user, turn.arms)
            sample = slow.sample(turn.user, turn.arms, rng, scale)
            assert sample[arm] >= sample.max() - 1e-6
            reward = w.reward(turn, arm)
            fast.update(turn.user, turn.arms[arm], reward)
            slow.update(turn.user, turn.arms[arm], reward)
            if slow.margin < CLOSE:
                break
            compared += 1
    assert compared > 0.9 * len(SEEDS) * ROUNDS


def hier_lists(w: World, seed: int) -> Pair:
    given = settings(w, seed)
    fast = coterie.HierUCB(w.n_users, w.dim, ridge=w.ridge, **given)
    return Pair(fast, hier.Hier(w.n_users, w.dim, ridge=w.ridge, **given))


def test_lists_of_hierucb_agree_with_their_reference() -> None:
    counted, _ = show_all(hier_lists, 40, lambda w: w)
    assert counted.decided > 0.9 * len(SEEDS) * 40


@pytest.mark.parametrize("name", ["noise", "mean", "covariance"])
def test_what_is_given_is_not_learnt(name: str) -> None:
    given: dict[str, Any] = {"noise": 0.5, "mean": np.full(4, 0.25), "covariance": 2.0 * np.eye(4)}
    policy = coterie.HierUCB(5, 3, **{name: given[name]})
    rng = np.random.default_rng(0)
    for _ in range(200):
        policy.update(int(rng.integers(5)), rng.normal(size=3), float(rng.normal()))
    held = learner_of(policy)
    if name == "noise":
        assert held.numbers()["noise2"] == 0.25
    elif name == "mean":
        assert np.array_equal(held.array("prior.mean"), np.full(4, 0.25))
    else:
        sigma2 = held.numbers()["noise2"]
        np.testing.assert_allclose(held.array("prior.covariance") * sigma2, 2.0 * np.eye(4), rtol=1e-12)
