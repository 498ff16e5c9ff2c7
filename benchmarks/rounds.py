"""Simulated rounds against plain NumPy in the same world, and one policy's rounds beside another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf

import coterie
from benchmarks import plain
from benchmarks.timing import (
    Table,
    at_least,
    at_most,
    best_call,
    best_in_turn,
    best_rounds,
    simulated,
    stepped,
)
from coterie.environments import Bernoulli, Cascade, Stochastic, lifted

HORIZON = 20_000
CONFIDENCE = coterie.Tuned(alpha=1.5, beta=0.1, explore=500, phase=200)
STEP_MICROSECONDS = 30.0

Maker = Callable[[Stochastic], coterie.LinearBandit]
PlainMaker = Callable[[Stochastic, coterie.LinearBandit], coterie.Policy]


class Case(NamedTuple):
    """A policy, how many times faster than NumPy it should be, and its plain counterpart."""

    name: str
    wanted: float
    plain: PlainMaker


class Timing(NamedTuple):
    """Microseconds a round: simulated, plain NumPy, and through recommend and update."""

    ours: float
    plain: float
    steps: float


def ours(name: str, n_users: int, dim: int, beta: float = CONFIDENCE.beta) -> coterie.LinearBandit:
    """One of our policies with the parameters used here."""
    make = coterie.policies.REGISTRY[name].make
    if name == "AutoCLUB":
        return make(n_users, dim)
    if name.startswith("Lin"):
        return make(n_users, dim, beta=beta)
    return make(n_users, dim, confidence=CONFIDENCE)


def plain_linucb(one: bool) -> PlainMaker:
    def make(world: Stochastic, policy: coterie.LinearBandit) -> coterie.Policy:
        rows = np.zeros(world.n_users, np.int64) if one else np.arange(world.n_users)
        return plain.LinUCB(rows, world.dim, ridge=1.0, beta=CONFIDENCE.beta)

    return make


def plain_clusters(family: Callable[..., coterie.Policy]) -> PlainMaker:
    def make(world: Stochastic, policy: coterie.LinearBandit) -> coterie.Policy:
        radius, explore = plain.tuned(CONFIDENCE.alpha), policy.exploration.first
        return family(
            world.n_users, world.dim, ridge=1.0, beta=CONFIDENCE.beta, radius=radius, explore=explore
        )

    return make


def plain_phases(world: Stochastic, policy: coterie.LinearBandit) -> coterie.Policy:
    radius, uniform = plain.tuned(CONFIDENCE.alpha), plain.uniform_rounds(policy.exploration, HORIZON)
    return plain.PhaseUniCLUB(
        world.n_users, world.dim, ridge=1.0, beta=CONFIDENCE.beta, radius=radius, uniform=uniform
    )


CASES = (
    Case("LinUCBOne", 6, plain_linucb(one=True)),
    Case("LinUCBInd", 6, plain_linucb(one=False)),
    Case("CLUB", 10, plain_clusters(plain.CLUB)),
    Case("UniCLUB", 10, plain_clusters(plain.CLUB)),
    Case("SCLUB", 7, plain_clusters(plain.SCLUB)),
    Case("UniSCLUB", 7, plain_clusters(plain.SCLUB)),
    Case("PhaseUniCLUB", 7, plain_phases),
)


def time_case(case: Case, world: Stochastic, repeats: int = 2) -> Timing:
    """The best of each, measured in turn."""
    found = []
    for _ in range(repeats):
        policy = ours(case.name, world.n_users, world.dim)
        counterpart = case.plain(world, policy)
        steps = float(stepped(ours(case.name, world.n_users, world.dim), world, HORIZON).mean())
        found.append(Timing(simulated(policy, world, HORIZON), simulated(counterpart, world, HORIZON), steps))
    return Timing(*(min(column) for column in zip(*found, strict=True)))


def against_numpy() -> Iterator[Table]:
    """Our simulated round against NumPy's, and against our own recommend and update."""
    world = Stochastic(coterie.datasets.load("synthetic"), seed=1)
    timings = {case: time_case(case, world) for case in CASES}
    yield Table(
        "Simulated rounds against plain NumPy: d = 50, K = 100 of 5,000, u = 50, 10 clusters, T = 20,000",
        ("policy", "µs", "NumPy µs", "ratio", "wanted", ""),
        [
            (case.name, f"{t.ours:.2f}", f"{t.plain:.1f}", *at_least(t.plain / t.ours, case.wanted))
            for case, t in timings.items()
        ],
    )
    yield Table(
        "recommend + update, step by step, in the same world: no widths are remembered between rounds",
        ("policy", "µs", "wanted", "", "× simulated", "wanted", "", "NumPy ÷ steps"),
        [
            (
                case.name,
                *at_most(t.steps, STEP_MICROSECONDS),
                *at_most(t.steps / t.ours, 3),
                f"{t.plain / t.steps:.2f}",
            )
            for case, t in timings.items()
        ],
    )


def autoclub() -> Table:
    """AutoCLUB beside UniCLUB, with clusters, without any, and with one."""
    rows = []
    for title, clusters in (("10 clusters", 10), ("no clusters", 50), ("one cluster", 1)):
        world = Stochastic(coterie.datasets.load("synthetic"), n_clusters=clusters, seed=1)
        makers = [partial(ours, name, world.n_users, world.dim) for name in ("AutoCLUB", "UniCLUB")]
        auto, uni = best_in_turn(makers, world, HORIZON)
        rows.append((title, f"{auto:.2f}", f"{uni:.2f}", *at_most(auto / uni, 3)))
    return Table(
        "AutoCLUB beside UniCLUB", ("world", "AutoCLUB µs", "UniCLUB µs", "ratio", "wanted", ""), rows
    )


def thompson() -> Table:
    """LinTS, which factors M⁻¹ for each decision, beside LinUCB."""
    world = Stochastic(coterie.datasets.load("synthetic"), seed=1)
    rows = []
    for kind in ("One", "Ind"):
        makers = [partial(ours, name + kind, world.n_users, world.dim) for name in ("LinTS", "LinUCB")]
        sampled, bound = best_in_turn(makers, world, HORIZON)
        rows.append((kind, f"{sampled:.2f}", f"{bound:.2f}", f"{sampled / bound:.2f}"))
    matrix = np.eye(world.dim, order="F")
    factor = best_call(lambda: dpotrf(matrix))
    return Table(
        "LinTS beside LinUCB",
        ("rows", "LinTS µs", "LinUCB µs", "ratio"),
        rows,
        f"LAPACK's Cholesky factor of one 50 × 50 matrix, of which LinTS needs one a round: {factor:.2f} µs",
    )


def lists() -> Table:
    """A list of five arms with clicks beside a single arm."""
    data = lifted(coterie.datasets.load("synthetic"))
    world = Stochastic(data, noise=Bernoulli(), seed=1)
    cascade, rows = Cascade(world, length=5), []
    for name in ("LinUCBInd", "CLUB", "SCLUB"):
        listed = best_rounds(partial(ours, name, world.n_users, world.dim), cascade, HORIZON)
        single = best_rounds(partial(ours, name, world.n_users, world.dim), world, HORIZON)
        rows.append((name, f"{listed:.2f}", f"{single:.2f}", f"{listed / single:.2f}"))
    return Table(
        "A round with a list of k = 5 arms beside a round with one arm: d = 51, K = 100, clicks",
        ("policy", "list µs", "one arm µs", "ratio"),
        rows,
    )


def tables() -> Iterator[Table]:
    yield from against_numpy()
    yield autoclub()
    yield thompson()
    yield lists()
