"""AutoCLUB: who is alike is decided by evidence, with noise and prior estimated on the way.

Every now and then, at ever longer intervals, a user is reviewed: is its data better explained by its own
cluster without it, by another cluster, or by a preference of its own?
"""

from __future__ import annotations

from math import lgamma, log, sqrt

import numpy as np

from coterie.kernels.alternatives import Desk, Evidence, crowds, explain, mix, novelty, regress, screen, weigh
from coterie.kernels.compiling import compiled
from coterie.kernels.evidence import centre, combine, eliminate, finish_inverse
from coterie.kernels.generic import View, labels, learns, views
from coterie.kernels.prior import (
    NOISE2,
    PULLS,
    REACH,
    SEEN,
    SQUARES,
    acting_weight,
    guess_noise,
    settle_prior,
)
from coterie.kernels.ridge import absorb, accumulate, apply, dot, where
from coterie.types import Floats, Ints

FIRST_REVIEW = 4
"""Pulls after which a user is first reviewed."""
SOON, LATER = 11, 13
"""The next review comes at this many tenths of the pulls: sooner after a change or in doubt."""
SURE = 0.99
"""A user is in doubt while the best alternative weighs less than this."""
STALE = 0.1
"""A cluster is rebuilt when ln λ has moved by more than this since it was built."""


@compiled
def solve(state: Evidence, row: int) -> None:
    """θ̂ = M(b + λμ): the ridge regression of a cluster about the mean preference."""
    moment = state.pools.moment[row] + state.weights[row] * state.prior.mean
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
    weight = acting_weight(state.prior, state.ridge)
    if weight < state.weights[row]:
        state.epochs[row] += 1
    state.weights[row] = weight
    combine(gram, gram, 0.0, state.weights[row], desk.upper)
    desk.reduced[:] = moment
    eliminate(desk.upper, desk.reduced)
    finish_inverse(desk.upper, desk.factor, state.pools.inverse[row])
    solve(state, row)


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
        if abs(log(state.weights[source] / acting_weight(state.prior, state.ridge))) > STALE:
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
    d, mean = state.moments.shape[1], state.prior.mean
    here, there = np.empty(d), np.empty(d)
    first, second = state.pool_grams[row], state.pool_grams[other]
    counts = crowds(state, -1)
    n, m = counts[row], counts[other]
    centre(first, state.pools.moment[row], mean, here)
    centre(second, state.pools.moment[other], mean, there)
    gain = lgamma(n + m) - lgamma(n) - lgamma(m) - novelty(state)
    gain -= explain(state, first, first, 0.0, here, desk)
    gain -= explain(state, second, second, 0.0, there, desk)
    gain += explain(state, first, second, 1.0, here + there, desk)
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
    desk = Desk(np.empty((d, d)), np.empty(d), np.empty((d, d)), np.empty((d, d)))
    centred, alone = np.empty(d), np.empty(d)
    own = regress(state, user, centred, desk, alone) + novelty(state)
    counts = crowds(state, user)
    rows = screen(state, user, counts)
    n = rows.shape[0]
    gains, fits = np.empty(n + 1), np.empty((n + 1, d))
    gains[n], fits[n] = own, alone
    chosen, second = n, -1
    for k in range(n):
        gains[k] = weigh(state, user, rows[k], centred, desk, fits[k]) + log(counts[rows[k]])
        if gains[k] > gains[chosen]:
            chosen = k
    for k in range(n):
        if k != chosen and rows[k] != before and (second < 0 or gains[k] > gains[second]):
            second = k
    mix(state, user, gains, fits, chosen)
    settle_prior(state.prior, state.ridge)
    row = move(state, user, int(rows[chosen]) if chosen < n else -1, desk)
    changed = row != before
    if second >= 0 and state.sizes[row] > 1:
        changed |= merge(state, row, rows[second], desk)
    pace = SOON if changed or state.shares[user] <= SURE else LATER
    state.due[user] = max(state.pulls[user] + 1, (pace * state.pulls[user] + 9) // 10)


@views(Evidence)
def view(state: Evidence, user: int) -> View:
    """The mixture as estimate, the width of the cluster, σ̂ as β; usual is d/N, a bound on the mean."""
    row = state.labels[user]
    estimate = state.shares[user] * state.pools.estimate[row] + state.mixtures[user]
    beta, pulls = sqrt(state.prior.numbers[NOISE2]), state.pools.pulls[row]
    usual = estimate.shape[0] / pulls if pulls > 0 else np.inf
    return View(estimate, state.pools.inverse[row], beta, row, state.weights[row], usual)


@learns(Evidence)
def learn(state: Evidence, user: int, x: Floats, reward: float) -> None:
    """Update the user and its cluster, and review the user when it is due."""
    row, numbers = state.labels[user], state.prior.numbers
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
    numbers[REACH] += dot(x, x)
    if state.prior.sums[PULLS] == 0.0:
        guess_noise(state.prior, state.clock[0])
    if state.pulls[user] >= state.due[user]:
        review(state, user)


@labels(Evidence)
def label(state: Evidence, out: Ints) -> None:
    """The labels as they are kept."""
    out[:] = state.labels
