"""CAB: context-aware clusters, another one for each arm."""

from __future__ import annotations

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.declarations import Declaration, Grid, Style, geometric
from coterie.policies.neighbours.context_clusters import ContextClusters
from coterie.validation import nonnegative


class CAB(LinearBandit):
    """Neighbours are found for each arm anew (Gentile et al. 2017).

    Two users are neighbours on an arm if their estimated rewards of it differ by less than both widths
    together. An arm's score is the mean over the neighbourhood; a reward is shared with those neighbours who
    are sure of the arm.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    alpha : float, default 0.5
        Factor α of the width, at least 0, in the unit of rewards. Set it to the standard deviation σ of the
        noise or less: the width also grows with √ln(t + 1). It makes neighbourhoods larger, too.
    gamma : float, default 0.5
        Gap γ of rewards that matters, at least 0: widths below γ/4 share rewards. 0 shares none.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's random numbers, at least 0; CAB draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    With CB_j(x) = α √(xᵀM_j⁻¹x · ln(t + 1)), the neighbourhood of the user i on x is i itself and all j who
    have come before with |xᵀθ̂ᵢ − xᵀθ̂_j| ≤ CBᵢ(x) + CB_j(x). The score of x is the mean of xᵀθ̂_j plus the mean
    of CB_j(x) over it. Neighbourhoods belong to arms: `labels` and `cluster_of` show each user alone.

    Examples
    --------
    >>> policy = CAB(n_users=3, dim=2, alpha=0.1)
    >>> policy.update(0, [1.0, 0.0], 1.0)
    >>> policy.recommend(0, [[0.1, 0.0], [0.9, 0.0]])
    1
    """

    declared = Declaration(
        summary="for each arm, pools the users whose estimates agree on it",
        use_when="which users are similar depends on the item",
        style=Style("CAB", "#5B7DB1", ">", "-."),
        grid=Grid(alpha=geometric(0.05, 2.0, 6), gamma=(0.1, 0.2, 0.5, 1.0)),
        cost=1000.0,
        figures=("field",),
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        alpha: float = 0.5,
        gamma: float = 0.5,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, alpha=alpha, gamma=gamma, ridge=ridge, seed=seed)

    @staticmethod
    def _plan(n_users: int, dim: int, *, alpha: float, gamma: float, ridge: float, seed: int) -> Plan:
        settings = {"alpha": nonnegative("alpha", alpha), "shared": nonnegative("gamma", gamma) / 4}
        return Plan(ContextClusters, settings)
