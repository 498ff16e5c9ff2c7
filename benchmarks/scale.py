"""Large numbers of users: rounds, memory, newcomers, and snapshots at the speed of the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TypeAlias
from zlib import crc32

import numpy as np

import coterie
from benchmarks.rounds import ours
from benchmarks.timing import Table, at_most, simulated
from coterie.environments import Stochastic
from coterie.policies.array_files import AT_ONCE
from coterie.policies.memory_use import readable

Bytes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]

FEW, MANY = 1_000, 100_000
PULLS = 5
"""Rounds a user."""


def time_rounds(name: str, users: int, zipf: float, dim: int = 20) -> float:
    """Microseconds a round from the first to the fifth of each user."""
    data = coterie.datasets.load("synthetic", n_users=users, dim=dim, n_items=1_000)
    world = Stochastic(data, n_users=users, n_clusters=100, n_arms=20, seed=1, zipf=zipf)
    repeats = range(3 if users == FEW else 1)
    return min(simulated(ours(name, users, dim), world, PULLS * users) for _ in repeats)


def many_users() -> Table:
    """Rounds among many users against those among few."""
    rows = []
    for name in ("LinUCBInd", "SCLUB"):
        for zipf in (0.0, 1.0):
            few, many = time_rounds(name, FEW, zipf), time_rounds(name, MANY, zipf)
            arrivals = "Zipf" if zipf else "uniform"
            rows.append((name, arrivals, f"{few:.1f}", f"{many:.1f}", *at_most(many / few, 3)))
    return Table(
        f"{MANY:,} users against {FEW:,}, d = 20, K = 20, {PULLS} rounds each",
        ("policy", "arrivals", f"µs, {FEW:,}", f"µs, {MANY:,}", "ratio", "wanted", ""),
        rows,
    )


def time_distinct_users(
    users: int, pulls: int = PULLS, alpha: float = 0.05, dim: int = 20
) -> tuple[float, int]:
    """Microseconds of a reward to SCLUB where no two users are alike, and the clusters at the end."""
    policy = coterie.SCLUB(users, dim, confidence=coterie.Tuned(alpha=alpha, beta=0.1))
    rng, rounds, spent = np.random.default_rng(0), pulls * users, 0.0
    tastes = rng.standard_normal((users, dim)) / dim**0.5
    for _ in range(rounds // 1_000):
        served, xs = rng.integers(users, size=1_000), rng.standard_normal((1_000, dim)) / dim**0.5
        rewards = (xs * tastes[served]).sum(axis=1) + 0.1 * rng.standard_normal(1_000)
        began = process_time()
        policy.update_many(served, xs, rewards)
        spent += process_time() - began
    return 1e6 * spent / rounds, len(np.unique(policy.labels()))


def distinct_users() -> Table:
    """SCLUB with about as many clusters as users, among which Merge looks for close ones."""
    few, found = min(time_distinct_users(FEW) for _ in range(3))
    many, most = min(time_distinct_users(10 * FEW) for _ in range(3))
    return Table(
        f"SCLUB among {10 * FEW:,} users against {FEW:,}, no two alike, d = 20, {PULLS} rewards each",
        ("clusters", f"µs, {FEW:,}", f"µs, {10 * FEW:,}", "ratio", "wanted", ""),
        [(f"{found:,} and {most:,}", f"{few:.1f}", f"{many:.1f}", *at_most(many / few, 3))],
    )


def newcomer_cost() -> Table:
    """CPU time of `add_users(1)` where many are there, against where few are."""
    rows = []
    for name in ("LinUCBInd", "LinUCBOne", "SCLUB", "AutoCLUB"):
        spent = []
        for users in (FEW, 30 * FEW):
            policy = ours(name, users, 4)
            policy.add_users(1)  # arrays double
            began = process_time()
            for _ in range(200):
                policy.add_users(1)
            spent.append((process_time() - began) / 200 * 1e6)
        rows.append((name, f"{spent[0]:.0f}", f"{spent[1]:.0f}", *at_most(spent[1] / spent[0], 3)))
    return Table(
        f"add_users(1) among {30 * FEW:,} users against {FEW:,}",
        ("policy", f"µs, {FEW:,}", f"µs, {30 * FEW:,}", "ratio", "wanted", ""),
        rows,
    )


def snapshots(dim: int = 50) -> Table:
    """CPU time of saving and loading against writing and reading as many bytes."""
    rows = []
    for name, users in (("LinUCBInd", 20_000), ("CLUB", 10_000)):
        policy = ours(name, users, dim)
        with TemporaryDirectory() as folder:
            path, bare = Path(folder, "policy"), Path(folder, "bytes")
            policy.save(path)
            size = path.stat().st_size
            content = np.ones(size, np.uint8)
            saved, written = _cpu(partial(policy.save, path), partial(_write, bare, content))
            del content
            loaded, read = _cpu(partial(coterie.load, path), partial(_read, bare, size))
        label = f"{name}, {users:,} users, {readable(size)}"
        rows += [
            (f"save {label}", f"{saved:.2f}", f"{written:.2f}", *at_most(saved / written, 1.3)),
            (f"load {label}", f"{loaded:.2f}", f"{read:.2f}", *at_most(loaded / read, 2)),
        ]
    return Table(
        f"a snapshot, d = {dim}, CPU seconds, against a bare copy between memory and a file with a checksum",
        ("", "s", "bare s", "ratio", "wanted", ""),
        rows,
    )


def increments(users: int = 10_000, dim: int = 20, events: int = 200) -> Table:
    """Bytes that the service writes for what has changed, against a whole snapshot."""
    rng = np.random.default_rng(0)
    with TemporaryDirectory() as folder:
        shop = coterie.Recommender(
            dim, "LinUCBInd", users=[str(n) for n in range(users)], store=Path(folder, "store.db")
        )
        for _ in range(2):
            for user in rng.integers(users, size=events).tolist():
                shop.feedback(str(user), 1.0, x=rng.normal(size=dim))
            shop._engine.snapshot("default")
        sizes = "SELECT SUM(LENGTH(content)) FROM snapshot_part GROUP BY seq ORDER BY seq"
        whole, changed = (size for (size,) in shop._engine.store.query(sizes))
        shop.close()
    return Table(
        f"a snapshot of the service, LinUCBInd of {users:,} users, after {events} rewards more, d = {dim}",
        ("whole", "what changed", "ratio", "wanted", ""),
        [(readable(whole), readable(changed), *at_most(changed / whole, 0.2))],
    )


def _cpu(*tasks: Callable[[], object]) -> list[float]:
    """CPU seconds of tasks that take turns, the best of each: the first to take memory waits for it."""
    best = [inf] * len(tasks)
    for _ in range(5):
        for k, task in enumerate(tasks):
            began = process_time()
            task()
            best[k] = min(best[k], process_time() - began)
    return best


def _write(path: Path, content: Bytes) -> None:
    """Write bytes to the disk with a checksum, some megabytes at a time."""
    checksum = 0
    with path.open("wb") as file:
        for start in range(0, len(content), AT_ONCE):
            checksum = crc32(content[start : start + AT_ONCE].data, checksum)
            file.write(content[start : start + AT_ONCE].data)
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path, size: int) -> None:
    """Read bytes into memory with a checksum."""
    content, checksum = np.empty(size, np.uint8), 0
    with path.open("rb") as file:
        for start in range(0, size, AT_ONCE):
            file.readinto(content[start : start + AT_ONCE].data)
            checksum = crc32(content[start : start + AT_ONCE].data, checksum)


def tables() -> Iterator[Table]:
    yield many_users()
    yield distinct_users()
    yield newcomer_cost()
    yield snapshots()
    yield increments()


if __name__ == "__main__":
    for table in tables():
        table.show()
