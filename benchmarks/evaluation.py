"""Coverage of the intervals from logs, in simulated environments, where the truth is known.

    python -m benchmarks.evaluation [SHARE ...]

6 users in 2 clusters, d = 4, 4 arms, σ = 0.3. A log of 1,000 events comes from LinUCBOne with an ε of uniform
play (0.4 and 1 by default); 200 logs of the same users, each from rounds of its own. 95 % intervals should
cover in 90 % or more.

The truth of `replay` is the mean reward of the policy's first m rounds, m being the events that counted: its
mean over 400 runs on rounds that are in no log. The truth of `ips`, `snips` and `dr` is the mean over the
events of the log of the expected reward of the arms that the policy chose there.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

import coterie
from coterie.environments import Block, Stochastic
from coterie.environments.blocks import BLOCK
from coterie.evaluation import Evaluation, LoggingPolicy, evaluate
from coterie.policies.protocols import Policy
from coterie.types import Floats

USERS, CLUSTERS, DIM, ARMS, SIGMA = 6, 2, 4, 4, 0.3
EVENTS, REPETITIONS, RUNS, SHARES, LEVEL, WANTED = 1_000, 200, 400, (0.4, 1.0), 0.95, 0.90
BLOCKS = -(-EVENTS // BLOCK)
NAMES = ("AutoCLUB", "LinUCBInd", "LinTSInd")


class LaterRounds:
    """A world from one of its later blocks on: the same users, other rounds."""

    longest_delay = 0

    def __init__(self, world: Stochastic, first: int) -> None:
        self.world, self.first, self.seed = world, first, world.seed
        self.n_users, self.dim, self.labels = world.n_users, world.dim, world.labels

    def present(self, number: int) -> int:
        return self.world.present(self.first + number)

    def block(self, number: int) -> Block:
        return self.world.block(self.first + number)

    def means(self, horizon: int) -> Floats:
        """The expected reward of every arm in every round, (horizon, K)."""
        return np.concatenate([self.block(number).means for number in range(-(-horizon // BLOCK))])[:horizon]


class Noting:
    """A policy that remembers which arms it recommended."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.arms = policy, list[int]()

    def recommend(self, user: int, arms: Floats) -> int:
        self.arms.append(self.policy.recommend(user, arms))
        return self.arms[-1]

    def update(self, user: int, x: Floats, reward: float) -> None:
        self.policy.update(user, x, reward)


class Checked(NamedTuple):
    """One estimate beside its truth."""

    policy: str
    estimator: str
    covered: bool
    error: float
    width: float
    effective: float


def make(name: str, seed: int) -> Policy:
    maker = getattr(coterie, name)
    made: Policy = maker(USERS, DIM, seed=seed, **({} if name == "AutoCLUB" else {"beta": SIGMA}))
    return made


def make_world(seed: int = 0) -> Stochastic:
    data = coterie.datasets.load("synthetic", dim=DIM, n_users=20, n_items=60)
    return Stochastic(data, n_users=USERS, n_clusters=CLUSTERS, n_arms=ARMS, noise=SIGMA, seed=seed)


def online_means(world: Stochastic, name: str, runs: int, horizon: int, first: int) -> Floats:
    """The mean reward of a policy's first m rounds, for m = 1 to the horizon: its mean over runs."""
    total, blocks = np.zeros(horizon), -(-horizon // BLOCK)
    for run in range(runs):
        rounds = LaterRounds(world, first + run * blocks)
        noting = Noting(make(name, run))
        coterie.simulate(noting, rounds, horizon, record=1)
        total += rounds.means(horizon)[np.arange(horizon), noting.arms]
    return np.asarray(np.cumsum(total / runs) / np.arange(1, horizon + 1))


def check_log(
    world: Stochastic,
    repetition: int,
    share: float,
    online: Mapping[str, Floats],
    *,
    events: int = EVENTS,
    resamples: int = 1000,
) -> list[Checked]:
    """Write a log, evaluate all policies on it, and compare with the truth."""
    rounds = LaterRounds(world, repetition * -(-events // BLOCK))
    logger = LoggingPolicy(make("LinUCBOne", 0), share, seed=repetition)
    coterie.simulate(logger, rounds, events, record=1)
    noted: dict[str, Noting] = {}  # of two passes the second stays, that of ips, snips and dr

    def noting(name: str) -> Noting:
        noted[name] = Noting(make(name, repetition))
        return noted[name]

    makers = {name: (lambda log, seed, name=name: noting(name)) for name in online}
    found = evaluate(logger.log(), makers, level=LEVEL, resamples=resamples, seed=repetition)
    chosen = {name: rounds.means(events)[np.arange(events), one.arms].mean() for name, one in noted.items()}
    return list(compare(found, online, chosen))


def compare(found: Evaluation, online: Mapping[str, Floats], chosen: Mapping[str, float]) -> list[Checked]:
    checked = []
    for one in found.estimates:
        counted = int(one.effective) - 1
        truth = float(online[one.policy][counted] if one.estimator == "replay" else chosen[one.policy])
        covered = bool(one.low <= truth <= one.high)
        width = one.high - one.low
        checked.append(Checked(one.policy, one.estimator, covered, one.reward - truth, width, one.effective))
    return checked


def main() -> None:
    logging.getLogger("coterie.evaluation").setLevel(logging.ERROR)
    world = make_world()
    for share in map(float, sys.argv[1:] or SHARES):
        most = int(EVENTS * share / ARMS * 1.5)  # replay never counts more
        online = {name: online_means(world, name, RUNS, most, REPETITIONS * BLOCKS) for name in NAMES}
        checked = [
            one for repetition in range(REPETITIONS) for one in check_log(world, repetition, share, online)
        ]
        print(f"\nε = {share:g}, {EVENTS:,} events, {REPETITIONS} logs, {LEVEL:.0%} intervals", flush=True)
        print(f"{'policy':<12}{'estimator':<11}{'covers':>8}{'bias':>9}{'width':>8}{'effective':>11}")
        for key in dict.fromkeys((one.policy, one.estimator) for one in checked):
            rows = np.array([one[2:] for one in checked if (one.policy, one.estimator) == key], np.float64)
            covers, bias, width, effective = rows.mean(axis=0)
            verdict = "" if covers >= WANTED else f"  below {WANTED:.0%}"
            print(
                f"{key[0]:<12}{key[1]:<11}{covers:>8.1%}{bias:>9.4f}{width:>8.3f}{effective:>11.0f}{verdict}"
            )


if __name__ == "__main__":
    main()
