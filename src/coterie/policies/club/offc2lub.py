"""OffC2LUB: from a log, joins users who are surely similar; decisions by lower confidence bounds."""

from __future__ import annotations

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.club.sure_neighbours import SureNeighbours
from coterie.policies.confidence import Confidence, choose_confidence
from coterie.policies.declarations import Declaration, Grid, Style
from coterie.validation import positive


class OffC2LUB(LinearBandit):
    """Joins users who are surely similar, and decides by lower confidence bounds (Liu et al. 2025).

    Give it a log by `fit`, then ask for decisions. It is the opposite of `OffCLUB`: there users share data
    until they are told apart, here only if they are surely closer to each other than clusters are.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    gap : float, default 1.0
        Estimate γ̂ of the distance between preferences of different clusters, positive, in the unit of
        rewards. A larger one joins more users, and users of different clusters if it is larger than the gap.
    confidence : Confidence, optional
        A rule for both constants in place of alpha and beta, such as `Theory(...)`; `Tuned(alpha=...,
        beta=...)` is the same as alpha and beta.
    alpha : float, optional
        Factor α of the radius f(T), at least 0. Start with σ, the standard deviation of the noise: larger
        joins users later, and with a large one nobody shares. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bound, at least 0. Start with σ, as for `CLUB`. Larger is more cautious; 0 takes the
        largest estimate.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; OffC2LUB draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    Users i and j are neighbours if

        ‖θ̂ᵢ − θ̂_j‖ < γ̂ − f(Tᵢ) − f(T_j).

    The decision for i is the arm of largest

        xᵀθ̂_V − β √(xᵀM_V⁻¹x),   M_V = λI + Σ_{j∈V} Sⱼ,   θ̂_V = M_V⁻¹ Σ_{j∈V} bⱼ

    with V = i and its neighbours. `scores` has −β √(xᵀM_V⁻¹x) as `width`. Rewards that come later may be
    given by `update`; neighbours follow from the data at any time.

    References
    ----------
    Liu, Zhang, Wang, Liu, Lui, Hajiesmaili and Joe-Wong, *Offline clustering of linear bandits: the power of
    clusters under limited data*, arXiv 2505.19043, 2025.

    Examples
    --------
    >>> policy = OffC2LUB(n_users=2, dim=1, gap=1.0, alpha=0.1, beta=0.1)
    >>> policy.fit([0, 0, 1, 1], [[1.0]] * 4, [0.5, 0.5, 0.4, 0.5]).labels().tolist()
    [0, 0]
    """

    declared = Declaration(
        summary="from a log, joins users who are surely similar; decisions by lower confidence bounds",
        use_when="you have a log with few rewards for each user, and know how much clusters differ",
        style=Style("Off-C²LUB", "#999933", "^", "--"),
        grid=Grid(alpha=(0.25, 0.5, 1.0, 2.0), beta=(0.5, 1.0), gap=(0.25, 0.5, 1.0)),
        feedback="logs",
        figures=(),
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        gap: float = 1.0,
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
            gap=gap,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            ridge=ridge,
            seed=seed,
        )

    @staticmethod
    def _plan(n_users: int, dim: int, *, gap: float, confidence: Confidence, ridge: float, seed: int) -> Plan:
        shape, beta = confidence.shape(n_users, dim, ridge), -confidence.bonus(dim, ridge)
        return Plan(SureNeighbours, {"beta": beta, "shape": shape, "gap": positive("gap", gap)})
