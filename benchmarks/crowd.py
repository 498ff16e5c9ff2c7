"""CLUB's round among 10,000 users in a complete graph against the bare distance check, and its memory."""

from __future__ import annotations

import resource
from time import perf_counter
from typing import NamedTuple

import numpy as np

import coterie
from coterie.kernels.compiling import compiled
from coterie.kernels.ridge import distance2
from coterie.types import Floats

USERS, DIM, ARMS, HORIZON = 10_000, 50, 100, 2048


class Result(NamedTuple):
    ours: float
    floor: float
    allowed: float
    gigabytes: float


@compiled
def check_all(estimates: Floats, user: int) -> int:
    """One user against all, nothing else."""
    near = 0
    for other in range(estimates.shape[0]):
        if distance2(estimates[user], estimates[other]) < 1.0:
            near += 1
    return near


def floor(estimates: Floats, repeats: int = 300) -> float:
    """Microseconds of the bare check, on average, users in random order."""
    check_all(estimates, 0)
    users = np.random.default_rng(0).integers(len(estimates), size=repeats)
    began = perf_counter()
    for user in users:
        check_all(estimates, int(user))
    return 1e6 * (perf_counter() - began) / repeats


def measure() -> Result:
    data = coterie.datasets.load("synthetic", n_users=USERS)
    world = coterie.environments.Stochastic(data, n_users=USERS, n_arms=ARMS, seed=1)
    confidence = coterie.Tuned(alpha=1.5, beta=0.1)
    policy = coterie.CLUB(USERS, DIM, confidence=confidence)
    coterie.simulate(policy, world, 256, record=1)
    trace = coterie.simulate(policy, world, HORIZON, record=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return Result(1e6 * trace.seconds / HORIZON, floor(np.array(policy.estimates)), 3.0, peak)
