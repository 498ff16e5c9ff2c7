"""Where a user might belong: what each alternative explains, how likely it is, and what to do meanwhile."""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np

from coterie.kernels.compiling import compiled
from coterie.kernels.evidence import back_substitute, centre, combine, eliminate, evidence, finish_inverse
from coterie.kernels.prior import FREEDOM, NOISE2, SEEN, TINY, WEIGHT, Prior, replace_terms, settle_noise
from coterie.kernels.ridge import Ridge, dot, quadratic
from coterie.types import Floats, Ints

OTHERS = 2
"""At most this many clusters besides its own are weighed in a review."""
NEW = 1.0 / 3.0
"""A preference never seen before is this many times as likely beforehand as one of those seen."""


class Evidence(NamedTuple):
    """Statistics of users and of clusters, and what they have in common.

    A user acts on its `share` of its cluster's estimate plus its `mixture` of the alternatives. `due` is
    the pulls at which it is next reviewed, `weights` the λ that each cluster's row was built with.
    clock = (rounds, clusters)
    """

    grams: Floats
    moments: Floats
    squares: Floats
    pulls: Ints
    labels: Ints
    shares: Floats
    mixtures: Floats
    due: Ints
    pools: Ridge
    pool_grams: Floats
    weights: Floats
    sizes: Ints
    prior: Prior
    epochs: Ints
    clock: Ints
    ridge: float


class Desk(NamedTuple):
    """Room for a review: a matrix and its right-hand side to eliminate, its factor's inverse and its own."""

    upper: Floats
    reduced: Floats
    factor: Floats
    inverse: Floats


@compiled
def explain(
    state: Evidence, first: Floats, second: Floats, sign: float, centred: Floats, desk: Desk
) -> float:
    """E(S₁ ± S₂, c)."""
    weight, noise2 = state.prior.numbers[WEIGHT], state.prior.numbers[NOISE2]
    desk.reduced[:] = centred
    combine(first, second, sign, weight, desk.upper)
    logdet, explained = eliminate(desk.upper, desk.reduced)
    return evidence(centred.shape[0], weight, logdet, explained, noise2)


@compiled
def regress(state: Evidence, user: int, centred: Floats, desk: Desk, fit: Floats) -> float:
    """A user's own regression: tells the common estimates of it, and returns its evidence."""
    prior, d = state.prior, centred.shape[0]
    weight, mean, moment = prior.numbers[WEIGHT], prior.mean, state.moments[user]
    centre(state.grams[user], moment, mean, centred)
    desk.reduced[:] = centred
    combine(state.grams[user], state.grams[user], 0.0, weight, desk.upper)
    logdet, explained = eliminate(desk.upper, desk.reduced)
    back_substitute(desk.upper, desk.reduced, fit)
    finish_inverse(desk.upper, desk.factor, desk.inverse)
    trace, square = 0.0, 0.0
    for k in range(d):
        trace += desk.inverse[k, k]
        for i in range(d):
            square += desk.inverse[k, i] * desk.inverse[k, i]
    penalty = weight * dot(fit, fit)
    around = state.squares[user] - dot(mean, moment) - dot(mean, centred)
    freedom = d - weight * trace
    information = d - 2.0 * weight * trace + weight * weight * square
    say = min(max(information / freedom, 0.0), 1.0) if freedom > TINY else 0.0
    terms = np.array(
        [
            float(state.pulls[user]),
            max(around - explained - penalty, 0.0),
            freedom,
            penalty,
            information,
            information * log(weight),
            say,
        ]
    )
    replace_terms(prior, user, terms, fit + say * mean)
    fit += mean
    settle_noise(prior, state.clock[0])
    return evidence(d, weight, logdet, explained, prior.numbers[NOISE2])


@compiled
def crowds(state: Evidence, but: int) -> Floats:
    """The members of each cluster but one user, each counted as far as it is known: (1 + tr H) / (1 + d)."""
    totals, d = np.zeros(state.sizes.shape[0]), state.moments.shape[1]
    for user in range(state.labels.shape[0]):
        if user != but:
            totals[state.labels[user]] += (1.0 + state.prior.terms[user, FREEDOM]) / (1.0 + d)
    return totals


@compiled
def novelty(state: Evidence) -> float:
    """ln α of the Chinese restaurant: a share of all users seen, counted as far as they are known."""
    known = (state.prior.numbers[SEEN] + state.prior.sums[FREEDOM]) / (1.0 + state.moments.shape[1])
    return log(NEW * known)


@compiled
def screen(state: Evidence, user: int, counts: Floats) -> Ints:
    """The clusters to weigh: the user's own if others are in it, and those likeliest if θ̂ were the truth."""
    own, noise2 = state.labels[user], state.prior.numbers[NOISE2]
    rows, losses = np.full(OTHERS + 1, -1, np.int64), np.full(OTHERS + 1, np.inf)
    work = np.empty(state.moments.shape[1])
    for row in range(state.sizes.shape[0]):
        if state.sizes[row] == 0 or row == own:
            continue
        theta = state.pools.estimate[row]
        residual = quadratic(state.grams[user], theta, work) - 2.0 * dot(theta, state.moments[user])
        loss = 0.5 * residual / noise2 - log(counts[row])
        k = OTHERS
        while k > 0 and loss < losses[k]:
            if k < OTHERS:
                losses[k + 1], rows[k + 1] = losses[k], rows[k]
            losses[k], rows[k] = loss, row
            k -= 1
    if state.sizes[own] > 1:
        rows[0] = own
    return rows[rows >= 0]


@compiled
def weigh(state: Evidence, user: int, row: int, centred: Floats, desk: Desk, fit: Floats) -> float:
    """E(h ∪ i) − E(h): how much better a cluster explains the user than nothing does.

    `fit` is left holding the preference of the cluster with the user, μ + (λI + S)⁻¹c.
    """
    gram, around = state.pool_grams[row], np.empty(fit.shape[0])
    centre(gram, state.pools.moment[row], state.prior.mean, around)
    if state.labels[user] == row:
        without = explain(state, gram, state.grams[user], -1.0, around - centred, desk)
        together = explain(state, gram, gram, 0.0, around, desk)
    else:
        without = explain(state, gram, gram, 0.0, around, desk)
        together = explain(state, gram, state.grams[user], 1.0, around + centred, desk)
    back_substitute(desk.upper, desk.reduced, fit)
    fit += state.prior.mean
    return together - without


@compiled
def mix(state: Evidence, user: int, gains: Floats, fits: Floats, chosen: int) -> None:
    """The user's estimate as the mixture of all alternatives by their posterior weight."""
    total = 0.0
    for k in range(gains.shape[0]):
        total += exp(gains[k] - gains[chosen])
    state.shares[user] = 1.0 / total
    state.mixtures[user] = 0.0
    for k in range(gains.shape[0]):
        share = exp(gains[k] - gains[chosen]) / total
        if k != chosen:
            state.mixtures[user] += share * fits[k]
