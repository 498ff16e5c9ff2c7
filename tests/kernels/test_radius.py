from __future__ import annotations

from math import log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels.radius import Radius, radius
from coterie.policies import Smoothed, Theory, Tuned
from reference.numbers import lambda_tilde, smoothed_bound, theory_radius

CASES = settings(deadline=None, derandomize=True, max_examples=100)
PULLS = st.one_of(st.integers(0, 100), st.integers(0, 10**12))


@CASES
@given(st.floats(0, 100), PULLS)
def test_the_tuned_radius_is_the_one_of_gentile_and_others(alpha: float, pulls: int) -> None:
    wanted = alpha * sqrt((1 + log(1 + pulls)) / (1 + pulls))
    assert radius(Tuned(alpha=alpha, beta=0.1).shape(9, 4, 2.0), pulls) == pytest.approx(wanted, rel=1e-12)


@CASES
@given(PULLS, st.integers(1, 500), st.integers(1, 100), st.floats(0.01, 10), st.floats(0.1, 5))
def test_the_radius_of_the_theory_is_the_papers(
    pulls: int, n_users: int, dim: int, ridge: float, norm: float
) -> None:
    shape = Theory(horizon=1000, lambda_x=0.03, delta=0.02, norm=norm).shape(n_users, dim, ridge)
    wanted = theory_radius(
        pulls, n_users=n_users, dim=dim, delta=0.02, ridge=ridge, bound=norm, lambda_x=0.03
    )
    assert radius(shape, pulls) == pytest.approx(wanted, rel=1e-12)


@CASES
@given(PULLS, st.integers(1, 100), st.integers(2, 1000), st.floats(0.01, 2))
def test_the_smoothed_radius_is_the_papers_with_another_eigenvalue_and_bound(
    pulls: int, dim: int, n_arms: int, sigma: float
) -> None:
    shape = Smoothed(horizon=500, sigma=sigma, n_arms=n_arms, truncation=0.7, c1=0.4).shape(20, dim, 1.5)
    wanted = theory_radius(
        pulls,
        n_users=20,
        dim=dim,
        delta=1 / 500,
        ridge=1.5,
        bound=smoothed_bound(dim=dim, truncation=0.7),
        lambda_x=lambda_tilde(sigma=sigma, n_arms=n_arms, constant=0.4),
    )
    assert radius(shape, pulls) == pytest.approx(wanted, rel=1e-12)


def test_the_six_numbers_on_paper() -> None:
    assert radius(Radius(base=4, slope=0, scale=1, shift=1, floor=9, growth=0), 100) == pytest.approx(1.0)
    assert radius(Radius(base=1, slope=1, scale=1, shift=0, floor=1, growth=1), 0) == 1.0
