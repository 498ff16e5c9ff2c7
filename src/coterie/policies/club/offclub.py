"""OffCLUB: clusters from a log, and decisions by lower confidence bounds."""

from __future__ import annotations

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.club.neighbourhoods import Neighbourhoods
from coterie.policies.confidence import Confidence, choose_confidence
from coterie.policies.declarations import CLUSTER_GRID, Declaration, Style


class OffCLUB(LinearBandit):
    """Clusters from a log, and decisions by lower confidence bounds (Liu et al. 2025).

    Give it a log by `fit`, then ask for decisions. Users are compared once, by all their data; each learns
    from those who were not separated from it. An arm with little data is avoided, where other policies would
    explore it.

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
        Factor α of the radius f(T) within which two estimates count as equal, at least 0. Start with 15σ, as
        for `CLUB`, where σ is the standard deviation of the noise; with little data for each user try less.
        Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bound, at least 0. Start with σ, as for `CLUB`. Larger is more cautious; 0 takes the
        largest estimate.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; OffCLUB draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    `fit` cuts the edge between users i and ℓ of a complete graph if

        ‖θ̂ᵢ − θ̂_ℓ‖ > f(Tᵢ) + f(T_ℓ).

    The decision for i is the arm of largest

        xᵀθ̂_V − β √(xᵀM_V⁻¹x),   M_V = λI + Σ_{j∈V} Sⱼ,   θ̂_V = M_V⁻¹ Σ_{j∈V} bⱼ

    with V = i and its direct neighbours. `scores` has −β √(xᵀM_V⁻¹x) as `width`. Rewards that come later may
    be given by `update`: then the edges of their user are tested again.

    References
    ----------
    Liu, Zhang, Wang, Liu, Lui, Hajiesmaili and Joe-Wong, *Offline clustering of linear bandits: the power of
    clusters under limited data*, arXiv 2505.19043, 2025.

    Examples
    --------
    >>> policy = OffCLUB(n_users=2, dim=2, alpha=1.5, beta=0.1)
    >>> policy.fit([0, 0, 1], [[1.0, 0.0], [0.8, 0.6], [1.0, 0.0]], [0.3, 0.2, 0.3]).rounds
    3
    >>> policy.recommend(1, [[0.9, 0.0], [0.0, 0.9]])  # the second is unknown
    0
    """

    declared = Declaration(
        summary="clusters from a log; decisions by lower confidence bounds",
        use_when="you have a log, and decisions will get no feedback",
        style=Style("Off-CLUB", "#999933", "v", ":"),
        grid=CLUSTER_GRID,
        feedback="logs",
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
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            ridge=ridge,
            seed=seed,
        )

    @staticmethod
    def _plan(n_users: int, dim: int, *, confidence: Confidence, ridge: float, seed: int) -> Plan:
        shape = confidence.shape(n_users, dim, ridge)
        return Plan(Neighbourhoods, {"beta": -confidence.bonus(dim, ridge), "shape": shape, "first": 0})
