"""Is one arm of an experiment better? Intervals that hold at all times, and a check of the sample ratio.

An ordinary confidence interval holds for one look at the data, planned before. Who looks every day and stops
at the first day on which it excludes 0 is wrong far more often than the interval says. The intervals here may
be looked at after every decision: the true difference is *ever* outside with probability `alpha` at most,
where users are many (the method is asymptotic).

The method is the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas,
"Time-uniform central limit theory and asymptotic confidence sequences", Annals of Statistics 52(6), 2024
(arXiv 2103.06476), which goes back to the normal mixtures of Robbins (1970). Two things are ours:

- Users are assigned to arms, so they are the units, while the mean is per decision. The variance is that of
  a ratio of sums over users, as the delta method has it; decisions of one user are not independent.
- The time of the sequence is the information in the data, sigma² / variance of the difference, which is the
  number of decisions where users do not differ.

The check of the sample ratio is the sequential multinomial test of Lindon and Malek, "Anytime-valid inference
for multinomial count data", NeurIPS 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log
from typing import Any, NamedTuple

import numpy as np

LEAST_USERS = 50
"""Users of an arm that have a reward, below which there is no interval: the method is asymptotic."""
TIGHTEST = 500
"""Information at which the interval is as narrow as it can be: 1,000 decisions in each of two equal arms."""
PRIOR_USERS = 100.0
"""The weight of the intended shares in the alternative of the check of the sample ratio."""
RATIO_ALPHA = 0.001
"""The check of the sample ratio gives a false alarm with this probability at most, at all looks together."""


class ArmSums(NamedTuple):
    """Sums over the users of an arm, with n decisions that are settled and rewards r each.

    Any of them may be an array of the sums of many experiments.
    """

    users: Any = 0
    decisions: Any = 0
    reward: Any = 0.0
    squares: Any = 0.0
    """The sum of squared rewards of single decisions."""
    nn: Any = 0
    nr: Any = 0.0
    rr: Any = 0.0

    @property
    def mean(self) -> Any:
        """The reward per decision."""
        return self.reward / np.maximum(self.decisions, 1)

    @property
    def variance(self) -> Any:
        """The variance of the mean, with users as units."""
        residual = self.rr - 2 * self.mean * self.nr + self.mean**2 * self.nn
        spread = np.maximum(residual, 0.0) * self.users / np.maximum(self.users - 1, 1)
        return spread / np.maximum(self.decisions, 1) ** 2

    @property
    def decision_variance(self) -> Any:
        """The variance of the reward of one decision."""
        return np.maximum(self.squares / np.maximum(self.decisions, 1) - self.mean**2, 0.0)


class Difference(NamedTuple):
    """The reward per decision of an arm above that of another, and where it lies at all times."""

    estimate: Any
    low: Any
    high: Any


def difference(one: ArmSums, other: ArmSums, alpha: float = 0.05) -> Difference:
    """Return the mean of one arm above that of another, with an interval that holds at all times.

    The interval is infinite while an arm has fewer than `LEAST_USERS`, or all rewards were equal.
    """
    estimate = one.mean - other.mean
    variance = one.variance + other.variance
    total = np.maximum(one.decisions + other.decisions, 1)
    noise = (one.decisions * one.decision_variance + other.decisions * other.decision_variance) / total
    known = (np.minimum(one.users, other.users) >= LEAST_USERS) & (variance > 0) & (noise > 0)
    information = np.where(known, noise / np.where(variance > 0, variance, 1.0), 1.0)
    scaled = information * mixture(alpha)  # t rho² of the paper
    width = np.sqrt(variance * (1 + 1 / scaled) * (np.log1p(scaled) - 2 * log(alpha)))
    width = np.where(known, width, np.inf)
    return Difference(estimate, estimate - width, estimate + width)


def mixture(alpha: float) -> float:
    """Return rho² of the paper, for which the interval is narrowest at `TIGHTEST`."""
    return (-2 * log(alpha) + log(1 - 2 * log(alpha))) / TIGHTEST


def sample_ratio(users: Sequence[int], shares: Sequence[float]) -> float:
    """Return the probability, at most, of ever seeing numbers of users as far from their shares as these."""
    total = sum(users)
    evidence = lgamma(PRIOR_USERS) - lgamma(PRIOR_USERS + total)
    for count, share in zip(users, shares, strict=True):
        evidence += lgamma(PRIOR_USERS * share + count) - lgamma(PRIOR_USERS * share) - count * log(share)
    return min(1.0, exp(-min(evidence, 700.0)))
