"""OffCLUB: clusters from a log, and decisions by lower confidence bounds."""

from __future__ import annotations

from coterie.policies.club.neighbourhoods import Neighbourhoods
from coterie.policies.confidence import Confidence
from coterie.policies.entries import ALPHAS, Grid, Style, register
from coterie.policies.plans import Plan


@register(
    summary="clusters from a log; decisions by lower confidence bounds",
    use_when="you have a log, and decisions will get no feedback",
    style=Style("Off-CLUB", "#999933", "v", ":"),
    grid=Grid(alpha=ALPHAS, beta=(0.25, 0.5, 1.0, 2.0)),
)
def OffCLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """Make an OffCLUB policy: users who are alike in a log, and cautious decisions   (Liu et al. 2025).

    Give it a log by `fit`, then ask for decisions. Users are compared once, by all their data; each learns
    from those who were not told apart from it. An arm about which little is known is avoided, where other
    policies would try it out.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence
        β of the bound and the radius f(T) within which estimates count as equal. Use
        `Tuned(alpha=15σ, beta=σ)` with σ the standard deviation of the noise, as for `CLUB`; with little data
        for each user try less. Larger beta is more cautious; 0 takes the largest estimate.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; OffCLUB draws none.

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
    >>> from coterie import Tuned
    >>> policy = OffCLUB(n_users=2, dim=2, confidence=Tuned(alpha=1.5, beta=0.1))
    >>> policy.fit([0, 0, 1], [[1.0, 0.0], [0.8, 0.6], [1.0, 0.0]], [0.3, 0.2, 0.3]).rounds
    3
    >>> policy.recommend(1, [[0.9, 0.0], [0.0, 0.9]])  # the second is unknown
    0
    """
    shape = confidence.shape(n_users, dim, ridge)
    return Plan(Neighbourhoods, {"beta": -confidence.bonus(dim, ridge), "shape": shape, "first": 0})
