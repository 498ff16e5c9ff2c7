"""Copies of a policy, by pickle, by copy and in another process: twins that go on alike and share nothing."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from contracts.examples import ALL, changed, grow, make, memory, play
from coterie import LinearBandit
from coterie.validation import counted
from inspection import array_names, state_array

COPIES: dict[str, Callable[[LinearBandit], LinearBandit]] = {
    "pickle": lambda policy: pickle.loads(pickle.dumps(policy)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("rounds", [0, 7, 150])
def test_twins_go_on_alike_and_share_nothing(example: str, how: str, rounds: int) -> None:
    policy = make(example)
    play(policy, rounds)
    before = memory(policy)
    twin = COPIES[how](policy)
    assert changed(before, policy) == []
    assert changed(policy, twin) == []
    arms = play(twin, 200, seed=3)
    assert changed(before, policy) == []
    assert play(policy, 200, seed=3) == arms
    assert changed(policy, twin) == []
    for name in array_names(policy):
        assert not np.shares_memory(state_array(policy, name), state_array(twin, name))
    assert twin.generator is not policy.generator


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("how", COPIES)
def test_twins_of_a_policy_that_grew_grow_alike(example: str, how: str) -> None:
    policy = make(example)
    play(policy, 60)
    grow(policy, 60)
    play(policy, 60, seed=1)
    twin = COPIES[how](policy)
    for each in (policy, twin):
        grow(each, 3)
    assert play(twin, 100, seed=2) == play(policy, 100, seed=2)
    assert changed(policy, twin) == []


def test_a_policy_in_a_list_is_copied_once() -> None:
    policy = make("SCLUB")
    one, other = pickle.loads(pickle.dumps([policy, policy]))
    assert one is other


def played(policy: LinearBandit) -> tuple[LinearBandit, list[int]]:
    """What another process does with the policy that it was sent."""
    return policy, play(policy, 100, seed=8)


def test_a_spawned_process_goes_on_as_this_one_would() -> None:
    policies = [make(example) for example in ALL]
    for policy in policies:
        play(policy, 40)
    before = [memory(policy) for policy in policies]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        answers = pool.map(played, policies)
    for policy, (returned, arms), old in zip(policies, answers, before, strict=True):
        assert changed(old, policy) == []
        assert play(policy, 100, seed=8) == arms
        assert changed(policy, returned) == []


@pytest.mark.parametrize("example", ALL)
def test_a_policy_shows_itself_in_one_short_line(example: str) -> None:
    policy = make(example)
    play(policy, 50)
    clusters = len(np.unique(policy.labels()))
    assert repr(policy) == f"<{policy.name}: 6 users in {counted(clusters, 'cluster')}, dim 3, 50 rounds>"
    assert "1 clusters" not in repr(make(example, n_users=1))
    assert len(repr(make(example, n_users=400, dim=2))) < 100
