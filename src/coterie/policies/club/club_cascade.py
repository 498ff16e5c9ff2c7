"""CLUBCascade: CLUB for ranked lists, which users scan from the top until the first click."""

from __future__ import annotations

from coterie.policies.club.components import Components
from coterie.policies.confidence import Confidence
from coterie.policies.entries import ALPHAS, Grid, Style, register
from coterie.policies.plans import Plan

CERTAIN = 1.0
"""The most that a score counts: it bounds a probability."""


@register(
    summary="CLUB for ranked lists; scores clipped at 1",
    use_when="you show lists, and need a baseline with clusters",
    style=Style("CLUB-cascade", "#E69F00", "s", "-."),
    grid=Grid(alpha=ALPHAS, beta=(0.25, 0.5, 1.0, 2.0)),
)
def CLUBCascade(
    n_users: int,
    dim: int,
    *,
    confidence: Confidence,
    growing: bool = False,
    ridge: float = 1.0,
    seed: int = 0,
) -> Plan:
    """Make a CLUBCascade policy: CLUB that learns from first clicks on lists   (Li and Zhang 2018).

    Use it with `recommend_list` and `update_list`. All users are connected at the start. When the estimates
    of two users differ too much their edge is cut; the connected components are the clusters.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence
        β of the bonus and the radius f(T) within which estimates count as equal. Use
        `Tuned(alpha=15σ, beta=σ)` with σ = √(p(1 − p)) for items that attract with probability p:
        `Tuned(alpha=4.5, beta=0.3)` for p = 0.1. T counts the items that a user has looked at.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; CLUBCascade draws none.

    Returns
    -------
    LinearBandit
        The policy, before its first round.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or `confidence` is no `Confidence`.

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
    >>> from coterie import Tuned
    >>> policy = CLUBCascade(n_users=3, dim=3, confidence=Tuned(alpha=4.5, beta=0.3))
    >>> policy.update_list(0, np.eye(3), 1)
    >>> policy.pulls.tolist()
    [2, 0, 0]
    """
    settings = {"beta": confidence.bonus(dim, ridge), "shape": confidence.shape(n_users, dim, ridge)}
    return Plan(Components, settings, growing=growing, limit=CERTAIN)
