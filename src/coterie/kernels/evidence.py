"""How probable are rewards, if one preference lies behind them? The evidence of a ridge regression.

With θ ~ N(0, σ²/λ·I) and noise N(0, σ²), up to a term that every grouping of the same data shares,

    E(S, b) = ½ (d ln λ − ln|λI + S| + bᵀ(λI + S)⁻¹b / σ²)
"""

from __future__ import annotations

from math import log

from coterie.kernels.compiling import compiled
from coterie.kernels.ridge import Ridge, apply, dot, invert
from coterie.types import Floats


@compiled
def evidence(dim: int, weight: float, logdet: float, explained: float, noise2: float) -> float:
    """E(S, b) from ln|λI + S| and bᵀ(λI + S)⁻¹b."""
    return 0.5 * (dim * log(weight) - logdet + explained / noise2)


@compiled
def combine(first: Floats, second: Floats, sign: float, weight: float, out: Floats) -> None:
    """The upper half of λI + S₁ ± S₂."""
    d = out.shape[0]
    for k in range(d):
        for i in range(k, d):
            out[k, i] = first[k, i] + sign * second[k, i]
        out[k, k] += weight


@compiled
def eliminate(upper: Floats, moment: Floats) -> tuple[float, float]:
    """Gauss elimination of a symmetric positive definite matrix given by its upper half, in place.

    Returns ln|A| and bᵀA⁻¹b; `moment` is left as the reduced right-hand side.
    """
    d = moment.shape[0]
    logdet = 0.0
    explained = 0.0
    for k in range(d):
        pivot = upper[k, k]
        logdet += log(pivot)
        explained += moment[k] * moment[k] / pivot
        for j in range(k + 1, d):
            factor = upper[k, j] / pivot
            moment[j] -= factor * moment[k]
            for i in range(j, d):
                upper[j, i] -= factor * upper[k, i]
    return logdet, explained


@compiled
def back_substitute(upper: Floats, moment: Floats, out: Floats) -> None:
    """A⁻¹b from what `eliminate` left behind."""
    for k in range(out.shape[0] - 1, -1, -1):
        total = moment[k]
        for i in range(k + 1, out.shape[0]):
            total -= upper[k, i] * out[i]
        out[k] = total / upper[k, k]


@compiled
def explained(ridge: Ridge, row: int) -> float:
    """bᵀ(λI + S)⁻¹b."""
    return dot(ridge.moment[row], ridge.estimate[row])


@compiled
def refit(ridge: Ridge, row: int, gram: Floats, logdets: Floats, weights: Floats, weight: float) -> None:
    """Compute a row afresh from its gram and moment, with another λ."""
    matrix = ridge.inverse[row]
    matrix[:] = gram
    for i in range(matrix.shape[0]):
        matrix[i, i] += weight
    work = matrix.copy()
    logdets[row], _ = eliminate(work, ridge.moment[row].copy())
    invert(matrix)
    apply(matrix, ridge.moment[row], ridge.estimate[row])
    weights[row] = weight
