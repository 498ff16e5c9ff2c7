"""AutoCLUB: who is alike is decided by evidence, with noise and prior estimated on the way.

Every now and then, at ever longer intervals, a user is reviewed: is its data better explained by its own
cluster without it, by another cluster, or by a preference of its own?
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

from coterie.kernels.compiling import compiled
from coterie.kernels.evidence import back_substitute, combine, eliminate, evidence, explained, refit
from coterie.kernels.generic import View, labels, learns, views
from coterie.kernels.ridge import Ridge, absorb, accumulate, dot, quadratic, where
from coterie.types import Floats, Ints

FIRST_REVIEW = 4
"""Pulls after which a user is first reviewed."""
PATIENCE = 1.1
"""Each review comes after this many times the pulls of the one before."""
SCREENED = 8
"""At most this many clusters are weighed in a review: those that fit best."""
STALE = 0.1
"""A row is rebuilt when ln λ has moved by more than this since it was built."""
NEGLIGIBLE = 1e-3
"""Alternatives of less relative weight are left out of a mixture."""

NOISE2, WEIGHT, SQUARES, RESIDUAL, FREEDOM, LENGTH2, COUNTED = range(7)
"""σ̂², λ, Σr², and sums over reviewed users: residuals, effective parameters, ‖θ̂‖², pulls."""


class Evidence(NamedTuple):
    """Statistics of users and clusters with the λ and ln|λI + S| of each row.

    A user's estimate is its `share` of its cluster's plus its `mixture`; `doubt` is the weight of a
    preference of its own while it is in a cluster. `terms` is each user's last contribution to the sums
    in `scalars`, `due` the pulls at which it is next reviewed.
    clock = (rounds, clusters)
    """

    users: Ridge
    grams: Floats
    logdets: Floats
    weights: Floats
    squares: Floats
    pools: Ridge
    pool_grams: Floats
    pool_logdets: Floats
    pool_weights: Floats
    sizes: Ints
    labels: Ints
    shares: Floats
    doubts: Floats
    mixtures: Floats
    terms: Floats
    due: Ints
    scalars: Floats
    epochs: Ints
    clock: Ints
    ridge: float


@compiled
def gather(state: Evidence, row: int) -> None:
    """A cluster's statistics as the sum of its members'."""
    state.pool_grams[row] = 0.0
    state.pools.moment[row] = 0.0
    state.pools.pulls[row] = 0
    for user in where(state.labels, row):
        state.pool_grams[row] += state.grams[user]
        state.pools.moment[row] += state.users.moment[user]
        state.pools.pulls[row] += state.users.pulls[user]
    weight = state.scalars[WEIGHT]
    refit(state.pools, row, state.pool_grams[row], state.pool_logdets, state.pool_weights, weight)
    state.epochs[row] += 1


@compiled
def estimate_noise(state: Evidence, user: int) -> None:
    """σ̂² = Σ RSS / Σ (T − effective parameters), and λ = σ̂² · effective parameters / ‖θ̂‖²."""
    d, weight, s = state.mixtures.shape[1], state.weights[user], state.scalars
    trace = 0.0
    for i in range(d):
        trace += state.users.inverse[user, i, i]
    theta = state.users.estimate[user]
    length2 = dot(theta, theta)
    new = np.array(
        [
            max(state.squares[user] - explained(state.users, user) - weight * length2, 0.0),
            d - weight * trace,
            length2,
            float(state.users.pulls[user]),
        ]
    )
    for k in range(4):
        s[RESIDUAL + k] += new[k] - state.terms[user, k]
        state.terms[user, k] = new[k]
    s[NOISE2] = max(s[RESIDUAL] / max(s[COUNTED] - s[FREEDOM], 1e-9), 1e-12)
    prior = s[LENGTH2] + d * s[NOISE2] / state.ridge
    s[WEIGHT] = min(max(s[NOISE2] * (s[FREEDOM] + d) / prior, state.ridge), 1e6 * state.ridge)


@compiled
def candidates(state: Evidence, user: int) -> Ints:
    """The clusters whose preference leaves the least residual on the user's data, its own first."""
    own = state.labels[user]
    fits = np.empty(state.sizes.shape[0])
    rows = np.empty(state.sizes.shape[0], np.int64)
    work = np.empty(state.mixtures.shape[1])
    count = 0
    for row in range(state.sizes.shape[0]):
        if state.sizes[row] == 0 or (row == own and state.sizes[row] == 1):
            continue
        theta = state.pools.estimate[row]
        fit = quadratic(state.grams[user], theta, work) - 2.0 * dot(theta, state.users.moment[user])
        fits[count] = -np.inf if row == own else fit
        rows[count] = row
        count += 1
    return rows[np.argsort(fits[:count], kind="mergesort")][:SCREENED]


