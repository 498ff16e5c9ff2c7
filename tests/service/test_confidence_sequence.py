"""Intervals that hold at all times: coverage in simulated experiments with a look after every decision."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from coterie.service.core.confidence_sequence import (
    LEAST_USERS,
    RATIO_ALPHA,
    ArmSums,
    difference,
    sample_ratio,
)

EXPERIMENTS = 1_000


class Peeked(NamedTuple):
    """The share of experiments in which the truth was ever outside, by three kinds of interval."""

    sequence: float
    ordinary: float
    by_decision: float


def peek(
    rng: np.random.Generator, *, decisions: int, users: int, mean: float, spread: float, effect: float
) -> Peeked:
    """Simulate experiments whose users come back, and look at each after every decision.

    Users click with probabilities of their own; those of the second arm `effect` more often.
    """
    own = np.clip(mean + spread * rng.standard_normal((EXPERIMENTS, users)), 0.0, 1.0 - effect)
    arms = rng.random((EXPERIMENTS, users)) < 0.5
    n, r = np.zeros((EXPERIMENTS, users)), np.zeros((EXPERIMENTS, users))
    sums = np.zeros((2, len(ArmSums._fields), EXPERIMENTS))
    every, outside = np.arange(EXPERIMENTS), np.zeros((3, EXPERIMENTS), bool)
    for _ in range(decisions):
        user = rng.integers(users, size=EXPERIMENTS)
        arm = arms[every, user].astype(int)
        reward = (rng.random(EXPERIMENTS) < own[every, user] + effect * arm).astype(float)
        before, sum_before = n[every, user], r[every, user]
        now, sum_now = before + 1, sum_before + reward
        n[every, user], r[every, user] = now, sum_now
        changes = [before == 0, 1, reward, reward**2, now**2 - before**2]
        changes += [now * sum_now - before * sum_before, sum_now**2 - sum_before**2]
        for row, change in enumerate(changes):
            sums[arm, row, every] += change
        one, other = ArmSums(*sums[1]), ArmSums(*sums[0])
        outside |= _misses(one, other, effect)
    return Peeked(*outside.mean(axis=1).tolist())


def _misses(one: ArmSums, other: ArmSums, effect: float) -> Any:
    found = difference(one, other)
    started = np.isfinite(found.high)
    error = np.abs(found.estimate - effect)
    ordinary = 1.96 * np.sqrt(one.variance + other.variance)
    naive = one.decision_variance / np.maximum(one.decisions, 1) + other.decision_variance / np.maximum(
        other.decisions, 1
    )
    # The same boundary, with decisions in place of users as units.
    width = np.where(started, (found.high - found.low) / 2, 0.0)
    ratio = np.sqrt(naive / np.maximum(one.variance + other.variance, 1e-12))
    wrong = [(found.low > effect) | (found.high < effect), error > ordinary, error > width * ratio]
    return np.array([row & started for row in wrong])


def test_intervals_hold_at_all_times_where_ordinary_ones_do_not() -> None:
    found = peek(np.random.default_rng(1), decisions=1_200, users=600, mean=0.1, spread=0.0, effect=0.05)
    assert found.sequence <= 0.05
    assert found.ordinary > 0.15


def test_intervals_hold_where_users_differ_and_come_back() -> None:
    found = peek(np.random.default_rng(2), decisions=1_500, users=120, mean=0.4, spread=0.35, effect=0.0)
    assert found.sequence <= 0.05
    assert found.by_decision > 0.1  # decisions of one user are not independent


def test_there_is_no_interval_before_there_are_users_or_rewards_that_differ() -> None:
    few = ArmSums(
        users=LEAST_USERS - 1, decisions=500, reward=50.0, squares=50.0, nn=4_000, nr=400.0, rr=60.0
    )
    assert np.isinf(difference(few, few._replace(users=900)).high)
    nothing = ArmSums(users=900, decisions=5_000, nn=40_000)
    assert np.isinf(difference(nothing, nothing).high)


def test_a_real_difference_is_found() -> None:
    low = ArmSums(
        users=5_000, decisions=10_000, reward=1_000.0, squares=1_000.0, nn=25_000, nr=2_500.0, rr=1_300.0
    )
    high = low._replace(reward=1_300.0, squares=1_300.0, nr=3_250.0, rr=1_700.0)
    found = difference(high, low)
    assert found.estimate == pytest.approx(0.03)
    assert 0 < found.low < 0.03 < found.high < 0.06


def test_numbers_of_users_far_from_their_shares_are_noticed_and_others_are_not() -> None:
    assert sample_ratio([5_000, 5_300], [0.5, 0.5]) > RATIO_ALPHA
    assert sample_ratio([5_000, 5_700], [0.5, 0.5]) < RATIO_ALPHA
    assert sample_ratio([0, 0], [0.9, 0.1]) == 1.0
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        seen = np.cumsum(rng.random(1_000) < 0.1)
        looks = range(20, 1_000, 20)
        alarms += any(sample_ratio([n - seen[n], seen[n]], [0.9, 0.1]) < RATIO_ALPHA for n in looks)
    assert alarms <= 1
