"""LinUCB pooled by fixed labels: one model for all, one per user, or the true clusters."""

from reference.users import Array, Users


class LinUCB(Users):
    """Alg. 1 without exploration, on a partition that is given and never changes."""

    def __init__(self, n_users: int, dim: int, *, ridge: float, beta: float, labels: list[int]) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        if len(labels) != n_users:
            raise ValueError("one label per user")
        self.beta = beta
        self.labels = list(labels)

    @property
    def exploring(self) -> bool:
        return False

    def clusters(self) -> list[frozenset[int]]:
        return [
            frozenset(j for j in range(self.n_users) if self.labels[j] == self.labels[i])
            for i in range(self.n_users)
        ]

    def scores(self, user: int, arms: Array) -> Array:
        return self.pooled_scores(self.clusters()[user], arms, self.beta)

    def update(self, user: int, x: Array, reward: float) -> None:
        self.absorb(user, x, reward)
        self.rounds += 1