@compiled
def weigh(state: Evidence, user: int, row: int, matrix: Floats, fit: Floats) -> float:
    """ln of how much better a cluster with the user explains both than the cluster without it.

    `fit` is left holding the preference of the cluster with the user.
    """
    d, noise2 = fit.shape[0], state.scalars[NOISE2]
    weight = state.pool_weights[row]
    inside = evidence(d, weight, state.pool_logdets[row], explained(state.pools, row), noise2)
    sign = -1.0 if state.labels[user] == row else 1.0
    combine(state.pool_grams[row], state.grams[user], sign, weight, matrix)
    moment = state.pools.moment[row] + sign * state.users.moment[user]
    logdet, gained = eliminate(matrix, moment)
    other = evidence(d, weight, logdet, gained, noise2)
    if sign < 0.0:
        fit[:] = state.pools.estimate[row]
        return inside - other
    back_substitute(matrix, moment, fit)
    return other - inside


@compiled
def alone(state: Evidence, user: int) -> float:
    """E(Sᵢ, bᵢ): the evidence for a preference of the user's own."""
    return evidence(
        state.mixtures.shape[1],
        state.weights[user],
        state.logdets[user],
        explained(state.users, user),
        state.scalars[NOISE2],
    )


@compiled
def mix(state: Evidence, user: int, rows: Ints, gains: Floats, fits: Floats, own: float, chosen: int) -> None:
    """The user's estimate as the mixture of all alternatives by their posterior weight."""
    top = own
    for k in range(rows.shape[0]):
        top = max(top, gains[k])
    total = exp(own - top)
    for k in range(rows.shape[0]):
        total += exp(gains[k] - top)
    mixture = state.mixtures[user]
    mixture[:] = 0.0
    state.shares[user] = exp(own - top) / total if chosen < 0 else 0.0
    state.doubts[user] = 0.0 if chosen < 0 else exp(own - top) / total
    if chosen >= 0 and exp(own - top) > NEGLIGIBLE * total:
        mixture += exp(own - top) / total * state.users.estimate[user]
    for k in range(rows.shape[0]):
        share = exp(gains[k] - top) / total
        if rows[k] == chosen:
            state.shares[user] = share
        elif share > NEGLIGIBLE:
            mixture += share * fits[k]


@compiled
def move(state: Evidence, user: int, target: int) -> int:
    """Take the user out of its cluster and into another, or a new one if target is -1; returns its row."""
    source = state.labels[user]
    if target < 0:
        if state.sizes[source] == 1:
            return int(source)
        target = 0
        while state.sizes[target] > 0:
            target += 1
        state.clock[1] += 1
    if target == source:
        return int(target)
    state.labels[user] = target
    state.sizes[source] -= 1
    state.sizes[target] += 1
    if state.sizes[source] > 0:
        gather(state, source)
    else:
        state.clock[1] -= 1
    gather(state, target)
    return target


