"""The best of K arms, exactly, while computing few of the K widths."""

from __future__ import annotations

from math import log, sqrt

from coterie.kernels.compiling import compiled
from coterie.kernels.generic import View
from coterie.kernels.ridge import dot, quadratic
from coterie.types import Floats, Ints

SLACK = 1.0 + 1e-9
"""A width remembered from an earlier round bounds today's up to rounding."""


@compiled
def means(estimate: Floats, items: Floats, picks: Ints, out: Floats) -> None:
    """xᵀθ̂ for the picked items, eight at a time, each summed from first to last."""
    n = picks.shape[0]
    whole = n - n % 8
    for k in range(0, whole, 8):
        x0, x1, x2, x3 = items[picks[k]], items[picks[k + 1]], items[picks[k + 2]], items[picks[k + 3]]
        x4, x5, x6, x7 = items[picks[k + 4]], items[picks[k + 5]], items[picks[k + 6]], items[picks[k + 7]]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for i in range(estimate.shape[0]):
            t = estimate[i]
            s0 += x0[i] * t
            s1 += x1[i] * t
            s2 += x2[i] * t
            s3 += x3[i] * t
            s4 += x4[i] * t
            s5 += x5[i] * t
            s6 += x6[i] * t
            s7 += x7[i] * t
        out[k], out[k + 1], out[k + 2], out[k + 3] = s0, s1, s2, s3
        out[k + 4], out[k + 5], out[k + 6], out[k + 7] = s4, s5, s6, s7
    for k in range(whole, n):
        out[k] = dot(items[picks[k]], estimate)


@compiled
def first_largest(values: Floats) -> int:
    """The index of the largest value, the first one on ties."""
    best = 0
    for k in range(1, values.shape[0]):
        if values[k] > values[best]:
            best = k
    return best


@compiled
def bonus(seen: View, width2: float) -> float:
    """β√(xᵀM̄⁻¹x), in Alg. 1, line 9; √(2 ln q) times as much if xᵀM̄⁻¹x is q times what is usual, q > √e."""
    if width2 > seen.usual:
        width2 *= max(1.0, 2.0 * log(width2 / seen.usual))
    return seen.beta * sqrt(width2)


@compiled
def choose(
    seen: View, items: Floats, picks: Ints, bounds: Floats, upper: Floats, exact: Ints, work: Floats
) -> int:
    """argmax of xᵀθ̂ plus its bonus over the picked items; the first on ties   (Alg. 1, line 9).

    `bounds` holds an upper bound of xᵀM̄⁻¹x for each pick. The arm on top of the upper scores gets its
    exact width, until the arm on top is exact: no other arm can then be better. Exact values replace
    the bounds they came from.
    """
    means(seen.estimate, items, picks, upper)
    for k in range(picks.shape[0]):
        upper[k] += bonus(seen, bounds[k] * SLACK)
        exact[k] = 0
    while True:
        best = first_largest(upper)
        if exact[best]:
            return best
        exact[best] = 1
        x = items[picks[best]]
        bounds[best] = max(quadratic(seen.inverse, x, work), 0.0)
        upper[best] = dot(x, seen.estimate) + bonus(seen, bounds[best])
