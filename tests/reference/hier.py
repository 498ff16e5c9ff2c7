"""HierUCB and HierTS, as docs/algorithms/hierucb.md and hierts.md state them.

"Row n" is the n-th row of the table in hierucb.md.
"""

import math

import numpy as np

from reference.lists import observed
from reference.users import Array, solve

SHRINKAGES = (32.0, 8.0, 2.0, 0.5, 0.125)


def inverse(matrix: Array) -> Array:
    return solve(matrix, np.eye(len(matrix)))


class Hier:
    """A hierarchical model; covariances are relative to σ², as on the page.

    `margin` is how far the last fit was from deciding otherwise about ε or about the doubt of the mean.
    """

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        ridge: float,
        intercept: bool = True,
        noise: float | None = None,
        mean: Array | None = None,
        covariance: Array | None = None,
        growing: bool = False,
    ) -> None:
        self.growing = growing
        self.n_users, self.dim, self.ridge, self.first = n_users, dim, ridge, int(intercept)
        self.size = dim + self.first
        self.noise, self.mean, self.covariance = noise, mean, covariance
        p = self.size
        self.S = [np.zeros((p, p)) for _ in range(n_users)]
        self.b = [np.zeros(p) for _ in range(n_users)]
        self.q = [0.0] * n_users
        self.pulls = [0] * n_users
        self.arrived: list[int] = []  # users in the order of their first rewards
        self.noise2 = 1.0 if noise is None else noise**2
        self.A: Array = np.eye(p) / ridge if covariance is None else covariance / self.noise2
        self.mu: Array = np.zeros(p) if mean is None else mean
        self.W: Array = np.zeros((p, p))
        self.V: list[Array] = [self.A for _ in range(n_users)]
        self.m: list[Array] = [self.mu for _ in range(n_users)]
        self.acting: tuple[Array, Array] = (self.mu, self.A)
        self.s, self.epsilon = 1.0 / ridge, 2.0 * p
        self.rounds, self.due, self.fits, self.splits, self.merges = 0, 1, 0, 0, 0
        self.margin = math.inf

    @property
    def exploring(self) -> bool:
        return False

    def clusters(self) -> list[frozenset[int]]:
        return [frozenset([user]) for user in range(self.n_users)]

    def lengthened(self, x: Array) -> Array:
        return np.concatenate([np.ones(self.first), x])

    def posterior(self, user: int) -> tuple[Array, Array]:
        """Row 1."""
        return (self.m[user], self.V[user]) if self.pulls[user] else self.acting

    def scores(self, user: int, arms: Array) -> Array:
        """Row 2."""
        m, V = self.posterior(user)
        full = [self.lengthened(x) for x in arms]
        time2 = self.noise2 * (math.log(self.rounds + 2) if self.growing else 1.0)
        return np.array([float(x @ m) + math.sqrt(time2 * max(float(x @ V @ x), 0.0)) for x in full])

    def sample(self, user: int, arms: Array, rng: np.random.Generator, scale: float) -> Array:
        """xᵀθ̃ of every arm: the only row of hierts.md."""
        m, V = self.posterior(user)
        drawn = m + scale * math.sqrt(self.noise2) * np.linalg.cholesky(V) @ rng.standard_normal(self.size)
        return np.array([float(self.lengthened(x) @ drawn) for x in arms])

    def absorb(self, user: int, x: Array, reward: float, weight: float = 1.0) -> None:
        """Row 3; a reward of a weight is both multiplied by its root."""
        if user not in self.arrived:
            self.arrived.append(user)
        x, reward = math.sqrt(weight) * self.lengthened(x), math.sqrt(weight) * reward
        m, V = self.posterior(user)
        gain = V @ x / (1.0 + x @ V @ x)
        self.m[user], self.V[user] = m + gain * (reward - x @ m), V - np.outer(gain, V @ x)
        self.S[user] = self.S[user] + np.outer(x, x)
        self.b[user] = self.b[user] + reward * x
        self.q[user] += reward**2
        self.pulls[user] += 1
        self.rounds += 1

    def review(self) -> None:
        """Row 4."""
        given = self.noise is not None and self.mean is not None and self.covariance is not None
        if self.rounds >= self.due and not given:
            self.fit()
            self.fits += 1
            soon = max(self.rounds // 6, min(self.rounds, 1 + self.size**2 // 8))
            self.due = self.rounds + soon + max(0, len(self.seen()) - 256)

    def update(self, user: int, x: Array, reward: float) -> None:
        self.absorb(user, x, reward)
        self.review()

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        for x, reward in observed(xs, clicked):
            self.absorb(user, x, reward)
        self.review()

    def rescale(self, times: Array, growth: float) -> None:
        """All vectors are multiplied by `times`, and the mean of ‖x‖² by `growth`."""
        full = np.concatenate([np.ones(self.first), times])
        squares = np.outer(full, full)
        self.S, self.b = [S * squares for S in self.S], [b * full for b in self.b]
        self.V, self.m = [V / squares for V in self.V], [m / full for m in self.m]
        self.A, self.W, self.mu = self.A / squares, self.W / squares, self.mu / full
        self.acting, self.s = (self.acting[0] / full, self.acting[1] / squares), self.s / growth

    def half(self, user: int) -> int:
        """The parity of the ones in the user's number by first reward. Row 10."""
        return bin(self.arrived.index(user)).count("1") % 2

    def seen(self) -> list[int]:
        return self.arrived

    def information(self, users: list[int]) -> Array:
        """H of some users. Row 5."""
        B = inverse(self.A)
        H: Array = np.zeros((self.size, self.size))
        for user in users:
            H = H + B - B @ inverse(B + self.S[user]) @ B
        return H

    def fit(self) -> None:
        self.margin = math.inf
        self.condition()
        self.settle_noise()
        about = self.settle_spread()
        if self.covariance is not None:
            self.A = self.covariance / self.noise2
        else:
            self.settle_covariance(about)

    def condition(self) -> None:
        """Row 5."""
        users, B = self.seen(), inverse(self.A)
        C = {user: inverse(B + self.S[user]) for user in users}
        if self.mean is None:
            H = self.information(users)
            Q = np.eye(self.size) / self.s
            if self.first:
                Q[0, 0] = 1e-6 * H[0, 0]
            self.W = inverse(Q + H)
            self.mu = self.W @ B @ sum(C[user] @ self.b[user] for user in users)
            self.margin = abs(float(np.trace(B @ self.W)) - 0.1 * self.size)
        doubtful = float(np.trace(B @ self.W)) > 0.1 * self.size
        for user in users:
            K = C[user] @ B
            self.m[user] = C[user] @ (self.b[user] + B @ self.mu)
            self.V[user] = C[user] + K @ self.W @ K.T if doubtful else C[user]
        self.acting = (self.mu, self.A + self.W)

    def settle_noise(self) -> None:
        """Row 6."""
        if self.noise is not None:
            return
        users = self.seen()
        t = sum(self.pulls[user] for user in users)
        residual = freedom = level = 0.0
        for user in users:
            m, S = self.m[user], self.S[user]
            residual += self.q[user] - 2.0 * float(self.b[user] @ m) + float(m @ S @ m)
            freedom += float(np.trace(self.V[user] @ S))
            level += float(self.b[user][0])
        square = sum(self.q[user] for user in users)
        usual = square / t
        if self.first:
            usual = max(usual - (level / t) ** 2, 0.0)
        estimate = (max(residual, 0.0) + usual) / (max(t - freedom, 0.0) + 1.0)
        self.noise2 = max(estimate, 1e-8 * max(square / t, self.variance()), 1e-100)

    def variance(self) -> float:
        """That of rewards by a given Σ, as if all features were alike. Row 6."""
        if self.covariance is None:
            return 0.0
        diagonal = np.diag(self.covariance)
        reach, t = self.reach()
        return float(diagonal[: self.first].sum() + diagonal[self.first :].mean() * reach / t)

    def reach(self) -> tuple[float, int]:
        """Σ‖x‖² and the number of rewards, of those who count."""
        users = self.seen()
        found = sum(float(np.trace(self.S[user][self.first :, self.first :])) for user in users)
        return found, sum(self.pulls[user] for user in users)

    def settle_spread(self) -> float:
        """Row 7; returns a."""
        reach, t = self.reach()
        about = self.ridge * (reach / t if reach > 0 else 1.0)
        if self.mean is None:
            length2 = float(self.mu[self.first :] @ self.mu[self.first :])
            known = sum(1.0 - self.W[i, i] / self.s for i in range(self.first, self.size))
            pseudo = 0.5 * self.dim
            self.s = (length2 / self.noise2 + pseudo / about) / (max(known, 0.0) + pseudo)
        return about

    def step(self, users: list[int], epsilon: float, target: Array, start: Array) -> Array:
        """Row 8."""
        R: Array = np.asarray(np.linalg.cholesky(self.A), dtype=np.float64)
        H = self.spared(users)
        D = sum((np.outer(self.m[u] - self.mu, self.m[u] - self.mu) for u in users), np.zeros_like(H))
        k = 0.5 * self.size
        told = D / self.noise2 + np.diag(epsilon * target + k * start)
        values, vectors = np.linalg.eigh(R.T @ H @ R)
        root = vectors @ np.diag(1.0 / np.sqrt(np.maximum(values, 0.0) + epsilon + k)) @ vectors.T
        inwards = solve(R, told)
        scaled = root @ solve(R, inwards.T) @ root
        found = R @ scaled @ R.T
        return np.asarray(0.5 * (found + found.T))

    def spared(self, users: list[int]) -> Array:
        """H − HWH/n. Row 8."""
        H = self.information(users)
        return H - H @ self.W @ H / len(users)

    def settle_covariance(self, about: float) -> None:
        """Rows 8 to 10."""
        users, f = self.seen(), self.first
        start = np.array([1.0 / self.ridge] * f + [1.0 / about] * self.dim)
        free = self.step(users, 0.0, np.zeros(self.size), start)
        H = self.spared(users)[f:, f:]
        known = float(np.trace(H))
        size = float(np.trace(H @ free[f:, f:])) / known if known > 0 else 1.0 / about
        target = np.maximum(np.array([free[0, 0]] * f + [size] * self.dim), 1e-12 * start)  # Row 9
        halves = [[user for user in users if self.half(user) == which] for which in (0, 1)]
        if halves[0] and halves[1]:
            self.choose(halves, target, start)
        self.A = self.step(users, self.epsilon, target, start)

    def choose(self, halves: list[list[int]], target: Array, start: Array) -> None:
        """Row 10."""
        found = []
        for shrinkage in SHRINKAGES:
            total = 0.0
            for which in (0, 1):
                A = self.step(halves[which], shrinkage * self.size, target, start)
                others = halves[1 - which]
                stride = math.ceil(len(others) / 32)
                total += sum(self.evidence(user, inverse(A)) for user in others[::stride])
            found.append(total)
        best = found.index(max(found))
        self.epsilon = SHRINKAGES[best] * self.size
        gap = min(found[best] - other for k, other in enumerate(found) if k != best)
        self.margin = min(self.margin, gap / (1.0 + abs(found[best])))

    def evidence(self, user: int, B: Array) -> float:
        """Row 10."""
        S, c = self.S[user], self.b[user] - self.S[user] @ self.mu
        logdets = np.linalg.slogdet(B)[1] - np.linalg.slogdet(B + S)[1]
        return float(logdets + c @ solve(B + S, c) / self.noise2)

    def welcome(self, newcomers: int) -> None:
        """Newcomers start from the prior. Row 1."""
        for _ in range(newcomers):
            self.S.append(np.zeros((self.size, self.size)))
            self.b.append(np.zeros(self.size))
            self.q.append(0.0)
            self.pulls.append(0)
            self.V.append(self.A)
            self.m.append(self.mu)
        self.n_users += newcomers


class Seated(Hier):
    """The same with a bounded number of seats: only those who sit count; σ is given. Row 8 of autoclub.md."""

    def __init__(self, n_users: int, dim: int, *, ridge: float, seats: int) -> None:
        super().__init__(n_users, dim, ridge=ridge, noise=1.0)
        self.seats, self.holders = seats, list(range(seats))
        self.returns = self.apart = 0

    def number(self, user: int) -> int:
        """By first reward; the next one if there is none yet."""
        return self.arrived.index(user) if user in self.arrived else len(self.arrived)

    def sits(self, user: int) -> bool:
        return self.holders[self.number(user) % self.seats] == self.number(user)

    def sit(self, user: int) -> None:
        """Who comes back has its posterior made anew."""
        if not self.sits(user):
            self.m[user], self.V[user] = self.posterior(user)
            self.holders[self.number(user) % self.seats] = self.number(user)
            self.returns += self.pulls[user] > 0

    def posterior(self, user: int) -> tuple[Array, Array]:
        if self.sits(user) or not self.pulls[user]:
            return super().posterior(user)
        mu, N = self.acting
        V = inverse(inverse(N) + self.S[user])
        return mu + V @ (self.b[user] - self.S[user] @ mu), V

    def learn_apart(self, user: int, x: Array, reward: float, weight: float) -> None:
        """Of one who does not sit only the sums are kept."""
        if user not in self.arrived:
            self.arrived.append(user)
        x, reward = math.sqrt(weight) * self.lengthened(x), math.sqrt(weight) * reward
        self.S[user] = self.S[user] + np.outer(x, x)
        self.b[user] = self.b[user] + reward * x
        self.q[user] += reward**2
        self.pulls[user] += 1
        self.rounds += 1
        self.apart += 1

    def half(self, user: int) -> int:
        return bin(self.number(user) % self.seats).count("1") % 2

    def seen(self) -> list[int]:
        return [self.arrived[number] for number in self.holders if number < len(self.arrived)]
