"""CLUBCascade: CLUB for ranked lists, which users scan from the top until the first click."""

from __future__ import annotations

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.club.components import Components
from coterie.policies.confidence import Confidence, choose_confidence, constants_of
from coterie.policies.declarations import CLUSTER_GRID, Declaration, Style


class CLUBCascade(LinearBandit):
    """CLUB that learns from first clicks on lists (Li and Zhang 2018).

    Use it with `recommend_list` and `update_list`. All users are connected at the start. When the estimates
    of two users differ too much their edge is cut; the connected components are the clusters.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence, optional
        A rule for both constants in place of alpha and beta, such as `Theory(...)`; `Tuned(alpha=...,
        beta=...)` is the same as alpha and beta.
    alpha : float, optional
        Factor α of the radius f(T) within which two estimates count as equal, at least 0; T counts the items
        that a user has looked at. Set it to 15σ, with σ = √(p(1 − p)) for items that attract with probability
        p: 4.5 for p = 0.1. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0. Set it to σ: 0.3 for p = 0.1.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; CLUBCascade draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    The list is made of the k arms with the largest min{xᵀθ̂_V + β √(xᵀM_V⁻¹x), 1}, V the connected component
    of the user. All positions that were looked at are absorbed, with y = 1 for the click and 0 above it.
    Then, once a list, the edges between the user i and every ℓ with

        ‖θ̂ᵢ − θ̂_ℓ‖ > f(Tᵢ) + f(T_ℓ)

    are cut. With `Tuned`, f(T) = α √((1 + ln(1 + T))/(1 + T)).

    References
    ----------
    Li and Zhang, *Online clustering of contextual cascading bandits*, AAAI 2018.

    Examples
    --------
    >>> import numpy as np
    >>> policy = CLUBCascade(n_users=3, dim=3, alpha=4.5, beta=0.3)
    >>> policy.update_list(0, np.eye(3), 1)
    >>> policy.pulls.tolist()
    [2, 0, 0]
    """

    declared = Declaration(
        summary="CLUB for ranked lists; scores clipped at 1",
        use_when="you show lists, and need a baseline with clusters",
        style=Style("CLUB-cascade", "#E69F00", "s", "-."),
        grid=CLUSTER_GRID,
        feedback="lists",
        figures=(),
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        confidence: Confidence | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            growing=growing,
            ridge=ridge,
            seed=seed,
        )

    @staticmethod
    def _plan(
        n_users: int, dim: int, *, confidence: Confidence, growing: bool, ridge: float, seed: int
    ) -> Plan:
        settings = constants_of(confidence, n_users, dim, ridge)
        return Plan(Components, settings, growing=growing, limit=1.0)  # a score bounds a probability
