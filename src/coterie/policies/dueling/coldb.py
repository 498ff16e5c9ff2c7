"""COLDB: CLUB for duels, with a logistic regression for each user."""

from __future__ import annotations

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.confidence import Confidence, choose_confidence, constants_of
from coterie.policies.declarations import ALPHAS, Declaration, Grid, Style
from coterie.policies.dueling.logistic_components import LogisticComponents


class COLDB(LinearBandit):
    """CLUB for duels, by logistic regression (Wang et al. 2025).

    `recommend_pair` shows two arms, `update_pair` takes the one that was preferred. Users share data while a
    graph connects them, as in `CLUB`. `recommend` and `update` with rewards of 0 and 1 make it a CLUB for
    clicks.

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
        Factor α of the radius f(T) within which two estimates count as equal, at least 0. Estimates are in
        logits, about four times as long as those of `CLUB` in the same duels: try 4 first. A smaller alpha
        separates users sooner. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0, in logits: try 1 first.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; COLDB draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    With z = x₁ − x₂ and y = 1 if x₁ was preferred, P(y = 1) = σ(zᵀθ), σ logistic. A user's regression is kept
    as its mode θ̂ᵢ and curvature λI + Sᵢ; an outcome moves the mode to

        argmin_θ ½(θ − θ̂ᵢ)ᵀ(λI + Sᵢ)(θ − θ̂ᵢ) + ln(1 + exp(zᵀθ)) − y zᵀθ

    and adds σ'(zᵀθ̂ᵢ)zzᵀ to Sᵢ. x₁ is the arm of largest xᵀθ̂_V, x₂ that of largest
    xᵀθ̂_V + β √((x − x₁)ᵀM_V⁻¹(x − x₁)), V the connected component of the user. Edges are cut as in `CLUB`.
    Rewards below 0 count as 0, those above 1 as 1.

    Examples
    --------
    >>> policy = COLDB(n_users=3, dim=2, alpha=10.0, beta=1.0)
    >>> policy.update_pair(0, winner=[1.0, 0.0], loser=[0.0, 1.0])
    >>> policy.recommend_pair(1, [[0.0, 1.0], [1.0, 0.0]])
    (1, 0)
    """

    declared = Declaration(
        summary="CLUB for duels, with logistic regression",
        use_when="users say which of two arms they prefer",
        style=Style("COLDB", "#44AA99", "o", "--"),
        grid=Grid(alpha=tuple(4.0 * alpha for alpha in ALPHAS), beta=(0.5, 1.0, 2.0, 4.0)),
        cost=20.0,
        feedback="duels",
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
        return Plan(LogisticComponents, constants_of(confidence, n_users, dim, ridge), growing=growing)
