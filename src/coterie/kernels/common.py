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

NOISE2, WEIGHT, SQUARES, SEEN, FITTED, LENGTH2 = range(6)
"""σ̂², λ, Σr², and how many users have rewards, how many a regression, and Σ‖θ̂ᵢ‖² over the latter."""

PULLS, RESIDUAL, FREEDOM, PENALTY, INFORMATION, LEVEL = range(6)
"""Sums over users: T, RSS, effective parameters tr H, λ‖δ‖², tr H² and tr H² ln λ, with H = S(λI + S)⁻¹."""

PSEUDO = 0.2
"""The ridge counts towards λ like this many users of whom everything is known."""
STRIDE = 0.5
"""ln λ moves by no more than this at a time."""
TINY = 1e-12
"""σ̂² is no less than this part of the mean square of rewards."""
LEAST = 1e-100
"""σ̂² of rewards that are all zero."""


class Common(NamedTuple):
    """Estimates, the sums they come from, and each user's last contribution to the sums."""

    numbers: Floats
    sums: Floats
    mean: Floats
    total: Floats
    terms: Floats
    fits: Floats


@compiled
def replace_terms(common: Common, user: int, terms: Floats, fit: Floats) -> None:
    """Put a user's new contribution in the place of its last one."""
    numbers = common.numbers
    if common.terms[user, PULLS] == 0.0:
        numbers[FITTED] += 1.0
    for k in range(terms.shape[0]):
        common.sums[k] += terms[k] - common.terms[user, k]
        common.terms[user, k] = terms[k]
    numbers[LENGTH2] += dot(fit, fit) - dot(common.fits[user], common.fits[user])
    for i in range(fit.shape[0]):
        common.total[i] += fit[i] - common.fits[user, i]
        common.fits[user, i] = fit[i]


@compiled
def guess_noise(common: Common, rounds: int) -> None:
    """σ̂² before the first regression: the mean square of rewards."""
    common.numbers[NOISE2] = max(common.numbers[SQUARES] / rounds, LEAST)


@compiled
def settle_noise(common: Common, rounds: int) -> None:
    """σ̂² = Σ RSS / Σ(T − tr H): residuals per degree of freedom left."""
    left = common.sums[PULLS] - common.sums[FREEDOM]
    floor = max(TINY * common.numbers[SQUARES] / rounds, LEAST)
    common.numbers[NOISE2] = max(common.sums[RESIDUAL] / max(left, TINY), floor)


@compiled
def settle_prior(common: Common, ridge: float) -> None:
    """One step of Fisher scoring for ln λ on the marginal likelihood, and the James–Stein mean of users.

    The likelihood's slope in ln λ is ½(tr H − λ‖δ‖²/σ̂²), its information ½ tr H²; each user's share was
    taken at the λ of its day, hence the sum of tr H² ln λ.
    """
    numbers, sums, d = common.numbers, common.sums, common.mean.shape[0]
    known, before = PSEUDO * d, log(numbers[WEIGHT])
    slope = sums[FREEDOM] - sums[PENALTY] / numbers[NOISE2]
    wanted = (sums[LEVEL] + known * log(ridge) + slope) / (sums[INFORMATION] + known)
    numbers[WEIGHT] = exp(min(max(wanted, before - STRIDE), before + STRIDE))
    length2 = dot(common.total, common.total)
    keep = max(0.0, 1.0 - numbers[LENGTH2] / length2) if length2 > 0.0 else 0.0
    for i in range(d):
        common.mean[i] = keep * common.total[i] / numbers[FITTED]
