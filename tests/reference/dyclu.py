"""DyClu, as docs/algorithms/dyclu.md states it.

"Row n" is the n-th row of the table there. Models keep their samples, fits are pseudo-inverses, and tail
probabilities are SciPy's.
"""

import math

import numpy as np
from scipy.stats import chi2

from reference.lists import observed
from reference.users import Array, solve


class Model:
    """The samples of one user since its last change."""

    def __init__(self, dim: int) -> None:
        self.X = np.zeros((0, dim))
        self.y = np.zeros(0)

        self.settle()

    def add(self, x: Array, reward: float) -> None:
        self.X, self.y = np.vstack([self.X, x]), np.append(self.y, reward)
        self.settle()

    def settle(self) -> None:
        """S, b, θ̂ = S⁺b, rank and the sum of squared residuals, from all samples."""
        self.S, self.b = np.asarray(self.X.T @ self.X), np.asarray(self.X.T @ self.y)
        self.fit = solution(self.S, self.b)
        self.rank, self.doubtful = rank_of(self.S)
        self.residual = float(np.sum((self.y - self.X @ self.fit) ** 2))


def scaled(S: Array) -> tuple[Array, Array]:
    """S with columns in units of which the diagonal is 1, and those units."""
    units = np.sqrt(np.diag(S))
    inverse = np.divide(1.0, units, out=np.zeros_like(units), where=units > 0)
    return np.asarray(S * inverse * inverse[:, None]), inverse


def solution(S: Array, b: Array) -> Array:
    """A solution of Sθ = b."""
    matrix, units = scaled(S)
    return np.asarray(units * (np.linalg.pinv(matrix, rcond=1e-9, hermitian=True) @ (units * b)))


def rank_of(S: Array) -> tuple[int, bool]:
    """Eigenvalues above 1e-9, where the diagonal is 1, and whether one is too near to call."""
    values = np.linalg.eigvalsh(scaled(S)[0])
    return int(np.sum(values > 1e-9)), bool(np.any((values > 1e-12) & (values < 1e-6)))


