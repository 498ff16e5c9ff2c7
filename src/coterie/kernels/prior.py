"""What all users together say: how noisy rewards are, how much preferences differ, and about which mean.

Everything here comes from the users' own regressions, never from pooled ones: those are biased, since
which arms are played depends on the pooled estimate itself.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

from coterie.kernels.compiling import compiled
from coterie.kernels.ridge import dot
from coterie.types import Floats

NOISE2, WEIGHT, SQUARES, REACH, SEEN, FITTED, LENGTH2 = range(7)
"""σ̂², λ, Σr², Σ‖x‖²; how many users have rewards, how many a regression, and Σ‖vᵢ‖² over the latter."""

PULLS, RESIDUAL, FREEDOM, PENALTY, INFORMATION, LEVEL, SAY = range(7)
"""Sums over users: T, RSS, tr H, λ‖δ‖², tr H², tr H² ln λ and κ = tr H²/tr H, with H = S(λI + S)⁻¹."""

PSEUDO = 0.2
"""The ridge counts towards λ like this many users of whom everything is known."""
STRIDE = 0.5
"""ln λ moves by no more than this at a time."""
TINY = 1e-12
"""For rounding: σ̂² is no less than this part of the mean of r², λ than this part of Σ‖x‖², and a user counts
for no less than this in μ."""
LEAST = 1e-100
"""σ̂² of rewards that are all zero."""


class Prior(NamedTuple):
    """Estimates, the sums they come from, and each user's last contribution to the sums.

    `votes` are vᵢ = δᵢ + κᵢμ, what a user says of the mean preference, and `total` their sum.
    """

    numbers: Floats
    sums: Floats
    mean: Floats
    total: Floats
    terms: Floats
    votes: Floats


@compiled
def acting_weight(prior: Prior, ridge: float) -> float:
    """Λ: the λ that clusters act with, at least the ridge."""
    return max(ridge, float(prior.numbers[WEIGHT]))


@compiled
def replace_terms(prior: Prior, user: int, terms: Floats, vote: Floats) -> None:
    """Put a user's new contribution in the place of its last one."""
    numbers = prior.numbers
    if prior.terms[user, PULLS] == 0.0:
        numbers[FITTED] += 1.0
    for k in range(terms.shape[0]):
        prior.sums[k] += terms[k] - prior.terms[user, k]
        prior.terms[user, k] = terms[k]
    numbers[LENGTH2] += dot(vote, vote) - dot(prior.votes[user], prior.votes[user])
    for i in range(vote.shape[0]):
        prior.total[i] += vote[i] - prior.votes[user, i]
        prior.votes[user, i] = vote[i]


@compiled
def guess_noise(prior: Prior, rounds: int) -> None:
    """σ̂² before the first regression: the mean square of rewards."""
    prior.numbers[NOISE2] = max(prior.numbers[SQUARES] / rounds, LEAST)


@compiled
def settle_noise(prior: Prior, rounds: int) -> None:
    """σ̂² = Σ RSS / Σ(T − tr H): residuals per degree of freedom left."""
    left = prior.sums[PULLS] - prior.sums[FREEDOM]
    floor = max(TINY * prior.numbers[SQUARES] / rounds, LEAST)
    prior.numbers[NOISE2] = max(prior.sums[RESIDUAL] / max(left, TINY), floor)


@compiled
def settle_prior(prior: Prior, ridge: float) -> None:
    """One step of Fisher scoring for ln λ on the marginal likelihood, and the James–Stein mean of users.

    A user counts in the mean as far as it is known, by κᵢ: μ = (1 − Σ‖vᵢ‖²/‖Σvᵢ‖²)₊ Σvᵢ/Σκᵢ.

    The likelihood's slope in ln λ is ½(tr H − λ‖δ‖²/σ̂²), its information ½ tr H²; each user's share was
    taken at the λ of its day, hence the sum of tr H² ln λ.
    """
    numbers, sums, d = prior.numbers, prior.sums, prior.mean.shape[0]
    known, before = PSEUDO * d, log(numbers[WEIGHT])
    slope = sums[FREEDOM] - sums[PENALTY] / numbers[NOISE2]
    wanted = (sums[LEVEL] + known * log(ridge) + slope) / (sums[INFORMATION] + known)
    step = min(max(wanted - before, -STRIDE), STRIDE)
    numbers[WEIGHT] = max(exp(before + step), TINY * numbers[REACH])
    length2 = dot(prior.total, prior.total)
    keep = max(0.0, 1.0 - numbers[LENGTH2] / length2) if length2 > 0.0 else 0.0
    count = max(sums[SAY], TINY * numbers[FITTED])
    for i in range(d):
        prior.mean[i] = keep * prior.total[i] / count
