"""The numbers that describe a problem, with validation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from coterie.errors import ArgumentError
from coterie.theory.radii import lambda_tilde, norm_tilde, radius

_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The parameters of a clustering-of-bandits problem in the theorems   (Sec. 3.1; Assumptions 1–4).

    Parameters
    ----------
    n_users : int
        Number u of users, at least 1.
    dim : int
        Length d of an arm's vector, at least 1.
    n_clusters : int
        Number m of clusters, from 1 to n_users.
    n_arms : int
        Number K of arms in a round, at least 1.
    horizon : int
        Number T of rounds, at least 1.
    gamma : float
        Gap γ: the smallest distance between the preferences of two clusters, positive and at most 2.
    lambda_x : float
        Smallest eigenvalue λ_x of E[XXᵀ], positive and at most norm²/dim.
    ridge : float, default 1.0
        λ of the ridge regressions, positive.
    norm : float, default 1.0
        Bound L on the length of an arm's vector, positive.
    sigma : float, default √0.1
        Standard deviation σ of the perturbation of smoothed arms, positive; the paper's experiment uses
        σ² = 1/10 (App. G.1). Only Theorem 4 uses this parameter and the next two.
    truncation : float, default 1.0
        Bound R on the perturbation of each coordinate, positive; the paper does not state it.
    c1 : float, default 1.0
        Constant c₁ of Lemma 10, positive; the paper does not state it.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Examples
    --------
    >>> Setup(n_users=50, dim=50, n_clusters=10, n_arms=100, horizon=100_000, gamma=0.5, lambda_x=0.017).delta
    1e-05
    """

    n_users: int
    dim: int
    n_clusters: int
    n_arms: int
    horizon: int
    gamma: float
    lambda_x: float
    ridge: float = 1.0
    norm: float = 1.0
    sigma: float = math.sqrt(0.1)
    truncation: float = 1.0
    c1: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("n_users", "dim", "n_arms", "horizon"):
            if not getattr(self, name) >= 1:
                raise ArgumentError(f"{name} must be at least 1, got {getattr(self, name)!r}")
        for name in ("gamma", "lambda_x", "ridge", "norm", "sigma", "truncation", "c1"):
            if not 0 < getattr(self, name) < math.inf:
                raise ArgumentError(f"{name} must be positive and finite, got {getattr(self, name)!r}")
        self._check_ranges()

    def _check_ranges(self) -> None:
        """Check the ranges that depend on other values."""
        if not 1 <= self.n_clusters <= self.n_users:
            raise ArgumentError(
                f"n_clusters must be from 1 to n_users = {self.n_users}, got {self.n_clusters!r}"
            )
        if self.gamma > 2:
            raise ArgumentError(f"gamma must be at most 2, since |θ| ≤ 1, got {self.gamma!r}")
        most = self.norm**2 / self.dim  # d λ_min(E[XXᵀ]) ≤ tr E[XXᵀ] ≤ L²
        if self.lambda_x > most * _ROUNDING:
            raise ArgumentError(f"lambda_x must be at most norm²/dim = {most:g}, got {self.lambda_x!r}")
        most = norm_tilde(self.dim, self.truncation) ** 2 / self.dim
        if lambda_tilde(self.sigma, self.n_arms, c1=self.c1) > most * _ROUNDING:
            raise ArgumentError(
                f"c1 · sigma² / ln n_arms must be at most (1 + √dim · truncation)²/dim = {most:g}"
            )

    @property
    def delta(self) -> float:
        """δ = 1/T, as in the proofs of all four theorems."""
        return 1 / self.horizon

    def radius(self, pulls: float) -> float:
        """Compute the radius f of a user's estimate.

        Parameters
        ----------
        pulls : float
            Number of pulls of the user, at least 0.

        Returns
        -------
        float
            f for this setup, see `radius`.
        """
        return radius(
            pulls,
            n_users=self.n_users,
            dim=self.dim,
            ridge=self.ridge,
            lambda_x=self.lambda_x,
            delta=self.delta,
            norm=self.norm,
        )

    def pulls_to_separate(self) -> float:
        """Compute the pulls of a user after which 2f < γ, so that clusters can be separated.

        Returns
        -------
        float
            Number of pulls, to one part in 1,000.
        """
        high = 6.4 * self.ridge / self.lambda_x  # f decreases from here on, so bisection finds one crossing
        while 2 * self.radius(high) >= self.gamma:
            high *= 2
        low = high / 2
        while high / low > 1.001:
            middle = (low * high) ** 0.5
            low, high = (low, middle) if 2 * self.radius(middle) < self.gamma else (middle, high)
        return high

    def smoothed(self) -> Setup:
        """Replace λ_x by λ̃_x and L by 1 + √d R   (Sec. 4.2).

        Returns
        -------
        Setup
            The same problem for smoothed contexts.
        """
        return replace(
            self,
            lambda_x=lambda_tilde(self.sigma, self.n_arms, c1=self.c1),
            norm=norm_tilde(self.dim, self.truncation),
        )