class DyClu:
    """Edges between users, links to outdated models; `margin` tells how near a test was to its limit."""

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        beta: float | None,
        level: float,
        noise: float | None,
        window: int,
        outdated: bool,
        growing: bool = False,
        ridge: float,
    ) -> None:
        self.growing = growing
        self.n_users, self.dim, self.ridge = n_users, dim, ridge
        self.beta, self.level, self.noise = beta, level, noise
        self.window, self.keeps = window, outdated
        self.models = [Model(dim) for _ in range(n_users)]
        self.edges = np.ones((n_users, n_users), bool)  # Row 1
        self.outdated: list[Model] = []
        self.links: list[list[Model]] = [[] for _ in range(n_users)]
        self.outcomes: list[list[bool]] = [[] for _ in range(n_users)]
        self.rounds = self.splits = self.merges = 0
        self.cuts = self.returns = self.refused = self.changes = self.linked = 0
        self.margin = math.inf

    @property
    def exploring(self) -> bool:
        return False

    def welcome(self, newcomers: int) -> None:
        """Newcomers are joined to everybody. Row 1."""
        self.edges = np.pad(self.edges, (0, newcomers), constant_values=True)
        for _ in range(newcomers):
            self.models.append(Model(self.dim))
            self.links.append([])
            self.outcomes.append([])
        self.n_users += newcomers

    def clusters(self) -> list[frozenset[int]]:
        joined = self.edges | np.eye(self.n_users, dtype=bool)
        return [frozenset(np.flatnonzero(row).tolist()) for row in joined]

    def sigma(self) -> float | None:
        """σ, given or estimated; None before there is enough data. Row 2."""
        if self.noise is not None:
            return self.noise
        residual = sum(m.residual for m in self.models)
        freedom = sum(len(m.y) - m.rank for m in self.models)
        return math.sqrt(residual / freedom) if freedom >= 10 else None

    def scores(self, user: int, arms: Array) -> Array:
        """xᵀθ̂_V + a √(xᵀM_V⁻¹x). Rows 3 and 4."""
        pooled = [self.models[j] for j in range(self.n_users) if j == user or self.edges[user, j]]
        pooled += self.links[user]
        matrix = self.ridge * np.eye(self.dim) + sum(m.S for m in pooled)
        theta = solve(matrix, np.asarray(sum(m.b for m in pooled)))
        factor = self.beta
        if factor is None:
            factor = self.theory(sum(len(m.y) for m in pooled))
        if self.growing:
            factor *= math.sqrt(math.log(self.rounds + 2))
        return np.array([float(x @ theta) + factor * math.sqrt(float(x @ solve(matrix, x))) for x in arms])

    def theory(self, n: int) -> float:
        sigma = self.sigma()
        if sigma is None:
            rewards = np.concatenate([m.y for m in self.models])
            sigma = math.sqrt(float(np.mean(rewards**2))) if len(rewards) else 0.0
        grown = self.dim * math.log(1 + n / (self.dim * self.ridge))
        return sigma * math.sqrt(grown + 2 * math.log(1 / 0.1)) + math.sqrt(self.ridge)

    def update(self, user: int, x: Array, reward: float) -> None:
        self.margin = math.inf
        if self.absorb(user, x, reward):
            self.test(user)
        self.detect(user)

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        self.margin = math.inf
        absorbed = [self.absorb(user, x, reward) for x, reward in observed(xs, clicked)]
        if any(absorbed):
            self.test(user)
        self.detect(user)

    def absorb(self, user: int, x: Array, reward: float) -> bool:
        """Rows 5 and 6."""
        self.rounds += 1
        if self.window:
            failed = self.fails(self.models[user], x, reward)
            self.outcomes[user].append(failed)
            self.refused += failed
            if failed:
                return False
        self.models[user].add(x, reward)
        return True

    def fails(self, model: Model, x: Array, reward: float) -> bool:
        """Row 5."""
        sigma = self.sigma()
        if sigma is None or model.rank < self.dim:
            return False
        spread = sigma**2 * (1 + float(x @ np.linalg.solve(model.S, x)))
        p = float(chi2.sf((reward - float(x @ model.fit)) ** 2 / spread, 1)) if spread else 1.0
        self.margin = min(self.margin, abs(p / 0.01 - 1))
        return p <= 0.01

    def alike(self, a: Model, b: Model) -> bool:
        """Row 7."""
        sigma = self.sigma()
        together, doubtful = rank_of(a.S + b.S)
        freedom = a.rank + b.rank - together
        if doubtful or a.doubtful or b.doubtful:
            self.margin = 0.0
        if sigma is None or freedom <= 0:
            return True
        joint = solution(a.S + b.S, a.b + b.b)
        s = sum(float(np.sum((m.X @ (m.fit - joint)) ** 2)) for m in (a, b))
        p = float(chi2.sf(s / sigma**2, freedom)) if sigma else 1.0
        self.margin = min(self.margin, abs(p / self.level - 1))
        return p > self.level

    def test(self, user: int) -> None:
        """Row 8."""
        for other in range(self.n_users):
            if other != user:
                before, now = self.edges[user, other], self.alike(self.models[user], self.models[other])
                self.edges[user, other] = self.edges[other, user] = now
                self.cuts += bool(before and not now)
                self.returns += bool(now and not before)
        self.links[user] = [old for old in self.outdated if self.alike(self.models[user], old)]
        self.linked += len(self.links[user])

    def detect(self, user: int) -> None:
        """Rows 9 and 10."""
        last = self.outcomes[user][-self.window :] if self.window else []
        if not last or sum(last) / len(last) <= 0.1 + math.sqrt(math.log(1 / 0.1) / (2 * len(last))):
            return
        if self.keeps:
            if len(self.outdated) == self.n_users:
                oldest = self.outdated.pop(0)
                self.links = [[old for old in held if old is not oldest] for held in self.links]
            self.outdated.append(self.models[user])
        self.models[user], self.links[user], self.outcomes[user] = Model(self.dim), [], []
        self.edges[user, :] = self.edges[:, user] = True
        self.changes += 1
