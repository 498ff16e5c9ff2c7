"""LOCB, as docs/algorithms/locb.md states it.

"Row n" is the n-th row of the table there.
"""

import math
from collections.abc import Callable

import numpy as np

from reference.lists import observed
from reference.users import Array, Users


class LOCB(Users):
    """Clusters are sets of users, one a seed; sums are taken afresh.

    `margin` is how far the last comparison was from its limit; a user and itself as seed do not count.
    """

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        seeds: list[int],
        ridge: float,
        beta: float,
        radius: Callable[[int], float],
        gamma: float,
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.beta, self.radius, self.gamma = beta, radius, gamma
        self.members = {s: set(range(n_users)) for s in seeds}  # Row 1
        self.finished = dict.fromkeys(seeds, False)
        self.left = self.joined = self.final = self.alone = 0
        self.margin = math.inf

    @property
    def exploring(self) -> bool:
        return False

    def welcome(self, newcomers: int) -> None:
        """Newcomers are in every cluster. Row 1."""
        for user in range(self.n_users, self.n_users + newcomers):
            self.S.append(np.zeros((self.dim, self.dim)))
            self.b.append(np.zeros(self.dim))
            self.pulls.append(0)
            for members in self.members.values():
                members.add(user)
        self.n_users += newcomers

    def homes(self, user: int) -> list[set[int]]:
        return [members for members in self.members.values() if user in members]

    def clusters(self) -> list[frozenset[int]]:
        return [frozenset({i}.union(*self.homes(i))) for i in range(self.n_users)]

    def scores(self, user: int, arms: Array) -> Array:
        """The largest score of each arm among the user's clusters. Rows 2 and 3."""
        homes = self.homes(user) or [{user}]
        self.alone += not self.homes(user)
        found = np.array([self.pooled_scores(members, arms, self.beta) for members in homes])
        return np.asarray(found.max(axis=0))

    def update(self, user: int, x: Array, reward: float) -> None:
        self.absorb(user, x, reward)  # Row 4
        self.rounds += 1
        self.review(user)

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        for x, reward in observed(xs, clicked):
            self.absorb(user, x, reward)
            self.rounds += 1
        self.review(user)

    def review(self, user: int) -> None:
        """Rows 5 to 7."""
        self.margin = math.inf
        for s, members in self.members.items():
            if self.finished[s]:
                continue
            apart = float(np.linalg.norm(self.estimate(user) - self.estimate(s)))
            reach = self.radius(self.pulls[user]) + self.radius(self.pulls[s])
            if user != s:
                self.margin = min(self.margin, abs(apart - reach))
            if user in members and apart > reach:
                members.remove(user)
                self.left += 1
            elif user not in members and apart < reach:
                members.add(user)
                self.joined += 1
            self.finished[s] = self.radius(self.pulls[s]) <= self.gamma / 4
            self.final += self.finished[s]
