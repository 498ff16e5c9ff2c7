"""CAB, as docs/algorithms/cab.md states it.

"Row n" is the n-th row of the table there.
"""

import math

import numpy as np

from reference.lists import observed
from reference.users import Array, Users, solve


class CAB(Users):
    """`pulls` are those of `Users`, shared ones included; `served` counts a user's own rewards.

    `margin` is how near any comparison of two users was to its limit; on x = 0 all numbers are 0 exactly.
    """

    def __init__(self, n_users: int, dim: int, *, ridge: float, alpha: float, gamma: float) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.alpha, self.gamma = alpha, gamma
        self.served = [0] * n_users
        self.margin = math.inf
        self.shared = self.strangers = 0
        self.inverses: dict[int, tuple[int, Array]] = {}

    @property
    def exploring(self) -> bool:
        return False

    def welcome(self, newcomers: int) -> None:
        for _ in range(newcomers):
            self.S.append(np.zeros((self.dim, self.dim)))
            self.b.append(np.zeros(self.dim))
            self.pulls.append(0)
            self.served.append(0)
        self.n_users += newcomers

    def clusters(self) -> list[frozenset[int]]:
        return [frozenset({i}) for i in range(self.n_users)]

    def inverse(self, user: int) -> Array:
        if user not in self.inverses or self.inverses[user][0] != self.pulls[user]:
            self.inverses[user] = self.pulls[user], solve(self.pooled([user])[0], np.eye(self.dim))
        return self.inverses[user][1]

    def bonus(self, user: int, x: Array, t: int) -> float:
        """CB_j(x) = α √(xᵀM_j⁻¹x · ln(t + 1)). Row 1."""
        return self.alpha * math.sqrt(max(float(x @ self.inverse(user) @ x), 0.0) * math.log(t + 1))

    def neighbours(self, user: int, x: Array, t: int) -> list[int]:
        """Row 2."""
        found = [user]
        for j in range(self.n_users):
            if j != user and self.served[j]:
                apart = abs(float(x @ (self.estimate(user) - self.estimate(j))))
                reach = self.bonus(user, x, t) + self.bonus(j, x, t)
                if x.any():
                    self.margin = min(self.margin, abs(apart - reach))
                if apart <= reach:
                    found.append(j)
                else:
                    self.strangers += 1
        return found

    def scores(self, user: int, arms: Array) -> Array:
        """Row 3."""
        t = self.rounds + 1
        self.margin = math.inf
        scores = []
        for x in arms:
            near = self.neighbours(user, x, t)
            mean = sum(float(x @ self.estimate(j)) for j in near) / len(near)
            scores.append(mean + sum(self.bonus(j, x, t) for j in near) / len(near))
        return np.array(scores)

    def update(self, user: int, x: Array, reward: float) -> None:
        """Rows 4 and 5."""
        self.margin = math.inf
        self.learn(user, x, reward)

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        self.margin = math.inf
        for x, reward in observed(xs, clicked):
            self.learn(user, x, reward)

    def learn(self, user: int, x: Array, reward: float) -> None:
        self.rounds += 1
        t, sharers = self.rounds, [user]
        own = self.bonus(user, x, t)
        self.margin = min(self.margin, abs(own - self.gamma / 4))
        if own < self.gamma / 4:
            near = self.neighbours(user, x, t)
            sharers = [j for j in near if self.bonus(j, x, t) < self.gamma / 4]
            self.margin = min([self.margin, *(abs(self.bonus(j, x, t) - self.gamma / 4) for j in near)])
        for j in sharers:
            self.absorb(j, x, reward)
        self.served[user] += 1
        self.shared += len(sharers) - 1
