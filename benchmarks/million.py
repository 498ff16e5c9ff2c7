"""AutoCLUB among a million users: memory, rounds beside those among a thousand, and the slowest updates.

python -m benchmarks.million                                   10⁶ users, 10⁷ rounds; under an hour
python -m benchmarks.million --users 100000 --rounds 1000000   what `make bench` plays; minutes
python -m benchmarks.million --users 100000 --rounds 1500000 --even --clusters 100000   no two users alike
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, thread_time
from typing import NamedTuple

import numpy as np

import coterie
from benchmarks.crowds import peak
from benchmarks.timing import Table, at_most
from coterie.progress import progress_bar
from coterie.types import Floats, Ints

ARMS, ITEMS, NOISE = 20, 5_000, 0.1
FEW_USERS, CHUNK = 1_000, 10_000
GIGABYTES = 8 * 2**30 / 1e9


class World:
    """Users of few clusters, who come by Zipf's law unless `even`; arms are drawn from lasting items."""

    def __init__(self, users: int, dim: int, clusters: int, *, even: bool, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.preferences, self.items = self.directions(clusters, dim), self.directions(ITEMS, dim)
        self.labels = self.rng.permutation(np.arange(users) % clusters)
        self.order = self.rng.permutation(users)
        weights = np.ones(users) if even else 1.0 / np.arange(1, users + 1)
        self.cumulated = np.cumsum(weights / weights.sum())

    def directions(self, n: int, dim: int) -> Floats:
        rows = self.rng.standard_normal((n, dim))
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def draw(self, n: int) -> tuple[Ints, Ints, Floats]:
        """Users, items on offer and noise of so many rounds."""
        ranks = np.searchsorted(self.cumulated, self.rng.random(n)).clip(max=len(self.order) - 1)
        offered = self.rng.integers(ITEMS, size=(n, ARMS))
        return self.order[ranks], offered, NOISE * self.rng.standard_normal(n)


class Played(NamedTuple):
    """Processor time in µs of a round and of the slowest update in 100; regret as a share of the best."""

    spent: float
    slow: float
    missed: float


def play(policy: coterie.LinearBandit, world: World, rounds: int, label: str) -> Played:
    """Decide and learn, one call after another, as a service does."""
    updates, spent, missed, best = np.zeros(rounds, np.float32), 0.0, 0.0, 0.0
    with progress_bar(rounds, "rounds", label=label) as advance:
        for start in range(0, rounds, CHUNK):
            n = min(CHUNK, rounds - start)
            for k, (user, offered, noise) in enumerate(zip(*world.draw(n), strict=True)):
                arms = world.items[offered]
                expected = arms @ world.preferences[world.labels[user]]
                began = thread_time()
                arm = policy.recommend(user, arms)
                chosen = thread_time()
                policy.update(user, arms[arm], expected[arm] + noise)
                ended = thread_time()
                updates[start + k] = ended - chosen
                spent += ended - began
                missed += expected.max() - expected[arm]
                best += expected.max()
            advance(n)
    return Played(1e6 * spent / rounds, 1e6 * float(np.quantile(updates, 0.99)), missed / best)


def saved_and_loaded(policy: coterie.LinearBandit, arms: Floats) -> tuple[float, float, float]:
    """Gigabytes of a snapshot, seconds to write and to read it; the next decisions must be the same."""
    users = np.linspace(0, policy.n_users - 1, 1_000).astype(int).tolist()
    wanted = [policy.recommend(user, arms) for user in users]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.coterie"
        began = perf_counter()
        policy.save(path)
        written = perf_counter()
        size = path.stat().st_size / 1e9
        del policy
        revived = coterie.load(path)
        read = perf_counter()
    if [revived.recommend(user, arms) for user in users] != wanted:
        raise SystemExit("a snapshot was loaded whose next decisions are others")
    return size, written - began, read - written


def measured(users: int, rounds: int, dim: int, clusters: int, *, even: bool, seed: int) -> Table:
    world = World(users, dim, clusters, even=even, seed=seed)
    policy = coterie.AutoCLUB(users, dim)
    many = play(policy, world, rounds, f"{users:,} users")
    found, playing = policy.learner.numbers()["clusters.partition.n_clusters"], peak()
    held = [policy]
    del policy
    size, writing, reading = saved_and_loaded(held.pop(), world.items[:ARMS])
    most = peak()
    small = World(FEW_USERS, dim, min(clusters, FEW_USERS), even=even, seed=seed)
    few = play(coterie.AutoCLUB(FEW_USERS, dim), small, min(rounds, 1_000_000), f"{FEW_USERS:,} users")
    small = World(FEW_USERS, dim, min(clusters, FEW_USERS), even=even, seed=seed)
    early = play(coterie.AutoCLUB(FEW_USERS, dim), small, rounds * FEW_USERS // users, "as often each")
    arrivals = "all alike often" if even else "by Zipf's law"
    return Table(
        f"AutoCLUB among {users:,} users in {clusters:,} clusters, who come {arrivals};"
        f" d = {dim}, K = {ARMS}, {rounds:,} rounds, seed {seed}",
        ("", "found", "wanted", ""),
        [
            (f"µs a round beside {few.spent:.0f} among {FEW_USERS:,}", *at_most(many.spent / few.spent, 3)),
            (f"and beside {early.spent:.0f} if each came as often", *at_most(many.spent / early.spent, 3)),
            ("µs of the slowest update in 100", *at_most(many.slow, 1_000)),
            ("GB resident at most, playing", *at_most(playing, GIGABYTES)),
            ("the same with saving and loading", *at_most(most, GIGABYTES)),
        ],
        f"{many.spent:.0f} µs a round; regret {many.missed:.1%} of the best rewards ({few.missed:.1%} among"
        f" {FEW_USERS:,}); {found:,} clusters found; snapshot of {size:.1f} GB, {writing:.0f} s to write,"
        f" {reading:.0f} s to read",
    )


def tables() -> Iterator[Table]:
    yield measured(100_000, 1_000_000, 50, 100, even=False, seed=1)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.million",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--users", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=10_000_000, help="default: %(default)s")
    parser.add_argument("--dim", type=int, default=50, help="default: %(default)s")
    parser.add_argument("--clusters", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--even", action="store_true", help="all users come equally often")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    given = parser.parse_args()
    measured(given.users, given.rounds, given.dim, given.clusters, even=given.even, seed=given.seed).show()


if __name__ == "__main__":
    main()
