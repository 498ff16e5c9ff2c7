"""Linear Thompson sampling: one sampler for all users, one for each user, or one for each known cluster."""

from __future__ import annotations

from numpy.typing import ArrayLike

from coterie.policies.base import LinearBandit, Plan, by_appearance
from coterie.policies.declarations import BONUS_GRID, Declaration, Style
from coterie.policies.linucb.fixed_rows import OneRow, SampledRows
from coterie.validation import label_vector, nonnegative


class LinTSOne(LinearBandit):
    """One linear Thompson sampler that all users share.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    beta : float, default 1.0
        Factor β of the sample's spread, at least 0, in the unit of rewards. Set it to the standard deviation
        σ of the noise: β = σ samples from the posterior. Smaller exploits more.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the samples, at least 0.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    Each decision draws θ̃ ~ N(θ̂, β²M⁻¹) and plays the arm of largest xᵀθ̃, where M = λI + Σ xxᵀ and
    θ̂ = M⁻¹ Σ r x over the rounds of all users (Agrawal and Goyal 2013, with v = β).

    Examples
    --------
    >>> import numpy as np
    >>> policy = LinTSOne(n_users=2, dim=2, beta=0.01)
    >>> policy.update(0, np.array([1.0, 0.0]), 1.0)
    >>> policy.recommend(1, np.eye(2))
    0
    """

    declared = Declaration(
        summary="one Thompson sampler for all users",
        use_when="users have the same preferences; decisions should be randomized",
        style=Style("LinTS-One", "#7f7f7f", "s", "--"),
        grid=BONUS_GRID,
        cost=25.0,
        clusters=False,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        beta: float = 1.0,
        ridge: float = 1.0,
        seed: int = 0,
        items: bool = False,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, beta=beta, ridge=ridge, seed=seed, items=items)

    @staticmethod
    def _plan(n_users: int, dim: int, *, beta: float, ridge: float, seed: int) -> Plan:
        return Plan(SampledRows, {"rows": OneRow(n_users), "beta": nonnegative("beta", beta)})


class LinTSInd(LinearBandit):
    """A linear Thompson sampler for each user, which learns from no other user.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    beta : float, default 1.0
        Factor β of the sample's spread, at least 0, in the unit of rewards. Set it to the standard deviation
        σ of the noise: β = σ samples from the posterior. Smaller exploits more.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the samples, at least 0.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    Each decision draws θ̃ ~ N(θ̂ᵢ, β²Mᵢ⁻¹) and plays the arm of largest xᵀθ̃, where Mᵢ = λI + Σ xxᵀ and
    θ̂ᵢ = Mᵢ⁻¹ Σ r x over the rounds of user i alone (Agrawal and Goyal 2013, with v = β).

    Examples
    --------
    >>> LinTSInd(n_users=3, dim=2, beta=0.5).labels().tolist()
    [0, 1, 2]
    """

    declared = Declaration(
        summary="a Thompson sampler for each user",
        use_when="users have nothing in common; decisions should be randomized",
        style=Style("LinTS-Ind", "#000000", "D", "--"),
        grid=BONUS_GRID,
        cost=25.0,
        clusters=False,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        beta: float = 1.0,
        ridge: float = 1.0,
        seed: int = 0,
        items: bool = False,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, beta=beta, ridge=ridge, seed=seed, items=items)

    @staticmethod
    def _plan(n_users: int, dim: int, *, beta: float, ridge: float, seed: int) -> Plan:
        return Plan(SampledRows, {"rows": range(n_users), "beta": nonnegative("beta", beta)})


class LinTSOracle(LinearBandit):
    """A linear Thompson sampler for each known cluster.

    A yardstick for simulations: it shows what clustering could gain at best.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    labels : array_like of int, shape (n_users,)
        The true cluster of each user; equal numbers, same cluster.
    beta : float, default 1.0
        Factor β of the sample's spread, at least 0, in the unit of rewards. Set it to the standard deviation
        σ of the noise: β = σ samples from the posterior. Smaller exploits more.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the samples, at least 0.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or `labels` has another shape.

    Notes
    -----
    Each decision draws θ̃ ~ N(θ̂_V, β²M_V⁻¹) and plays the arm of largest xᵀθ̃, where M_V = λI + Σ xxᵀ and
    θ̂_V = M_V⁻¹ Σ r x over the rounds of the users of cluster V (Agrawal and Goyal 2013, with v = β).

    Examples
    --------
    >>> LinTSOracle(n_users=4, dim=2, labels=[1, 1, 0, 1]).cluster_of(0).tolist()
    [0, 1, 3]
    """

    declared = Declaration(
        summary="a Thompson sampler for each known cluster",
        use_when="you need a randomized oracle baseline in a simulation",
        style=Style("LinTS, true clusters", "#b8a200", "*", "--"),
        grid=BONUS_GRID,
        cost=25.0,
        clusters=False,
        figures=(),
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        labels: ArrayLike,
        beta: float = 1.0,
        ridge: float = 1.0,
        seed: int = 0,
        items: bool = False,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, labels=labels, beta=beta, ridge=ridge, seed=seed, items=items)

    @staticmethod
    def _plan(n_users: int, dim: int, *, labels: ArrayLike, beta: float, ridge: float, seed: int) -> Plan:
        rows = by_appearance(label_vector(labels, n_users))
        return Plan(SampledRows, {"rows": rows, "beta": nonnegative("beta", beta)})
