"""AutoCLUB: clustering of bandits without constants to set."""

from __future__ import annotations

import numpy as np

from coterie.kernels.autoclub import FIRST_REVIEW, NOISE2, WEIGHT, Evidence
from coterie.kernels.ridge import where
from coterie.policies.base import Plan, policy
from coterie.policies.exploration import never
from coterie.policies.partition import empty
from coterie.types import Floats, Ints


class ByEvidence:
    """Rule `ByEvidence`: a user is where its data is explained best."""

    def __init__(self, n_users: int, dim: int, *, ridge: float) -> None:
        sizes = np.zeros(n_users, np.int64)
        sizes[0] = n_users
        scalars = np.zeros(7)
        scalars[NOISE2], scalars[WEIGHT] = 1.0, ridge
        logdet = dim * np.log(ridge)
        self.state = Evidence(
            users=empty(n_users, dim, ridge),
            grams=np.zeros((n_users, dim, dim)),
            logdets=np.full(n_users, logdet),
            weights=np.full(n_users, ridge),
            squares=np.zeros(n_users),
            pools=empty(n_users, dim, ridge),
            pool_grams=np.zeros((n_users, dim, dim)),
            pool_logdets=np.full(n_users, logdet),
            pool_weights=np.full(n_users, ridge),
            sizes=sizes,
            labels=np.zeros(n_users, np.int64),
            shares=np.ones(n_users),
            doubts=np.zeros(n_users),
            mixtures=np.zeros((n_users, dim)),
            terms=np.zeros((n_users, 4)),
            due=np.full(n_users, FIRST_REVIEW, np.int64),
            scalars=scalars,
            epochs=np.zeros(n_users, np.int64),
            clock=np.array([0, 1], np.int64),
            ridge=ridge,
        )

    def labels(self) -> Ints:
        return self.state.labels

    def cluster_of(self, user: int) -> Ints:
        return where(self.state.labels, int(self.state.labels[user]))

    def estimates(self) -> Floats:
        return self.state.users.estimate

    def pulls(self) -> Ints:
        return self.state.users.pulls

    def welcome(self, known: int) -> None:
        """Newcomers join the largest cluster, the best guess for somebody unknown."""
        state = self.state
        row = int(np.argmax(np.bincount(state.labels[:known], minlength=len(state.sizes))))
        state.labels[known:] = row
        state.sizes[row] += len(state.labels) - known


@policy
def AutoCLUB(n_users: int, dim: int, *, ridge: float = 1.0, seed: int = 0) -> Plan:
    """Clustering by evidence: no gap, no noise level, no horizon, no constants.

    >>> AutoCLUB(n_users=3, dim=2).labels().tolist()
    [0, 0, 0]
    """
    return Plan(ByEvidence(n_users, dim, ridge=ridge), never())
