"""How sure we are: the UCB factor β, the radius f of a user's estimate, and the smoothed eigenvalue λ̃_x."""

from __future__ import annotations

import math
from typing import NamedTuple


class Radius(NamedTuple):
    """The radius inside which an estimate is trusted, as six numbers.

    f(T) = (√(base + slope·ln(1 + scale·T)) + shift) / √(floor + growth·T)

    The paper's f (Alg. 1) and the tuned α√((1 + ln(1 + T))/(1 + T)) are both of this form.
    """

    base: float
    slope: float
    scale: float
    shift: float
    floor: float
    growth: float

    def at(self, pulls: float) -> float:
        """f(T)."""
        top = math.sqrt(self.base + self.slope * math.log1p(self.scale * pulls)) + self.shift
        return top / math.sqrt(self.floor + self.growth * pulls)


def radius_shape(
    n_users: int, dim: int, ridge: float, *, lambda_x: float, delta: float, norm: float
) -> Radius:
    """f(T) = (√(2 ln(u/δ) + d ln(1 + T L²/(λd))) + √λ) / √(λ + T λ_x/2)   (Alg. 1; Eq. 4)."""
    return Radius(
        base=2.0 * math.log(n_users / delta),
        slope=float(dim),
        scale=norm**2 / (ridge * dim),
        shift=math.sqrt(ridge),
        floor=ridge,
        growth=lambda_x / 2.0,
    )


def beta(horizon: float, dim: int, *, ridge: float, delta: float, norm: float) -> float:
    """β = √(d ln(1 + T L²/(dλ)) + 2 ln(1/δ)) + √λ   (Lemma 4; Sec. 3.3).

    >>> round(beta(100_000, 50, ridge=1.0, delta=1e-5, norm=1.0), 4)
    21.0773
    """
    spread = dim * math.log1p(horizon * norm**2 / (dim * ridge))
    return math.sqrt(spread + 2 * math.log(1 / delta)) + math.sqrt(ridge)


def radius(
    pulls: float, *, n_users: int, dim: int, ridge: float, lambda_x: float, delta: float, norm: float
) -> float:
    """f(T_i) = (√(2 ln(u/δ) + d ln(1 + T_i L²/(λd))) + √λ) / √(λ + T_i λ_x/2)   (Alg. 1; Eq. 4).

    It first rises, while the numerator outgrows the ridge in the denominator, and falls for T_i ≥ 6.4 λ/λ_x.

    >>> round(radius(10_000, n_users=50, dim=50, ridge=1.0, lambda_x=0.02, delta=1e-5, norm=1.0), 4)
    1.8115
    """
    return radius_shape(n_users, dim, ridge, lambda_x=lambda_x, delta=delta, norm=norm).at(pulls)


def lambda_tilde(sigma: float, n_arms: int, *, c1: float = 1.0) -> float:
    """λ̃_x = c₁ σ²/ln K   (Lemma 10; Theorem 4).

    The paper leaves the constant c₁ open. It also divides by ln 1 = 0 when K = 1; a single arm is always the
    selected one and keeps its variance, so we take c₁ σ² there. That is a convention, not a limit.

    >>> round(lambda_tilde(0.5, 100), 5)
    0.05429
    >>> lambda_tilde(0.5, 1)
    0.25
    """
    variance = c1 * sigma**2
    return variance if n_arms == 1 else variance / math.log(n_arms)


def norm_tilde(dim: int, truncation: float) -> float:
    """1 + √d R, the longest arm of a smoothed adversary, in place of L   (Sec. 4.2; Lemma 11).

    >>> norm_tilde(25, 0.2)
    2.0
    """
    return 1 + math.sqrt(dim) * truncation
