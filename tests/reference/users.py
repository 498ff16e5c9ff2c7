"""What every algorithm of the paper keeps of its users: S_i, b_i and T_i."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def solve(matrix: Array, right: Array) -> Array:
    """matrix^-1 right, by a dense solve."""
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


class Users:
    """Per-user sums, and the ridge regressions and UCB scores made of them."""

    def __init__(self, n_users: int, dim: int, *, ridge: float) -> None:
        self.n_users = n_users
        self.dim = dim
        self.ridge = ridge
        # Alg. 1, 2, 3, initialization: S_i = 0, b_i = 0, T_i = 0 for every user i.
        self.S: list[Array] = [np.zeros((dim, dim)) for _ in range(n_users)]
        self.b: list[Array] = [np.zeros(dim) for _ in range(n_users)]
        self.pulls: list[int] = [0] * n_users
        self.rounds = 0
        self.splits = 0
        self.merges = 0
        self.solved: dict[tuple[int, ...], tuple[list[int], Array]] = {}

    def absorb(self, user: int, x: Array, reward: float) -> None:
        """Alg. 1, line 11; Alg. 2, lines 5 and 18; Alg. 3, line 11."""
        self.S[user] = self.S[user] + np.outer(x, x)
        self.b[user] = self.b[user] + reward * x
        self.pulls[user] = self.pulls[user] + 1

    def estimate(self, user: int) -> Array:
        """theta_hat_i = (lambda I + S_i)^-1 b_i. Alg. 1, line 11; Alg. 2, lines 5 and 18; Alg. 3, line 11."""
        return self.pooled_estimate([user])

    def estimates(self) -> Array:
        """Every user's own ridge estimate, one row per user."""
        return np.array([self.estimate(i) for i in range(self.n_users)])

    def pooled(self, members: Iterable[int]) -> tuple[Array, Array]:
        """M_bar = lambda I + sum of S_i, b = sum of b_i. Alg. 1, line 7; Alg. 2, lines 14 and 15."""
        matrix: Array = self.ridge * np.eye(self.dim)
        vector: Array = np.zeros(self.dim)
        for i in sorted(members):
            matrix = matrix + self.S[i]
            vector = vector + self.b[i]
        return matrix, vector

    def pooled_estimate(self, members: Iterable[int]) -> Array:
        """theta_hat_V = M_bar^-1 b. Alg. 1, line 8; Alg. 2, line 15; Alg. 3, line 12."""
        key = tuple(sorted(members))
        pulls = [self.pulls[i] for i in key]
        if key not in self.solved or self.solved[key][0] != pulls:  # some member has new data since
            self.solved[key] = pulls, solve(*self.pooled(key))
        return self.solved[key][1]

    def pooled_scores(self, members: Iterable[int], arms: Array, beta: float) -> Array:
        """theta_V.x + beta sqrt(x^T M_bar^-1 x). Alg. 1, line 9; Alg. 2, line 16; Alg. 3, line 7."""
        matrix, vector = self.pooled(members)
        theta = solve(matrix, vector)
        scores = [float(theta @ x) + beta * float(np.sqrt(x @ solve(matrix, x))) for x in arms]
        return np.array(scores, dtype=np.float64)
