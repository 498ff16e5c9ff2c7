"""DynUCB, as docs/algorithms/dynucb.md states it.

"Row n" is the n-th row of the table there.
"""

import math

import numpy as np

from reference.lists import observed
from reference.users import Array, Users


class DynUCB(Users):
    """k-means on the fly: whoever was served goes to the cluster with the nearest centroid.

    `margin` is how far the last comparison of centroids was from a tie. Clusters without data do not count
    as tied: their centroids are 0, exactly, here and in any other arithmetic.
    """

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        n_clusters: int,
        ridge: float,
        alpha: float,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.rng = rng
        self.labels = [self.draw() for _ in range(n_users)]  # Row 1
        self.moves = 0
        self.margin = math.inf

    def draw(self) -> int:
        """A uniformly random cluster."""
        return int(self.rng.random() * self.n_clusters)

    @property
    def exploring(self) -> bool:
        return False

    def members(self, cluster: int) -> frozenset[int]:
        return frozenset(i for i in range(self.n_users) if self.labels[i] == cluster)

    def clusters(self) -> list[frozenset[int]]:
        return [self.members(self.labels[i]) for i in range(self.n_users)]

    def scores(self, user: int, arms: Array) -> Array:
        """xᵀθ̂_V + α √(xᵀM_V⁻¹x · ln(t + 1)). Rows 2 and 3."""
        t = self.rounds + 1
        growing = self.alpha * math.sqrt(math.log(t + 1))
        return self.pooled_scores(self.members(self.labels[user]), arms, growing)

    def update(self, user: int, x: Array, reward: float) -> None:
        self.absorb(user, x, reward)  # Row 4; the pool is the sum of its members
        self.rounds += 1
        self.move(user)

    def centroids(self) -> list[Array]:
        """θ̂ of every cluster; 0 if nobody is in it. Row 5."""
        return [self.pooled_estimate(self.members(cluster)) for cluster in range(self.n_clusters)]

    def move(self, user: int) -> None:
        """To the nearest centroid, the lowest index on ties. Rows 6 and 7: pools are sums taken afresh."""
        centroids = self.centroids()
        own = self.estimate(user)
        distances = [float(np.linalg.norm(own - centroid)) for centroid in centroids]
        nearest = distances.index(min(distances))
        self.margin = math.inf
        for centroid, distance in zip(centroids, distances, strict=True):
            if centroid.any() or centroids[nearest].any():
                if centroid is not centroids[nearest]:
                    self.margin = min(self.margin, distance - distances[nearest])
        if nearest != self.labels[user]:
            self.labels[user] = nearest
            self.moves += 1

    def welcome(self, newcomers: int) -> None:
        """Newcomers draw a cluster each, in order. Row 1."""
        for _ in range(newcomers):
            self.S.append(np.zeros((self.dim, self.dim)))
            self.b.append(np.zeros(self.dim))
            self.pulls.append(0)
            self.labels.append(self.draw())
        self.n_users += newcomers


class ListDynUCB(DynUCB):
    """The user moves at most once a list."""

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        for x, reward in observed(xs, clicked):
            self.absorb(user, x, reward)
            self.rounds += 1
        self.move(user)
