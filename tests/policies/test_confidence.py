from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie import (
    CLUB,
    SACLUB,
    SCLUB,
    ArgumentError,
    LinearBandit,
    LinUCBOne,
    PhaseUniCLUB,
    SmoothedTheory,
    Theory,
    Tuned,
    UniCLUB,
    UniSCLUB,
)
from coterie.policies.confidence import FOREVER, KINDS, Schedule
from coterie.theory import Radius
from inspection import state_array
from reference import numbers

CASES = settings(deadline=None, derandomize=True, max_examples=100)
USERS, DIMS = st.integers(1, 500), st.integers(1, 100)
EXAMPLES: tuple[Any, ...] = (
    Theory(horizon=100, lambda_x=0.1),
    SmoothedTheory(horizon=100, sigma=0.1, n_arms=10, truncation=1.0),
    Tuned(alpha=1.0, beta=0.1),
)


@CASES
@given(
    n_users=USERS,
    dim=DIMS,
    horizon=st.integers(2, 10**9),
    lambda_x=st.floats(1e-4, 10),
    gamma=st.floats(0.01, 2),
    delta=st.one_of(st.none(), st.floats(1e-9, 0.99)),
    norm=st.floats(0.1, 10),
    ridge=st.floats(0.01, 10),
)
def test_the_theory_says_the_papers_numbers(
    n_users: int,
    dim: int,
    horizon: int,
    lambda_x: float,
    gamma: float,
    delta: float | None,
    norm: float,
    ridge: float,
) -> None:
    theory = Theory(horizon=horizon, lambda_x=lambda_x, gamma=gamma, delta=delta, norm=norm)
    sure = 1 / horizon if delta is None else delta
    beta = numbers.confidence(horizon=horizon, dim=dim, delta=sure, ridge=ridge, bound=norm)
    assert theory.bonus(dim, ridge) == pytest.approx(beta, rel=1e-12)
    t0 = numbers.exploration_length(
        n_users=n_users, dim=dim, delta=sure, bound=norm, lambda_x=lambda_x, gamma=gamma
    )
    assert theory.exploration(n_users, dim) == pytest.approx(math.ceil(t0), rel=1e-12)
    first, phase, growth = theory.phases(n_users, dim)
    t_init = numbers.initial_length(n_users=n_users, dim=dim, delta=sure, bound=norm, lambda_x=lambda_x)
    t_phase = numbers.phase_length(0, n_users=n_users, dim=dim, delta=sure, lambda_x=lambda_x)
    assert first == pytest.approx(math.ceil(t_init), rel=1e-12)
    assert phase == pytest.approx(t_phase, rel=1e-12)
    assert growth == 2.0
    assert phase * 2**5 == pytest.approx(
        numbers.phase_length(5, n_users=n_users, dim=dim, delta=sure, lambda_x=lambda_x), rel=1e-12
    )


@CASES
@given(dim=DIMS, horizon=st.integers(2, 10**9), truncation=st.floats(0.01, 5), ridge=st.floats(0.01, 10))
def test_the_smoothed_bonus_is_the_papers_with_the_smoothed_bound(
    dim: int, horizon: int, truncation: float, ridge: float
) -> None:
    smoothed = SmoothedTheory(horizon=horizon, sigma=0.3, n_arms=20, truncation=truncation)
    bound = numbers.smoothed_bound(dim=dim, truncation=truncation)
    beta = numbers.confidence(horizon=horizon, dim=dim, delta=1 / horizon, ridge=ridge, bound=bound)
    assert smoothed.bonus(dim, ridge) == pytest.approx(beta, rel=1e-12)


def test_tuned_says_what_it_was_told() -> None:
    tuned = Tuned(alpha=1.5, beta=0.2, explore=30, phase=4, growth=1)
    assert tuned.bonus(9, 3.0) == 0.2
    assert tuned.exploration(7, 9) == 30
    assert tuned.phases(7, 9) == Schedule(30, 4.0, 1.0)
    assert Tuned(alpha=1.5, beta=0.2) == Tuned(alpha=1.5, beta=0.2, explore=None, phase=None, growth=2)


