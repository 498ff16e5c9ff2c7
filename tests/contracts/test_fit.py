"""Warm starts and cautious decisions of every policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import ALL, World, changed, feedback, grow, is_one_sentence, make, memory, play
from coterie import ArgumentError
from coterie.policies.registry import REGISTRY
from inspection import learner_of

SEQUENTIAL = ("AutoCLUB", "CAB", "COFIBA", "CoDBand", "DyClu", "FCLUBDC", "HierTS", "HierUCB", "LOCB")
"""These learn in the order of rewards."""
FITTING = [example for example in ALL if example.split()[0] not in SEQUENTIAL]


def test_those_that_learn_in_order_are_known() -> None:
    assert {example.split()[0] for example in ALL} == set(REGISTRY)
    assert {make(example).name for example in ALL if not learner_of(make(example)).FITS} == set(SEQUENTIAL)
    said = coterie.LinearBandit.fit.__doc__ or ""
    assert all(name in said for name in SEQUENTIAL)


@pytest.mark.parametrize("example", [one for one in ALL if one not in FITTING])
def test_a_policy_that_learns_in_order_absorbs_the_log_as_update_many_does(example: str) -> None:
    policy, other = make(example), make(example)
    for one in (policy, other):
        play(one, 20)
    log = feedback(policy, 60)
    assert policy.fit(*log) is policy
    other.update_many(*log)
    assert changed(policy, other) == []


@pytest.mark.parametrize("example", FITTING)
def test_a_log_is_absorbed_whole(example: str) -> None:
    fitted, told = make(example), make(example)
    log = feedback(fitted, 200)
    assert fitted.fit(*log) is fitted
    told.update_many(*log)
    assert fitted.rounds == told.rounds == 200
    assert np.array_equal(fitted.pulls, told.pulls)
    if fitted.name != "GraphUCB":
        np.testing.assert_allclose(fitted.estimates, told.estimates, atol=1e-9)
    assert fitted.exploration == told.exploration
    play(fitted, 100)


@pytest.mark.parametrize("example", FITTING)
def test_a_log_without_rewards_changes_nothing(example: str) -> None:
    policy = make(example)
    play(policy, 30)
    before = memory(policy)
    assert policy.fit([], np.empty((0, 3)), []) is policy
    assert changed(before, policy) == []


@pytest.mark.parametrize("example", FITTING)
def test_a_fitted_policy_goes_on_from_its_snapshot_and_with_newcomers(example: str, tmp_path: Path) -> None:
    policy = make(example).fit(*feedback(make(example), 150))
    policy.save(tmp_path / "policy")
    again = coterie.load(tmp_path / "policy")
    for one in (policy, again):
        grow(one, 2)
    assert play(policy, 60) == play(again, 60)
    assert changed(policy, again) == []
    log = feedback(policy, 50)
    assert changed(policy.fit(*log), again.fit(*log)) == []


@pytest.mark.parametrize("example", ALL)
def test_a_cautious_decision_has_the_largest_lower_bound_and_draws_nothing(example: str) -> None:
    policy, world = make(example), World(3, n_arms=9)
    for rounds in (0, 10, 200):
        play(policy, rounds)
        before = memory(policy)
        for user in range(policy.n_users):
            arms = world.arms()
            arms[5] = arms[2]
            scores = policy.scores(user, arms)
            order = np.argsort(abs(scores.width) - scores.mean, kind="stable")
            assert policy.recommend(user, arms, cautious=True) == order[0]
            assert policy.recommend_list(user, arms, 4, cautious=True).tolist() == order[:4].tolist()
            assert policy.recommend_many([user], arms, cautious=True).tolist() == [order[0]]
        assert changed(before, policy) == []


WRONG: dict[str, Any] = {"a number": 1, "a word": "yes", "nothing": None}


@pytest.mark.parametrize("wrong", WRONG)
def test_caution_is_true_or_false(wrong: str) -> None:
    policy = make("CLUB")
    for ask in (
        lambda: policy.recommend(0, np.eye(3), cautious=WRONG[wrong]),
        lambda: policy.recommend_list(0, np.eye(3), 2, cautious=WRONG[wrong]),
        lambda: policy.recommend_many([0], np.eye(3), cautious=WRONG[wrong]),
    ):
        with pytest.raises(ArgumentError, match="cautious must be True or False") as caught:
            ask()
        assert is_one_sentence(caught.value)


def test_a_cautious_decision_refuses_what_any_other_does() -> None:
    policy = make("CLUB")
    for user, arms in ((6, np.eye(3)), (0, np.eye(2)), (0, 1e7 * np.eye(3)), (0, np.nan * np.eye(3))):
        with pytest.raises(ArgumentError):
            policy.recommend(user, arms, cautious=True)
