"""DynUCB: a given number of clusters, and users who move to the nearest one."""

from __future__ import annotations

import numpy as np

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.declarations import Declaration, Grid, Style, geometric
from coterie.policies.dynamic.nearest_centroid import NearestCentroid
from coterie.seeding import stream
from coterie.validation import nonnegative, whole


class DynUCB(LinearBandit):
    """A fixed number of clusters, found by k-means (Nguyen and Lauw 2014).

    Users start in random clusters. After each reward the user moves to the cluster whose pooled estimate is
    nearest.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    n_clusters : int, default 4
        Number of clusters, at least 1; it never changes. Set it to the number that you know; if you do not,
        rather too many than too few, or use `AutoCLUB`.
    alpha : float, default 1.0
        Factor α of the bonus, at least 0, in the unit of rewards. Set it to the standard deviation σ of the
        noise or a little less: the bonus also grows with √ln(t + 1).
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the clusters that users start in, at least 0.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    Each round plays the arm of largest xᵀθ̂_V + α √(xᵀM_V⁻¹x · ln(t + 1)), with V the user's cluster. Then
    the user i moves to the cluster k of least ‖θ̂ᵢ − θ̂_k‖.

    Examples
    --------
    >>> policy = DynUCB(n_users=3, dim=2, n_clusters=2, alpha=0.1)
    >>> policy.update(0, [1.0, 0.0], 1.0)
    >>> policy.recommend(0, [[0.1, 0.0], [0.9, 0.0]])
    1
    """

    declared = Declaration(
        summary="a given number of clusters; each user moves to the nearest",
        use_when="the number of clusters is known",
        style=Style("DynUCB", "#8C6D31", "p", "-."),
        grid=Grid(alpha=geometric(0.05, 2.0, 6), n_clusters=(4, 8, 16, 32)),
        cost=20.0,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        n_clusters: int = 4,
        alpha: float = 1.0,
        ridge: float = 1.0,
        seed: int = 0,
        items: bool = False,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users, dim, n_clusters=n_clusters, alpha=alpha, ridge=ridge, seed=seed, items=items
        )

    @staticmethod
    def _plan(n_users: int, dim: int, *, n_clusters: int, alpha: float, ridge: float, seed: int) -> Plan:
        count = whole("n_clusters", n_clusters, 1, 2**20)
        start = (stream(seed, "clusters").random(n_users) * count).astype(np.int64)
        settings = {"start": start, "n_clusters": count, "alpha": nonnegative("alpha", alpha)}
        return Plan(NearestCentroid, settings)