@pytest.mark.parametrize("make", [UniCLUB, UniSCLUB, PhaseUniCLUB])
def test_a_policy_that_explores_must_be_told_how_long(make: Callable[..., LinearBandit]) -> None:
    with pytest.raises(ArgumentError, match=r"Tuned needs explore .* such as explore=70"):
        make(7, 2, confidence=Tuned(alpha=1.5, beta=0.2))
    never = make(7, 2, confidence=Tuned(alpha=1.5, beta=0.2, explore=0, phase=0))
    assert not never.exploring


@pytest.mark.parametrize("confidence", EXAMPLES)
def test_a_confidence_cannot_be_changed(confidence: Any) -> None:
    for field in type(confidence).__slots__:
        with pytest.raises(FrozenInstanceError):
            setattr(confidence, field, 0.5)
    with pytest.raises((AttributeError, TypeError)):
        confidence.something_else = 1
    assert hash(confidence) == hash(type(confidence)(*(getattr(confidence, f) for f in confidence.__slots__)))


def test_every_kind_is_known_by_its_name() -> None:
    assert {kind.__name__: kind for kind in map(type, EXAMPLES)} == KINDS


def test_delta_is_one_over_the_horizon_unless_given() -> None:
    assert Theory(500, 0.1, gamma=0.5) != Theory(500, 0.1, gamma=0.5, delta=1 / 500)
    assert Theory(500, 0.1).bonus(5, 1.0) == Theory(500, 0.1, delta=1 / 500).bonus(5, 1.0)


def exploring_for(policy: Any, most: int = 3000) -> int:
    """How many rounds of feedback it takes until the policy stops exploring."""
    while policy.exploring and policy.rounds < most:
        policy.update(policy.rounds % policy.n_users, np.ones(policy.dim), 1.0)
    return int(policy.rounds)


@pytest.mark.parametrize("explore", [0, 1, 17])
def test_uniclub_explores_t0_uniscl_twice_that_and_phaseuniclub_t_init(explore: int) -> None:
    tuned = Tuned(alpha=1.0, beta=0.1, explore=explore)
    assert exploring_for(UniCLUB(3, 2, confidence=tuned)) == explore
    assert exploring_for(UniSCLUB(3, 2, confidence=tuned)) == 2 * explore
    assert exploring_for(PhaseUniCLUB(3, 2, confidence=tuned)) == explore


def test_by_the_theory_they_explore_as_long_as_the_paper_says() -> None:
    theory = Theory(horizon=1000, lambda_x=1e4, gamma=50.0, delta=0.5)
    t0 = numbers.exploration_length(n_users=4, dim=2, delta=0.5, bound=1.0, lambda_x=1e4, gamma=50.0)
    assert exploring_for(UniCLUB(4, 2, confidence=theory)) == math.ceil(t0)
    assert exploring_for(UniSCLUB(4, 2, confidence=theory)) == 2 * math.ceil(t0)


def test_an_exploration_longer_than_anyone_plays_fits_into_64_bits() -> None:
    endless = Theory(horizon=10**9, lambda_x=1e-12, gamma=1e-6)
    assert endless.exploration(10**6, 1000) == FOREVER
    assert UniSCLUB(3, 2, confidence=endless).exploring
    assert PhaseUniCLUB(3, 2, confidence=endless).exploring


def test_a_wider_bonus_is_what_beta_multiplies() -> None:
    arms = np.array([[1.0, 0.5], [0.2, 0.9]])
    for beta in (0.0, 0.5, 2.0):
        tuned = CLUB(3, 2, confidence=Tuned(alpha=1.0, beta=beta)).scores(0, arms)
        assert np.allclose(tuned.width, beta * np.linalg.norm(arms, axis=1))
        assert np.allclose(LinUCBOne(3, 2, beta=beta).scores(0, arms).width, tuned.width)
    smoothed = SmoothedTheory(horizon=100, sigma=0.1, n_arms=2, truncation=1.0)
    width = SACLUB(3, 2, confidence=smoothed).scores(0, arms).width
    assert np.allclose(width, smoothed.bonus(2, 1.0) * np.linalg.norm(arms, axis=1))


