"""Choosing among a whole catalogue, beside the bare product of NumPy: processor times on one thread.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.catalogue                    100,000 items; two minutes
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.catalogue --items 1000000    a million
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.catalogue --data DIR         Last.fm, MovieLens, Jester

Every number is the time of `policy.recommend(user, catalogue)` divided by that of `vectors @ theta`, measured
in turn, for the user with the most rewards, for one without any, and for a list of ten. Rewards are those of
the policy's own choices, with some random items between them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time

import numpy as np

import coterie
from benchmarks.timing import Table
from coterie.types import Floats

DIM, USERS, TASTES, GROUPS = 64, 40, 5, 200
REPEATS = 5
LINEAR, BOTH = 1.3, 2.5
"""What is wanted of policies with one matrix, and of hierarchical ones."""

Maker = Callable[[int], coterie.LinearBandit]
POLICIES: dict[str, tuple[Maker, float]] = {
    "LinUCBOne": (lambda d: coterie.LinUCBOne(USERS, d, beta=0.3), LINEAR),
    "LinUCBInd": (lambda d: coterie.LinUCBInd(USERS, d, beta=0.3), LINEAR),
    "CLUB": (lambda d: coterie.CLUB(USERS, d, alpha=1.0, beta=0.3), LINEAR),
    "SCLUB": (lambda d: coterie.SCLUB(USERS, d, alpha=1.0, beta=0.3), LINEAR),
    "CLUB items": (lambda d: coterie.CLUB(USERS, d, alpha=1.0, beta=0.3, items=True), BOTH),
    "HierUCB": (lambda d: coterie.HierUCB(USERS, d), BOTH),
    "AutoCLUB": (lambda d: coterie.AutoCLUB(USERS, d), BOTH),
}


def unit(rows: Floats) -> Floats:
    """Rows of length 1; those that are 0 stay so."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


def made(n: int, rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    """Vectors of three kinds: in groups, with a spectrum that decays, and those that have no structure."""
    centres = rng.normal(size=(GROUPS, DIM))
    yield f"{GROUPS} groups", unit(centres[rng.integers(GROUPS, size=n)] + 0.3 * rng.normal(size=(n, DIM)))
    turned = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    yield "decaying spectrum", unit(rng.normal(size=(n, DIM)) * np.arange(1, DIM + 1) ** -0.7 @ turned)
    yield "isotropic", unit(rng.normal(size=(n, DIM)))


def real(folder: Path) -> Iterator[tuple[str, Floats]]:
    """Vectors of real items: the singular vectors of the paper (Sec. 6.2)."""
    for name, path in (
        ("lastfm", "hetrec2011-lastfm-2k"),
        ("movielens", "ml-latest-small"),
        ("jester", "jester5k"),
    ):
        data = coterie.datasets.load(name, folder / path, dim=DIM, n_users=600, n_items=100_000)
        yield f"{name}, {len(data.items):,} items", np.ascontiguousarray(data.items)


def play(
    policy: coterie.LinearBandit, catalogue: coterie.Catalogue, rounds: int, rng: np.random.Generator
) -> None:
    """Rewards of the policy's own choices, of every third item at random; the last user stays without any."""
    tastes = unit(rng.normal(size=(TASTES, catalogue.dim)))
    worth = 0.2 * rng.normal(size=len(catalogue))
    for step in range(rounds):
        user = int(rng.integers(USERS - 1))
        item = int(rng.integers(len(catalogue))) if step % 3 == 0 else policy.recommend(user, catalogue)
        mean = catalogue.vector(item) @ tastes[user % TASTES] + worth[item]
        policy.update(user, catalogue, float(mean + 0.1 * rng.normal()), item=item)


def in_turn(calls: Sequence[Callable[[], object]]) -> list[float]:
    """The least processor time of each call; they take turns, so that a busy moment slows all of them."""
    spent = []
    for _ in range(REPEATS):
        row = []
        for call in calls:
            began = process_time()
            call()
            row.append(process_time() - began)
        spent.append(row)
    return [min(column) for column in zip(*spent, strict=True)]


def ratios(make: Maker, catalogue: coterie.Catalogue, rounds: int) -> list[float]:
    """Of a user with data, of one without any, and of a list, to the bare product."""
    policy, rng = make(catalogue.dim), np.random.default_rng(1)
    play(policy, catalogue, rounds, rng)
    vectors, theta, known = catalogue.vectors, rng.normal(size=catalogue.dim), int(np.argmax(policy.pulls))
    bare, *others = in_turn(
        [
            lambda: vectors @ theta,
            lambda: policy.recommend(known, catalogue),
            lambda: policy.recommend(USERS - 1, catalogue),
            lambda: policy.recommend(known, catalogue, k=10),
            lambda: policy.recommend(known, vectors),
        ]
    )
    return [time / bare for time in others]


def table(world: str, vectors: Floats, rounds: int) -> Table:
    """Ratios of all policies in one world."""
    catalogue, rows = coterie.Catalogue(vectors), []
    for name, (make, wanted) in POLICIES.items():
        found = ratios(make, catalogue, rounds)
        rows.append((name, *(f"{ratio:.2f}" for ratio in found), f"≤ {wanted:g}"))
    heads = ("policy", "with data", "new user", "list of 10", "matrix", "wanted")
    size = f"{len(vectors):,} × {vectors.shape[1]}, {catalogue.memory / 1e6:.0f} MB, {rounds} rewards"
    return Table(f"{world} ({size})", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.catalogue",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--items", type=int, default=100_000, help="how many items are made")
    parser.add_argument("--rounds", type=int, default=300, help="rewards before times are measured")
    parser.add_argument(
        "--data", type=Path, help="folder with hetrec2011-lastfm-2k, ml-latest-small and jester5k"
    )
    given = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        raise SystemExit("set OPENBLAS_NUM_THREADS=1: the bare product is to be that of one thread")
    worlds = made(given.items, np.random.default_rng(0)) if given.data is None else real(given.data)
    for world, vectors in worlds:
        table(world, vectors, given.rounds).show()


if __name__ == "__main__":
    main()
