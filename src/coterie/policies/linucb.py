"""LinUCB for all users together, for each alone, or for known clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from coterie.checks import nonnegative
from coterie.kernels.fixed import Fixed
from coterie.kernels.ridge import where
from coterie.policies.base import Plan, policy
from coterie.policies.checks import label_vector
from coterie.policies.exploration import never
from coterie.policies.partition import by_appearance, empty
from coterie.types import Floats, Ints


class FixedLabels:
    """Rule `Keep`: labels that never change (LinUCB for all, for each, or for known clusters)."""

    def __init__(self, labels: Ints, dim: int, *, ridge: float, beta: float) -> None:
        rows = by_appearance(labels)
        n, pools = len(labels), int(rows.max()) + 1
        self.state = Fixed(
            pools=empty(pools, dim, ridge),
            labels=rows,
            pulls=np.zeros(n, np.int64),
            epochs=np.zeros(pools, np.int64),
            clock=np.zeros(1, np.int64),
            ridge=ridge,
            beta=beta,
        )

    def labels(self) -> Ints:
        return self.state.labels

    def cluster_of(self, user: int) -> Ints:
        return where(self.state.labels, int(self.state.labels[user]))

    def estimates(self) -> Floats:
        return self.state.pools.estimate[self.state.labels]

    def pulls(self) -> Ints:
        return self.state.pulls

    def welcome(self, known: int) -> None:
        """Nothing to do: labels come with the arguments."""


@policy
def LinUCBOne(n_users: int, dim: int, *, beta: float = 1.0, ridge: float = 1.0, seed: int = 0) -> Plan:
    """One LinUCB shared by all users: right when everybody wants the same.

    >>> import numpy as np
    >>> policy = LinUCBOne(n_users=2, dim=2, beta=0.5)
    >>> policy.update(0, np.array([1.0, 0.0]), 1.0)
    >>> policy.recommend(1, np.eye(2))
    0
    """
    labels = np.zeros(n_users, np.int64)
    return Plan(FixedLabels(labels, dim, ridge=ridge, beta=nonnegative("beta", beta)), never())


@policy
def LinUCBInd(n_users: int, dim: int, *, beta: float = 1.0, ridge: float = 1.0, seed: int = 0) -> Plan:
    """A LinUCB for each user: right when nobody resembles anybody.

    >>> LinUCBInd(n_users=3, dim=2, beta=0.5).labels().tolist()
    [0, 1, 2]
    """
    return Plan(FixedLabels(np.arange(n_users), dim, ridge=ridge, beta=nonnegative("beta", beta)), never())


@policy
def LinUCBOracle(
    n_users: int, dim: int, *, labels: ArrayLike, beta: float = 1.0, ridge: float = 1.0, seed: int = 0
) -> Plan:
    """A LinUCB for each known cluster: how well clustering could do at best.

    >>> LinUCBOracle(n_users=4, dim=2, labels=[1, 1, 0, 1]).cluster_of(0).tolist()
    [0, 1, 3]
    """
    known = label_vector(labels, n_users)
    return Plan(FixedLabels(known, dim, ridge=ridge, beta=nonnegative("beta", beta)), never())
