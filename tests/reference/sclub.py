"""UniSCLUB, Alg. 3 to 5 of the paper; SCLUB is the same with no exploration."""

import math
from collections.abc import Callable

import numpy as np

from reference.users import Array, Users


class SCLUB(Users):
    """Sets of users that split and merge.

    `explore` is the number of uniform rounds (the paper's 2 T_0, already doubled). `arrivals` is alpha_p of
    Li et al. (2019), who also compare how often users arrive; None leaves that out, as the paper does.

    The pseudo-code adds to and subtracts from M^j, b^j and T^j so that they stay the sums over the members of
    C^j; here those sums are taken afresh each time, which is the same thing without its rounding.
    """

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        ridge: float,
        beta: float,
        radius: Callable[[int], float],
        explore: int = 0,
        arrivals: float | None = None,
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.beta = beta
        self.radius = radius
        self.explore = explore
        self.arrivals = arrivals
        # Alg. 3, initialization: J = {1}, C^1 = [u]. The list is in order of creation.
        self.sets: list[set[int]] = [set(range(n_users))]
        self.checked: set[int] = set()

    @property
    def exploring(self) -> bool:
        t = self.rounds + 1  # Alg. 3, line 3
        return not t > self.explore  # Alg. 3, lines 5 and 8

    def find(self, user: int) -> int:
        """The position in J of the cluster that holds the user. Alg. 3, line 6."""
        return next(j for j in range(len(self.sets)) if user in self.sets[j])

    def clusters(self) -> list[frozenset[int]]:
        return [frozenset(self.sets[self.find(i)]) for i in range(self.n_users)]

    def scores(self, user: int, arms: Array) -> Array:
        members = self.sets[self.find(user)]  # Alg. 3, line 6
        return self.pooled_scores(members, arms, self.beta)  # Alg. 3, line 7

    def update(self, user: int, x: Array, reward: float) -> None:
        t = self.rounds + 1  # Alg. 3, line 3
        starts = [2 ** (s - 1) for s in range(1, 64)]  # Alg. 3, lines 1 and 3
        if t in starts:
            self.checked = set()  # Alg. 3, line 2
        self.absorb(user, x, reward)  # Alg. 3, lines 10 to 12
        self.split(user, t)  # Alg. 3, line 13
        self.checked.add(user)  # Alg. 3, line 14
        self.merge(t)  # Alg. 3, line 15
        self.rounds += 1

    def split(self, user: int, t: int) -> None:
        members = self.sets[self.find(user)]
        for other in sorted(members - {user}):  # Alg. 4, line 1 (at i' = i_t the distance is 0)
            if self.users_differ(user, other, t):  # Alg. 4, line 1
                members.remove(user)  # Alg. 4, line 2
                self.sets.append({user})  # Alg. 4, lines 3 and 4
                self.splits += 1
                return

    def users_differ(self, user: int, other: int, t: int) -> bool:
        """Alg. 4, line 1, and the arrivals of Li et al. (2019)."""
        distance = float(np.linalg.norm(self.estimate(user) - self.estimate(other)))
        if distance > self.radius(self.pulls[user]) + self.radius(self.pulls[other]):
            return True
        if self.arrivals is None:
            return False
        p_user = self.pulls[user] / t
        p_other = self.pulls[other] / t
        return abs(p_user - p_other) > 2 * self.arrivals * arrival_radius(t)

    def merge(self, t: int) -> None:
        while True:
            pair = self.close_pair(t)  # Alg. 5, lines 1 and 2
            if pair is None:
                return
            older, younger = pair
            self.sets[older] = self.sets[older] | self.sets[younger]  # Alg. 5, line 3
            del self.sets[younger]  # Alg. 5, line 4
            self.merges += 1

    def close_pair(self, t: int) -> tuple[int, int] | None:
        """The first pair of checked clusters, in order of creation, that Alg. 5 would merge."""
        for older in range(len(self.sets)):
            for younger in range(older + 1, len(self.sets)):
                first, second = self.sets[older], self.sets[younger]
                if not (first <= self.checked and second <= self.checked):  # Alg. 5, line 1
                    continue
                if self.clusters_agree(first, second, t):  # Alg. 5, line 2
                    return older, younger
        return None

    def clusters_agree(self, first: set[int], second: set[int], t: int) -> bool:
        """Alg. 5, line 2, and the arrivals of Li et al. (2019)."""
        pulls_1 = sum(self.pulls[i] for i in first)
        pulls_2 = sum(self.pulls[i] for i in second)
        distance = float(np.linalg.norm(self.pooled_estimate(first) - self.pooled_estimate(second)))
        if not distance < self.radius(pulls_1) + self.radius(pulls_2):
            return False
        if self.arrivals is None:
            return True
        p_1 = pulls_1 / (len(first) * t)
        p_2 = pulls_2 / (len(second) * t)
        return abs(p_1 - p_2) < self.arrivals * arrival_radius(t)


def arrival_radius(t: int) -> float:
    """F(t) = sqrt((1 + ln(1 + t)) / (1 + t)) of Li et al. (2019)."""
    return math.sqrt((1 + math.log(1 + t)) / (1 + t))
