"""AutoCLUB: clustering of bandits without constants to set."""

from __future__ import annotations

import numpy as np

from coterie.kernels.alternatives import Evidence
from coterie.kernels.autoclub import FIRST_REVIEW
from coterie.kernels.prior import NOISE2, WEIGHT, Prior, acting_weight
from coterie.kernels.ridge import clear, where
from coterie.policies.base import Plan, policy
from coterie.policies.exploration import never
from coterie.policies.partition import empty
from coterie.types import Floats, Ints


class ByEvidence:
    """Rule `ByEvidence`: a user is where the evidence of its data is greatest."""

    def __init__(self, n_users: int, dim: int, *, ridge: float) -> None:
        sizes = np.zeros(n_users, np.int64)
        sizes[0] = n_users
        numbers = np.zeros(7)
        numbers[NOISE2], numbers[WEIGHT] = 1.0, ridge
        self.state = Evidence(
            grams=np.zeros((n_users, dim, dim)),
            moments=np.zeros((n_users, dim)),
            squares=np.zeros(n_users),
            pulls=np.zeros(n_users, np.int64),
            labels=np.zeros(n_users, np.int64),
            shares=np.ones(n_users),
            mixtures=np.zeros((n_users, dim)),
            due=np.full(n_users, FIRST_REVIEW, np.int64),
            pools=empty(n_users, dim, ridge),
            pool_grams=np.zeros((n_users, dim, dim)),
            weights=np.full(n_users, ridge),
            sizes=sizes,
            prior=Prior(
                numbers=numbers,
                sums=np.zeros(7),
                mean=np.zeros(dim),
                total=np.zeros(dim),
                terms=np.zeros((n_users, 7)),
                votes=np.zeros((n_users, dim)),
            ),
            epochs=np.zeros(n_users, np.int64),
            clock=np.array([0, 1], np.int64),
            ridge=ridge,
        )

    def labels(self) -> Ints:
        return self.state.labels

    def cluster_of(self, user: int) -> Ints:
        return where(self.state.labels, int(self.state.labels[user]))

    def estimates(self) -> Floats:
        """Each user's own ridge regression; what it acts on is in `scores`."""
        state = self.state
        own = state.grams + state.ridge * np.eye(state.moments.shape[1])
        fits: Floats = np.linalg.solve(own, state.moments[:, :, None])[:, :, 0].astype(np.float64)
        return fits

    def pulls(self) -> Ints:
        return self.state.pulls

    def welcome(self, known: int) -> None:
        """Newcomers start together about the mean preference, in a cluster that nobody has taught yet."""
        state = self.state
        waiting = np.flatnonzero((state.sizes > 0) & (state.pools.pulls == 0))
        row = int(waiting[0]) if len(waiting) else self._open()
        state.pools.estimate[row] = state.prior.mean
        state.labels[known:] = row
        state.sizes[row] += len(state.labels) - known

    def _open(self) -> int:
        """A row without data for one more cluster."""
        state = self.state
        row, weight = int(np.argmin(state.sizes)), acting_weight(state.prior, state.ridge)
        clear(state.pools, row, weight)
        state.weights[row] = weight
        state.pool_grams[row] = 0.0
        state.epochs[row] += 1
        state.clock[1] += 1
        return row


@policy
def AutoCLUB(n_users: int, dim: int, *, ridge: float = 1.0, seed: int = 0) -> Plan:
    """Clustering by evidence: no gap, no noise level, no horizon, no constants.

    >>> AutoCLUB(n_users=3, dim=2).labels().tolist()
    [0, 0, 0]
    """
    return Plan(ByEvidence(n_users, dim, ridge=ridge), never())