@compiled
def merge(state: Evidence, row: int, other: int, matrix: Floats) -> None:
    """Join two clusters if one preference explains both better than two."""
    d, noise2, weight = matrix.shape[0], state.scalars[NOISE2], state.pool_weights[row]
    apart = evidence(d, weight, state.pool_logdets[row], explained(state.pools, row), noise2) + evidence(
        d, state.pool_weights[other], state.pool_logdets[other], explained(state.pools, other), noise2
    )
    combine(state.pool_grams[row], state.pool_grams[other], 1.0, weight, matrix)
    logdet, gained = eliminate(matrix, state.pools.moment[row] + state.pools.moment[other])
    if evidence(d, weight, logdet, gained, noise2) > apart:
        for user in where(state.labels, other):
            state.labels[user] = row
        state.sizes[row] += state.sizes[other]
        state.sizes[other] = 0
        state.clock[1] -= 1
        gather(state, row)


@compiled
def review(state: Evidence, user: int) -> None:
    """Put the user where the evidence is greatest, and merge its cluster if that helps."""
    d = state.mixtures.shape[1]
    state.due[user] = max(state.users.pulls[user] + 1, int(PATIENCE * state.users.pulls[user]))
    estimate_noise(state, user)
    weight = state.scalars[WEIGHT]
    if abs(log(state.weights[user] / weight)) > STALE:
        refit(state.users, user, state.grams[user], state.logdets, state.weights, weight)
    rows = candidates(state, user)
    own, gains, fits = alone(state, user), np.empty(rows.shape[0]), np.empty((rows.shape[0], d))
    matrix = np.empty((d, d))
    chosen, best, second, runner_up = -1, own, -1, -np.inf
    for k in range(rows.shape[0]):
        row = rows[k]
        if abs(log(state.pool_weights[row] / weight)) > STALE:
            gather(state, row)
        gains[k] = weigh(state, user, row, matrix, fits[k])
        if gains[k] > best:
            best, chosen = gains[k], row
    for k in range(rows.shape[0]):
        if rows[k] != chosen and rows[k] != state.labels[user] and gains[k] > runner_up:
            second, runner_up = rows[k], gains[k]
    mix(state, user, rows, gains, fits, own, chosen)
    row = move(state, user, chosen)
    if second >= 0 and second != row and state.sizes[row] > 1 and state.sizes[second] > 0:
        merge(state, row, second, matrix)


@views(Evidence)
def view(state: Evidence, user: int) -> View:
    """The mixture as estimate, a width that doubts the cluster as the evidence does, and σ̂ as β."""
    row, doubt, beta = state.labels[user], state.doubts[user], sqrt(state.scalars[NOISE2])
    estimate = state.shares[user] * state.pools.estimate[row] + state.mixtures[user]
    if doubt < NEGLIGIBLE:
        return View(estimate, state.pools.inverse[row], beta, row)
    mixed = (1.0 - doubt) * state.pools.inverse[row] + doubt * state.users.inverse[user]
    return View(estimate, mixed, beta, -1)


@learns(Evidence)
def learn(state: Evidence, user: int, x: Floats, reward: float) -> None:
    """Update the user and its cluster, and review the user when it is due."""
    gain, row = np.empty(x.shape[0]), state.labels[user]
    state.logdets[user] += log(1.0 + absorb(state.users, user, x, reward, gain))
    accumulate(state.grams[user], x)
    state.squares[user] += reward * reward
    state.pool_logdets[row] += log(1.0 + absorb(state.pools, row, x, reward, gain))
    accumulate(state.pool_grams[row], x)
    state.clock[0] += 1
    state.scalars[SQUARES] += reward * reward
    if state.scalars[COUNTED] == 0.0:
        state.scalars[NOISE2] = max(state.scalars[SQUARES] / state.clock[0], 1e-12)
    if state.users.pulls[user] >= state.due[user]:
        review(state, user)


@labels(Evidence)
def label(state: Evidence, out: Ints) -> None:
    """The labels as they are kept."""
    out[:] = state.labels
