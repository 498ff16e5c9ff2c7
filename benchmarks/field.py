"""The policies of the field beside the arithmetic that their specifications imply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import process_time
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf

import coterie
from benchmarks.floors import ARMS, DIM, Bare, Updates, bare_operations, positive_definite, world
from benchmarks.timing import Table, at_most, best_call
from coterie.environments.blocks import BLOCK, Environment
from coterie.policies.kernel.linalg import quadratic_forms

WARM, HORIZON, USERS, SEEDS, CLUSTERS = 8 * BLOCK, 6 * BLOCK, 50, 20, 10


class Parts(NamedTuple):
    """Microseconds of what rounds are made of: see `Bare`, a Cholesky factor, and the widths of all arms."""

    bare: Bare
    factor: float
    widths: float


class FieldCase(NamedTuple):
    """A policy, and what its specification implies for a round."""

    name: str
    make: Callable[[], coterie.LinearBandit]
    implied: Callable[[Parts], float]
    says: str


def codband(parts: Parts) -> float:
    """A sample, and a factor for each cluster, the user alone, and its cluster with and without it."""
    return parts.bare.means + (CLUSTERS + 4) * parts.factor + 2 * parts.bare.outer


def dyclu(parts: Parts) -> float:
    """A sum over all users and an inverse to decide; three factors for the user, and one for each pair."""
    return parts.bare.means + USERS * parts.bare.outer + (3 + 3 + USERS - 1) * parts.factor


def locb(parts: Parts) -> float:
    """For each seed the means and widths of all arms, and a change of its inverse and gram."""
    bare = parts.bare
    each = bare.means + parts.widths + bare.product + 2 * bare.outer
    return bare.gather + SEEDS * each + bare.product + 2 * bare.outer


def cab(parts: Parts) -> float:
    """For each user the means and the widths of all arms."""
    return parts.bare.gather + USERS * (parts.bare.means + parts.widths)


def offclub(parts: Parts) -> float:
    """The means and widths of all arms; the user's regression, and that of a neighbourhood that holds it."""
    bare = parts.bare
    return bare.gather + bare.means + parts.widths + 2 * (bare.product + bare.outer) + bare.outer


TUNED = coterie.Tuned(alpha=1.5, beta=0.1)
CASES = [
    FieldCase("CoDBand", partial(coterie.CoDBand, USERS, DIM, noise=0.1), codband, "14 factors"),
    FieldCase("DyClu", partial(coterie.DyClu, USERS, DIM, beta=0.1), dyclu, "55 factors, 50 sums"),
    FieldCase("LOCB", partial(coterie.LOCB, USERS, DIM, confidence=TUNED), locb, "2,000 means and widths"),
    FieldCase("CAB", partial(coterie.CAB, USERS, DIM, alpha=0.1), cab, "5,000 means and widths"),
    FieldCase("OffCLUB", partial(coterie.OffCLUB, USERS, DIM, confidence=TUNED), offclub, "100 widths"),
]


def measured_parts() -> Parts:
    rng = np.random.default_rng(0)
    arms, out = rng.normal(size=(ARMS, DIM)), np.empty(ARMS)
    inverse, matrix = positive_definite(DIM), np.asfortranarray(positive_definite(DIM))
    factor = best_call(lambda: dpotrf(matrix))
    return Parts(bare_operations(), factor, best_call(lambda: quadratic_forms(inverse, arms, out)))


def processor_time(policy: coterie.LinearBandit, place: Environment, warm: int, horizon: int) -> float:
    """Microseconds of a round on the processor, after others; a busy machine makes it no longer."""
    coterie.simulate(policy, place, warm, record=1)
    began = process_time()
    for number in range(horizon // BLOCK):
        place.block(number)
    drawn = process_time()
    coterie.simulate(policy, place, horizon, record=1)
    return 1e6 * ((process_time() - drawn) - (drawn - began)) / horizon


def implied() -> Table:
    """Each policy's round as a multiple of what its specification implies."""
    place, parts, rows = world(), measured_parts(), []
    for case in CASES:
        spent = min(processor_time(case.make(), place, WARM, HORIZON) for _ in range(2))
        floor = case.implied(parts)
        rows.append((case.name, f"{spent:.0f}", f"{floor:.0f}", *at_most(spent / floor, 3), case.says))
    return Table(
        f"The field: u = {USERS}, K = {ARMS}, d = {DIM}, after {WARM:,} rounds, and what is implied",
        ("policy", "µs", "implied µs", "ratio", "wanted", "", "what is implied, mostly"),
        rows,
        f"LAPACK's Cholesky factor {parts.factor:.1f} µs, widths of all arms {parts.widths:.1f} µs",
    )


def many_users() -> Table:
    """CAB where it is hardest: as many users as Last.fm has."""
    users, dim, n_arms = 1_892, 25, 25
    data = coterie.datasets.load("synthetic", n_users=users, dim=dim)
    place = coterie.environments.Stochastic(data, n_users=users, n_arms=n_arms, seed=1)
    spent = processor_time(coterie.CAB(users, dim, alpha=0.1), place, 16 * BLOCK, 4 * BLOCK)
    rng = np.random.default_rng(0)
    arms, out, inverse = rng.normal(size=(n_arms, dim)), np.empty(n_arms), positive_definite(dim)
    floor = users * best_call(lambda: quadratic_forms(inverse, arms, out))
    return Table(
        f"CAB among {users:,} users, nine in ten of whom have come, d = {dim}, K = {n_arms}",
        ("policy", "µs", "widths of all users and arms, µs", "ratio", "wanted", ""),
        [("CAB", f"{spent:.0f}", f"{floor:.0f}", *at_most(spent / floor, 3))],
    )


LISTED: dict[str, tuple[Callable[[], coterie.LinearBandit], Updates]] = {
    "CascadeLinUCB": (partial(coterie.CascadeLinUCB, USERS, DIM, beta=0.3), Updates(1, 0)),
    "CLUBCascade": (
        partial(coterie.CLUBCascade, USERS, DIM, confidence=coterie.Tuned(alpha=3.0, beta=0.3)),
        Updates(2, 1),
    ),
}
"""Policies for lists, and how many matrices change with each position that was looked at."""


def lists() -> Table:
    """Lists of four: means and widths of all arms, and the updates of the positions that were looked at."""
    data = coterie.environments.lifted(coterie.datasets.load("synthetic", dim=DIM - 1), 0.4)
    noise = coterie.environments.Bernoulli()
    base = coterie.environments.Stochastic(data, n_users=USERS, n_arms=ARMS, noise=noise, seed=1)
    place, parts, rows = coterie.environments.Cascade(base, length=4), measured_parts(), []
    for name, (make, updates) in LISTED.items():
        played = [make() for _ in range(2)]
        spent = min(processor_time(policy, place, WARM, HORIZON) for policy in played)
        seen = played[0].rounds / (WARM + HORIZON)
        bare = parts.bare
        each = updates.inverses * (bare.product + bare.outer) + updates.grams * bare.outer
        floor = bare.gather + bare.means + parts.widths + seen * each
        rows.append((name, f"{spent:.0f}", f"{floor:.0f}", *at_most(spent / floor, 3), f"{seen:.1f}"))
    return Table(
        f"Lists of 4: u = {USERS}, K = {ARMS}, d = {DIM}, after {WARM:,} lists, and what is implied",
        ("policy", "µs", "implied µs", "ratio", "wanted", "", "items looked at"),
        rows,
    )


def tables() -> Iterator[Table]:
    yield implied()
    yield lists()
    yield many_users()


if __name__ == "__main__":
    for table in tables():
        table.show()
