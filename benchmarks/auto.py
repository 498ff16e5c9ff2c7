"""AutoCLUB's simulated round against UniCLUB's in the same worlds, and how it grows with the users."""

from __future__ import annotations

from typing import NamedTuple

import coterie
from coterie.environments import Stochastic

HORIZON = 20_000
CROWDS = (50, 200, 800)
PULLS = 100
CONFIDENCE = coterie.Tuned(alpha=1.5, beta=0.1, explore=500)


class Beside(NamedTuple):
    world: str
    auto: float
    uni: float
    allowed: float


class Crowd(NamedTuple):
    users: int
    auto: float
    allowed: float


def spent(policy: coterie.Policy, world: Stochastic, horizon: int) -> float:
    """Microseconds a round."""
    return 1e6 * coterie.simulate(policy, world, horizon, record=1).seconds / horizon


def auto(world: Stochastic) -> coterie.Policy:
    return coterie.AutoCLUB(world.n_users, world.dim)


def uni(world: Stochastic) -> coterie.Policy:
    return coterie.UniCLUB(world.n_users, world.dim, confidence=CONFIDENCE)


def beside(repeats: int = 3) -> list[Beside]:
    """50 users, 20,000 rounds, in worlds with clusters, without any, and with one."""
    data = coterie.datasets.load("synthetic")
    results = []
    for name, clusters in (("10 clusters", 10), ("no clusters", 50), ("one cluster", 1)):
        world = Stochastic(data, n_clusters=clusters, seed=1)
        spent(auto(world), world, 600)
        spent(uni(world), world, 600)
        times = [
            (spent(auto(world), world, HORIZON), spent(uni(world), world, HORIZON)) for _ in range(repeats)
        ]
        results.append(Beside(name, min(t[0] for t in times), min(t[1] for t in times), 3.0))
    return results


def crowds(repeats: int = 3) -> list[Crowd]:
    """More users in as many more clusters, each with as many rounds: at most linear in their number."""
    data = coterie.datasets.load("synthetic", n_users=max(CROWDS))
    results: list[Crowd] = []
    for users in CROWDS:
        world = Stochastic(data, n_users=users, n_clusters=users // 5, seed=1)
        best = min(spent(auto(world), world, PULLS * users) for _ in range(repeats))
        first = results[0] if results else Crowd(users, best, best)
        results.append(Crowd(users, best, first.auto * users / first.users))
    return results
