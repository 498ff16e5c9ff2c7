from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from coterie.evaluation import bca_interval


def test_it_agrees_with_scipy_on_a_skewed_mean() -> None:
    values = np.random.default_rng(1).exponential(size=80)
    ours = bca_interval(values, None, level=0.9, resamples=20_000, rng=np.random.default_rng(2))
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=0.9,
        n_resamples=20_000,
        method="BCa",
        rng=np.random.default_rng(3),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.03 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.03 * width)


def test_it_agrees_with_scipy_on_a_ratio() -> None:
    rng = np.random.default_rng(4)
    weights = rng.exponential(size=100)
    terms = weights * rng.normal(2.0, 1.0, 100)
    ours = bca_interval(terms, weights, level=0.95, resamples=20_000, rng=np.random.default_rng(5))
    theirs = stats.bootstrap(
        (terms, weights),
        lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        n_resamples=20_000,
        paired=True,
        vectorized=True,
        method="BCa",
        rng=np.random.default_rng(6),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.04 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.04 * width)


def test_events_without_weight_need_not_be_drawn() -> None:
    """Mostly zeros: the interval of the mean is that of a full resampling."""
    rng = np.random.default_rng(7)
    terms = np.where(rng.random(2000) < 0.05, rng.exponential(20.0, 2000), 0.0)
    low, high = bca_interval(terms, None, level=0.95, resamples=4000, rng=rng)
    drawn = np.array([terms[rng.integers(0, 2000, 2000)].mean() for _ in range(4000)])
    assert high - low == pytest.approx(np.ptp(np.quantile(drawn, [0.025, 0.975])), rel=0.08)


def test_means_of_skewed_terms_are_covered() -> None:
    """95 % of 400 samples of 60 lognormal values, within three standard errors of what BCa is known for."""
    hits = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        low, high = bca_interval(rng.lognormal(0, 0.5, 60), None, level=0.95, resamples=400, rng=rng)
        hits += low <= np.exp(0.125) <= high
    assert 0.92 - 3 * 0.0109 < hits / 400 < 0.98


def test_equal_terms_leave_no_doubt_and_single_ones_say_nothing() -> None:
    rng = np.random.default_rng(0)
    assert bca_interval(np.full(50, 2.0), None, level=0.95, resamples=100, rng=rng) == (2.0, 2.0)
    one = np.eye(50)[0]
    assert np.isnan(bca_interval(one, None, level=0.95, resamples=100, rng=rng)).all()
    assert np.isnan(bca_interval(one, one, level=0.95, resamples=100, rng=rng)).all()
