from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.theory import Bound, Setup, t0, theorem_1, theorem_2, theorem_3, theorem_4, theorem_4_sets
from theory.setups import PAPER, SMALL, setups

# SMALL: u = 8, d = 4, m = 2, K = 10, T = 1000, γ = ½, λ_x = ¼, λ = 2, L = 3, σ = ½, R = 1
LOG_UT = math.log(8_000)
LOG_UDT = math.log(32_000)
T0 = 128 * LOG_UT + 32 * max(288 * LOG_UDT, 32_768 * LOG_UT)
LEARNING = (
    2
    * (math.sqrt(4 * math.log(1 + 9_000 / 8) + 2 * math.log(1_000)) + math.sqrt(2))
    * math.sqrt(16_000 * math.log(1 + 9_000 / 44))
)


def test_theorem_1_typed_out() -> None:
    assert theorem_1(SMALL).total == pytest.approx(4 + T0 + LEARNING, rel=1e-12)


def test_theorem_2_typed_out() -> None:
    assert theorem_2(SMALL).total == pytest.approx(4 + 2 * T0 + LEARNING, rel=1e-12)


def test_theorem_3_typed_out() -> None:
    c_p = 2048 * 32 * LOG_UT / 0.25
    by_hand = (
        128 * LOG_UT
        + 32 * 288 * LOG_UDT
        + LEARNING
        + 2 * 10 * c_p ** (2 / 3)  # T^(1/3) = 10
        + 8 * 9 * 2048 * 32 * LOG_UT / (0.5**5 * 0.25**2)
        + 4096 * 32 * LOG_UT / 0.25
        + 4 / 3 * math.log2(8 * 2048 * 32_000 / 0.25 + 1)
    )
    assert theorem_3(SMALL).total == pytest.approx(by_hand, rel=1e-12)


def test_theorem_3_with_another_growth_typed_out() -> None:
    c_p = 2048 * 32 * LOG_UT / 0.25
    bound = theorem_3(SMALL, 1.0)
    assert bound.misclustering == pytest.approx(8 * 9 / (0.5**3 * 0.25) * c_p)
    initial = 128 * LOG_UT + 32 * 288 * LOG_UDT
    assert bound.exploration == pytest.approx(initial + 2 * math.sqrt(1_000 * c_p) + 2 * c_p)
    assert bound.failure == pytest.approx(2 * math.log2(4 * 2048 * 32_000 / 0.25 + 1))


def test_theorem_4_typed_out() -> None:
    squared = (1 + 2 * 1.0) ** 2  # 1 + √4 · R, the same 3 as L, so that only λ̃_x differs
    tilde = 0.25 / math.log(10)
    settled = 128 * LOG_UT + 32 * max(8 * squared / tilde * LOG_UDT, 512 * 4 / (0.25 * tilde) * LOG_UT)
    assert theorem_4(SMALL).total == pytest.approx(4 + settled + LEARNING, rel=1e-12)
    assert theorem_4_sets(SMALL).total == pytest.approx(4 + 2 * settled + LEARNING, rel=1e-12)


def test_theorem_4_depends_on_neither_lambda_x_nor_norm() -> None:
    other = replace(SMALL, lambda_x=0.01, norm=7.0)
    assert theorem_4(other) == theorem_4(SMALL)


def test_the_algorithms_are_named() -> None:
    bounds = (theorem_1, theorem_2, theorem_3, theorem_4, theorem_4_sets)
    names = [bound(SMALL).algorithm for bound in bounds]
    assert names == ["UniCLUB", "UniSCLUB", "PhaseUniCLUB", "SACLUB", "SASCLUB"]


@given(setups())
def test_a_bound_is_at_least_the_exploration_it_pays_for(setup: Setup) -> None:
    length = t0(
        setup.n_users,
        setup.dim,
        gamma=setup.gamma,
        lambda_x=setup.lambda_x,
        delta=setup.delta,
        norm=setup.norm,
    )
    assert theorem_1(setup).total >= length
    assert theorem_2(setup).total >= 2 * length


@given(setups())
def test_not_knowing_the_gap_never_lowers_the_bound(setup: Setup) -> None:
    small = replace(setup, gamma=min(setup.gamma, 1.0))
    assert theorem_3(small).total >= theorem_1(small).total


@given(setups(), st.floats(0.1, 0.99))
def test_bounds_grow_as_the_gap_shrinks(setup: Setup, shrink: float) -> None:
    closer = replace(setup, gamma=setup.gamma * shrink)
    for theorem in (theorem_1, theorem_2, theorem_3, theorem_4, theorem_4_sets):
        assert theorem(closer).total >= theorem(setup).total


@given(setups(), st.integers(2, 1_000))
def test_bounds_grow_with_the_horizon(setup: Setup, times: int) -> None:
    longer = replace(setup, horizon=setup.horizon * times)
    for theorem in (theorem_1, theorem_2, theorem_3, theorem_4, theorem_4_sets):
        assert theorem(longer).total > theorem(setup).total


@given(setups())
def test_more_arms_cost_the_smoothed_adversary_only(setup: Setup) -> None:
    fewer = replace(setup, n_arms=3)
    more = replace(setup, n_arms=300)
    assert theorem_1(more) == theorem_1(fewer)
    assert theorem_4(more).total > theorem_4(fewer).total


@pytest.mark.parametrize("theorem", [theorem_1, theorem_2, theorem_3, theorem_4, theorem_4_sets])
def test_every_bound_is_vacuous_on_the_papers_synthetic_problem(theorem: Callable[[Setup], Bound]) -> None:
    assert theorem(PAPER).vacuous(PAPER.horizon)


def test_theorem_1_says_something_once_the_horizon_is_long_enough() -> None:
    easy = Setup(n_users=50, dim=5, n_clusters=10, n_arms=20, horizon=10**9, gamma=1.0, lambda_x=0.2)
    assert not theorem_1(easy).vacuous(easy.horizon)


@given(st.floats(0.51, 5.0), st.floats(0.01, 0.999))
def test_the_misclustering_sum_stays_below_its_bound_for_growth_above_a_half(
    growth: float, gamma: float
) -> None:
    assert _phases(growth, gamma) <= 2 / gamma ** (2 * growth + 1)


def test_the_misclustering_sum_passes_its_bound_for_a_small_growth() -> None:
    assert _phases(0.1, 2**-5) > 2 / (2**-5) ** 1.2


def _phases(growth: float, gamma: float) -> float:
    """Σ 2^((α + 1/2)s) over s = 0 … ⌊log₂(1/γ²)⌋, the sum before Eq. 35."""
    return sum(math.exp2((growth + 0.5) * s) for s in range(math.floor(math.log2(gamma**-2)) + 1))


@given(setups(), st.floats(0.5, 4.0))
def test_the_last_logarithm_of_theorem_3_is_above_the_one_it_replaces(setup: Setup, growth: float) -> None:
    u, d, horizon = setup.n_users, setup.dim, setup.horizon
    c_p = 2048 * u * d * math.log(u * horizon) / setup.lambda_x
    before = 4 / (growth + 1) * math.log2(2 ** (growth + 1) * horizon / c_p + 1)
    assert theorem_3(setup, growth).failure >= before
