from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels.choice import choose, first_largest, means
from coterie.kernels.generic import View
from coterie.types import Floats, Ints

CASES = settings(deadline=None, derandomize=True, max_examples=200)


class Case(NamedTuple):
    """Items, those on offer, what is known of the user, and how loose the remembered bounds are."""

    items: Floats
    picks: Ints
    seen: View
    loose: Floats


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d, n, k = draw(st.integers(1, 6)), draw(st.integers(1, 12)), draw(st.integers(1, 15))
    coarse = draw(st.booleans())
    items = rng.integers(-2, 3, size=(n, d)).astype(float) if coarse else rng.normal(size=(n, d))
    data = rng.normal(size=(draw(st.integers(0, 20)), d))
    inverse = np.linalg.inv(np.eye(d) + data.T @ data)
    estimate = np.zeros(d) if draw(st.booleans()) else rng.normal(size=d)
    beta = draw(st.sampled_from([0.0, 0.1, 1.0, 20.0]))
    loose = rng.choice([1.0, 1.0 + 1e-12, 1.5, 1e3, 1e12], size=k)
    usual = draw(st.sampled_from([0.01, 0.5, np.inf]))
    seen = View(estimate, 0.5 * (inverse + inverse.T), beta, 0, 1.0, usual)
    return Case(items, rng.integers(n, size=k), seen, loose)


def width2(case: Case, k: int) -> float:
    x = case.items[case.picks[k]]
    return float(x @ case.seen.inverse @ x)


def chosen(case: Case, bounds: Floats) -> int:
    k, d = len(case.picks), case.items.shape[1]
    return choose(case.seen, case.items, case.picks, bounds, np.empty(k), np.empty(k, np.int64), np.empty(d))


@CASES
@given(cases())
def test_the_choice_is_the_best_of_all_whatever_valid_bounds_it_starts_from(case: Case) -> None:
    exact = np.array([width2(case, k) for k in range(len(case.picks))])
    more = np.maximum(1.0, 2.0 * np.log(np.maximum(exact / case.seen.usual, 1.0)))
    ucb = case.items[case.picks] @ case.seen.estimate + case.seen.beta * np.sqrt(exact * more)
    best = chosen(case, exact * case.loose)
    assert ucb[best] >= ucb.max() - 1e-9 * (1 + abs(ucb.max()))


@CASES
@given(cases())
def test_the_choice_does_not_depend_on_how_loose_the_bounds_are(case: Case) -> None:
    exact = np.array([width2(case, k) for k in range(len(case.picks))])
    assert chosen(case, exact * case.loose) == chosen(case, exact + 1e9) == chosen(case, exact * 1e6 + 1e-6)


@CASES
@given(cases())
def test_the_first_of_equal_items_is_chosen(case: Case) -> None:
    exact = np.array([width2(case, k) for k in range(len(case.picks))])
    best = chosen(case, exact * case.loose + 1.0)
    assert case.picks[best] not in case.picks[:best]


@CASES
@given(cases())
def test_bounds_only_ever_become_exact_and_never_smaller_than_that(case: Case) -> None:
    exact = np.array([width2(case, k) for k in range(len(case.picks))])
    before = exact * case.loose
    after = before.copy()
    best = chosen(case, after)
    touched = after != before
    assert np.allclose(after[touched], exact[touched], rtol=1e-9, atol=1e-12)
    assert np.allclose(after[best], exact[best], rtol=1e-9, atol=1e-12)


@CASES
@given(cases())
def test_means_are_inner_products_item_by_item(case: Case) -> None:
    out = np.empty(len(case.picks))
    means(case.seen.estimate, case.items, case.picks, out)
    assert np.allclose(out, case.items[case.picks] @ case.seen.estimate, atol=1e-12)
    alone = np.empty(1)
    for k, pick in enumerate(case.picks):
        means(case.seen.estimate, case.items, np.array([pick]), alone)
        assert alone[0] == out[k]


def test_a_mean_has_the_same_bits_wherever_its_item_stands() -> None:
    rng = np.random.default_rng(1)
    items, estimate = rng.normal(size=(30, 50)), rng.normal(size=50)
    out = np.empty(30)
    means(estimate, items, np.arange(30), out)
    turned = np.empty(30)
    means(estimate, items, np.arange(30)[::-1].copy(), turned)
    assert np.array_equal(out, turned[::-1])


@CASES
@given(st.lists(st.integers(-3, 3).map(float), min_size=1))
def test_the_first_largest_is_the_first_of_the_largest(values: list[float]) -> None:
    assert first_largest(np.array(values)) == values.index(max(values))
