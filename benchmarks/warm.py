"""Decisions after a log: how far they are from the best, and what `fit` costs beside its arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time
from typing import NamedTuple

import numpy as np

import coterie
from benchmarks.floors import bare_operations
from benchmarks.timing import Table, at_most
from coterie.environments import Stochastic
from coterie.types import Floats, Ints

USERS, CLUSTERS, DIM, ARMS, SEEDS = 50, 5, 10, 20, range(5)
LOGGED = (5, 20, 80, 320)
"""Rewards of a user, on average."""


class Log(NamedTuple):
    """What somebody else's decisions brought."""

    users: Ints
    xs: Floats
    rewards: Floats


def place(seed: int) -> Stochastic:
    data = coterie.datasets.load("synthetic", dim=DIM, n_users=200, n_items=1_000, seed=0)
    return Stochastic(data, n_users=USERS, n_clusters=CLUSTERS, n_arms=ARMS, noise=0.1, seed=seed)


def made_log(world: Stochastic, n: int, seed: int, *, narrow: bool) -> Log:
    """Arms were drawn uniformly; in a narrow log, those whose first three coordinates sum to most."""
    blocks = [world.block(b) for b in range(1 + n // 256)]
    users = np.concatenate([block.users for block in blocks])
    offers = np.concatenate([block.picks for block in blocks])
    arms = np.random.default_rng(seed).integers(ARMS, size=len(users))
    if narrow:
        arms = world.dataset.items[offers, :3].sum(axis=2).argmax(axis=1)
    rows = np.arange(len(users))
    picks = offers[rows, arms]
    means = np.concatenate([block.means for block in blocks])[rows, arms]
    noise = np.concatenate([block.noise for block in blocks])
    return Log(users[:n], world.dataset.items[picks[:n]], (means + noise)[:n])


def gap(policy: coterie.LinearBandit, world: Stochastic, *, cautious: bool) -> float:
    """The mean over 2,560 decisions of what the best arm is worth more than the chosen one."""
    lost = []
    for number in range(1_000, 1_010):
        block = world.block(number)
        arms = policy.recommend_many(block.users, block.items[block.picks], cautious=cautious)
        lost.append(block.means.max(axis=1) - block.means[np.arange(len(arms)), arms])
    return float(np.mean(lost))


Made = Callable[[Stochastic], coterie.LinearBandit]


def clustered(make: Callable[..., coterie.LinearBandit], alpha: float) -> Made:
    return lambda world: make(USERS, DIM, confidence=coterie.Tuned(alpha=alpha, beta=0.1))


def surely_joined(alpha: float, distance: float) -> Made:
    return lambda world: coterie.OffC2LUB(USERS, DIM, gap=distance, alpha=alpha, beta=0.1)


POLICIES: dict[str, Made] = {
    "OffCLUB, alpha = 0.25": clustered(coterie.OffCLUB, 0.25),
    "OffCLUB, alpha = 0.5": clustered(coterie.OffCLUB, 0.5),
    "OffCLUB, alpha = 1": clustered(coterie.OffCLUB, 1.0),
    "OffC2LUB, alpha = 0.05, gap = 0.3": surely_joined(0.05, 0.3),
    "OffC2LUB, alpha = 0.1, gap = 0.3": surely_joined(0.1, 0.3),
    "OffC2LUB, alpha = 0.05, gap = 0.5": surely_joined(0.05, 0.5),
    "CLUB, alpha = 0.5": clustered(coterie.CLUB, 0.5),
    "SCLUB, alpha = 0.5": clustered(coterie.SCLUB, 0.5),
    "LinUCBInd": lambda world: coterie.LinUCBInd(USERS, DIM, beta=0.1),
    "LinUCBOne": lambda world: coterie.LinUCBOne(USERS, DIM, beta=0.1),
    "LinUCBOracle": lambda world: coterie.LinUCBOracle(USERS, DIM, labels=world.labels, beta=0.1),
    "AutoCLUB": lambda world: coterie.AutoCLUB(USERS, DIM),
}


def gaps(*, narrow: bool) -> Table:
    """Cautious decisions, and beside them those by upper bounds."""
    rows, kind = [], "narrow" if narrow else "uniform"
    for name, make in POLICIES.items():
        cells = []
        for logged in LOGGED:
            found = np.array([one_gap(make, logged, seed, narrow=narrow) for seed in SEEDS]).mean(axis=0)
            cells.append(f"{1e3 * found[0]:.0f} ({1e3 * found[1]:.0f})")
        rows.append((name, *cells))
    return Table(
        f"What a decision loses after a {kind} log, in thousandths: u = {USERS} in {CLUSTERS} clusters, "
        f"d = {DIM}, K = {ARMS}, σ = 0.1, seeds 0 to {len(SEEDS) - 1}; cautious (by upper bounds)",
        ("policy", *(f"{n} rewards a user" for n in LOGGED)),
        rows,
    )


def one_gap(make: Made, logged: int, seed: int, *, narrow: bool) -> tuple[float, float]:
    world = place(seed)
    policy, log = make(world), made_log(world, logged * USERS, seed, narrow=narrow)
    if policy.name == "AutoCLUB":
        policy.update_many(*log)
    else:
        policy.fit(*log)
    return gap(policy, world, cautious=True), gap(policy, world, cautious=False)


def fitting() -> Table:
    """A log of 20,000 rewards among 200 users of 50 dimensions, and all pairs of them."""
    users, dim, n, bare = 200, 50, 20_000, bare_operations()
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(n, dim)) / dim**0.5
    log = Log(rng.integers(users, size=n), xs, xs[:, 0] + 0.1 * rng.normal(size=n))
    each = 2 * (bare.product + bare.outer) + bare.outer
    rows = []
    for make in (coterie.OffCLUB, coterie.CLUB):
        policy = make(users, dim, confidence=coterie.Tuned(alpha=1.5, beta=0.1))
        began = process_time()
        policy.fit(*log)
        spent = process_time() - began
        floor = 1e-6 * (n * each + users * (users - 1) * bare.means / 100)
        ratio = at_most(spent / floor, 3)
        rows.append((make.__name__, f"{1e3 * spent:.0f}", f"{1e3 * floor:.0f}", *ratio))
    return Table(
        f"`fit` of {n:,} rewards of {users} users, d = {dim}, and what is implied",
        ("policy", "ms", "implied ms", "ratio", "wanted", ""),
        rows,
    )


def tables() -> Iterator[Table]:
    yield fitting()
    yield gaps(narrow=False)
    yield gaps(narrow=True)


if __name__ == "__main__":
    for table in tables():
        table.show()
