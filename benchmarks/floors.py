"""Time of a round beside that of its indispensable arithmetic, timed as bare operations in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dger

import coterie
from benchmarks.rounds import CASES, HORIZON, ours
from benchmarks.timing import Table, at_most, best_call, best_rounds
from coterie.environments import Stochastic
from coterie.policies.kernel.linalg import plain_quadratic_forms, quadratic_forms
from coterie.types import Floats

ARMS, DIM, ITEMS = 100, 50, 5_000
BETAS = (0.1, 0.5, 2.0)
JOINT_HORIZON = 1024


class Updates(NamedTuple):
    """How many d × d matrices a reward changes: inverses (M⁻¹x, a rank-one update), grams (the latter)."""

    inverses: int
    grams: int


UPDATES = {
    "LinUCBOne": Updates(1, 0),
    "LinUCBInd": Updates(1, 0),
    "CLUB": Updates(2, 1),
    "UniCLUB": Updates(2, 1),
    "SCLUB": Updates(2, 2),
    "UniSCLUB": Updates(2, 2),
    "PhaseUniCLUB": Updates(2, 1),
}
"""A user's own statistics and those of its cluster; for PhaseUniCLUB, of one neighbourhood that holds it."""


class Bare(NamedTuple):
    """Microseconds of bare operations, without what it costs to call them from Python."""

    gather: float
    means: float
    product: float
    outer: float

    def total(self, updates: Updates) -> float:
        """K rows gathered, K means, the width of the arm that is played, and the updates."""
        return (
            self.gather
            + self.means
            + self.product
            + updates.inverses * (self.product + self.outer)
            + updates.grams * self.outer
        )


def positive_definite(dim: int) -> Floats:
    rows = np.random.default_rng(0).normal(size=(3 * dim, dim))
    return np.linalg.inv(np.eye(dim) + rows.T @ rows).astype(np.float64)


def without_call(make: Callable[[int, int], Callable[[], object]]) -> float:
    """Microseconds of an operation at K arms and d dimensions, less those of the same call at 1 and 1."""
    return max(best_call(make(ARMS, DIM)) - best_call(make(1, 1)), 0.0)


def gathering(n: int, dim: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    items, out = rng.normal(size=(ITEMS, dim)), np.empty((n, dim))
    offers = cycle(list(rng.integers(ITEMS, size=(64, n))))
    return lambda: np.take(items, next(offers), axis=0, out=out, mode="clip")


def multiplying(n: int, dim: int) -> Callable[[], object]:
    rows, x, out = np.ones((n, dim)), np.ones(dim), np.empty(n)
    return lambda: np.dot(rows, x, out=out)


def adding_outer(n: int, dim: int) -> Callable[[], object]:
    matrix, x = np.asfortranarray(np.eye(dim)), np.full(dim, 1e-3)
    return lambda: dger(-1e-6, x, x, a=matrix, overwrite_a=1)


def bare_operations() -> Bare:
    return Bare(
        gather=without_call(gathering),
        means=without_call(multiplying),
        product=without_call(lambda n, dim: multiplying(dim, dim)),
        outer=without_call(adding_outer),
    )


def world() -> Stochastic:
    return Stochastic(coterie.datasets.load("synthetic"), seed=1)


def widths() -> Table:
    """LinUCB's whole round against the widths of all arms, which a plain round begins with."""
    place, inverse = world(), positive_definite(DIM)
    arms, out = np.random.default_rng(0).normal(size=(ARMS, DIM)), np.empty(ARMS)
    floor = best_call(lambda: plain_quadratic_forms(inverse, arms, out))
    fast = best_call(lambda: quadratic_forms(inverse, arms, out))
    rows = []
    for name in ("LinUCBOne", "LinUCBInd"):
        for beta in BETAS:
            spent = best_rounds(partial(ours, name, place.n_users, place.dim, beta), place, HORIZON)
            rows.append(
                (f"{name}, β = {beta:g}", f"{spent:.2f}", *at_most(spent / floor, 1.3), f"{spent / fast:.2f}")
            )
    return Table(
        "LinUCB's round against xᵀM⁻¹x of all K = 100 arms, d = 50",
        ("policy", "µs", "× plain C", "wanted", "", "× eight at a time"),
        rows,
        f"plain compiled code {floor:.2f} µs, ours eight at a time {fast:.2f} µs",
    )


def arithmetic() -> Table:
    """Each policy's round as a multiple of its bare operations."""
    place, bare, rows = world(), bare_operations(), []
    for case in CASES:
        spent = best_rounds(partial(ours, case.name, place.n_users, place.dim), place, HORIZON, 2)
        floor = bare.total(UPDATES[case.name])
        rows.append((case.name, f"{spent:.2f}", f"{floor:.2f}", f"{spent / floor:.2f}"))
    return Table(
        "Arithmetic floor of a round: gather K rows, K means, one width, rank-one updates, by NumPy and BLAS",
        ("policy", "µs", "floor µs", "× floor"),
        rows,
        f"gather K × d {bare.gather:.2f} µs, K means {bare.means:.2f}, M⁻¹x {bare.product:.2f}, "
        f"rank-one update {bare.outer:.2f}",
    )


def graph_regularised() -> Table:
    """GOB.Lin and GraphUCB against one rank-one update of a (ud) × (ud) matrix."""
    place = Stochastic(coterie.datasets.load("synthetic"), n_users=20, n_clusters=4, n_arms=20, seed=1)
    same = (place.labels[:, None] == place.labels[None, :]) & ~np.eye(20, dtype=bool)
    floor, rows = best_call(adding_outer(1, 1000), 200, 1), []
    for make in (coterie.GOBLin, coterie.GraphUCB):
        spent = best_rounds(partial(make, 20, place.dim, graph=same, alpha=0.1), place, JOINT_HORIZON)
        rows.append((make.__name__, f"{spent:.0f}", f"{floor:.0f}", *at_most(spent / floor, 3)))
    return Table(
        "Graph regularisation, u = 20, K = 20, d = 50, against one rank-one update of 1,000 × 1,000 by BLAS",
        ("policy", "µs", "floor µs", "× floor", "wanted", ""),
        rows,
    )


def tables() -> Iterator[Table]:
    yield widths()
    yield arithmetic()
    yield graph_regularised()
