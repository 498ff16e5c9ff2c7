from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.theory import Setup, pulls_needed, t0, t_init, t_phase, whole
from theory.setups import PAPER, setups


def _t0(
    setup: Setup, *, n_users: int | None = None, shrink_gap: float = 1.0, shrink_eye: float = 1.0
) -> float:
    return t0(
        n_users or setup.n_users,
        setup.dim,
        gamma=setup.gamma * shrink_gap,
        lambda_x=setup.lambda_x * shrink_eye,
        delta=setup.delta,
        norm=setup.norm,
    )


def test_t0_on_paper_where_the_gap_decides() -> None:
    # u/δ = e² with u = 2, d = 1: 32·2 + 8·max{8(2), 512/¼·2} = 64 + 8·4096
    assert t0(2, 1, gamma=0.5, lambda_x=1.0, delta=2 * math.exp(-2), norm=1.0) == pytest.approx(32_832)


def test_t0_on_paper_where_the_eigenvalue_decides() -> None:
    # L = 100: 64 + 8·max{80 000·2, 512·2}
    assert t0(2, 1, gamma=1.0, lambda_x=1.0, delta=2 * math.exp(-2), norm=100.0) == pytest.approx(1_280_064)


def test_t0_of_the_papers_synthetic_problem_is_186_thousand_horizons() -> None:
    log_u_delta = 15.424948470398375  # ln(5 000 000)
    by_hand = 800 * log_u_delta + 200 * 25_600 / (0.25 * 0.017) * log_u_delta
    assert _t0(PAPER) == pytest.approx(by_hand)
    assert _t0(PAPER) == pytest.approx(1.858253849e10)
    assert _t0(PAPER) / PAPER.horizon == pytest.approx(185_825, rel=1e-5)


def test_t_init_on_paper() -> None:
    # u = 2, d = 1, u/δ = ud/δ = e²: 64 + 8·8·2
    assert t_init(2, 1, lambda_x=1.0, delta=2 * math.exp(-2), norm=1.0) == pytest.approx(192)


def test_t_phase_on_paper() -> None:
    # 8·512·3/0.5·2, and twice that for each further phase
    lengths = [t_phase(s, n_users=2, dim=3, lambda_x=0.5, delta=2 * math.exp(-2)) for s in range(4)]
    assert lengths == pytest.approx([49_152, 98_304, 196_608, 393_216])


@given(setups())
def test_phases_are_t0_at_the_gap_two_to_the_minus_half_s(setup: Setup) -> None:
    for s in (0, 1, 5):
        wanted = 4 * setup.n_users * 512 * setup.dim / (2 ** (-s / 2)) ** 2 / setup.lambda_x
        got = t_phase(s, n_users=setup.n_users, dim=setup.dim, lambda_x=setup.lambda_x, delta=setup.delta)
        assert got == pytest.approx(wanted * math.log(setup.n_users * setup.horizon))


@given(setups(), st.integers(1, 100))
def test_t0_grows_with_users_faster_than_in_proportion(setup: Setup, more: int) -> None:
    n_users = setup.n_users + more
    assert _t0(setup, n_users=n_users) > _t0(setup) * n_users / setup.n_users


@given(setups(), st.floats(0.1, 0.99))
def test_t0_grows_as_the_gap_or_the_eigenvalue_shrinks(setup: Setup, shrink: float) -> None:
    assert _t0(setup, shrink_gap=shrink) >= _t0(setup)
    assert _t0(setup, shrink_eye=shrink) > _t0(setup)


def test_t0_is_inversely_quadratic_in_a_small_gap() -> None:
    arrival = 16 * 50 * math.log(5_000_000)
    half = _t0(PAPER, shrink_gap=0.5)
    assert half - arrival == pytest.approx(4 * (_t0(PAPER) - arrival))


@given(setups())
def test_t_init_is_the_part_of_t0_that_does_not_know_the_gap(setup: Setup) -> None:
    initial = t_init(setup.n_users, setup.dim, lambda_x=setup.lambda_x, delta=setup.delta, norm=setup.norm)
    assert initial <= _t0(setup)


@given(setups())
def test_t0_leaves_each_user_four_times_the_pulls_needed(setup: Setup) -> None:
    pulls = pulls_needed(
        setup.n_users,
        setup.dim,
        gamma=setup.gamma,
        lambda_x=setup.lambda_x,
        delta=setup.delta,
        norm=setup.norm,
    )
    assert _t0(setup) / setup.n_users > 4 * pulls


@given(st.floats(0, 1e15))
def test_whole_rounds_are_the_fewest_that_suffice(x: float) -> None:
    assert whole(x) - 1 < x <= whole(x)


def test_the_constant_8_of_lemma_2_is_large_enough() -> None:
    # d(√2 e^(−1/2))^(Tλ_x/L²) = δ/u at T = L²/λ_x · 2/(1 − ln 2) ln(ud/δ); the paper prints 1/(1/2 − ln 2)
    assert 2 / (1 - math.log(2)) < 8
    assert 0.5 - math.log(2) < 0


@given(st.floats(0.01, 1e6), st.floats(1.0, 1e6), st.floats(1.0, 1e3))
def test_the_basic_arithmetic_of_lemma_14_holds(a: float, ab: float, beyond: float) -> None:
    t = 2 * a * math.log(ab) * beyond
    assert t >= a * math.log1p(ab / a * t) * (1 - 1e-12)
