"""GOB.Lin and GraphUCB: a graph over users is given; nothing is clustered."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from coterie.policies._laplacian import JointRidge, WalkRidge
from coterie.policies.base import Plan
from coterie.policies.entries import Grid, Style, geometric, register
from coterie.validation import flag, nonnegative, probability, user_graph

GRID = Grid(alpha=geometric(0.1, 5.0, 12), ridge=(0.1, 1.0))
WALK_FLOOR = 0.01
"""Added to the random-walk Laplacian, which is singular by itself."""


@register(
    summary="friends in a given graph share what they learn",
    use_when="a social graph is at hand",
    style=Style("GOB.Lin", "#009E73", "<", "-."),
    grid=GRID,
    cost=250.0,
    clusters=False,
)
def GOBLin(
    n_users: int,
    dim: int,
    *,
    graph: ArrayLike,
    alpha: float = 1.0,
    growing: bool = False,
    ridge: float = 1.0,
    seed: int = 0,
) -> Plan:
    """A gang of bandits: friends share what they learn   (Cesa-Bianchi et al. 2013).

    All users are in one regression of n_users · dim numbers, with λ(I + D − A) ⊗ I as regulariser.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    graph : array_like or sparse matrix, shape (n_users, n_users)
        Symmetric weights of at least 0 between users, zeros on the diagonal.
    alpha : float
        The factor of the width; with noise of standard deviation σ, α ≈ σ is a place to start.
    growing : bool
        Whether to multiply the width by √ln(t + 1) as well, as the source does.
    ridge : float
        λ of the regulariser.
    seed : int
        Seed of the policy's own random numbers; GOB.Lin draws none.

    Examples
    --------
    >>> GOBLin(n_users=2, dim=1, graph=[[0, 1], [1, 0]], alpha=0.5).recommend(0, [[0.1], [0.9]])
    1
    """
    friends = user_graph(graph, n_users)
    settings = {
        "penalty": ridge * (np.eye(n_users) + np.diag(friends.sum(axis=1)) - friends),
        "weights": np.ones(n_users),
        "alpha": nonnegative("alpha", alpha),
        "growing": flag("growing", growing),
    }
    return Plan(JointRidge, settings)


@register(
    summary="estimates smooth over a given graph",
    use_when="a social graph is at hand, degrees differ",
    style=Style("GraphUCB", "#4B0092", ">", "-."),
    grid=GRID,
    cost=400.0,
    clusters=False,
)
def GraphUCB(
    n_users: int,
    dim: int,
    *,
    graph: ArrayLike,
    alpha: float = 1.0,
    growing: bool = False,
    delta: float = 0.01,
    ridge: float = 1.0,
    seed: int = 0,
) -> Plan:
    """Bandits smooth over a graph by its random-walk Laplacian   (Yang et al. 2020).

    λ(ℒ + εI) ⊗ I + Σφφᵀ is not symmetric; multiplied by the degrees it is, with data weighted by them.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    graph : array_like or sparse matrix, shape (n_users, n_users)
        Symmetric weights of at least 0 between users, zeros on the diagonal.
    alpha : float
        The factor of the width; with `growing` the noise σ in the time-dependent β of the source.
    growing : bool
        Whether to use that β.
    delta : float
        The growing bonus holds with probability 1 − `delta`.
    ridge : float
        λ of the regulariser.
    seed : int
        Seed of the policy's own random numbers; GraphUCB draws none.

    Examples
    --------
    >>> GraphUCB(n_users=2, dim=1, graph=[[0, 1], [1, 0]], alpha=0.5).recommend(0, [[0.1], [0.9]])
    1
    """
    friends = user_graph(graph, n_users)
    totals = friends.sum(axis=1)
    degrees = np.where(totals > 0, totals, 1.0)
    laplacian = np.diag(totals) - friends
    settings = {
        "penalty": ridge * (laplacian + WALK_FLOOR * np.diag(degrees)),
        "weights": degrees,
        "walk": laplacian / degrees[:, None],
        "alpha": nonnegative("alpha", alpha),
        "growing": flag("growing", growing),
        "delta": probability("delta", delta),
    }
    return Plan(WalkRidge, settings)