class Whole:
    """A confidence of one's own that answers in whole numbers."""

    def bonus(self, dim: int, ridge: float) -> float:
        return 1

    def shape(self, n_users: int, dim: int, ridge: float) -> Radius:
        return Radius(1, 1, 1, 0, 1, 1)

    def exploration(self, n_users: int, dim: int) -> int:
        return 0

    def phases(self, n_users: int, dim: int) -> Schedule:
        return Schedule(0, 0, 2)


@pytest.mark.parametrize("make", [CLUB, SCLUB, PhaseUniCLUB])
def test_whole_numbers_of_one_confidence_do_not_bend_the_next(make: Callable[..., LinearBandit]) -> None:
    make(3, 2, confidence=Whole()).recommend(0, [[1.0, 0.0]])
    policy = make(3, 2, confidence=Tuned(alpha=1.0, beta=0.6, explore=0))
    policy.update(0, [1.0, 0.0], 0.3)
    arms = [[0.9, 0.0], [0.0, 1.0]]
    assert policy.recommend(0, arms) == int(np.argmax(policy.scores(0, arms).ucb))


def test_a_kind_of_confidence_is_no_confidence() -> None:
    kind: Any = Tuned
    with pytest.raises(ArgumentError, match="confidence must be"):
        CLUB(3, 2, confidence=kind)


PULLS = st.one_of(st.integers(0, 100), st.integers(0, 10**12))


@CASES
@given(st.floats(0, 100), PULLS)
def test_the_tuned_radius_is_the_one_of_gentile_and_others(alpha: float, pulls: int) -> None:
    wanted = alpha * math.sqrt((1 + math.log(1 + pulls)) / (1 + pulls))
    assert Tuned(alpha=alpha, beta=0.1).shape(9, 4, 2.0).at(pulls) == pytest.approx(wanted, rel=1e-12)


@CASES
@given(PULLS, USERS, DIMS, st.floats(0.01, 10), st.floats(0.1, 5))
def test_the_radius_of_the_theory_is_the_papers(
    pulls: int, n_users: int, dim: int, ridge: float, norm: float
) -> None:
    shape = Theory(horizon=1000, lambda_x=0.03, delta=0.02, norm=norm).shape(n_users, dim, ridge)
    wanted = numbers.theory_radius(
        pulls, n_users=n_users, dim=dim, delta=0.02, ridge=ridge, bound=norm, lambda_x=0.03
    )
    assert shape.at(pulls) == pytest.approx(wanted, rel=1e-12)


@CASES
@given(PULLS, DIMS, st.integers(2, 1000), st.floats(0.01, 2))
def test_the_smoothed_radius_is_the_papers_with_another_eigenvalue_and_bound(
    pulls: int, dim: int, n_arms: int, sigma: float
) -> None:
    shape = SmoothedTheory(horizon=500, sigma=sigma, n_arms=n_arms, truncation=0.7, c1=0.4).shape(
        20, dim, 1.5
    )
    wanted = numbers.theory_radius(
        pulls,
        n_users=20,
        dim=dim,
        delta=1 / 500,
        ridge=1.5,
        bound=numbers.smoothed_bound(dim=dim, truncation=0.7),
        lambda_x=numbers.lambda_tilde(sigma=sigma, n_arms=n_arms, constant=0.4),
    )
    assert shape.at(pulls) == pytest.approx(wanted, rel=1e-12)


def test_the_six_numbers_on_paper() -> None:
    assert Radius(base=4, slope=0, scale=1, shift=1, floor=9, growth=0).at(100) == pytest.approx(1.0)
    assert Radius(base=1, slope=1, scale=1, shift=0, floor=1, growth=1).at(0) == 1.0


@pytest.mark.parametrize("confidence", [*EXAMPLES, Tuned(alpha=0.0, beta=0.1)])
@pytest.mark.parametrize("make", [CLUB, SCLUB])
def test_the_compiled_radius_is_that_of_the_shape(confidence: Any, make: Callable[..., LinearBandit]) -> None:
    policy, shape = make(3, 2, confidence=confidence, ridge=0.7), confidence.shape(3, 2, 0.7)
    for _ in range(50):
        policy.update(1, [1.0, 0.5], 0.3)
        wanted = [shape.at(pulls) for pulls in policy.pulls]
        np.testing.assert_allclose(state_array(policy, "radii"), wanted, rtol=1e-12)
