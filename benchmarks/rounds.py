"""Simulated rounds: every policy against plain NumPy in the same world, blocks drawn by both."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np

import coterie
from benchmarks import plain
from coterie.environments import Stochastic
from coterie.environments.population import BLOCK
from coterie.kernels.schedule import Schedule, explores

HORIZON = 20_000
CONFIDENCE = coterie.Tuned(alpha=1.5, beta=0.1, explore=500, phase=200)


class Case(NamedTuple):
    name: str
    wanted: float
    ours: Callable[[Stochastic], coterie.Policy]
    plain: Callable[[Stochastic], plain.Plain]


class Result(NamedTuple):
    name: str
    ours: float
    plain: float
    steps: float
    wanted: float


def cases() -> list[Case]:
    radius = plain.tuned(CONFIDENCE.alpha)
    schedule = Schedule(500, 200.0, 2.0)

    def graph(w: Stochastic, explore: int) -> plain.Plain:
        return plain.CLUB(w.n_users, w.dim, radius=radius, explore=explore, ridge=1.0, beta=0.1)

    def sets(w: Stochastic, explore: int) -> plain.Plain:
        return plain.SCLUB(w.n_users, w.dim, radius=radius, explore=explore, ridge=1.0, beta=0.1)

    def phases(w: Stochastic) -> plain.Plain:
        return plain.PhaseUniCLUB(
            w.n_users,
            w.dim,
            ridge=1.0,
            beta=0.1,
            radius=radius,
            explores=lambda t: bool(explores(schedule, t)),
        )

    def fixed(labels: Callable[[int], list[int]]) -> Callable[[Stochastic], plain.Plain]:
        return lambda w: plain.LinUCB(np.array(labels(w.n_users)), w.dim, ridge=1.0, beta=0.1)

    def tuned(make: Callable[..., coterie.Policy]) -> Callable[[Stochastic], coterie.Policy]:
        return lambda w: make(w.n_users, w.dim, confidence=CONFIDENCE)

    return [
        Case(
            "LinUCBOne", 5, lambda w: coterie.LinUCBOne(w.n_users, w.dim, beta=0.1), fixed(lambda n: [0] * n)
        ),
        Case(
            "LinUCBInd",
            5,
            lambda w: coterie.LinUCBInd(w.n_users, w.dim, beta=0.1),
            fixed(lambda n: list(range(n))),
        ),
        Case("CLUB", 5, tuned(coterie.CLUB), lambda w: graph(w, 0)),
        Case("UniCLUB", 5, tuned(coterie.UniCLUB), lambda w: graph(w, 500)),
        Case("SCLUB", 4, tuned(coterie.SCLUB), lambda w: sets(w, 0)),
        Case("UniSCLUB", 4, tuned(coterie.UniSCLUB), lambda w: sets(w, 1000)),
        Case("PhaseUniCLUB", 4, tuned(coterie.PhaseUniCLUB), phases),
    ]


def time_plain(policy: plain.Plain, world: Stochastic, horizon: int) -> float:
    """Microseconds a round, drawing the rounds included."""
    began = perf_counter()
    played = 0
    while played < horizon:
        block = world.block(played // BLOCK)
        for t in range(min(BLOCK, horizon - played)):
            arms = block.items[block.picks[t]]
            arm = policy.choose(int(block.users[t]), arms)
            policy.learn(int(block.users[t]), arms[arm], block.means[t, arm] + block.noise[t])
            played += 1
    return 1e6 * (perf_counter() - began) / horizon


def time_steps(policy: coterie.Policy, world: Stochastic, horizon: int) -> float:
    """Microseconds a round of recommend and update, drawing the rounds not included."""
    spent = 0.0
    played = 0
    while played < horizon:
        block = world.block(played // BLOCK)
        for t in range(min(BLOCK, horizon - played)):
            user, arms = int(block.users[t]), block.items[block.picks[t]]
            began = perf_counter()
            arm = policy.recommend(user, arms)
            spent += perf_counter() - began
            x, reward = arms[arm], float(block.means[t, arm] + block.noise[t])
            began = perf_counter()
            policy.update(user, x, reward)
            spent += perf_counter() - began
            played += 1
    return 1e6 * spent / horizon


def measure(repeats: int = 3) -> list[Result]:
    """Each case several times in turn; the best of each."""
    world = Stochastic(coterie.datasets.load("synthetic"), seed=1)
    results = []
    for case in cases():
        coterie.simulate(case.ours(world), world, 600, record=100)
        time_steps(case.ours(world), world, 600)
        ours, numpy, steps = [], [], []
        for _ in range(repeats):
            trace = coterie.simulate(case.ours(world), world, HORIZON)
            ours.append(1e6 * trace.seconds / HORIZON)
            numpy.append(time_plain(case.plain(world), world, HORIZON))
            steps.append(time_steps(case.ours(world), world, HORIZON))
        results.append(Result(case.name, min(ours), min(numpy), min(steps), case.wanted))
    return results
