"""RCLUMB and RSCLUMB, as docs/algorithms/rclumb.md and rsclumb.md state them.

"Row n" is the n-th row of the table there. `exact` scores arms by all vectors played so far, as the source
does; otherwise by what our code keeps of them.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from reference.lists import observed
from reference.users import Array, Users, solve


class Misspecified(Users):
    """Users, all vectors played for each of them, and the bonus that allows for deviations."""

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        ridge: float,
        beta: float,
        radius: Callable[[int], float],
        epsilon: float,
        tolerance: float,
        exact: bool = False,
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.beta, self.radius = beta, radius
        self.epsilon, self.tolerance, self.exact = epsilon, tolerance, exact
        self.played: list[list[Array]] = [[] for _ in range(n_users)]

    @property
    def exploring(self) -> bool:
        return False

    def learn_from(self, user: int) -> frozenset[int]:
        """V: the users whose data counts."""
        raise NotImplementedError

    def review(self, user: int) -> None:
        """What happens to clusters after a reward."""
        raise NotImplementedError

    def clusters(self) -> list[frozenset[int]]:
        return [self.learn_from(i) for i in range(self.n_users)]

    def scores(self, user: int, arms: Array) -> Array:
        """Rows 2 and 3."""
        members = self.learn_from(user)
        bonus = self.exact_bonus if self.exact else self.bounded_bonus
        plain = self.pooled_scores(members, arms, self.beta)
        return plain + self.epsilon * np.array([bonus(members, x) for x in arms])

    def exact_bonus(self, members: Iterable[int], x: Array) -> float:
        """Σ|xᵀM⁻¹y| over the vectors y played for the members."""
        left = solve(self.pooled(members)[0], x)
        return float(sum(abs(left @ y) for i in members for y in self.played[i]))

    def bounded_bonus(self, members: Iterable[int], x: Array) -> float:
        """√(T · xᵀM⁻¹SM⁻¹x)."""
        matrix = self.pooled(members)[0]
        left = solve(matrix, x)
        gram = matrix - self.ridge * np.eye(self.dim)
        pulls = sum(self.pulls[i] for i in members)
        return float(np.sqrt(pulls * max(float(left @ gram @ left), 0.0)))

    def take(self, user: int, x: Array, reward: float) -> None:
        """Row 4."""
        self.rounds += 1
        self.absorb(user, x, reward)
        self.played[user].append(x)

    def update(self, user: int, x: Array, reward: float) -> None:
        self.take(user, x, reward)
        self.review(user)

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        """The rewards of a list one by one, then one review."""
        for x, reward in observed(xs, clicked):
            self.take(user, x, reward)
        self.review(user)

    def reach(self, first: int, second: int) -> float:
        """f + f + α₂ε* for so many pulls."""
        return self.radius(first) + self.radius(second) + self.tolerance * self.epsilon

    def more_users(self, newcomers: int) -> range:
        fresh = range(self.n_users, self.n_users + newcomers)
        for _ in fresh:
            self.S.append(np.zeros((self.dim, self.dim)))
            self.b.append(np.zeros(self.dim))
            self.pulls.append(0)
            self.played.append([])
        self.n_users += newcomers
        return fresh


class RCLUMB(Misspecified):
    """A graph that loses edges; each user learns from its direct neighbours. `splits` counts cut edges."""

    def __init__(self, n_users: int, dim: int, **others: Any) -> None:
        super().__init__(n_users, dim, **others)
        everybody = range(n_users)
        self.edges = {frozenset((i, j)) for i in everybody for j in everybody if i != j}  # Row 1

    def learn_from(self, user: int) -> frozenset[int]:
        return frozenset(j for j in range(self.n_users) if j == user or frozenset((user, j)) in self.edges)

    def review(self, user: int) -> None:
        """Row 5."""
        own = self.estimate(user)
        for other in self.learn_from(user) - {user}:
            distance = float(np.linalg.norm(own - self.estimate(other)))
            if distance > self.reach(self.pulls[user], self.pulls[other]):
                self.edges.remove(frozenset((user, other)))
                self.splits += 1

    def welcome(self, newcomers: int) -> None:
        """Newcomers are joined to everybody."""
        for user in self.more_users(newcomers):
            self.edges |= {frozenset((user, other)) for other in range(user)}


class RSCLUMB(Misspecified):
    """Sets that split against their own estimate, and merge at half."""

    def __init__(self, n_users: int, dim: int, **others: Any) -> None:
        super().__init__(n_users, dim, **others)
        self.sets: list[set[int]] = [set(range(n_users))]  # Row 1; oldest first
        self.checked: set[int] = set()

    def home(self, user: int) -> set[int]:
        return next(members for members in self.sets if user in members)

    def learn_from(self, user: int) -> frozenset[int]:
        return frozenset(self.home(user))

    def total(self, members: set[int]) -> int:
        return sum(self.pulls[i] for i in members)

    def take(self, user: int, x: Array, reward: float) -> None:
        super().take(user, x, reward)
        if self.rounds in [2**s for s in range(64)]:
            self.checked = set()  # Row 5

    def review(self, user: int) -> None:
        home = self.home(user)
        distance = float(np.linalg.norm(self.estimate(user) - self.pooled_estimate(home)))
        if len(home) > 1 and distance > self.reach(self.pulls[user], self.total(home)):  # Row 6
            home.remove(user)
            self.sets.append({user})
            self.splits += 1
        self.checked.add(user)  # Row 7
        while self.merge():
            self.merges += 1

    def merge(self) -> bool:
        """Row 8: the first close pair, if there is one."""
        for older in range(len(self.sets)):
            for younger in range(older + 1, len(self.sets)):
                first, second = self.sets[older], self.sets[younger]
                gap = np.linalg.norm(self.pooled_estimate(first) - self.pooled_estimate(second))
                if first | second <= self.checked:
                    if float(gap) < self.reach(self.total(first), self.total(second)) / 2:
                        self.sets[older] = first | second
                        del self.sets[younger]
                        return True
        return False

    def welcome(self, newcomers: int) -> None:
        """Newcomers are one set of their own, the youngest, unchecked."""
        self.sets.append(set(self.more_users(newcomers)))
