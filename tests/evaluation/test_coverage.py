"""Intervals cover the truth in simulated worlds; `python -m benchmarks.evaluation` is the larger check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coterie
from coterie.environments import Stochastic
from coterie.evaluation import Evaluation, Log, evaluate
from coterie.types import Floats
from evaluation.worlds import DIM, USERS, Later, Noting, logged, means, world

EVENTS, BLOCKS, LOGS, SHARE = 512, 2, 40, 0.6
LEAST = 34
"""Of 40 intervals of 95 %, 38 cover on average, and 34 or more with probability 0.997."""


def learner(seed: int = 0) -> coterie.LinearBandit:
    return coterie.LinUCBInd(USERS, DIM, beta=0.3, seed=seed)


def evaluated(
    environment: Later, number: int, *, wrong: bool = False, offset: float = 0.0
) -> tuple[Evaluation, float]:
    """The estimates from one log, and the truth of ips, snips and dr."""
    log, noted = logged(environment, EVENTS, SHARE, seed=number), list[Noting]()
    log = replace(log, rewards=log.rewards + offset)
    if wrong:
        log = replace(log, propensities=np.minimum(1.3 * log.propensities, 1.0))

    def make(log: Log, seed: int) -> Noting:
        noted.append(Noting(learner(seed)))
        return noted[-1]

    found = evaluate(log, {"ind": make}, resamples=300, seed=number)
    true = means(environment, EVENTS)[np.arange(EVENTS), noted[-1].arms]
    return found, offset + float(true.mean())


@pytest.fixture(scope="module")
def home() -> Stochastic:
    return world()


@pytest.fixture(scope="module")
def online(home: Stochastic) -> Floats:
    """The expected mean reward of the first m rounds, over 200 runs on rounds that are in no log."""
    rewards = []
    for run in range(200):
        rounds, noting = Later(home, LOGS * BLOCKS + run), Noting(learner())
        coterie.simulate(noting, rounds, 200, record=1)
        rewards.append(means(rounds, 200)[np.arange(200), noting.arms])
    return np.asarray(np.cumsum(np.mean(rewards, axis=0)) / np.arange(1, 201))


def test_95_percent_intervals_cover_the_truth(home: Stochastic, online: Floats) -> None:
    hits = dict.fromkeys(("replay", "ips", "snips", "dr"), 0)
    for number in range(LOGS):
        found, true = evaluated(Later(home, number * BLOCKS), number)
        for one in found.estimates:
            truth = online[int(one.effective) - 1] if one.estimator == "replay" else true
            hits[one.estimator] += one.low <= truth <= one.high
    assert min(hits.values()) >= LEAST, hits


def test_wrong_propensities_are_not_covered(home: Stochastic) -> None:
    """The check above can fail: propensities a third too high make ips too low."""
    hits = 0
    for number in range(LOGS // 2):
        found, true = evaluated(Later(home, number * BLOCKS), number, wrong=True)
        hits += found["ind", "ips"].low <= true <= found["ind", "ips"].high
    assert hits < LEAST / 2


def test_an_offset_of_rewards_adds_noise_to_ips_and_not_to_dr(home: Stochastic) -> None:
    errors = {name: list[float]() for name in ("ips", "dr")}
    for number in range(LOGS // 2):
        found, true = evaluated(Later(home, number * BLOCKS), number, offset=2.0)
        for name in errors:
            errors[name].append(found["ind", name].reward - true)
    assert np.std(errors["dr"]) < 0.5 * np.std(errors["ips"])
