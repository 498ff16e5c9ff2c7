"""Linear Thompson sampling, as docs/algorithms/lintsone.md states it: pooled by fixed labels, like LinUCB.

"Row n" is the n-th row of the table there.
"""

import numpy as np

from reference.linucb import LinUCB
from reference.users import Array, solve


class LinTS(LinUCB):
    """θ̃ = θ̂ + β L z for every decision, z from `rng`; `scores` is the posterior, mean plus β times width."""

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        ridge: float,
        beta: float,
        labels: list[int],
        rng: np.random.Generator,
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge, beta=beta, labels=labels)
        self.rng = rng

    def sample(self, user: int, arms: Array) -> Array:
        """xᵀθ̃ of every arm; the next `dim` numbers of the generator are used up."""
        matrix, vector = self.pooled(self.clusters()[user])  # Row 1
        theta = solve(matrix, vector)  # Row 2
        factor = np.linalg.cholesky(solve(matrix, np.eye(self.dim)))  # Row 3: L Lᵀ = M⁻¹
        drawn = theta + self.beta * factor @ self.rng.standard_normal(self.dim)  # Row 3
        return np.array([float(x @ drawn) for x in arms])  # Row 4
