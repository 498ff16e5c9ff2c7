"""SCLUB, UniSCLUB and SASCLUB: clusters are sets of users that split and merge."""

from __future__ import annotations

import numpy as np

from coterie.checks import positive
from coterie.kernels.radius import Radius, radius
from coterie.kernels.ridge import pool, where
from coterie.kernels.schedule import Schedule
from coterie.kernels.sclub import Sets
from coterie.policies.base import Plan, policy
from coterie.policies.confidence import FOREVER, Confidence, constants
from coterie.policies.exploration import never, uniform_first
from coterie.policies.partition import all_radii, empty
from coterie.types import Floats, Ints


class SplitMerge:
    """Rule `SplitMerge`: sets of users that part and meet (SCLUB)."""

    def __init__(
        self, n_users: int, dim: int, *, ridge: float, beta: float, shape: Radius, arrivals: float
    ) -> None:
        alone = np.zeros(n_users, np.int64)
        alone[0] = n_users
        self.state = Sets(
            users=empty(n_users, dim, ridge),
            grams=np.zeros((n_users, dim, dim)),
            pools=empty(n_users, dim, ridge),
            labels=np.zeros(n_users, np.int64),
            checked=np.zeros(n_users, np.bool_),
            sizes=alone,
            unchecked=alone.copy(),
            order=np.zeros(n_users, np.int64),
            radii=np.full(n_users, radius(shape, 0)),
            epochs=np.zeros(n_users, np.int64),
            clock=np.array([0, 1, 1, 0], np.int64),
            shape=shape,
            ridge=ridge,
            beta=beta,
            arrivals=arrivals,
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
        """Newcomers start as one set of their own, the youngest, unchecked; it merges like any other."""
        state = self.state
        fresh = int(np.flatnonzero(state.sizes[: state.clock[2] + 1] == 0)[0])
        state.clock[2] = max(int(state.clock[2]), fresh + 1)
        state.labels[known:] = fresh
        state.checked[known:] = False
        state.sizes[fresh] = state.unchecked[fresh] = len(state.labels) - known
        state.order[state.clock[1]] = fresh
        state.clock[1] += 1
        state.clock[3] = 1
        pool(state.pools, fresh, state.users, state.grams, where(state.labels, fresh), state.ridge)
        state.radii[:] = all_radii(state.shape, state.users.pulls)
        state.epochs[:] += 1


def _plan(
    n_users: int, dim: int, confidence: Confidence, ridge: float, exploration: Schedule, arrivals: float = 0.0
) -> Plan:
    beta, shape = constants(confidence, n_users, dim, ridge)
    sets = SplitMerge(n_users, dim, ridge=ridge, beta=beta, shape=shape, arrivals=arrivals)
    return Plan(sets, exploration)


@policy
def SCLUB(
    n_users: int,
    dim: int,
    *,
    confidence: Confidence,
    ridge: float = 1.0,
    seed: int = 0,
    arrivals: float | None = None,
) -> Plan:
    """Clustering of bandits by sets, always UCB (Li et al. 2019).

    `arrivals` is α_p of the arrival-frequency test, for users who do not arrive uniformly.

    >>> from coterie.policies.confidence import Tuned
    >>> SCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.0, beta=0.5)).cluster_of(1).tolist()
    [0, 1, 2]
    """
    alpha_p = 0.0 if arrivals is None else positive("arrivals", arrivals)
    return _plan(n_users, dim, confidence, ridge, never(), alpha_p)


@policy
def UniSCLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """SCLUB after 2·T0 rounds of uniform exploration (Alg. 3).

    >>> from coterie.policies.confidence import Tuned
    >>> UniSCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.0, beta=0.5, explore=10)).exploring
    True
    """
    length = min(2 * confidence.exploration(n_users, dim), FOREVER)
    return _plan(n_users, dim, confidence, ridge, uniform_first(length))


@policy
def SASCLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """SCLUB for smoothed adversarial contexts: its confidence is `Smoothed` (Sec. 4.2).

    >>> from coterie.policies.confidence import Smoothed
    >>> confidence = Smoothed(horizon=1000, sigma=0.3, n_arms=10, truncation=1.0)
    >>> SASCLUB(n_users=3, dim=2, confidence=confidence).exploring
    False
    """
    return _plan(n_users, dim, confidence, ridge, never())
