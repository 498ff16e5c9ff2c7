"""PhaseUniCLUB: exploration in phases, for when the gap between clusters is not known."""

from __future__ import annotations

import numpy as np

from coterie.kernels.bits import components, listed
from coterie.kernels.phase import Rooms
from coterie.kernels.radius import Radius, radius
from coterie.kernels.schedule import Schedule
from coterie.policies.base import Plan, policy
from coterie.policies.confidence import Confidence, constants
from coterie.policies.partition import all_radii, complete, empty, join_all
from coterie.types import Floats, Ints


class Neighbourhoods:
    """Rule `Neighbours`: each user learns from its direct neighbours (PhaseUniCLUB)."""

    def __init__(
        self, n_users: int, dim: int, *, ridge: float, beta: float, shape: Radius, first: int
    ) -> None:
        edges = complete(n_users)
        self.state = Rooms(
            users=empty(n_users, dim, ridge),
            grams=np.zeros((n_users, dim, dim)),
            pools=empty(n_users, dim, ridge),
            edges=edges,
            room=np.full(n_users, -1, np.int64),
            tenants=np.zeros(n_users, np.int64),
            members=np.zeros_like(edges),
            radii=np.full(n_users, radius(shape, 0)),
            epochs=np.zeros(n_users, np.int64),
            clock=np.zeros(2, np.int64),
            shape=shape,
            ridge=ridge,
            beta=beta,
            first=first,
        )

    def labels(self) -> Ints:
        """Connected components: the coarsest reading of neighbourhoods that is a partition."""
        labels = np.empty(len(self.state.room), np.int64)
        components(self.state.edges, labels)
        return labels

    def cluster_of(self, user: int) -> Ints:
        around = listed(self.state.edges[user], len(self.state.room))
        return np.sort(np.append(around, user))

    def estimates(self) -> Floats:
        return self.state.users.estimate

    def pulls(self) -> Ints:
        return self.state.users.pulls

    def welcome(self, known: int) -> None:
        state = self.state
        join_all(state.edges, known, len(state.room))
        state.room[:] = -1
        state.tenants[:] = 0
        state.clock[1] = 0
        state.radii[:] = all_radii(state.shape, state.users.pulls)
        state.epochs[:] += 1


@policy
def PhaseUniCLUB(
    n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0
) -> Plan:
    """CLUB that explores at the start of ever longer phases and pools direct neighbours only (Alg. 2).

    >>> from coterie.policies.confidence import Tuned
    >>> policy = PhaseUniCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.0, beta=0.5, explore=10, phase=5))
    >>> policy.cluster_of(1).tolist()
    [0, 1, 2]
    """
    first, phase, growth = confidence.phases(n_users, dim)
    schedule = Schedule(int(first), float(phase), float(growth))
    beta, shape = constants(confidence, n_users, dim, ridge)
    around = Neighbourhoods(n_users, dim, ridge=ridge, beta=beta, shape=shape, first=schedule.first)
    return Plan(around, schedule)
