"""RCLUBWCU and OCCUD, as docs/algorithms/rclubwcu.md states them.

"Row n" is the n-th row of the table there.
"""

import math
from collections.abc import Callable

import numpy as np

from reference.lists import observed
from reference.users import Array, Users, solve


class RCLUBWCU(Users):
    """CLUB on weighted statistics; `splits` counts cut edges, `weighed` rewards with a weight below 1."""

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        ridge: float,
        beta: float,
        radius: Callable[[int], float],
        threshold: float,
        corruption: float,
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.beta, self.radius = beta, radius
        self.threshold, self.corruption = threshold, corruption
        everybody = range(n_users)
        self.edges = {frozenset((i, j)) for i in everybody for j in everybody if i != j}  # Row 1
        self.plain = Users(n_users, dim, ridge=ridge)
        self.weighed = 0

    @property
    def exploring(self) -> bool:
        return False

    @property
    def lies(self) -> float:
        """αC."""
        return self.threshold * self.corruption

    def component(self, user: int) -> frozenset[int]:
        found, waiting = {user}, [user]
        while waiting:
            here = waiting.pop()
            near = {j for j in range(self.n_users) if frozenset((here, j)) in self.edges} - found
            found |= near
            waiting += near
        return frozenset(found)

    def clusters(self) -> list[frozenset[int]]:
        found: dict[int, frozenset[int]] = {}
        for user in range(self.n_users):
            if user not in found:
                members = self.component(user)
                found |= dict.fromkeys(members, members)
        return [found[user] for user in range(self.n_users)]

    def scores(self, user: int, arms: Array) -> Array:
        """Row 2."""
        return self.pooled_scores(self.component(user), arms, self.beta + self.lies)

    def take(self, user: int, x: Array, reward: float) -> None:
        """Rows 3 and 4."""
        width = math.sqrt(x @ solve(self.ridge * np.eye(self.dim) + self.S[user], x))
        weight = min(1.0, self.threshold / width) if width > 0 else 1.0
        self.weighed += weight < 1.0
        self.S[user] = self.S[user] + weight * np.outer(x, x)
        self.b[user] = self.b[user] + weight * reward * x
        self.pulls[user] += 1
        self.plain.absorb(user, x, reward)
        self.rounds += 1

    def update(self, user: int, x: Array, reward: float) -> None:
        self.take(user, x, reward)
        self.review(user)

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        """The rewards of a list one by one, then one review."""
        for x, reward in observed(xs, clicked):
            self.take(user, x, reward)
        self.review(user)

    def review(self, user: int) -> None:
        """Row 5."""
        for other in range(self.n_users):
            if frozenset((user, other)) in self.edges and other != user:
                distance = float(np.linalg.norm(self.estimate(user) - self.estimate(other)))
                reach = self.radius(self.pulls[user]) + self.radius(self.pulls[other])
                if distance > reach + self.radius(0) * self.lies:
                    self.edges.remove(frozenset((user, other)))
                    self.splits += 1

    def suspects(self, delta: float, noise: float) -> list[int]:
        """Rows 6 and 7."""
        found = []
        for user in range(self.n_users):
            members = self.component(user)
            distance = np.linalg.norm(self.plain.estimate(user) - self.pooled_estimate(members))
            own = self.ridge * np.eye(self.dim) + self.plain.S[user]
            limit = self.reach(own, self.pulls[user], delta, noise)
            total = sum(self.pulls[i] for i in members)
            limit += self.reach(self.pooled(members)[0], total, delta, noise, self.lies)
            if self.pulls[user] > 0 and float(distance) > limit:
                found.append(user)
        return found

    def reach(self, matrix: Array, pulls: int, delta: float, noise: float, lies: float = 0.0) -> float:
        """(σ√(d ln(1 + T/(λd)) + 2 ln(1/δ)) + √λ + αC) / √λ_min(M)."""
        inside = self.dim * math.log(1 + pulls / (self.ridge * self.dim)) + 2 * math.log(1 / delta)
        top = noise * math.sqrt(inside) + math.sqrt(self.ridge) + lies
        return float(top / math.sqrt(np.linalg.eigvalsh(matrix)[0]))

    def welcome(self, newcomers: int) -> None:
        """Newcomers are joined to everybody."""
        for user in range(self.n_users, self.n_users + newcomers):
            self.edges |= {frozenset((user, other)) for other in range(user)}
            for one in (self, self.plain):
                one.S.append(np.zeros((self.dim, self.dim)))
                one.b.append(np.zeros(self.dim))
                one.pulls.append(0)
        self.n_users += newcomers
