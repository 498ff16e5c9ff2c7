"""UniCLUB, Alg. 1 of the paper; CLUB is the same with no exploration."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reference.users import Array, Users


class CLUB(Users):
    """A graph over users that starts complete and loses edges; a cluster is a connected component."""

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        ridge: float,
        beta: float,
        radius: Callable[[int], float],
        explore: int = 0,
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.beta = beta
        self.radius = radius
        self.explore = explore
        self.deletions = 0
        # Alg. 1, initialization: G_0 is the complete graph.
        self.adjacency: NDArray[np.bool_] = ~np.eye(n_users, dtype=np.bool_)

    @property
    def exploring(self) -> bool:
        t = self.rounds + 1  # Alg. 1, line 1
        return t <= self.explore  # Alg. 1, line 3

    def component(self, user: int) -> frozenset[int]:
        """Breadth-first search from the user in the adjacency matrix. Alg. 1, line 6."""
        seen = {user}
        frontier = [user]
        while frontier:
            reached: list[int] = []
            for i in frontier:
                for j in np.flatnonzero(self.adjacency[i]).tolist():
                    if j not in seen:
                        seen.add(j)
                        reached.append(j)
            frontier = reached
        return frozenset(seen)

    def clusters(self) -> list[frozenset[int]]:
        found: dict[int, frozenset[int]] = {}
        for i in range(self.n_users):
            if i not in found:
                members = self.component(i)
                found.update(dict.fromkeys(members, members))
        return [found[i] for i in range(self.n_users)]

    def scores(self, user: int, arms: Array) -> Array:
        members = self.component(user)  # Alg. 1, line 6
        return self.pooled_scores(members, arms, self.beta)  # Alg. 1, lines 7 to 9

    def update(self, user: int, x: Array, reward: float) -> None:
        self.absorb(user, x, reward)  # Alg. 1, lines 10 and 11
        self.delete_edges(user)  # Alg. 1, line 12
        self.rounds += 1

    def delete_edges(self, user: int) -> None:
        """Cut (i_t, l) if ||theta_i - theta_l|| > f(T_i) + f(T_l). Alg. 1, line 12; Alg. 2, line 19."""
        before = self.component(user)
        for other in range(self.n_users):
            if not self.adjacency[user, other]:
                continue
            distance = float(np.linalg.norm(self.estimate(user) - self.estimate(other)))
            if distance > self.radius(self.pulls[user]) + self.radius(self.pulls[other]):
                self.adjacency[user, other] = False
                self.adjacency[other, user] = False
                self.deletions += 1
        if self.component(user) != before:
            self.splits += 1
