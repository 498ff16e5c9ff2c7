"""PhaseUniCLUB, Alg. 2 of the paper."""

import math
from collections.abc import Callable

from reference.club import CLUB
from reference.users import Array


class PhaseUniCLUB(CLUB):
    """Exploration comes back at the head of every phase; a cluster is a user and its direct neighbours.

    `first` is T^init, `phase` is T^(0) before rounding, `growth` is the paper's alpha. `phase=0` means that
    nothing is explored after the first `first` rounds. `splits` counts, as in CLUB, the rounds in which a
    connected component broke; `deletions` counts the edges that were cut.
    """

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        ridge: float,
        beta: float,
        radius: Callable[[int], float],
        first: int,
        phase: float,
        growth: float,
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge, beta=beta, radius=radius)
        self.first = first
        self.phase = phase
        self.growth = growth

    @property
    def exploring(self) -> bool:
        t = self.rounds + 1
        if t <= self.first:  # Alg. 2, line 1
            return True  # Alg. 2, line 3
        if self.phase == 0:
            return False
        tau = t - self.first
        s = 0  # Alg. 2, line 6
        while True:
            uniform = math.ceil(self.phase * 2.0**s)  # T^(s)
            length = math.ceil(2.0 ** (self.growth * s) * uniform)  # Alg. 2, line 7
            if tau <= length:
                return tau <= uniform  # Alg. 2, line 10
            tau -= length
            s += 1  # Alg. 2, line 6

    def neighbourhood(self, user: int) -> frozenset[int]:
        """The user and all its neighbours. Alg. 2, line 13."""
        return frozenset({user} | {j for j in range(self.n_users) if self.adjacency[user, j]})

    def clusters(self) -> list[frozenset[int]]:
        return [self.neighbourhood(i) for i in range(self.n_users)]

    def scores(self, user: int, arms: Array) -> Array:
        members = self.neighbourhood(user)  # Alg. 2, line 13
        return self.pooled_scores(members, arms, self.beta)  # Alg. 2, lines 14 to 16

    def update(self, user: int, x: Array, reward: float) -> None:
        t = self.rounds + 1  # Alg. 2, lines 1 and 8
        self.absorb(user, x, reward)  # Alg. 2, lines 4 and 5, 17 and 18
        if t > self.first:
            self.delete_edges(user)  # Alg. 2, line 19
        self.rounds += 1
