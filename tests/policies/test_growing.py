"""`growing=True`: the bonus is √ln(t + 1) times as large, t the round to be played."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest

import coterie
from contracts.examples import THEORY, TUNED, feedback, halves, play, shelf
from coterie.policies import REGISTRY
from policies.agreeing import ROUNDS, TIE, alpha, clusters, radius
from policies.neighbours import test_agreement_locb
from reference import club, linucb, locb, phase, sclub
from worlds import World, world

GIVEN: dict[str, Any] = {
    "confidence": TUNED,
    "labels": halves(6),
    "misspecification": 0.0,
    "n_seeds": 1,
    "catalogue": shelf(3),
}
OWN = ("GOBLin", "GraphUCB")
"""These have another bonus with `growing`, of their sources."""
ALWAYS = ("CAB", "COFIBA", "DynUCB")
"""The bonus of these always grows."""
BY_ITSELF = ("AutoCLUB", "ItemUCB")
"""An arm's bonus grows with the rewards of others as far as the arm is less known than they."""
CAUTIOUS = ("OffC2LUB", "OffCLUB")
"""What is subtracted from a mean is no bonus for trying an arm."""
SAMPLING = ("CoDBand", "HierTS", "ItemTS", "LinTSInd", "LinTSOne", "LinTSOracle")
"""These draw, and have no bonus."""
GROWING = [name for name in REGISTRY if "growing" in REGISTRY[name].parameters and name not in OWN]


def made(name: str, **wishes: Any) -> coterie.LinearBandit:
    make = REGISTRY[name].make
    given = {one: GIVEN[one] for one in signature(make).parameters if one in GIVEN}
    return make(6, 3, **{**given, **wishes})


def test_every_policy_with_a_bonus_has_it_but_those_that_are_named() -> None:
    assert set(REGISTRY) - set(GROWING) == {*OWN, *ALWAYS, *BY_ITSELF, *CAUTIOUS, *SAMPLING}
    assert not {*ALWAYS, *BY_ITSELF, *CAUTIOUS, *SAMPLING} & set(GROWING)


@pytest.mark.parametrize("name", ALWAYS)
def test_what_always_grows_does_so_as_the_others(name: str) -> None:
    factor = "beta" if name == "COFIBA" else "alpha"
    policy, x = made(name, **{factor: 0.3}, ridge=4.0), np.array([[0.0, 0.6, 0.8]])
    for t in range(1, 40):
        width = policy.scores(5, x).width[0]
        assert width == pytest.approx(0.3 * sqrt(log(t + 1) / 4.0), rel=1e-12)
        policy.update(0, np.zeros(3), 0.0)


@pytest.mark.parametrize("name", GROWING)
def test_the_width_grows_with_the_root_of_the_logarithm_and_nothing_else_does(name: str) -> None:
    plain, grown = made(name), made(name, growing=True)
    arms = np.random.default_rng(3).normal(size=(4, 3))
    for t, (user, x, reward) in enumerate(zip(*feedback(plain, 60), strict=True)):
        one, other = plain.scores(int(user), arms), grown.scores(int(user), arms)
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_allclose(other.width, one.width * sqrt(log(t + 2)), rtol=1e-12)
        plain.update(int(user), x, reward)
        grown.update(int(user), x, reward)
    assert np.array_equal(plain.labels(), grown.labels())


@pytest.mark.parametrize("name", GROWING)
def test_it_survives_new_users_and_a_snapshot(name: str, tmp_path: Any) -> None:
    policy = made(name, growing=True)
    play(policy, 50)
    policy.add_users(2, labels=[0, 1] if "Oracle" in name else None)
    play(policy, 20)
    policy.save(tmp_path / "policy")
    again, arms = coterie.load(tmp_path / "policy"), np.eye(3)
    assert again.arguments["growing"] is True
    np.testing.assert_array_equal(again.scores(1, arms).width, policy.scores(1, arms).width)
    assert play(again, 40) == play(policy, 40)


def test_what_is_no_truth_value_is_refused() -> None:
    wrong: Any = 2
    with pytest.raises(coterie.ArgumentError, match="growing"):
        coterie.CLUB(3, 2, confidence=THEORY, growing=wrong)


class Pair(NamedTuple):
    fast: coterie.LinearBandit
    slow: linucb.LinUCB | club.CLUB | sclub.SCLUB | phase.PhaseUniCLUB | locb.LOCB


def alone(w: World, seed: int) -> Pair:
    fast = coterie.LinUCBInd(w.n_users, w.dim, beta=0.4, ridge=w.ridge, growing=True)
    slow = linucb.LinUCB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, labels=list(range(w.n_users)))
    return Pair(fast, slow)


def components(w: World, seed: int) -> Pair:
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4)
    fast = coterie.CLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge, growing=True)
    return Pair(fast, club.CLUB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=radius(seed)))


def sets(w: World, seed: int) -> Pair:
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4)
    fast = coterie.SCLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge, growing=True)
    return Pair(fast, sclub.SCLUB(w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=radius(seed)))


def neighbours(w: World, seed: int) -> Pair:
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4, explore=0)
    fast = coterie.PhaseUniCLUB(w.n_users, w.dim, confidence=confidence, ridge=w.ridge, growing=True)
    slow = phase.PhaseUniCLUB(
        w.n_users, w.dim, ridge=w.ridge, beta=0.4, radius=radius(seed), first=0, phase=0.0, growth=1.0
    )
    return Pair(fast, slow)


def seeds(w: World, seed: int) -> Pair:
    return Pair(*test_agreement_locb.both(w.n_users, w, seed, growing=True))


@pytest.mark.slow
@pytest.mark.parametrize("make", [alone, components, sets, neighbours, seeds])
def test_growing_policies_agree_with_their_reference(make: Callable[[World, int], Pair]) -> None:
    splits = 0
    for seed in range(12):
        w = world(seed, ROUNDS)
        fast, slow = make(w, seed)
        for t, turn in enumerate(w.rounds, start=1):
            slow.beta = 0.4 * sqrt(log(t + 1))
            scores = slow.scores(turn.user, turn.arms)
            arm = fast.recommend(turn.user, turn.arms)
            assert scores[arm] >= scores.max() - TIE
            np.testing.assert_allclose(fast.scores(turn.user, turn.arms).ucb, scores, atol=1e-8)
            reward = w.reward(turn, arm)
            fast.update(turn.user, turn.arms[arm], reward)
            slow.update(turn.user, turn.arms[arm], reward)
            assert clusters(fast) == slow.clusters()
        splits += slow.left if isinstance(slow, locb.LOCB) else slow.splits
    assert splits > 20 or make is alone
