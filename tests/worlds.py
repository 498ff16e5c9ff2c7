"""Small random worlds for tests: users in true clusters, arms with zeros and repeats, noisy rewards."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Round(NamedTuple):
    user: int
    arms: Array
    noise: float


class World(NamedTuple):
    n_users: int
    dim: int
    n_arms: int
    ridge: float
    labels: NDArray[np.int64]
    preferences: Array
    rounds: list[Round]

    def reward(self, turn: Round, arm: int) -> float:
        return float(turn.arms[arm] @ self.preferences[self.labels[turn.user]] + turn.noise)


def world(seed: int, n_rounds: int, *, noise: float = 0.1) -> World:
    """A world whose size, ridge and arms follow from the seed; the first few are the smallest there are."""
    rng = np.random.default_rng(seed)
    n_users = [1, 2, 40][seed] if seed < 3 else int(rng.integers(2, 41))
    dim = [1, 1, 20][seed] if seed < 3 else int(rng.integers(1, 21))
    n_arms = [1, 2, 30][seed] if seed < 3 else int(rng.integers(1, 31))
    n_clusters = int(rng.integers(1, max(2, n_users // 3) + 1))
    labels = rng.integers(n_clusters, size=n_users)
    preferences = rng.normal(size=(n_clusters, dim))
    preferences /= np.linalg.norm(preferences, axis=1, keepdims=True)
    rounds = [
        Round(int(rng.integers(n_users)), _arms(rng, n_arms, dim), float(noise * rng.normal()))
        for _ in range(n_rounds)
    ]
    ridge = [0.1, 1.0, 7.0][seed % 3]
    return World(n_users, dim, n_arms, ridge, labels, preferences, rounds)


def _arms(rng: np.random.Generator, n_arms: int, dim: int) -> Array:
    arms = rng.normal(size=(n_arms, dim))
    arms /= np.maximum(np.linalg.norm(arms, axis=1, keepdims=True), 1e-12)
    if rng.random() < 0.3:
        arms[rng.integers(n_arms)] = 0.0
    if rng.random() < 0.3:
        arms[rng.integers(n_arms)] = arms[rng.integers(n_arms)]
    return arms


def friends(seed: int, n_users: int) -> Array:
    """A random symmetric graph with weights, some users without friends."""
    rng = np.random.default_rng([seed, n_users])
    half = np.triu(rng.random((n_users, n_users)) * (rng.random((n_users, n_users)) < 0.3), 1)
    return half + half.T
