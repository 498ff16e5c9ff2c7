"""AutoCLUB: who is alike is decided by evidence, with noise and prior estimated on the way.

Every now and then, at ever longer intervals, a user is reviewed: is its data better explained by its own
cluster without it, by another cluster, or by a preference of its own?
"""

from __future__ import annotations

from math import exp, lgamma, log, sqrt
from typing import NamedTuple

import numpy as np

from coterie.kernels.common import (
    FREEDOM,
    NOISE2,
    PULLS,
    SEEN,
    SQUARES,
    WEIGHT,
    Common,
    guess_noise,
    replace_terms,
    settle_noise,
    settle_prior,
)
from coterie.kernels.compiling import compiled
from coterie.kernels.evidence import back_substitute, centre, combine, eliminate, evidence, finish_inverse
from coterie.kernels.generic import View, labels, learns, views
from coterie.kernels.ridge import Ridge, absorb, accumulate, apply, dot, quadratic, where
from coterie.types import Floats, Ints

FIRST_REVIEW = 4
"""Pulls after which a user is first reviewed."""
SOON, LATER = 11, 13
"""The next review comes at this many tenths of the pulls: sooner after a change or in doubt."""
SURE = 0.99
"""A user is in doubt while the best alternative weighs less than this."""
OTHERS = 2
"""At most this many clusters besides its own are weighed in a review: those that fit best."""
NEW = 1.0 / 3.0
"""A preference never seen before is this many times as likely beforehand as one of those seen."""
STALE = 0.1
"""A cluster is rebuilt when ln λ has moved by more than this since it was built."""


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
    common: Common
    epochs: Ints
    clock: Ints
    ridge: float


class Desk(NamedTuple):
    """Room for a review: a matrix to eliminate, the inverse of its factor, and its inverse."""

    upper: Floats
    factor: Floats
    inverse: Floats


@compiled
def solve(state: Evidence, row: int) -> None:
    """θ̂ = M(b + λμ): the ridge regression of a cluster about the mean preference."""
    moment = state.pools.moment[row] + state.weights[row] * state.common.mean
    apply(state.pools.inverse[row], moment, state.pools.estimate[row])


@compiled
def rebuild(state: Evidence, row: int, desk: Desk) -> None:
    """A cluster's row as the sum of its members, with today's λ but at least the ridge.

    Widths remembered of a row whose data and λ have only grown still bound those of today.
    """
    gram, moment = state.pool_grams[row], state.pools.moment[row]
    gram[:] = 0.0
    moment[:] = 0.0
    state.pools.pulls[row] = 0
    for user in where(state.labels, row):
        gram += state.grams[user]
        moment += state.moments[user]
        state.pools.pulls[row] += state.pulls[user]
    weight = max(state.ridge, state.common.numbers[WEIGHT])
    if weight < state.weights[row]:
        state.epochs[row] += 1
    state.weights[row] = weight
    combine(gram, gram, 0.0, state.weights[row], desk.upper)
    eliminate(desk.upper, moment.copy())
    finish_inverse(desk.upper, desk.factor, state.pools.inverse[row])
    solve(state, row)


@compiled
def explain(
    state: Evidence, first: Floats, second: Floats, sign: float, centred: Floats, desk: Desk, fit: Floats
) -> float:
    """E(S₁ ± S₂, c), and in `fit` the preference μ + (λI + S₁ ± S₂)⁻¹c."""
    weight, noise2 = state.common.numbers[WEIGHT], state.common.numbers[NOISE2]
    reduced = centred.copy()
    combine(first, second, sign, weight, desk.upper)
    logdet, explained = eliminate(desk.upper, reduced)
    back_substitute(desk.upper, reduced, fit)
    fit += state.common.mean
    return evidence(centred.shape[0], weight, logdet, explained, noise2)


