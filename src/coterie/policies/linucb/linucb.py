"""LinUCB: one for all users, one for each user, or one for each known cluster."""

from __future__ import annotations

from numpy.typing import ArrayLike

from coterie.policies.base import LinearBandit, Plan, by_appearance
from coterie.policies.declarations import BONUS_GRID, Declaration, Style
from coterie.policies.linucb.fixed_rows import FixedRows, OneRow
from coterie.validation import label_vector, nonnegative


class LinUCBOne(LinearBandit):
    """One LinUCB that all users share.

    The baseline for users who all want the same.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    beta : float, default 1.0
        Factor β of the bonus, at least 0, in the unit of rewards. Set it to the standard deviation σ of the
        noise: 0.1 for σ = 0.1, 0.5 for clicks. Smaller exploits more, larger explores more.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; LinUCB draws none.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    Each round plays the arm of largest

        xᵀθ̂ + β √(xᵀM⁻¹x),   M = λI + Σ xxᵀ,   θ̂ = M⁻¹ Σ r x

    with sums over the rounds of all users (Abbasi-Yadkori et al. 2011).

    Examples
    --------
    >>> import numpy as np
    >>> policy = LinUCBOne(n_users=2, dim=2, beta=0.5)
    >>> policy.update(0, np.array([1.0, 0.0]), 1.0)
    >>> policy.recommend(1, np.eye(2))
    0
    """

    declared = Declaration(
        summary="one LinUCB for all users",
        use_when="all users have the same preferences",
        style=Style("LinUCB-One", "#7f7f7f", "s", ":"),
        grid=BONUS_GRID,
        clusters=False,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        beta: float = 1.0,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
        items: bool = False,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, beta=beta, growing=growing, ridge=ridge, seed=seed, items=items)

    @staticmethod
    def _plan(n_users: int, dim: int, *, beta: float, growing: bool, ridge: float, seed: int) -> Plan:
        settings = {"rows": OneRow(n_users), "beta": nonnegative("beta", beta)}
        return Plan(FixedRows, settings, growing=growing)


class LinUCBInd(LinearBandit):
    """A LinUCB for each user, which learns from no other user.

    The baseline for users who have nothing in common, or who all have plenty of data.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    beta : float, default 1.0
        Factor β of the bonus, at least 0, in the unit of rewards. Set it to the standard deviation σ of the
        noise: 0.1 for σ = 0.1, 0.5 for clicks. Smaller exploits more, larger explores more.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; LinUCB draws none.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    Each round plays the arm of largest

        xᵀθ̂ᵢ + β √(xᵀMᵢ⁻¹x),   Mᵢ = λI + Σ xxᵀ,   θ̂ᵢ = Mᵢ⁻¹ Σ r x

    with sums over the rounds of user i alone (Abbasi-Yadkori et al. 2011).

    Examples
    --------
    >>> LinUCBInd(n_users=3, dim=2, beta=0.5).labels().tolist()
    [0, 1, 2]
    """

    declared = Declaration(
        summary="a LinUCB for each user",
        use_when="users have nothing in common, or each has much data",
        style=Style("LinUCB-Ind", "#000000", "D", ":"),
        grid=BONUS_GRID,
        clusters=False,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        beta: float = 1.0,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
        items: bool = False,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, beta=beta, growing=growing, ridge=ridge, seed=seed, items=items)

    @staticmethod
    def _plan(n_users: int, dim: int, *, beta: float, growing: bool, ridge: float, seed: int) -> Plan:
        settings = {"rows": range(n_users), "beta": nonnegative("beta", beta)}
        return Plan(FixedRows, settings, growing=growing)


class LinUCBOracle(LinearBandit):
    """A LinUCB for each known cluster.

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
        Factor β of the bonus, at least 0, in the unit of rewards. Set it to the standard deviation σ of the
        noise: 0.1 for σ = 0.1, 0.5 for clicks. Smaller exploits more, larger explores more.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; LinUCB draws none.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or `labels` has another shape.

    Notes
    -----
    Each round plays the arm of largest

        xᵀθ̂_V + β √(xᵀM_V⁻¹x),   M_V = λI + Σ xxᵀ,   θ̂_V = M_V⁻¹ Σ r x

    with sums over the rounds of all users of the cluster V. `add_users` needs the labels of new users.

    Examples
    --------
    >>> LinUCBOracle(n_users=4, dim=2, labels=[1, 1, 0, 1]).cluster_of(0).tolist()
    [0, 1, 3]
    """

    declared = Declaration(
        summary="a LinUCB for each known cluster",
        use_when="you need an oracle baseline in a simulation",
        style=Style("LinUCB, true clusters", "#b8a200", "*", ":"),
        grid=BONUS_GRID,
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
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
        items: bool = False,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users, dim, labels=labels, beta=beta, growing=growing, ridge=ridge, seed=seed, items=items
        )

    @staticmethod
    def _plan(
        n_users: int, dim: int, *, labels: ArrayLike, beta: float, growing: bool, ridge: float, seed: int
    ) -> Plan:
        rows = by_appearance(label_vector(labels, n_users))
        return Plan(FixedRows, {"rows": rows, "beta": nonnegative("beta", beta)}, growing=growing)
