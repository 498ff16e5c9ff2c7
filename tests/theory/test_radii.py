from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.theory import Setup, beta, lambda_tilde, norm_tilde, pulls_needed, radius
from theory.setups import setups


def _radius(setup: Setup, pulls: float) -> float:
    return radius(
        pulls,
        n_users=setup.n_users,
        dim=setup.dim,
        ridge=setup.ridge,
        lambda_x=setup.lambda_x,
        delta=setup.delta,
        norm=setup.norm,
    )


def test_beta_in_fifty_digits() -> None:
    inside = 50 * Decimal(2001).ln() + 2 * Decimal(100_000).ln()
    assert beta(100_000, 50, ridge=1.0, delta=1e-5, norm=1.0) == pytest.approx(float(inside.sqrt() + 1))


def test_beta_of_nothing_played_and_nothing_risked_is_the_root_of_the_ridge() -> None:
    assert beta(0, 7, ridge=4.0, delta=1.0, norm=1.0) == 2.0


def test_beta_on_paper() -> None:
    # d = 1, T L²/(dλ) = e² − 1 and δ = e⁻¹: √(2 + 2) + √1
    assert beta(math.e**2 - 1, 1, ridge=1.0, delta=1 / math.e, norm=1.0) == pytest.approx(3.0)


def test_radius_on_paper() -> None:
    # u/δ = e⁴, d = 2, T L²/(λd) = e⁴ − 1, λ = 4: (√(8 + 8) + 2) / √(4 + T λ_x/2)
    pulls = 8 * (math.e**4 - 1)
    got = radius(pulls, n_users=1, dim=2, ridge=4.0, lambda_x=64 / pulls, delta=math.exp(-4), norm=1.0)
    assert got == pytest.approx(6 / 6)


def test_radius_in_fifty_digits() -> None:
    width = (2 * Decimal(5_000_000).ln() + 50 * Decimal(201).ln()).sqrt() + 1
    got = radius(10_000, n_users=50, dim=50, ridge=1.0, lambda_x=0.02, delta=1e-5, norm=1.0)
    assert got == pytest.approx(float(width / Decimal(101).sqrt()))


def test_radius_without_pulls() -> None:
    got = radius(0, n_users=3, dim=9, ridge=4.0, lambda_x=0.1, delta=0.1, norm=1.0)
    assert got == pytest.approx((math.sqrt(2 * math.log(30)) + 2) / 2)


@given(setups(), st.floats(1.0, 1e6), st.floats(1.01, 1e3))
def test_radius_falls_from_six_and_a_half_ridges_per_eigenvalue_on(
    setup: Setup, multiple: float, further: float
) -> None:
    pulls = 6.5 * setup.ridge / setup.lambda_x * multiple
    assert _radius(setup, pulls * further) < _radius(setup, pulls)


def test_radius_rises_at_first_where_the_eigenvalue_is_small() -> None:
    def at(pulls: int) -> float:
        return radius(pulls, n_users=50, dim=50, ridge=1.0, lambda_x=0.001, delta=1e-5, norm=1.0)

    assert at(0) < at(10) < at(100)


@given(setups())
def test_the_pulls_of_equation_5_bring_the_radius_to_a_quarter_of_the_gap(setup: Setup) -> None:
    pulls = pulls_needed(
        setup.n_users,
        setup.dim,
        gamma=setup.gamma,
        lambda_x=setup.lambda_x,
        delta=_small_delta(setup),
        norm=setup.norm,
    )
    got = radius(
        pulls,
        n_users=setup.n_users,
        dim=setup.dim,
        ridge=setup.ridge,
        lambda_x=setup.lambda_x,
        delta=_small_delta(setup),
        norm=setup.norm,
    )
    assert got <= setup.gamma / 4


def _small_delta(setup: Setup) -> float:
    """The two wishes of Lemma 3's proof: u/δ ≥ 256L²/(γ²λλ_x), and λ ≤ 2 ln(u/δ)."""
    wanted = 256 * setup.norm**2 / (setup.gamma**2 * setup.ridge * setup.lambda_x)
    return setup.n_users / max(wanted, math.exp(setup.ridge / 2), setup.n_users * setup.horizon)


@given(st.floats(0.01, 10.0), st.integers(2, 10_000), st.floats(0.01, 10.0))
def test_lambda_tilde_is_the_formula_of_lemma_10(sigma: float, n_arms: int, c1: float) -> None:
    assert lambda_tilde(sigma, n_arms, c1=c1) * math.log(n_arms) == pytest.approx(c1 * sigma * sigma)


def test_lambda_tilde_of_one_arm_is_the_whole_variance() -> None:
    assert lambda_tilde(0.5, 1, c1=3.0) == 0.75


def test_lambda_tilde_of_two_arms_exceeds_the_variance_as_the_formula_says() -> None:
    assert lambda_tilde(1.0, 2) == pytest.approx(1.4426950408889634)


def test_norm_tilde_adds_the_corner_of_the_cube() -> None:
    assert norm_tilde(49, 0.5) == 4.5
