"""SCLUB2019, as docs/algorithms/sclub2019.md states it.

"Row n" is the n-th row of the table there.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reference.lists import observed
from reference.sclub import arrival_radius
from reference.users import Array, Users


class Snapshot(NamedTuple):
    """θ̃ and T̃: a cluster as it was when the phase began."""

    estimate: Array
    pulls: int


class Cluster:
    """Members of a set, and its snapshot."""

    def __init__(self, members: set[int], snapshot: Snapshot) -> None:
        self.members = members
        self.snapshot = snapshot


class SCLUB2019(Users):
    """Sets that split against a snapshot of themselves and merge at half the distance."""

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        ridge: float,
        beta: float,
        radius: Callable[[int], float],
        arrivals: float | None = None,
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.beta, self.radius, self.arrivals = beta, radius, arrivals
        nothing = Snapshot(np.zeros(dim), 0)
        self.sets = [Cluster(set(range(n_users)), nothing)]  # Row 1; oldest first
        self.checked: set[int] = set()

    @property
    def exploring(self) -> bool:
        return False

    def home(self, user: int) -> Cluster:
        return next(cluster for cluster in self.sets if user in cluster.members)

    def clusters(self) -> list[frozenset[int]]:
        return [frozenset(self.home(i).members) for i in range(self.n_users)]

    def total(self, cluster: Cluster) -> int:
        return sum(self.pulls[i] for i in cluster.members)

    def snapshot(self, cluster: Cluster) -> Snapshot:
        return Snapshot(self.pooled_estimate(cluster.members), self.total(cluster))

    def scores(self, user: int, arms: Array) -> Array:
        return self.pooled_scores(self.home(user).members, arms, self.beta)  # Row 3

    def update(self, user: int, x: Array, reward: float) -> None:
        self.take(user, x, reward)
        self.review(user)

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        """The rewards of a list one by one, then one review."""
        for x, reward in observed(xs, clicked):
            self.take(user, x, reward)
        self.review(user)

    def take(self, user: int, x: Array, reward: float) -> None:
        self.rounds += 1
        if self.rounds in [2**s for s in range(64)]:  # Row 2
            self.checked = set()
            for cluster in self.sets:
                cluster.snapshot = self.snapshot(cluster)
        self.absorb(user, x, reward)  # Row 4

    def review(self, user: int) -> None:
        cluster = self.home(user)
        if len(cluster.members) > 1 and self.differs(user, cluster):
            cluster.members.remove(user)  # Row 6
            alone = Cluster({user}, Snapshot(self.estimate(user), self.pulls[user]))
            self.sets.append(alone)
            self.splits += 1
        self.checked.add(user)  # Row 7
        while self.merge():  # Row 9
            self.merges += 1

    def differs(self, user: int, cluster: Cluster) -> bool:
        """Row 5."""
        kept = cluster.snapshot
        distance = float(np.linalg.norm(self.estimate(user) - kept.estimate))
        if distance > self.radius(self.pulls[user]) + self.radius(kept.pulls):
            return True
        if self.arrivals is None:
            return False
        t = self.rounds
        most = 2 * self.arrivals * arrival_radius(t)
        return any(abs(self.pulls[user] / t - self.pulls[other] / t) > most for other in cluster.members)

    def merge(self) -> bool:
        """The first pair of checked sets that is close, if there is one; the older takes in the younger."""
        for older in range(len(self.sets)):
            for younger in range(older + 1, len(self.sets)):
                first, second = self.sets[older], self.sets[younger]
                if first.members | second.members <= self.checked and self.close(first, second):
                    first.members |= second.members  # and keeps its snapshot
                    del self.sets[younger]
                    return True
        return False

    def close(self, first: Cluster, second: Cluster) -> bool:
        """Row 8."""
        one, two = self.snapshot(first), self.snapshot(second)
        distance = float(np.linalg.norm(one.estimate - two.estimate))
        if not distance < (self.radius(one.pulls) + self.radius(two.pulls)) / 2:
            return False
        if self.arrivals is None:
            return True
        t = self.rounds
        often = abs(one.pulls / len(first.members) - two.pulls / len(second.members)) / t
        return often < self.arrivals * arrival_radius(t)

    def welcome(self, newcomers: int) -> None:
        """Newcomers are one set of their own, the youngest, unchecked, without data."""
        fresh = set(range(self.n_users, self.n_users + newcomers))
        for _ in fresh:
            self.S.append(np.zeros((self.dim, self.dim)))
            self.b.append(np.zeros(self.dim))
            self.pulls.append(0)
        self.n_users += newcomers
        self.sets.append(Cluster(fresh, Snapshot(np.zeros(self.dim), 0)))
