"""Warm starts, from docs/how-to/warm-start.md, and OffCLUB and OffC2LUB, from their pages, row by row.

`fit_*` give a reference a whole log: they absorb all of it, then let the rule act once.
"""

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import numpy as np

from reference.club import CLUB
from reference.dynucb import DynUCB
from reference.rclubwcu import RCLUBWCU
from reference.rclumb import RCLUMB, RSCLUMB
from reference.sclub import SCLUB
from reference.sclub2019 import SCLUB2019
from reference.users import Array, Users, solve

Log = Iterable[tuple[int, Array, float]]


class OffCLUB(Users):
    """A complete graph over users, thinned once; neighbours count, and lower confidence bounds decide."""

    def __init__(
        self, n_users: int, dim: int, *, ridge: float, beta: float, radius: Callable[[int], float]
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.beta, self.radius = beta, radius
        self.apart: set[frozenset[int]] = set()

    @property
    def exploring(self) -> bool:
        return False

    def fit(self, log: Log) -> None:
        """Rows 2 and 3."""
        for user, x, reward in log:
            self.absorb(user, x, reward)
            self.rounds += 1
        self.part(combinations(range(self.n_users), 2))

    def part(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Row 3."""
        for one, other in pairs:
            distance = float(np.linalg.norm(self.estimate(one) - self.estimate(other)))
            if distance > self.radius(self.pulls[one]) + self.radius(self.pulls[other]):
                self.apart.add(frozenset((one, other)))

    def neighbourhood(self, user: int) -> frozenset[int]:
        """Row 4."""
        return frozenset(j for j in range(self.n_users) if frozenset((user, j)) not in self.apart)

    def clusters(self) -> list[frozenset[int]]:
        return [self.neighbourhood(user) for user in range(self.n_users)]

    def scores(self, user: int, arms: Array) -> Array:
        """Row 5."""
        matrix, vector = self.pooled(self.neighbourhood(user))
        theta = solve(matrix, vector)
        return np.array([float(theta @ x) - self.beta * np.sqrt(x @ solve(matrix, x)) for x in arms])

    def update(self, user: int, x: Array, reward: float) -> None:
        """Row 6: the edges of the user alone."""
        self.absorb(user, x, reward)
        self.rounds += 1
        self.part((user, other) for other in range(self.n_users) if other != user)

    def welcome(self, n: int) -> None:
        """Newcomers are joined to everybody."""
        self.n_users += n
        self.S += [np.zeros((self.dim, self.dim)) for _ in range(n)]
        self.b += [np.zeros(self.dim) for _ in range(n)]
        self.pulls += [0] * n


class OffC2LUB(OffCLUB):
    """No graph: neighbours are those who are surely closer than the gap."""

    def __init__(self, n_users: int, dim: int, *, gap: float, **others: Any) -> None:
        super().__init__(n_users, dim, **others)
        self.gap = gap

    def part(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Nobody is parted: row 3 looks at the data of today."""

    def neighbourhood(self, user: int) -> frozenset[int]:
        """Rows 3 and 4."""
        return frozenset(j for j in range(self.n_users) if j == user or self.surely_close(user, j))

    def surely_close(self, one: int, other: int) -> bool:
        distance = float(np.linalg.norm(self.estimate(one) - self.estimate(other)))
        return distance < self.gap - self.radius(self.pulls[one]) - self.radius(self.pulls[other])


def fit_users(slow: Users, log: Log) -> None:
    """No rule: all rewards are absorbed."""
    for user, x, reward in log:
        slow.absorb(user, x, reward)
        slow.rounds += 1


def fit_club(slow: CLUB, log: Log) -> None:
    """Every pair of users that is joined is tested once."""
    fit_users(slow, log)
    for one, other in combinations(range(slow.n_users), 2):
        distance = float(np.linalg.norm(slow.estimate(one) - slow.estimate(other)))
        if distance > slow.radius(slow.pulls[one]) + slow.radius(slow.pulls[other]):
            slow.deletions += bool(slow.adjacency[one, other])
            slow.adjacency[one, other] = slow.adjacency[other, one] = False


def fit_sclub(slow: SCLUB, log: Log) -> None:
    """One user after the other is split off, if it differs, and checked; then sets that are close merge."""
    for user, x, reward in log:
        slow.rounds += 1
        if slow.rounds in [2**s for s in range(64)]:
            slow.checked = set()
        slow.absorb(user, x, reward)
    for user in range(slow.n_users):
        slow.split(user, slow.rounds)
        slow.checked.add(user)
        slow.merge(slow.rounds)


def fit_dynucb(slow: DynUCB, log: Log) -> None:
    """One user after the other goes to the nearest centroid; `margin` is the least of all."""
    fit_users(slow, log)
    margins = []
    for user in range(slow.n_users):
        slow.move(user)
        margins.append(slow.margin)
    slow.margin = min(margins)


def fit_reviewed(slow: SCLUB2019 | RCLUMB | RSCLUMB | RCLUBWCU, log: Log) -> None:
    """These references tell taking a reward from the review of a user."""
    for user, x, reward in log:
        slow.take(user, x, reward)
    for user in range(slow.n_users):
        slow.review(user)
