"""SCLUB2019: SCLUB by the rules of its first paper."""

from __future__ import annotations

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.confidence import Confidence, choose_confidence
from coterie.policies.declarations import CLUSTER_GRID, Declaration, Style
from coterie.policies.sclub.snapshot_sets import SnapshotSets
from coterie.validation import positive


class SCLUB2019(LinearBandit):
    """Sets that split against a snapshot and merge at half (Li et al. 2019).

    As `SCLUB`, but a user is compared with its cluster as it was when the phase began, not with each member,
    and clusters merge at half of the distance at which users are split.

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
        Factor α of the radius f(T) within which two estimates count as equal, at least 0, in the unit of
        rewards. Set it to 15σ, with σ the standard deviation of the noise: 1.5 for σ = 0.1, 7.5 for clicks.
        The radius of a cluster is small, so that users are separated sooner than by `SCLUB` with the same
        alpha, and merge later. Too small and every user ends up alone, too large and all stay together. Try
        several on a simulation of your size. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0, in the unit of rewards. Set it to σ: 0.1 for σ = 0.1, 0.5 for
        clicks. Smaller exploits more, larger explores more.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; SCLUB2019 draws none.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.
    arrivals : float, optional
        Factor α_p of the test on arrival frequencies, positive: users who come at different rates are
        separated too. Leave it None (no test) if all users come about equally often; the published code has
        √2.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    Each round plays the arm of largest xᵀθ̂_V + β √(xᵀM_V⁻¹x), with V the user's cluster. When a phase
    begins, at t = 1, 2, 4, 8, …, each cluster keeps a snapshot θ̃, T̃ of its estimate and its pulls. The user i
    is split off V if

        ‖θ̂ᵢ − θ̃_V‖ > f(Tᵢ) + f(T̃_V)

    and two clusters whose members were all checked in this phase are merged if
    ‖θ̂¹ − θ̂²‖ < ½(f(T¹) + f(T²)). With `Tuned`, f(T) = α √((1 + ln(1 + T))/(1 + T)).

    Examples
    --------
    >>> policy = SCLUB2019(n_users=3, dim=2, alpha=1.5, beta=0.1)
    >>> policy.cluster_of(1).tolist()
    [0, 1, 2]
    """

    declared = Declaration(
        summary="SCLUB of 2019: splits against a snapshot, merges at half the radius",
        use_when="you compare with the paper of 2019",
        style=Style("SCLUB 2019", "#56B4E9", "s", ":"),
        grid=CLUSTER_GRID,
        cost=20.0,
        figures=("field",),
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
        items: bool = False,
        arrivals: float | None = None,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            growing=growing,
            ridge=ridge,
            seed=seed,
            items=items,
            arrivals=arrivals,
        )

    @staticmethod
    def _plan(
        n_users: int,
        dim: int,
        *,
        confidence: Confidence,
        growing: bool,
        ridge: float,
        seed: int,
        arrivals: float | None,
    ) -> Plan:
        settings = {
            "beta": confidence.bonus(dim, ridge),
            "shape": confidence.shape(n_users, dim, ridge),
            "arrivals": 0.0 if arrivals is None else positive("arrivals", arrivals),
        }
        return Plan(SnapshotSets, settings, growing=growing)
