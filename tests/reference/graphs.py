"""GOB.Lin and GraphUCB: a graph between users is given, and their vectors are estimated together."""

import math

import numpy as np

from reference.users import Array, Users, solve


class _Graph(Users):
    """One long vector, n_users blocks of dim numbers; phi = e_user (x) x."""

    def __init__(
        self, n_users: int, dim: int, *, graph: Array, ridge: float, alpha: float, source: bool
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        weights = np.array(graph, dtype=np.float64)
        if weights.shape != (n_users, n_users):
            raise ValueError("the graph must be n_users x n_users")
        if not np.array_equal(weights, weights.T) or np.diag(weights).any():
            raise ValueError("the graph must be symmetric, with no edge from a user to itself")
        self.weights: Array = weights
        self.alpha = alpha
        self.source = source
        self.gram: Array = np.zeros((n_users * dim, n_users * dim))
        self.target: Array = np.zeros(n_users * dim)

    @property
    def exploring(self) -> bool:
        return False

    def clusters(self) -> list[frozenset[int]]:
        return [frozenset({i}) for i in range(self.n_users)]

    def phi(self, user: int, x: Array) -> Array:
        e_user = np.zeros(self.n_users)
        e_user[user] = 1.0
        return np.asarray(np.kron(e_user, x), dtype=np.float64)

    def update(self, user: int, x: Array, reward: float) -> None:
        self.absorb(user, x, reward)
        phi = self.phi(user, x)
        self.gram = self.gram + np.outer(phi, phi)
        self.target = self.target + reward * phi
        self.rounds += 1

    def matrix(self) -> Array:
        raise NotImplementedError

    def estimates(self) -> Array:
        """The users' vectors as the graph makes them (not each user's own ridge estimate)."""
        theta = solve(self.matrix(), self.target)
        return theta.reshape(self.n_users, self.dim)


class GOBLin(_Graph):
    """V = ridge (I + D - A) (x) I_d + sum of phi phi^T."""

    def matrix(self) -> Array:
        laplacian = np.diag(self.weights.sum(axis=1)) - self.weights
        return self.ridge * np.kron(np.eye(self.n_users) + laplacian, np.eye(self.dim)) + self.gram

    def scores(self, user: int, arms: Array) -> Array:
        V = self.matrix()
        theta = self.estimates()[user]
        t = self.rounds + 1
        scores: list[float] = []
        for x in arms:
            phi = self.phi(user, x)
            w2 = float(phi @ solve(V, phi))
            if self.source:
                w2 = w2 * math.log(t + 1)
            scores.append(float(x @ theta) + self.alpha * math.sqrt(w2))
        return np.array(scores, dtype=np.float64)


class GraphUCB(_Graph):
    """M = sum of phi phi^T + ridge (Lrw + 0.01 I) (x) I_d, Lrw the random-walk Laplacian."""

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        graph: Array,
        ridge: float,
        alpha: float,
        source: bool,
        delta: float,
    ) -> None:
        super().__init__(n_users, dim, graph=graph, ridge=ridge, alpha=alpha, source=source)
        self.delta = delta
        self.Lrw: Array = np.zeros((n_users, n_users))
        for i in range(n_users):
            degree = float(self.weights[i].sum())
            for j in range(n_users):
                if degree > 0:  # the row of a user with no edge stays 0
                    self.Lrw[i, j] = (1.0 if i == j else 0.0) - self.weights[i, j] / degree

    def matrix(self) -> Array:
        return self.gram + self.ridge * np.kron(self.Lrw + 0.01 * np.eye(self.n_users), np.eye(self.dim))

    def A(self, user: int) -> Array:
        """A_j = S_j + ridge I."""
        return self.S[user] + self.ridge * np.eye(self.dim)

    def Lambda(self, user: int) -> Array:
        """Lambda_i = A_i + 2 ridge Lrw_ii I + ridge^2 * sum over j != i of Lrw_ij^2 A_j^-1."""
        identity = np.eye(self.dim)
        total: Array = self.A(user) + 2 * self.ridge * self.Lrw[user, user] * identity
        for j in range(self.n_users):
            if j != user:
                total = total + self.ridge**2 * self.Lrw[user, j] ** 2 * solve(self.A(j), identity)
        return total

    def multiplier(self, user: int) -> float:
        """alpha, or with `source` the beta_i made of the data and of the users' own ridge estimates."""
        if not self.source:
            return self.alpha
        half_log_det_V = 0.5 * float(np.linalg.slogdet(self.A(user))[1])
        half_log_det_ridge = 0.5 * self.dim * math.log(self.ridge)
        noise = math.sqrt(2 * (half_log_det_V - half_log_det_ridge - math.log(self.delta)))
        smooth = np.zeros(self.dim)
        for j in range(self.n_users):
            smooth = smooth + self.Lrw[user, j] * self.estimate(j)
        return self.alpha * noise + math.sqrt(self.ridge) * float(np.linalg.norm(smooth))

    def scores(self, user: int, arms: Array) -> Array:
        theta = self.estimates()[user]
        Lambda = self.Lambda(user)
        beta = self.multiplier(user)
        widths = [math.sqrt(float(x @ solve(Lambda, x))) for x in arms]
        scores = [float(x @ theta) + beta * width for x, width in zip(arms, widths, strict=True)]
        return np.array(scores, dtype=np.float64)
