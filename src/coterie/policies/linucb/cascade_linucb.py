"""CascadeLinUCB: one LinUCB for ranked lists, which users scan from the top until the first click."""

from __future__ import annotations

import numpy as np

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.declarations import BONUS_GRID, Declaration, Style
from coterie.policies.linucb.fixed_rows import FixedRows
from coterie.validation import nonnegative


class CascadeLinUCB(LinearBandit):
    """One LinUCB that learns from first clicks on lists (Zong et al. 2016).

    Use it with `recommend_list` and `update_list`. All users share one model.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    beta : float, default 1.0
        Factor β of the bonus, at least 0. Set it to the standard deviation σ of a click, √(p(1 − p)) for
        items that attract with probability p: at most 0.5. Smaller exploits more, larger explores more.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regression, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; CascadeLinUCB draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    The list is made of the k arms with the largest

        min{xᵀθ̂ + β √(xᵀM⁻¹x), 1},   M = λI + Σ xxᵀ,   θ̂ = M⁻¹ Σ y x

    largest first, ties to the lower row number. The sums are over all positions that any user looked at, with
    y = 1 for the click and 0 above it.

    References
    ----------
    Zong, Ni, Sung, Ke, Wen and Kveton, *Cascading bandits for large-scale recommendation problems*, UAI 2016.

    Examples
    --------
    >>> import numpy as np
    >>> policy = CascadeLinUCB(n_users=2, dim=3, beta=0.5)
    >>> shown = policy.recommend_list(0, np.eye(3), 2)
    >>> policy.update_list(0, np.eye(3)[shown], 1)  # the first was passed over, the second clicked
    >>> policy.recommend_list(1, np.eye(3), 2).tolist()
    [1, 2]
    """

    declared = Declaration(
        summary="one LinUCB for all users, for ranked lists; scores clipped at 1",
        use_when="you show lists, and all users have the same preferences",
        style=Style("CascadeLinUCB", "#7f7f7f", "P", "-."),
        grid=BONUS_GRID,
        clusters=False,
        feedback="lists",
        figures=(),
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
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, beta=beta, growing=growing, ridge=ridge, seed=seed)

    @staticmethod
    def _plan(n_users: int, dim: int, *, beta: float, growing: bool, ridge: float, seed: int) -> Plan:
        settings = {"rows": np.zeros(n_users, np.int64), "beta": nonnegative("beta", beta)}
        return Plan(FixedRows, settings, growing=growing, limit=1.0)  # a score bounds a probability
