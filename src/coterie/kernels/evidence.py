"""How probable are rewards, if one preference lies behind them? The evidence of a ridge regression.

With θ ~ N(μ, σ²/λ·I) and noise N(0, σ²), and c = b − Sμ, up to a term that every grouping of the same data
shares,

    E(S, c) = ½ (d ln λ − ln|λI + S| + cᵀ(λI + S)⁻¹c / σ²)
"""

from __future__ import annotations

from math import log

from coterie.kernels.compiling import compiled
from coterie.kernels.ridge import apply
from coterie.types import Floats


@compiled
def evidence(dim: int, weight: float, logdet: float, explained: float, noise2: float) -> float:
    """E(S, c) from ln|λI + S| and cᵀ(λI + S)⁻¹c."""
    return 0.5 * (dim * log(weight) - logdet + explained / noise2)


@compiled
def centre(gram: Floats, moment: Floats, mean: Floats, out: Floats) -> None:
    """c = b − Sμ: the moment about a mean preference."""
    apply(gram, mean, out)
    for i in range(out.shape[0]):
        out[i] = moment[i] - out[i]


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

    Returns ln|A| and bᵀA⁻¹b; `moment` is left as the reduced right-hand side. Two pivots at a time.
    """
    d = moment.shape[0]
    for k in range(0, d - 1, 2):
        first, second = upper[k], upper[k + 1]
        factor = first[k + 1] / first[k]
        moment[k + 1] -= factor * moment[k]
        for i in range(k + 1, d):
            second[i] -= factor * first[i]
        inverse, other = 1.0 / first[k], 1.0 / second[k + 1]
        for j in range(k + 2, d):
            one, two = first[j] * inverse, second[j] * other
            moment[j] -= one * moment[k] + two * moment[k + 1]
            for i in range(j, d):
                upper[j, i] -= one * first[i] + two * second[i]
    logdet = 0.0
    explained = 0.0
    for k in range(d):
        logdet += log(upper[k, k])
        explained += moment[k] * moment[k] / upper[k, k]
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
def finish_inverse(upper: Floats, factor: Floats, out: Floats) -> None:
    """A⁻¹ = Σ rⱼrⱼᵀ/pⱼ from what `eliminate` left behind: pivots pⱼ, and rⱼ the rows of L⁻¹ in A = LPLᵀ."""
    d = out.shape[0]
    for j in range(d):
        factor[j, :j] = 0.0
        factor[j, j] = 1.0
        for k in range(j):
            scale = upper[k, j] / upper[k, k]
            for i in range(k + 1):
                factor[j, i] -= scale * factor[k, i]
    out[:] = 0.0
    for j in range(d):
        for k in range(j + 1):
            scale = factor[j, k] / upper[j, j]
            for i in range(k + 1):
                out[k, i] += scale * factor[j, i]
    for k in range(d):
        for i in range(k):
            out[i, k] = out[k, i]
