"""Bootstrap intervals of a mean or of a ratio of sums: bias-corrected and accelerated (BCa)."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from coterie.types import Floats

NORMAL = NormalDist()


class Interval(NamedTuple):
    """A confidence interval; NaN where fewer than two events have information."""

    low: float
    high: float


def bca_interval(
    terms: Floats, weights: Floats | None, *, level: float, resamples: int, rng: np.random.Generator
) -> Interval:
    """Compute the BCa interval of Σ terms / Σ weights over events that are drawn again.

    Parameters
    ----------
    terms, weights : array, shape (n,)
        The numerator and denominator that each event adds; without weights, the denominator is n.
    level : float
        The confidence, such as 0.95.
    resamples : int
        How often n events are drawn with replacement.
    rng : Generator
        Where they are drawn from.

    Returns
    -------
    Interval
        Its ends.

    Notes
    -----
    Of the draws, those of events with terms and weights of 0 change nothing; how many others there are is
    binomial, and only they are drawn.

    References
    ----------
    Efron, B. (1987). Better bootstrap confidence intervals. JASA 82, 171–185.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> low, high = bca_interval(np.arange(100.0), None, level=0.95, resamples=999, rng=rng)
    >>> round(low), round(high)
    (43, 55)
    """
    n, over = len(terms), np.ones(len(terms)) if weights is None else weights
    # With importance weights most events are zero; drawing only the others is as exact and much faster.
    some = terms != 0 if weights is None else (terms != 0) | (weights != 0)
    if np.count_nonzero(some) < 2:
        return Interval(float("nan"), float("nan"))
    value = float(terms.sum() / over.sum())
    drawn = _resampled(terms[some], None if weights is None else weights[some], n, resamples, rng)
    drawn = drawn[np.isfinite(drawn)]
    influence = terms - value * over
    spread = float(np.sum(influence**2))
    if spread == 0 or not len(drawn):
        return Interval(value, value)
    acceleration = float(np.sum(influence**3)) / (6.0 * spread**1.5)
    ends = [_adjusted(tail, drawn, value, acceleration) for tail in ((1 - level) / 2, (1 + level) / 2)]
    low, high = np.quantile(drawn, ends)
    return Interval(float(low), float(high))


def _resampled(
    terms: Floats, weights: Floats | None, n: int, resamples: int, rng: np.random.Generator
) -> Floats:
    """The estimate from each resample; NaN where all its weights are 0."""
    found = np.full(resamples, np.nan)
    for k, size in enumerate(rng.binomial(n, len(terms) / n, resamples)):
        picked = rng.integers(0, len(terms), size)
        below = float(n) if weights is None else float(weights[picked].sum())
        if below > 0:
            found[k] = terms[picked].sum() / below
    return found


def _adjusted(tail: float, drawn: Floats, value: float, acceleration: float) -> float:
    """The quantile of the resamples that stands for this tail."""
    # Half of the ties count as below, else discrete rewards would bias the correction.
    below = np.mean(drawn < value) + 0.5 * np.mean(drawn == value)
    bias = NORMAL.inv_cdf(min(max(float(below), 0.5 / len(drawn)), 1 - 0.5 / len(drawn)))
    shifted = bias + NORMAL.inv_cdf(tail)
    return NORMAL.cdf(bias + shifted / max(1 - acceleration * shifted, 1e-3))
