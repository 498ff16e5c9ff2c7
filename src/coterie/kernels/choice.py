"""The best of K arms, exactly, while computing few of the K widths."""

from __future__ import annotations

from math import sqrt

from coterie.kernels.compiling import compiled
from coterie.kernels.generic import View
from coterie.kernels.ridge import quadratic
from coterie.types import Floats, Ints

SLACK = 1.0 + 1e-9
"""A width remembered from an earlier round bounds today's up to rounding."""


@compiled
def means(estimate: Floats, items: Floats, picks: Ints, out: Floats) -> None:
    """xᵀθ̂ for the picked items, four at a time, each summed from first to last."""
    n, d = picks.shape[0], estimate.shape[0]
    whole = n - n % 4
    for k in range(0, whole, 4):
        p0, p1, p2, p3 = picks[k], picks[k + 1], picks[k + 2], picks[k + 3]
        s0 = s1 = s2 = s3 = 0.0
        for i in range(d):
            t = estimate[i]
            s0 += items[p0, i] * t
            s1 += items[p1, i] * t
            s2 += items[p2, i] * t
            s3 += items[p3, i] * t
        out[k], out[k + 1], out[k + 2], out[k + 3] = s0, s1, s2, s3
    for k in range(whole, n):
        total = 0.0
        for i in range(d):
            total += items[picks[k], i] * estimate[i]
        out[k] = total


@compiled
def first_largest(values: Floats) -> int:
    """The index of the largest value, the first one on ties."""
    best = 0
    for k in range(1, values.shape[0]):
        if values[k] > values[best]:
            best = k
    return best


@compiled
def choose(
    seen: View, items: Floats, picks: Ints, bounds: Floats, upper: Floats, exact: Ints, work: Floats
) -> int:
    """argmax xᵀθ̂ + β√(xᵀM̄⁻¹x) over the picked items; the first on ties   (Alg. 1, line 10).

    `bounds` holds an upper bound of xᵀM̄⁻¹x for each pick. The arm on top of the upper scores gets its
    exact width, until the arm on top is exact: no other arm can then be better. Exact values replace
    the bounds they came from.
    """
    means(seen.estimate, items, picks, upper)
    for k in range(picks.shape[0]):
        upper[k] += seen.beta * sqrt(bounds[k] * SLACK)
        exact[k] = 0
    while True:
        best = first_largest(upper)
        if exact[best]:
            return best
        exact[best] = 1
        x = items[picks[best]]
        bounds[best] = max(quadratic(seen.inverse, x, work), 0.0)
        mean = 0.0
        for i in range(x.shape[0]):
            mean += x[i] * seen.estimate[i]
        upper[best] = mean + seen.beta * sqrt(bounds[best])
