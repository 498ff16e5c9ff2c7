"""GOB.Lin and GraphUCB at u = 20, K = 20, d = 50 against one 1,000 × 1,000 rank-one update by BLAS."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dger

import coterie
from coterie.environments import Stochastic

HORIZON = 1024


class Result(NamedTuple):
    name: str
    ours: float
    floor: float
    allowed: float


def rank_one(repeats: int = 200) -> float:
    """Microseconds of one in-place rank-one update by BLAS, the best of many."""
    matrix = np.asfortranarray(np.eye(1000))
    x = np.random.default_rng(0).normal(size=1000)
    best = np.inf
    for _ in range(repeats):
        began = perf_counter()
        dger(-1e-6, x, x, a=matrix, overwrite_a=1)
        best = min(best, perf_counter() - began)
    return 1e6 * best


def measure(repeats: int = 3) -> list[Result]:
    world = Stochastic(coterie.datasets.load("synthetic"), n_users=20, n_clusters=4, n_arms=20, seed=1)
    same = (world.labels[:, None] == world.labels[None, :]) & ~np.eye(20, dtype=bool)
    results = []
    for make in (coterie.GOBLin, coterie.GraphUCB):
        coterie.simulate(make(20, 50, graph=same, alpha=0.1), world, 64, record=8)
        spent = [
            coterie.simulate(make(20, 50, graph=same, alpha=0.1), world, HORIZON).seconds
            for _ in range(repeats)
        ]
        results.append(Result(make.__name__, 1e6 * min(spent) / HORIZON, rank_one(), 3.0))
    return results
