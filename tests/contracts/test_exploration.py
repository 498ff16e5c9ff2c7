"""Uniform rounds: how arms are drawn, and when."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chisquare

from contracts.examples import ALL, SCORING, feedback, make, memory, play

EXPLORERS = [e for e in ALL if e.startswith(("Uni", "Phase"))]


@pytest.mark.parametrize("example", EXPLORERS)
def test_policies_of_different_seeds_explore_differently(example: str) -> None:
    assert play(make(example, seed=1), 12) != play(make(example, seed=2), 12)


@pytest.mark.parametrize("example", EXPLORERS)
def test_exploration_is_uniform(example: str) -> None:
    policy = make(example, seed=2024)
    chosen = np.array([policy.recommend(t % 6, np.eye(7, 3)) for t in range(14_000)])
    counts = np.bincount(chosen, minlength=7)
    pairs = np.bincount([7 * a + b for a, b in pairwise(chosen)], minlength=49)
    assert 0.001 < chisquare(counts).pvalue < 0.999
    assert 0.001 < chisquare(pairs).pvalue < 0.999


@pytest.mark.parametrize("example", EXPLORERS)
def test_exploration_does_not_depend_on_user_or_arms(example: str) -> None:
    one, other = make(example), make(example)
    play(one, 5, seed=1)
    play(other, 5, seed=2)
    assert one.recommend(0, np.eye(3)) == other.recommend(4, np.zeros((3, 3)))


@pytest.mark.parametrize("example", EXPLORERS)
def test_a_round_is_finished_by_its_feedback_not_by_its_decision(example: str) -> None:
    policy = make(example)
    for _ in range(1000):
        policy.recommend(0, np.eye(3))
    assert policy.exploring
    assert policy.rounds == 0
    policy.update_many(*feedback(policy, 600))
    assert policy.rounds == 600


@pytest.mark.parametrize("example", [e for e in SCORING if e not in EXPLORERS])
def test_a_policy_that_never_explores_draws_no_number(example: str) -> None:
    policy = make(example)
    before = memory(policy)["generator"]
    play(policy, 50)
    assert not policy.exploring
    assert memory(policy)["generator"] == before