@compiled
def regress(state: Evidence, user: int, centred: Floats, desk: Desk, fit: Floats) -> float:
    """A user's own regression: tells the common estimates of it, and returns its evidence."""
    common, d = state.common, centred.shape[0]
    weight, mean, moment = common.numbers[WEIGHT], common.mean, state.moments[user]
    centre(state.grams[user], moment, mean, centred)
    reduced = centred.copy()
    combine(state.grams[user], state.grams[user], 0.0, weight, desk.upper)
    logdet, explained = eliminate(desk.upper, reduced)
    back_substitute(desk.upper, reduced, fit)
    finish_inverse(desk.upper, desk.factor, desk.inverse)
    trace, square = 0.0, 0.0
    for k in range(d):
        trace += desk.inverse[k, k]
        for i in range(d):
            square += desk.inverse[k, i] * desk.inverse[k, i]
    penalty = weight * dot(fit, fit)
    around = state.squares[user] - dot(mean, moment) - dot(mean, centred)
    information = d - 2.0 * weight * trace + weight * weight * square
    terms = np.array(
        [
            float(state.pulls[user]),
            max(around - explained - penalty, 0.0),
            d - weight * trace,
            penalty,
            information,
            information * log(weight),
        ]
    )
    fit += mean
    replace_terms(common, user, terms, fit)
    settle_noise(common, state.clock[0])
    return evidence(d, weight, logdet, explained, common.numbers[NOISE2])


@compiled
def crowd(state: Evidence, row: int, but: int) -> float:
    """The members of a cluster but one, each counted as far as it is known: (1 + tr H) / (1 + d)."""
    total, d = 0.0, state.moments.shape[1]
    for user in range(state.labels.shape[0]):
        if state.labels[user] == row and user != but:
            total += (1.0 + state.common.terms[user, FREEDOM]) / (1.0 + d)
    return total


@compiled
def novelty(state: Evidence) -> float:
    """ln α of the Chinese restaurant: a share of all users seen, counted as far as they are known."""
    known = (state.common.numbers[SEEN] + state.common.sums[FREEDOM]) / (1.0 + state.moments.shape[1])
    return log(NEW * known)


@compiled
def screen(state: Evidence, user: int) -> Ints:
    """The clusters to weigh: the user's own if others are in it, and those that leave the least residual."""
    own = state.labels[user]
    rows, fits = np.full(OTHERS + 1, -1, np.int64), np.full(OTHERS + 1, np.inf)
    work = np.empty(state.moments.shape[1])
    for row in range(state.sizes.shape[0]):
        if state.sizes[row] == 0 or row == own:
            continue
        theta = state.pools.estimate[row]
        fit = quadratic(state.grams[user], theta, work) - 2.0 * dot(theta, state.moments[user])
        k = OTHERS
        while k > 0 and fit < fits[k]:
            if k < OTHERS:
                fits[k + 1], rows[k + 1] = fits[k], rows[k]
            fits[k], rows[k] = fit, row
            k -= 1
    if state.sizes[own] > 1:
        rows[0] = own
    return rows[rows >= 0]


@compiled
def weigh(state: Evidence, user: int, row: int, centred: Floats, desk: Desk, fit: Floats) -> float:
    """ln of the odds of a cluster: how much better it explains the user too, times who is in it already.

    `fit` is left holding the preference of the cluster with the user.
    """
    gram, around = state.pool_grams[row], np.empty(fit.shape[0])
    prior = log(crowd(state, row, user))
    centre(gram, state.pools.moment[row], state.common.mean, around)
    if state.labels[user] == row:
        without = explain(state, gram, state.grams[user], -1.0, around - centred, desk, fit)
        return explain(state, gram, gram, 0.0, around, desk, fit) - without + prior
    without = explain(state, gram, gram, 0.0, around, desk, fit)
    return explain(state, gram, state.grams[user], 1.0, around + centred, desk, fit) - without + prior


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


@compiled
def move(state: Evidence, user: int, target: int, desk: Desk) -> int:
    """Take the user out of its cluster and into another, or a new one if target is -1; returns its row."""
    source = state.labels[user]
    if target < 0:
        if state.sizes[source] == 1:
            target = source
        else:
            target = int(np.argmin(state.sizes))
            state.epochs[target] += 1
            state.clock[1] += 1
    if target == source:
        wanted = max(state.ridge, state.common.numbers[WEIGHT])
        if abs(log(state.weights[source] / wanted)) > STALE:
            rebuild(state, source, desk)
        return int(source)
    state.labels[user] = target
    state.sizes[source] -= 1
    state.sizes[target] += 1
    if state.sizes[source] > 0:
        state.epochs[source] += 1
        rebuild(state, source, desk)
    else:
        state.clock[1] -= 1
    rebuild(state, target, desk)
    return target


