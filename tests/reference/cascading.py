"""CascadeLinUCB and CLUBCascade, from docs/algorithms/cascadelinucb.md and clubcascade.md, row by row."""

from collections.abc import Callable

import numpy as np

from reference.club import CLUB
from reference.users import Array, Users, solve


def seen(k: int, clicked: int | None) -> int:
    """How many positions were looked at: up to the click, or all of them."""
    return k if clicked is None else clicked + 1


class CascadeLinUCB:
    """One ridge regression over all positions that anybody looked at."""

    def __init__(self, n_users: int, dim: int, *, ridge: float, beta: float) -> None:
        self.n_users, self.beta = n_users, beta
        self.matrix: Array = ridge * np.eye(dim)
        self.vector: Array = np.zeros(dim)
        self.rounds = self.splits = self.merges = 0

    @property
    def exploring(self) -> bool:
        return False

    def clusters(self) -> list[frozenset[int]]:
        return [frozenset(range(self.n_users))] * self.n_users

    def welcome(self, n: int) -> None:
        self.n_users += n

    def unlimited(self, user: int, arms: Array) -> Array:
        """Row 1, before the limit."""
        theta = solve(self.matrix, self.vector)
        return np.array([float(theta @ x) + self.beta * np.sqrt(x @ solve(self.matrix, x)) for x in arms])

    def scores(self, user: int, arms: Array) -> Array:
        """Row 1."""
        return np.minimum(self.unlimited(user, arms), 1.0)

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        """Rows 3 and 4."""
        for position in range(seen(len(xs), clicked)):
            x, y = xs[position], 1.0 if position == clicked else 0.0
            self.matrix = self.matrix + np.outer(x, x)
            self.vector = self.vector + y * x
            self.rounds += 1


class CLUBCascade(CLUB):
    """A graph over users that loses edges, tested once a list; T counts positions that were looked at."""

    def __init__(
        self, n_users: int, dim: int, *, ridge: float, beta: float, radius: Callable[[int], float]
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge, beta=beta, radius=radius)

    def welcome(self, n: int) -> None:
        """Newcomers are joined to everybody."""
        self.n_users += n
        self.S += [np.zeros((self.dim, self.dim)) for _ in range(n)]
        self.b += [np.zeros(self.dim) for _ in range(n)]
        self.pulls += [0] * n
        self.adjacency = np.pad(self.adjacency, (0, n), constant_values=True)
        np.fill_diagonal(self.adjacency, False)

    def unlimited(self, user: int, arms: Array) -> Array:
        """Row 2, before the limit."""
        return self.pooled_scores(self.component(user), arms, self.beta)

    def scores(self, user: int, arms: Array) -> Array:
        """Row 2."""
        return np.minimum(self.unlimited(user, arms), 1.0)

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        """Rows 4 and 5: absorb every position that was looked at; then one test of the user's edges."""
        for position in range(seen(len(xs), clicked)):
            Users.absorb(self, user, xs[position], 1.0 if position == clicked else 0.0)
            self.rounds += 1
        self.delete_edges(user)
