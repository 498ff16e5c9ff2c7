"""Confidence of an estimate: the factor β, the radius f, and the smoothed eigenvalue λ̃_x."""

from __future__ import annotations

import math
from typing import NamedTuple


class Radius(NamedTuple):
    """The confidence radius f of an estimate, as seven numbers.

    Parameters
    ----------
    base, slope, scale, shift, floor, growth : float
        The numbers of the formula below.
    offset : float, default 0.0
        Error that does not vanish with more data: for rewards that deviate from a linear model, or are
        corrupted.

    Notes
    -----
    The paper's f (Alg. 1) and the tuned α √((1 + ln(1 + T))/(1 + T)) are both of the form

        f(T) = (√(base + slope·ln(1 + scale·T)) + shift) / √(floor + growth·T) + offset

    with an offset of 0. `RCLUMB`, `RSCLUMB` and `RCLUBWCU` have a nonzero offset.

    Examples
    --------
    >>> Radius(base=1.0, slope=1.0, scale=1.0, shift=0.0, floor=1.0, growth=1.0).at(0)
    1.0
    """

    base: float
    slope: float
    scale: float
    shift: float
    floor: float
    growth: float
    offset: float = 0.0

    def at(self, pulls: float) -> float:
        """Evaluate f(T).

        Parameters
        ----------
        pulls : float
            Number T of rewards of a user, at least 0.

        Returns
        -------
        float
            f(T).
        """
        top = math.sqrt(self.base + self.slope * math.log1p(self.scale * pulls)) + self.shift
        return top / math.sqrt(self.floor + self.growth * pulls) + self.offset


def radius_shape(
    n_users: int, dim: int, ridge: float, *, lambda_x: float, delta: float, norm: float
) -> Radius:
    """Compute the coefficients of the paper's f   (Alg. 1; Eq. 4).

    Parameters
    ----------
    n_users : int
        Number of users u.
    dim : int
        Length d of an arm's vector.
    ridge : float
        λ of the ridge regressions, positive; 1 is usual.
    lambda_x : float
        Smallest eigenvalue λ_x of E[XXᵀ], positive and at most L²/d. 1/d is its order for uniform unit
        vectors.
    delta : float
        Probability δ of failure, between 0 and 1; the proofs use 1/T.
    norm : float
        Bound L on the length of an arm's vector; 1 for unit vectors.

    Returns
    -------
    Radius
        f; `at(pulls)` evaluates it.

    Notes
    -----
    f(T) = (√(2 ln(u/δ) + d ln(1 + T L²/(λd))) + √λ) / √(λ + T λ_x/2) (Alg. 1; Eq. 4).

    Examples
    --------
    >>> shape = radius_shape(50, 50, 1.0, lambda_x=0.02, delta=1e-5, norm=1.0)
    >>> round(shape.at(10_000), 4)
    1.8115
    """
    return Radius(
        base=2.0 * math.log(n_users / delta),
        slope=float(dim),
        scale=norm**2 / (ridge * dim),
        shift=math.sqrt(ridge),
        floor=ridge,
        growth=lambda_x / 2.0,
    )


def beta(horizon: float, dim: int, *, ridge: float, delta: float, norm: float) -> float:
    """Compute β, the factor of the bonus   (Lemma 4; Sec. 3.3).

    Parameters
    ----------
    horizon : float
        Number T of rounds.
    dim : int
        Length d of an arm's vector.
    ridge : float
        λ of the ridge regressions, positive; 1 is usual.
    delta : float
        Probability δ of failure, between 0 and 1; the proofs use 1/T.
    norm : float
        Bound L on the length of an arm's vector; 1 for unit vectors.

    Returns
    -------
    float
        β, for noise that is 1-sub-Gaussian.

    Notes
    -----
    β = √(d ln(1 + T L²/(dλ)) + 2 ln(1/δ)) + √λ (Lemma 4).

    Examples
    --------
    >>> round(beta(100_000, 50, ridge=1.0, delta=1e-5, norm=1.0), 4)
    21.0773
    """
    spread = dim * math.log1p(horizon * norm**2 / (dim * ridge))
    return math.sqrt(spread + 2 * math.log(1 / delta)) + math.sqrt(ridge)


def radius(
    pulls: float, *, n_users: int, dim: int, ridge: float, lambda_x: float, delta: float, norm: float
) -> float:
    """Compute f(T), the radius of the estimate of a user with T rewards   (Alg. 1; Eq. 4).

    Parameters
    ----------
    pulls : float
        Number T of rewards of the user, at least 0.
    n_users : int
        Number of users u.
    dim : int
        Length d of an arm's vector.
    ridge : float
        λ of the ridge regressions, positive; 1 is usual.
    lambda_x : float
        Smallest eigenvalue λ_x of E[XXᵀ], positive and at most L²/d. 1/d is its order for uniform unit
        vectors.
    delta : float
        Probability δ of failure, between 0 and 1; the proofs use 1/T.
    norm : float
        Bound L on the length of an arm's vector; 1 for unit vectors.

    Returns
    -------
    float
        f(T).

    Notes
    -----
    f(T) = (√(2 ln(u/δ) + d ln(1 + T L²/(λd))) + √λ) / √(λ + T λ_x/2) (Alg. 1; Eq. 4). It rises at first,
    while the numerator outgrows the ridge in the denominator, and falls for T ≥ 6.4 λ/λ_x.

    Examples
    --------
    >>> round(radius(10_000, n_users=50, dim=50, ridge=1.0, lambda_x=0.02, delta=1e-5, norm=1.0), 4)
    1.8115
    """
    return radius_shape(n_users, dim, ridge, lambda_x=lambda_x, delta=delta, norm=norm).at(pulls)


def lambda_tilde(sigma: float, n_arms: int, *, c1: float = 1.0) -> float:
    """Compute λ̃_x, the eigenvalue that smoothing guarantees   (Lemma 10; Theorem 4).

    Parameters
    ----------
    sigma : float
        Standard deviation σ of the perturbation of each coordinate.
    n_arms : int
        Number K of arms.
    c1 : float, default 1.0
        Constant c₁, which the paper does not specify.

    Returns
    -------
    float
        λ̃_x.

    Notes
    -----
    λ̃_x = c₁ σ²/ln K (Lemma 10). For K = 1 the paper divides by ln 1 = 0. A single arm is always selected
    and keeps its variance, so c₁ σ² is returned in this case, by convention; it is not the limit of the
    formula.

    Examples
    --------
    >>> round(lambda_tilde(0.5, 100), 5)
    0.05429
    >>> lambda_tilde(0.5, 1)
    0.25
    """
    variance = c1 * sigma**2
    return variance if n_arms == 1 else variance / math.log(n_arms)


def norm_tilde(dim: int, truncation: float) -> float:
    """Compute the bound on the length of smoothed arms, in place of L   (Sec. 4.2; Lemma 11).

    Parameters
    ----------
    dim : int
        Length d of an arm's vector.
    truncation : float
        Bound R on the perturbation of each coordinate.

    Returns
    -------
    float
        1 + √d R.

    Notes
    -----
    1 + √d R (Sec. 4.2; Lemma 11).

    Examples
    --------
    >>> norm_tilde(25, 0.2)
    2.0
    """
    return 1 + math.sqrt(dim) * truncation