@compiled
def merge(state: Evidence, row: int, other: int, desk: Desk) -> bool:
    """Join two clusters if one preference explains both better than two."""
    d, mean = state.moments.shape[1], state.common.mean
    fit, here, there = np.empty(d), np.empty(d), np.empty(d)
    first, second = state.pool_grams[row], state.pool_grams[other]
    n, m = crowd(state, row, -1), crowd(state, other, -1)
    centre(first, state.pools.moment[row], mean, here)
    centre(second, state.pools.moment[other], mean, there)
    gain = lgamma(n + m) - lgamma(n) - lgamma(m) - novelty(state)
    gain -= explain(state, first, first, 0.0, here, desk, fit)
    gain -= explain(state, second, second, 0.0, there, desk, fit)
    gain += explain(state, first, second, 1.0, here + there, desk, fit)
    if gain <= 0.0:
        return False
    for user in where(state.labels, other):
        state.labels[user] = row
    state.sizes[row] += state.sizes[other]
    state.sizes[other] = 0
    state.clock[1] -= 1
    rebuild(state, row, desk)
    return True


@compiled
def review(state: Evidence, user: int) -> None:
    """Put the user where the evidence is greatest, and merge its cluster if that helps."""
    d, before = state.moments.shape[1], state.labels[user]
    desk = Desk(np.empty((d, d)), np.empty((d, d)), np.empty((d, d)))
    rows = screen(state, user)
    n = rows.shape[0]
    centred, gains, fits = np.empty(d), np.empty(n + 1), np.empty((n + 1, d))
    gains[n] = regress(state, user, centred, desk, fits[n])
    gains[n] += novelty(state)
    chosen, second = n, -1
    for k in range(n):
        gains[k] = weigh(state, user, rows[k], centred, desk, fits[k])
        if gains[k] > gains[chosen]:
            chosen = k
    for k in range(n):
        if k != chosen and rows[k] != before and (second < 0 or gains[k] > gains[second]):
            second = k
    mix(state, user, gains, fits, chosen)
    settle_prior(state.common, state.ridge)
    row = move(state, user, int(rows[chosen]) if chosen < n else -1, desk)
    changed = row != before
    if second >= 0 and state.sizes[row] > 1:
        changed |= merge(state, row, rows[second], desk)
    pace = SOON if changed or state.shares[user] <= SURE else LATER
    state.due[user] = max(state.pulls[user] + 1, (pace * state.pulls[user] + 9) // 10)


@views(Evidence)
def view(state: Evidence, user: int) -> View:
    """The mixture as estimate, the width of the cluster, and σ̂ as β."""
    row = state.labels[user]
    estimate = state.shares[user] * state.pools.estimate[row] + state.mixtures[user]
    return View(estimate, state.pools.inverse[row], sqrt(state.common.numbers[NOISE2]), row)


@learns(Evidence)
def learn(state: Evidence, user: int, x: Floats, reward: float) -> None:
    """Update the user and its cluster, and review the user when it is due."""
    row, numbers = state.labels[user], state.common.numbers
    if state.pulls[user] == 0:
        numbers[SEEN] += 1.0
    accumulate(state.grams[user], x)
    state.squares[user] += reward * reward
    state.pulls[user] += 1
    for i in range(x.shape[0]):
        state.moments[user, i] += reward * x[i]
    accumulate(state.pool_grams[row], x)
    absorb(state.pools, row, x, reward, np.empty(x.shape[0]))
    solve(state, row)
    state.clock[0] += 1
    numbers[SQUARES] += reward * reward
    if state.common.sums[PULLS] == 0.0:
        guess_noise(state.common, state.clock[0])
    if state.pulls[user] >= state.due[user]:
        review(state, user)


@labels(Evidence)
def label(state: Evidence, out: Ints) -> None:
    """The labels as they are kept."""
    out[:] = state.labels
