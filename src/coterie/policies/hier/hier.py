"""Hierarchical models: every user has a preference of its own, drawn from a prior that all users teach."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.policies.base import Plan
from coterie.policies.declarations import Declaration, Style
from coterie.policies.hier.hierarchy import PosteriorSamples, UpperBounds
from coterie.policies.segments import Segmented
from coterie.types import Floats
from coterie.validation import finite, flag, positive, reals


def _settings(
    dim: int, noise: float | None, mean: ArrayLike | None, covariance: ArrayLike | None, intercept: bool
) -> dict[str, Any]:
    """What a learner is made with; arrays are copies."""
    size = dim + flag("intercept", intercept)
    return {
        "intercept": intercept,
        "noise": None if noise is None else positive("noise", noise),
        "mean": None if mean is None else _array("mean", mean, (size,), intercept),
        "covariance": None if covariance is None else _covariance(covariance, size, intercept),
    }


def _array(name: str, value: ArrayLike, shape: tuple[int, ...], intercept: bool) -> Floats:
    array = finite(name, reals(name, value, f"an array of shape {shape}"))
    if array.shape != shape:
        first = ", the intercept first" if intercept else ""
        raise ArgumentError(f"{name} must have shape {shape}{first}, got {array.shape}")
    return array.copy()


def _covariance(value: ArrayLike, size: int, intercept: bool) -> Floats:
    matrix = _array("covariance", value, (size, size), intercept)
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0):
        raise ArgumentError("covariance must be symmetric")
    least = float(np.linalg.eigvalsh(matrix)[0])
    if not least > 1e-12 * float(np.trace(matrix)):
        raise ArgumentError(f"covariance must be positive definite, got the eigenvalue {least:.3g}")
    return np.ascontiguousarray(0.5 * (matrix + matrix.T))


class HierUCB(Segmented):
    """UCB in a hierarchical model whose prior is learnt from all users (after Hong et al. 2022).

    Every user has its own preference θ ~ N(μ, Σ), and a reward is xᵀθ + N(0, σ²). σ, μ and the whole Σ are
    learnt unless they are given. The arm of largest posterior mean plus standard deviation is played.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    noise : float, optional
        σ, the standard deviation of rewards; learnt by default.
    mean : array_like, shape (d + 1,) or (d,), optional
        μ, the mean preference, the intercept first if there is one; learnt by default.
    covariance : array_like, shape (d + 1, d + 1) or (d, d), optional
        Σ, how preferences differ, the intercept first; learnt by default.
    intercept : bool
        Whether to put a feature of 1 before those of each arm: then a constant added to all rewards does not
        matter.
    growing : bool
        Multiply the standard deviation by √ln(t + 1), as much of the literature does with its bonus; HierUCB
        explores more then than most feedback repays.
    ridge : float
        Preferences are first taken to have the variance σ²/ridge, for features of unit length.
    seed : int
        Seed of the policy's own random numbers; HierUCB draws none.

    Examples
    --------
    >>> policy = HierUCB(n_users=3, dim=2)
    >>> policy.update(0, [1.0, 0.0], 1.0)
    >>> policy.update(0, [0.0, 1.0], 0.0)
    >>> policy.recommend(1, [[0.0, 0.9], [0.9, 0.0]])
    1
    """

    declared = Declaration(
        summary="hierarchical model: user preferences around a learned mean",
        use_when="feedback is real, and preferences vary continuously",
        style=Style("HierUCB", "#00677F", "h", "-"),
        cost=20.0,
        clusters=False,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        noise: float | None = None,
        mean: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
        intercept: bool = True,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            noise=noise,
            mean=mean,
            covariance=covariance,
            intercept=intercept,
            growing=growing,
            ridge=ridge,
            seed=seed,
        )

    @staticmethod
    def _plan(
        n_users: int,
        dim: int,
        *,
        noise: float | None,
        mean: ArrayLike | None,
        covariance: ArrayLike | None,
        intercept: bool,
        growing: bool,
        ridge: float,
        seed: int,
    ) -> Plan:
        settings = _settings(dim, noise, mean, covariance, intercept)
        return Plan(UpperBounds, settings, growing=growing, items=True)


class HierTS(Segmented):
    """Thompson sampling in a hierarchical model whose prior is learnt (after Hong et al. 2022).

    The model is that of `HierUCB`. Each decision draws a preference from the user's posterior, nearer to
    the mean than it says, and plays the arm that is best for it.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    noise : float, optional
        σ, the standard deviation of rewards; learnt by default.
    mean : array_like, shape (d + 1,) or (d,), optional
        μ, the mean preference, the intercept first if there is one; learnt by default.
    covariance : array_like, shape (d + 1, d + 1) or (d, d), optional
        Σ, how preferences differ, the intercept first; learnt by default.
    scale : float
        The part of the posterior's standard deviation by which samples deviate; 1 is plain Thompson
        sampling, which explores more than users who come a few dozen times repay.
    intercept : bool
        Whether to put a feature of 1 before those of each arm: then a constant added to all rewards does not
        matter.
    ridge : float
        Preferences are first taken to have the variance σ²/ridge, for features of unit length.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> HierTS(n_users=3, dim=2).labels().tolist()
    [0, 1, 2]
    """

    declared = Declaration(
        summary="Thompson sampling in HierUCB's hierarchical model",
        use_when="feedback is real, and decisions should be randomized",
        style=Style("HierTS", "#00677F", "h", "--"),
        cost=20.0,
        clusters=False,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        noise: float | None = None,
        mean: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
        scale: float = 0.25,
        intercept: bool = True,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            noise=noise,
            mean=mean,
            covariance=covariance,
            scale=scale,
            intercept=intercept,
            ridge=ridge,
            seed=seed,
        )

    @staticmethod
    def _plan(
        n_users: int,
        dim: int,
        *,
        noise: float | None,
        mean: ArrayLike | None,
        covariance: ArrayLike | None,
        scale: float,
        intercept: bool,
        ridge: float,
        seed: int,
    ) -> Plan:
        settings = _settings(dim, noise, mean, covariance, intercept)
        return Plan(PosteriorSamples, {**settings, "scale": positive("scale", scale)}, items=True)
