"""CLUB, UniCLUB and SACLUB: a graph over users loses edges; its components are the clusters."""

from __future__ import annotations

import numpy as np

from coterie.kernels.bits import components
from coterie.kernels.club import Graph
from coterie.kernels.radius import Radius, radius
from coterie.kernels.ridge import pool, where
from coterie.kernels.schedule import Schedule
from coterie.policies.base import Plan, policy
from coterie.policies.confidence import Confidence, constants
from coterie.policies.exploration import never, uniform_first
from coterie.policies.partition import all_radii, complete, empty, join_all
from coterie.types import Floats, Ints


class Components:
    """Rule `CutEdges`: connected components of a graph that loses edges (CLUB)."""

    def __init__(self, n_users: int, dim: int, *, ridge: float, beta: float, shape: Radius) -> None:
        clock = np.array([0, 1], np.int64)
        self.state = Graph(
            users=empty(n_users, dim, ridge),
            grams=np.zeros((n_users, dim, dim)),
            pools=empty(n_users, dim, ridge),
            labels=np.zeros(n_users, np.int64),
            edges=complete(n_users),
            radii=np.full(n_users, radius(shape, 0)),
            epochs=np.zeros(n_users, np.int64),
            clock=clock,
            shape=shape,
            ridge=ridge,
            beta=beta,
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
        state = self.state
        join_all(state.edges, known, len(state.labels))
        state.radii[:] = all_radii(state.shape, state.users.pulls)
        state.clock[1] = components(state.edges, state.labels)
        for row in range(int(state.clock[1])):
            pool(state.pools, row, state.users, state.grams, where(state.labels, row), state.ridge)
        state.epochs[:] += 1


def _plan(n_users: int, dim: int, confidence: Confidence, ridge: float, exploration: Schedule) -> Plan:
    beta, shape = constants(confidence, n_users, dim, ridge)
    return Plan(Components(n_users, dim, ridge=ridge, beta=beta, shape=shape), exploration)


@policy
def CLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """Clustering of bandits by a graph, always UCB (Gentile et al. 2014).

    >>> from coterie.policies.confidence import Tuned
    >>> CLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.0, beta=0.5)).labels().tolist()
    [0, 0, 0]
    """
    return _plan(n_users, dim, confidence, ridge, never())


@policy
def UniCLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """CLUB after T0 rounds of uniform exploration (Alg. 1).

    >>> from coterie.policies.confidence import Tuned
    >>> UniCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.0, beta=0.5, explore=10)).exploring
    True
    """
    return _plan(n_users, dim, confidence, ridge, uniform_first(confidence.exploration(n_users, dim)))


@policy
def SACLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """CLUB for smoothed adversarial contexts: its confidence is `Smoothed` (Sec. 4.2).

    >>> from coterie.policies.confidence import Smoothed
    >>> confidence = Smoothed(horizon=1000, sigma=0.3, n_arms=10, truncation=1.0)
    >>> SACLUB(n_users=3, dim=2, confidence=confidence).exploring
    False
    """
    return _plan(n_users, dim, confidence, ridge, never())
