"""COLDB, as docs/algorithms/coldb.md states it, the same with exact fits, and the pair of any transcription.

"Row n" is the n-th row of the table there.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit

from reference.club import CLUB
from reference.lists import observed
from reference.users import Array, solve


class Scoring(Protocol):
    beta: float

    def scores(self, user: int, arms: Array) -> Array: ...


def pair_scores(policy: Scoring, user: int, arms: Array) -> tuple[Array, Array]:
    """Rows 2 and 3: the mean of each arm, and mean and bonus of its difference to the best."""
    beta, policy.beta = policy.beta, 0.0
    means = policy.scores(user, arms)
    policy.beta = beta
    return means, policy.scores(user, arms - arms[int(np.argmax(means))])


class COLDB(CLUB):
    """CLUB on outcomes; each user's regression is a Gaussian around its mode."""

    def absorb(self, user: int, x: Array, reward: float) -> None:
        """Rows 4 and 5, by the normal equations of one more, weighted, sample."""
        y = min(max(reward, 0.0), 1.0)
        matrix = self.ridge * np.eye(self.dim) + self.S[user]
        before = solve(matrix, self.b[user])
        gain = solve(matrix, x)
        slope = root(lambda s: s - (y - float(expit(x @ (before + s * gain)))))  # Row 4: θ = θ̂ + s·M⁻¹z
        m = float(x @ (before + slope * gain))
        curvature = max(float(expit(m) * expit(-m)), 1e-9)
        self.S[user] = self.S[user] + curvature * np.outer(x, x)
        self.b[user] = self.b[user] + (curvature * m + slope) * x
        self.pulls[user] += 1

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        """The outcomes of a list one by one, then one review."""
        for x, reward in observed(xs, clicked):
            self.absorb(user, x, reward)
            self.rounds += 1
        self.delete_edges(user)

    def welcome(self, newcomers: int) -> None:
        """Row 1: newcomers are joined to everybody."""
        known, self.n_users = self.n_users, self.n_users + newcomers
        joined = ~np.eye(self.n_users, dtype=np.bool_)
        joined[:known, :known] = self.adjacency
        self.adjacency = joined
        self.S += [np.zeros((self.dim, self.dim)) for _ in range(newcomers)]
        self.b += [np.zeros(self.dim) for _ in range(newcomers)]
        self.pulls += [0] * newcomers


def root(excess: Callable[[float], float]) -> float:
    """The root of a growing function between −1 and 1, where y − σ lies."""
    return float(brentq(excess, -1.0, 1.0, xtol=1e-15, rtol=1e-14))


class ExactCOLDB(CLUB):
    """The same with all samples kept, and every estimate the minimum of the regularised logistic loss."""

    def __init__(
        self, n_users: int, dim: int, *, ridge: float, beta: float, radius: Callable[[int], float]
    ) -> None:
        super().__init__(n_users, dim, ridge=ridge, beta=beta, radius=radius)
        self.samples: list[list[tuple[Array, float]]] = [[] for _ in range(n_users)]
        self.fitted: dict[tuple[tuple[int, ...], int], Array] = {}

    def absorb(self, user: int, x: Array, reward: float) -> None:
        self.samples[user].append((x, reward))
        self.pulls[user] += 1

    def fit(self, members: frozenset[int]) -> Array:
        """argmin Σ ln(1 + exp(zᵀθ)) − y zᵀθ + λ‖θ‖²/2."""
        key = tuple(sorted(members)), sum(self.pulls[i] for i in members)
        if key not in self.fitted:
            kept = [sample for i in members for sample in self.samples[i]]
            z = np.array([x for x, _ in kept]).reshape(-1, self.dim)
            y = np.array([outcome for _, outcome in kept])

            def loss(theta: Array) -> float:
                m = z @ theta
                return float(np.sum(np.logaddexp(0.0, m) - y * m) + self.ridge / 2 * theta @ theta)

            def slope(theta: Array) -> Array:
                return np.asarray(z.T @ (expit(z @ theta) - y) + self.ridge * theta)

            found = minimize(loss, np.zeros(self.dim), jac=slope, method="BFGS", options={"gtol": 1e-8})
            self.fitted[key] = np.asarray(found.x)
        return self.fitted[key]

    def estimate(self, user: int) -> Array:
        return self.fit(frozenset([user]))

    def scores(self, user: int, arms: Array) -> Array:
        members = self.component(user)
        theta = self.fit(members)
        z = np.array([x for i in members for x, _ in self.samples[i]]).reshape(-1, self.dim)
        p = expit(z @ theta)
        matrix = self.ridge * np.eye(self.dim) + (z * (p * (1 - p))[:, None]).T @ z
        return np.array([theta @ x + self.beta * np.sqrt(x @ solve(matrix, x)) for x in arms])
