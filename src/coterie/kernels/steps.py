"""One decision, one update, many updates: the entry points of the step-by-step contract."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from coterie.kernels.choice import bonus, choose, means
from coterie.kernels.compiling import compiled, entry
from coterie.kernels.generic import View, learn, view
from coterie.kernels.ridge import dot, quadratic
from coterie.types import Floats, Ints

ROUNDING = 1e-13
"""What rounding may take from a difference of squares, relative to them."""


@compiled
def squares(items: Floats, picks: Ints, out: Floats) -> None:
    """‖x‖² of every pick, four at a time."""
    n = picks.shape[0]
    whole = n - n % 4
    for k in range(0, whole, 4):
        x0, x1, x2, x3 = items[picks[k]], items[picks[k + 1]], items[picks[k + 2]], items[picks[k + 3]]
        s0 = s1 = s2 = s3 = 0.0
        for i in range(items.shape[1]):
            s0 += x0[i] * x0[i]
            s1 += x1[i] * x1[i]
            s2 += x2[i] * x2[i]
            s3 += x3[i] * x3[i]
        out[k], out[k + 1], out[k + 2], out[k + 3] = s0, s1, s2, s3
    for k in range(whole, n):
        out[k] = dot(items[picks[k]], items[picks[k]])


@compiled
def largest_eigenvalue(matrix: Floats, sums: Floats, squared: Floats) -> float:
    """An upper bound of λ_max(A) for a symmetric A in O(d²): the lesser of two.

    The largest sum of absolute values in a row, and μ + s√(d − 1) with the mean μ and the standard
    deviation s of the eigenvalues, which follow from tr A and tr A² (Wolkowicz and Styan 1980).
    """
    d = matrix.shape[0]
    sums[:] = 0.0
    squared[:] = 0.0
    trace = 0.0
    for k in range(d):
        trace += matrix[k, k]
        for i in range(d):
            sums[i] += abs(matrix[k, i])
            squared[i] += matrix[k, i] * matrix[k, i]
    mean = trace / d
    spread = max(squared.sum() / d - mean * mean, 0.0) + ROUNDING * mean * mean
    return float(min(sums.max(), mean + sqrt(spread * (d - 1))))


@compiled
def bound_widths(seen: View, items: Floats, picks: Ints, bounds: Floats, work: Floats) -> None:
    """xᵀAx ≤ λ_max(A)·‖x‖²: an upper bound for arms never met before."""
    factor = largest_eigenvalue(seen.inverse, work, np.empty(work.shape[0]))
    squares(items, picks, bounds)
    for k in range(picks.shape[0]):
        bounds[k] *= factor


@compiled
def decide(state: Any, user: int, arms: Floats, largest: float) -> int:
    """The arm to play now; -1 if the bound of a width is not finite and less than the square of `largest`."""
    seen = view(state, user)
    n = arms.shape[0]
    picks, exact = np.arange(n), np.empty(n, np.int64)
    bounds, upper, work = np.empty(n), np.empty(n), np.empty(arms.shape[1])
    bound_widths(seen, arms, picks, bounds, work)
    for k in range(n):
        if not bounds[k] < largest * largest:
            return -1
    return choose(seen, arms, picks, bounds, upper, exact, work)


@compiled
def score(state: Any, user: int, arms: Floats, mean: Floats, width: Floats) -> None:
    """xᵀθ̂ and the bonus of every arm."""
    seen = view(state, user)
    means(seen.estimate, arms, np.arange(arms.shape[0]), mean)
    work = np.empty(arms.shape[1])
    for a in range(arms.shape[0]):
        width[a] = bonus(seen, max(quadratic(seen.inverse, arms[a], work), 0.0))


@compiled
def update(state: Any, user: int, x: Floats, reward: float, largest: float) -> bool:
    """Absorb one reward, unless a number is not finite or too large: then nothing changes."""
    for i in range(x.shape[0]):
        if not abs(x[i]) < largest:
            return False
    learn(state, user, x, reward)
    return True


@compiled
def update_many(state: Any, users: Ints, xs: Floats, rewards: Floats) -> None:
    """Absorb rewards one by one, in order."""
    for k in range(users.shape[0]):
        learn(state, users[k], xs[k], rewards[k])


class Steps(NamedTuple):
    """`decide` and `update` as compiled for one kind of state."""

    decide: Callable[[Any, int, Floats, float], int]
    update: Callable[[Any, int, Floats, float, float], bool]


_STEPS: dict[object, Steps] = {}


def steps_for(state: Any) -> Steps:
    """The two steps for states whose arrays and numbers have these types; compiled when first asked for."""
    kind = typeof(state)
    if kind not in _STEPS:
        arms = np.zeros((1, 1))
        _STEPS[kind] = Steps(
            decide=entry(decide, state, 0, arms, 0.0), update=entry(update, state, 0, arms[0], 0.0, 0.0)
        )
    return _STEPS[kind]
