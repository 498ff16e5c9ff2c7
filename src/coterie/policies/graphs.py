"""GOB.Lin and GraphUCB: a graph over users is given; nothing is clustered."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from coterie.checks import flag, nonnegative, probability
from coterie.kernels.joint import Joint, Laplacian
from coterie.policies.base import Plan, policy
from coterie.policies.checks import user_graph
from coterie.policies.exploration import never
from coterie.policies.partition import empty
from coterie.types import Floats, Ints

WALK_FLOOR = 0.01
"""Added to the random-walk Laplacian, which is singular by itself."""


def joint_ridge(
    penalty: Floats, weights: Floats, dim: int, *, ridge: float, alpha: float, source: bool
) -> Joint:
    """V = penalty ⊗ I at the start."""
    n = len(penalty)
    inverse = np.kron(np.linalg.inv(penalty), np.eye(dim)).reshape(n, dim, n, dim)
    return Joint(
        inverse=0.5 * (inverse + inverse.transpose(2, 3, 0, 1)),
        moment=np.zeros((n, dim)),
        estimate=np.zeros((n, dim)),
        weights=weights,
        pulls=np.zeros(n, np.int64),
        epochs=np.zeros(n, np.int64),
        clock=np.zeros(1, np.int64),
        ridge=ridge,
        alpha=alpha,
        source=source,
    )


class GraphRidge:
    """All users in one regression, with (I + D − A) ⊗ I as regulariser (GOB.Lin)."""

    def __init__(self, graph: Floats, dim: int, *, ridge: float, alpha: float, source: bool) -> None:
        n = len(graph)
        penalty = ridge * (np.eye(n) + np.diag(graph.sum(axis=1)) - graph)
        self.state = joint_ridge(penalty, np.ones(n), dim, ridge=ridge, alpha=alpha, source=source)

    def labels(self) -> Ints:
        return np.arange(len(self.state.pulls))

    def cluster_of(self, user: int) -> Ints:
        return np.array([user], np.int64)

    def estimates(self) -> Floats:
        return self.state.estimate

    def pulls(self) -> Ints:
        return self.state.pulls

    def welcome(self, known: int) -> None:
        """Newcomers have no edges; their block of the inverse stands at its start."""


class WalkRidge:
    """All users in one regression, with the random-walk Laplacian as regulariser (GraphUCB).

    λ(ℒ + εI) ⊗ I + Σφφᵀ is not symmetric; multiplied by the degrees it is, with data weighted by them.
    """

    def __init__(
        self, graph: Floats, dim: int, *, ridge: float, alpha: float, source: bool, delta: float
    ) -> None:
        n = len(graph)
        totals = graph.sum(axis=1)
        degrees = np.where(totals > 0, totals, 1.0)
        laplacian = np.diag(totals) - graph
        joint = joint_ridge(
            ridge * (laplacian + WALK_FLOOR * np.diag(degrees)),
            degrees,
            dim,
            ridge=ridge,
            alpha=alpha,
            source=source,
        )
        self.state = Laplacian(
            joint=joint,
            users=empty(n, dim, ridge),
            grams=np.zeros((n, dim, dim)),
            logdets=np.zeros(n),
            walk=laplacian / degrees[:, None],
            epochs=np.zeros(n, np.int64),
            clock=np.zeros(1, np.int64),
            ridge=ridge,
            alpha=alpha,
            source=source,
            delta=delta,
        )

    def labels(self) -> Ints:
        return np.arange(len(self.state.logdets))

    def cluster_of(self, user: int) -> Ints:
        return np.array([user], np.int64)

    def estimates(self) -> Floats:
        return self.state.joint.estimate

    def pulls(self) -> Ints:
        return self.state.users.pulls

    def welcome(self, known: int) -> None:
        """Newcomers have no edges; their block of the inverse stands at its start."""


@policy
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
    """A gang of bandits: friends share what they learn (Cesa-Bianchi et al. 2013).

    `alpha` multiplies the width; `growing` multiplies it by √ln(t + 1) as well, as the source does.

    >>> GOBLin(n_users=2, dim=1, graph=[[0, 1], [1, 0]], alpha=0.5).recommend(0, [[0.1], [0.9]])
    1
    """
    friends = user_graph(graph, n_users)
    return Plan(
        GraphRidge(
            friends, dim, ridge=ridge, alpha=nonnegative("alpha", alpha), source=flag("growing", growing)
        ),
        never(),
    )


@policy
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
    """Bandits smooth over a graph by its random-walk Laplacian (Yang et al. 2020).

    `alpha` multiplies the width; with `growing` it is the noise σ in the time-dependent β of the source,
    which holds with probability 1 − `delta`.

    >>> GraphUCB(n_users=2, dim=1, graph=[[0, 1], [1, 0]], alpha=0.5).recommend(0, [[0.1], [0.9]])
    1
    """
    friends = user_graph(graph, n_users)
    walk = WalkRidge(
        friends,
        dim,
        ridge=ridge,
        alpha=nonnegative("alpha", alpha),
        source=flag("growing", growing),
        delta=probability("delta", delta),
    )
    return Plan(walk, never())
