"""Ridge regression by rows: each row is one user's, or one cluster's, statistics.

Every sum is taken in one fixed order, so that a score does not depend on how it was come by.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.kernels.compiling import compiled
from coterie.types import Floats, Ints


class Ridge(NamedTuple):
    """(λI + S)⁻¹, b, θ̂ = (λI + S)⁻¹b and T for many rows (Alg. 1, line 11)."""

    inverse: Floats
    moment: Floats
    estimate: Floats
    pulls: Ints


@compiled
def dot(a: Floats, b: Floats) -> float:
    """aᵀb, summed from first to last."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@compiled
def distance2(a: Floats, b: Floats) -> float:
    """‖a − b‖², in four interleaved sums."""
    n = a.shape[0]
    whole = n - n % 4
    s0 = s1 = s2 = s3 = 0.0
    for i in range(0, whole, 4):
        d0, d1, d2, d3 = a[i] - b[i], a[i + 1] - b[i + 1], a[i + 2] - b[i + 2], a[i + 3] - b[i + 3]
        s0 += d0 * d0
        s1 += d1 * d1
        s2 += d2 * d2
        s3 += d3 * d3
    for i in range(whole, n):
        s0 += (a[i] - b[i]) ** 2
    return (s0 + s1) + (s2 + s3)


@compiled
def apply(matrix: Floats, x: Floats, out: Floats) -> None:
    """out = Ax for a symmetric A, four rows at a time."""
    d = x.shape[0]
    whole = d - d % 4
    out[:] = 0.0
    for k in range(0, whole, 4):
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        for i in range(d):
            out[i] += (matrix[k, i] * x0 + matrix[k + 1, i] * x1) + (
                matrix[k + 2, i] * x2 + matrix[k + 3, i] * x3
            )
    for k in range(whole, d):
        for i in range(d):
            out[i] += matrix[k, i] * x[k]


@compiled
def quadratic(matrix: Floats, x: Floats, work: Floats) -> float:
    """xᵀAx for a symmetric A."""
    apply(matrix, x, work)
    return dot(x, work)


@compiled
def absorb(ridge: Ridge, row: int, x: Floats, reward: float, gain: Floats) -> float:
    """Add (x, reward) to a row by Sherman–Morrison; `gain` is left holding A⁻¹x; returns xᵀA⁻¹x.

    A⁻¹ ← A⁻¹ − A⁻¹x xᵀA⁻¹ / (1 + xᵀA⁻¹x),   θ̂ ← θ̂ + A⁻¹x (r − xᵀθ̂) / (1 + xᵀA⁻¹x)
    """
    inverse, estimate, moment = ridge.inverse[row], ridge.estimate[row], ridge.moment[row]
    apply(inverse, x, gain)
    width2 = dot(x, gain)
    shrink = 1.0 / (1.0 + width2)
    step = (reward - dot(x, estimate)) * shrink
    for k in range(x.shape[0]):
        scale = gain[k] * shrink
        estimate[k] += step * gain[k]
        moment[k] += reward * x[k]
        for i in range(x.shape[0]):
            inverse[k, i] -= scale * gain[i]
    ridge.pulls[row] += 1
    return width2


@compiled
def accumulate(gram: Floats, x: Floats) -> None:
    """S ← S + xxᵀ   (Alg. 1, line 11)."""
    for k in range(x.shape[0]):
        scale = x[k]
        for i in range(x.shape[0]):
            gram[k, i] += scale * x[i]


@compiled
def invert(matrix: Floats) -> None:
    """Replace a symmetric positive definite matrix by its inverse: Gauss–Jordan, then its symmetric part."""
    d = matrix.shape[0]
    for k in range(d):
        pivot = 1.0 / matrix[k, k]
        matrix[k, k] = 1.0
        for i in range(d):
            matrix[k, i] *= pivot
        for j in range(d):
            if j != k:
                factor = matrix[j, k]
                matrix[j, k] = 0.0
                for i in range(d):
                    matrix[j, i] -= factor * matrix[k, i]
    for j in range(d):
        for i in range(j):
            mean = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = mean
            matrix[j, i] = mean


@compiled
def clear(ridge: Ridge, row: int, weight: float) -> None:
    """An empty row: S = 0, b = 0, θ̂ = 0, T = 0."""
    ridge.inverse[row] = 0.0
    for i in range(ridge.moment.shape[1]):
        ridge.inverse[row, i, i] = 1.0 / weight
    ridge.moment[row] = 0.0
    ridge.estimate[row] = 0.0
    ridge.pulls[row] = 0


@compiled
def pool(pools: Ridge, row: int, users: Ridge, grams: Floats, members: Ints, weight: float) -> None:
    """A row that holds the sum of its members: M̄ = λI + Σ Sᵢ, b = Σ bᵢ, T = Σ Tᵢ (Alg. 1, lines 7-8)."""
    matrix, moment = pools.inverse[row], pools.moment[row]
    matrix[:] = 0.0
    moment[:] = 0.0
    pulls = 0
    for user in members:
        matrix += grams[user]
        moment += users.moment[user]
        pulls += users.pulls[user]
    for i in range(moment.shape[0]):
        matrix[i, i] += weight
    invert(matrix)
    apply(matrix, moment, pools.estimate[row])
    pools.pulls[row] = pulls


@compiled
def copy_row(source: Ridge, origin: int, target: Ridge, row: int) -> None:
    """The target's row becomes a copy of the source's; nothing is shared."""
    target.inverse[row] = source.inverse[origin]
    target.moment[row] = source.moment[origin]
    target.estimate[row] = source.estimate[origin]
    target.pulls[row] = source.pulls[origin]


@compiled
def where(labels: Ints, label: int) -> Ints:
    """The users of a label, ascending."""
    found = np.empty(labels.shape[0], np.int64)
    n = 0
    for user in range(labels.shape[0]):
        if labels[user] == label:
            found[n] = user
            n += 1
    return found[:n]
