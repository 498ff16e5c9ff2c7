"""Many users: time of rounds, memory, and adding users one by one."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from itertools import cycle
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

import coterie
from benchmarks.rounds import ours
from benchmarks.timing import Table, at_most, best_call, simulated, stepped
from coterie.environments import Stochastic
from coterie.policies.kernel.linalg import near

HORIZON = 2_048
NEWCOMERS, NEWCOMERS_DIM = 5_000, 16


class Crowd(NamedTuple):
    """A world of CLUB's, the rounds played before it is timed, and the gigabytes it may need at its peak."""

    users: int
    dim: int
    alpha: float
    clusters: int
    warm_up: int
    gigabytes: float


CROWDS = (
    Crowd(10_000, 50, alpha=1.5, clusters=10, warm_up=2_304, gigabytes=2.0),
    Crowd(10_000, 50, alpha=0.5, clusters=1, warm_up=230_400, gigabytes=2.0),
    Crowd(50_000, 25, alpha=1.5, clusters=10, warm_up=2_304, gigabytes=2.5),
)
"""Complete graphs, but for the second: there norms no longer decide alone, and most rounds cut edges."""


def peak() -> float:
    """The largest resident memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def time_near(policy: coterie.LinearBandit) -> float:
    """Microseconds of comparing one user with all, users in random order."""
    estimates = np.array(policy.estimates)
    users = cycle(np.random.default_rng(0).integers(len(estimates), size=300).tolist())
    return best_call(lambda: near(estimates, next(users), 1.0), 30)


def time_crowd(crowd: Crowd) -> tuple[str, ...]:
    """A row of the table. Early rounds also touch each user's memory for the first time."""
    data = coterie.datasets.load("synthetic", n_users=crowd.users, dim=crowd.dim)
    world = Stochastic(data, n_users=crowd.users, n_clusters=crowd.clusters, n_arms=20, seed=1)
    policy = coterie.CLUB(crowd.users, crowd.dim, confidence=coterie.Tuned(alpha=crowd.alpha, beta=0.1))
    before = simulated(policy, world, crowd.warm_up)
    spent = min(simulated(policy, world, HORIZON) for _ in range(3))
    floor = time_near(policy)
    edges = np.bitwise_count(policy.learner.array("edges")).sum() / crowd.users / (crowd.users - 1)
    return (
        f"{crowd.users:,}, d = {crowd.dim}, α = {crowd.alpha:g}",
        f"{crowd.warm_up:,}",
        f"{before:.0f}",
        f"{100 * edges:.1f} %",
        f"{spent:.1f}",
        f"{floor:.1f}",
        *at_most(spent / floor, 1),
        *at_most(peak(), crowd.gigabytes),
    )


def large_graphs() -> Table:
    """CLUB's round in a complete graph, or nearly so."""
    heads = ("users", "after", "µs until then", "edges", "µs", "bare µs", "ratio", "wanted", "")
    return Table(
        "CLUB in large graphs, K = 20, against the bare comparison of one user with all",
        (*heads, "peak GB", "wanted", ""),
        [time_crowd(crowd) for crowd in CROWDS],
        f"a byte for each pair of 50,000 users would be {50_000**2 / 1e9:.1f} GB",
    )


