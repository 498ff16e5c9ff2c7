"""DynUCB: a given number of clusters, and users who move to the nearest one."""

from __future__ import annotations

import numpy as np

from coterie.policies._dynucb import NearestCentroid
from coterie.policies.base import Plan
from coterie.policies.entries import Grid, Style, geometric, register
from coterie.seeding import stream
from coterie.validation import nonnegative, whole


@register(
    summary="a given number of clusters; users move to the nearest",
    use_when="the number of clusters is known",
    style=Style("DynUCB", "#8C6D31", "p", "-."),
    grid=Grid(alpha=geometric(0.05, 2.0, 6), n_clusters=(4, 8, 16, 32)),
    cost=20.0,
)
def DynUCB(
    n_users: int,
    dim: int,
    *,
    n_clusters: int = 4,
    alpha: float = 1.0,
    ridge: float = 1.0,
    seed: int = 0,
) -> Plan:
    """Dynamic clustering of bandits by k-means, always UCB   (Nguyen and Lauw 2014).

    Users start in random clusters. After each reward the user moves to the cluster whose pooled estimate is
    nearest.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    n_clusters : int
        How many clusters there are; it never changes.
    alpha : float
        The factor of the bonus, which also grows with √ln(t + 1). With noise of standard deviation σ, α ≈ σ
        is a place to start.
    ridge : float
        λ of all ridge regressions.
    seed : int
        Seed of the clusters that users begin in.

    Examples
    --------
    >>> policy = DynUCB(n_users=3, dim=2, n_clusters=2)
    >>> policy.update(0, [1.0, 0.0], 1.0)
    >>> policy.recommend(0, [[0.1, 0.0], [0.9, 0.0]])
    1
    """
    count = whole("n_clusters", n_clusters, 1)
    start = (stream(seed, "clusters").random(n_users) * count).astype(np.int64)
    settings = {"start": start, "n_clusters": count, "alpha": nonnegative("alpha", alpha)}
    return Plan(NearestCentroid, settings)
