"""One decision, one update, many updates: the entry points of the step-by-step contract."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from coterie.kernels.choice import choose, means
from coterie.kernels.compiling import compiled
from coterie.kernels.generic import View, learn, view
from coterie.kernels.ridge import quadratic
from coterie.types import Floats, Ints


@compiled
def bound_widths(seen: View, arms: Floats, bounds: Floats) -> None:
    """xᵀAx ≤ ‖A‖·‖x‖² with the Frobenius norm of A: an upper bound for arms never met before."""
    total = 0.0
    for i in range(seen.inverse.shape[0]):
        for k in range(seen.inverse.shape[1]):
            total += seen.inverse[i, k] ** 2
    norm = sqrt(total)
    for a in range(arms.shape[0]):
        square = 0.0
        for i in range(arms.shape[1]):
            square += arms[a, i] ** 2
        bounds[a] = norm * square


@compiled
def decide(state: Any, user: int, arms: Floats) -> int:
    """The arm to play now; -1 if a score is not a finite number."""
    seen = view(state, user)
    n = arms.shape[0]
    picks, exact = np.arange(n), np.empty(n, np.int64)
    bounds, upper = np.empty(n), np.empty(n)
    bound_widths(seen, arms, bounds)
    if not np.isfinite(bounds.sum()):
        return -1
    return choose(seen, arms, picks, bounds, upper, exact, np.empty(arms.shape[1]))


@compiled
def score(state: Any, user: int, arms: Floats, mean: Floats, width: Floats) -> None:
    """xᵀθ̂ and β√(xᵀM̄⁻¹x) of every arm."""
    seen = view(state, user)
    means(seen.estimate, arms, np.arange(arms.shape[0]), mean)
    work = np.empty(arms.shape[1])
    for a in range(arms.shape[0]):
        width[a] = seen.beta * sqrt(max(quadratic(seen.inverse, arms[a], work), 0.0))


@compiled
def update(state: Any, user: int, x: Floats, reward: float) -> None:
    """Absorb one reward."""
    learn(state, user, x, reward)


@compiled
def update_many(state: Any, users: Ints, xs: Floats, rewards: Floats) -> None:
    """Absorb rewards one by one, in order."""
    for k in range(users.shape[0]):
        learn(state, users[k], xs[k], rewards[k])