def cost_by_neighbours(name: str, users: int, alpha: float, dim: int = 10) -> tuple[float, float, int]:
    """µs of a reward, neighbours that its user had, and components in the end, over ten rewards a user."""
    confidence = coterie.Tuned(alpha=alpha, beta=0.1, explore=0)
    policy = (coterie.CLUB if name == "CLUB" else coterie.PhaseUniCLUB)(users, dim, confidence=confidence)
    rng, spent, neighbours, n = np.random.default_rng(0), 0.0, 0, 1_000
    tastes = rng.standard_normal((10, dim)) / dim**0.5
    for _ in range(10 * users // n):
        served, xs = rng.integers(users, size=n), rng.standard_normal((n, dim)) / dim**0.5
        rewards = (xs * tastes[served % 10]).sum(axis=1) + 0.1 * rng.standard_normal(n)
        neighbours += int(np.bitwise_count(policy.learner.array("edges")[served]).sum())
        began = process_time()
        policy.update_many(served, xs, rewards)
        spent += process_time() - began
    rounds = 10 * users
    return 1e6 * spent / rounds, neighbours / rounds, len(np.unique(policy.labels()))


def own_neighbours(constant: int = 100) -> Table:
    """What a reward costs for each neighbour, in graphs that stay dense and in such that fall apart."""
    rows = []
    for name in ("CLUB", "PhaseUniCLUB"):
        for alpha in (1.5, 0.1):
            first = 0.0
            for users in (1_000, 5_000, 20_000):
                spent, neighbours, components = cost_by_neighbours(name, users, alpha)
                each = 1e3 * spent / (neighbours + constant)
                first = first or each
                verdict = at_most(each / first, 4) if users > 1_000 else ("1.00", "", "")
                cells = (f"{spent:.1f}", f"{neighbours:,.0f}", f"{components:,}", f"{each:.1f}")
                rows.append((f"{name}, α = {alpha:g}, {users:,} users", *cells, *verdict))
    return Table(
        f"graphs of users, d = 10, ten rewards each: processor time by own neighbours + {constant}",
        ("", "µs", "own neighbours", "components", "ns each", "× 1,000 users", "wanted", ""),
        rows,
        "a graph of 1,000 users fits into the processor's cache, others do not",
    )


def many_clusters(users: int = 1_876, dim: int = 25, horizon: int = 20_000) -> Table:
    """SCLUB where a small α splits users into very many clusters."""
    world = Stochastic(coterie.datasets.load("synthetic", n_users=users, dim=dim), n_users=users, seed=1)
    rows = []
    for alpha in (0.1, 1.5):
        confidence = coterie.Tuned(alpha=alpha, beta=0.1)
        policy = coterie.SCLUB(users, dim, confidence=confidence)
        spent = simulated(policy, world, horizon)
        steps = stepped(coterie.SCLUB(users, dim, confidence=confidence), world, horizon)
        clusters = len(np.unique(policy.labels()))
        percentiles = [f"{np.percentile(steps, q):.0f}" for q in (50, 99)]
        rows.append((f"α = {alpha:g}", f"{clusters:,}", f"{spent:.1f}", *percentiles))
    return Table(
        f"SCLUB among {users:,} users, d = {dim}, K = 100, the first {horizon:,} rounds",
        ("radius", "clusters", "µs", "steps: median µs", "p99 µs"),
        rows,
    )


def growth(pulls: int = 100) -> Table:
    """AutoCLUB among more users in as many more clusters, each with as many rounds."""
    data = coterie.datasets.load("synthetic", n_users=800)
    rows, first = [], 0.0
    for users in (50, 200, 800):
        world = Stochastic(data, n_users=users, n_clusters=users // 5, seed=1)
        repeats = range(3 if users < 800 else 1)
        spent = min(simulated(coterie.AutoCLUB(users, world.dim), world, pulls * users) for _ in repeats)
        first = first or spent
        verdict = at_most(spent / first, users / 50) if users > 50 else ("1.00", "", "")
        rows.append((f"{users}", f"{spent:.2f}", *verdict))
    return Table(
        f"AutoCLUB's growth with users, {pulls} rounds each: at most linear",
        ("users", "µs", "× 50 users", "wanted", ""),
        rows,
    )


def newcomers() -> Table:
    """`add_users(1)` again and again."""
    rows = []
    for name in ("LinUCBInd", "CLUB", "SCLUB", "PhaseUniCLUB", "AutoCLUB"):
        policy = ours(name, 1, NEWCOMERS_DIM)
        began = perf_counter()
        while policy.n_users < NEWCOMERS:
            policy.add_users(1)
        rows.append((name, *at_most(perf_counter() - began, 1.0)))
    return Table(
        f"add_users one by one, from 1 to {NEWCOMERS:,}, d = {NEWCOMERS_DIM}",
        ("policy", "seconds", "wanted", ""),
        rows,
    )


def tables() -> Iterator[Table]:
    yield large_graphs()
    yield own_neighbours()
    yield many_clusters()
    yield growth()
    yield newcomers()
