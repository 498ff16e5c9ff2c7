"""Segments of users: a few groups with differences inside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coterie
from coterie.errors import ArgumentError
from coterie.policies.segments import Segmented
from coterie.types import Floats, Ints

SEGMENTED = (coterie.AutoCLUB, coterie.HierUCB, coterie.HierTS)


def taught(
    make: type[Segmented], preferences: Floats, rewards: int, *, noise: float = 0.1, seed: int = 0
) -> Segmented:
    """A policy that has seen this number of rewards of each user for random arms."""
    n, d = preferences.shape
    rng = np.random.default_rng(seed)
    users = rng.permutation(np.repeat(np.arange(n), rewards))
    xs = rng.normal(size=(len(users), d)) / d**0.5
    policy = make(n, d)
    policy.update_many(users, xs, (xs * preferences[users]).sum(1) + noise * rng.normal(size=len(users)))
    return policy


def two_kinds(sizes: tuple[int, int], spread: float, *, dim: int = 6, seed: int = 0) -> tuple[Floats, Ints]:
    """Preferences of users about one of two centres, and which."""
    rng = np.random.default_rng(seed)
    centres = 4.0 * rng.normal(size=(2, dim))
    labels = np.repeat([0, 1], sizes)
    return centres[labels] + spread * rng.normal(size=(sum(sizes), dim)), labels


def same(first: Ints, second: Ints) -> bool:
    """Whether two labellings are the same partition."""
    return len(set(zip(first.tolist(), second.tolist(), strict=True))) == len(set(first)) == len(set(second))


@pytest.mark.parametrize("make", SEGMENTED)
def test_exact_clusters_are_the_segments(make: type[Segmented]) -> None:
    rng = np.random.default_rng(1)
    labels = np.arange(40) % 7
    policy = taught(make, 2.0 * rng.normal(size=(7, 6))[labels], 60)
    assert same(policy.segments().labels, labels)
    assert same(policy.segments(7).labels, labels)


@pytest.mark.parametrize("make", SEGMENTED)
def test_users_who_differ_inside_a_group_share_its_segment(make: type[Segmented]) -> None:
    preferences, labels = two_kinds((30, 30), 1.0)
    assert same(taught(make, preferences, 60).segments().labels, labels)


def test_a_small_group_beside_a_large_one_is_found() -> None:
    """k-means would cut the large one in two: that makes the sum of squares smaller."""
    preferences, labels = two_kinds((6, 194), 1.5, dim=2, seed=3)
    assert same(taught(coterie.HierUCB, preferences, 40).segments(2).labels, labels)


@pytest.mark.parametrize("make", SEGMENTED)
def test_without_rewards_there_is_one_segment(make: type[Segmented]) -> None:
    found = make(5, 3).segments()
    assert found.labels.tolist() == [0] * 5
    assert found.sizes.tolist() == [5]
    assert found.silhouette == 0.0


def test_segments_are_numbered_as_users_show_them() -> None:
    preferences, labels = two_kinds((20, 20), 0.5)
    found = taught(coterie.HierUCB, preferences[::-1].copy(), 40).segments(2)
    assert found.labels.tolist() == labels.tolist()


def test_asking_again_gives_the_same_and_changes_nothing() -> None:
    preferences, _ = two_kinds((20, 20), 1.0)
    asked, silent = (taught(coterie.AutoCLUB, preferences, 30) for _ in range(2))
    first, second = asked.segments(), asked.segments()
    assert np.array_equal(first.labels, second.labels)
    assert np.array_equal(first.preferences, second.preferences)
    arms = np.random.default_rng(5).normal(size=(50, 6))
    assert np.array_equal(asked.scores(3, arms).ucb, silent.scores(3, arms).ucb)


def test_segments_keep_their_numbers_as_users_come() -> None:
    preferences, labels = two_kinds((20, 20), 1.0)
    policy = taught(coterie.HierUCB, preferences, 30)
    before = policy.segments()
    turned = replace(
        before,
        labels=1 - before.labels,
        sizes=before.sizes[::-1],
        preferences=before.preferences[::-1],
        levels=before.levels[::-1],
    )
    policy.add_users(10)
    for previous in (before, turned):
        assert np.array_equal(policy.segments(previous=previous).labels[:40], previous.labels)
    assert same(before.labels, labels)


def test_a_user_without_rewards_is_in_the_likeliest_segment() -> None:
    preferences, labels = two_kinds((4, 36), 0.5, seed=2)
    policy = taught(coterie.HierUCB, preferences, 40)
    policy.add_users(1)
    found = policy.segments(2)
    assert found.labels[40] == found.labels[labels.tolist().index(1)]


def test_lift_is_what_a_segment_likes_more_than_others() -> None:
    preferences = np.repeat([[1.0, 0.0], [0.0, 1.0]], [10, 30], axis=0)
    lift = taught(coterie.HierUCB, preferences, 60).segments(2).lift(np.eye(2))
    assert lift == pytest.approx(np.array([[1.0, -1.0], [-1.0, 1.0]]), abs=0.1)


def test_one_segment_has_no_lift() -> None:
    assert taught(coterie.HierUCB, np.eye(3), 5).segments(1).lift(np.eye(3)).tolist() == [[0.0] * 3]


def test_there_are_no_more_segments_than_users_who_differ() -> None:
    policy = coterie.HierUCB(4, 1)
    policy.update_many([0, 1], [[1.0], [1.0]], [1.0, 0.0])
    found = policy.segments(4)
    assert len(found.sizes) < 4
    assert found.sizes.sum() == 4


@pytest.mark.parametrize("make", SEGMENTED)
def test_units_of_arms_do_not_matter(make: type[Segmented]) -> None:
    """Distances are those of expected rewards; units of columns differ by a factor of up to 100."""
    preferences, labels = two_kinds((20, 20), 1.0)
    units = np.array([1.0, 10.0, 1.0, 1.0, 0.1, 1.0])
    rng = np.random.default_rng(0)
    users = rng.permutation(np.repeat(np.arange(40), 60))
    xs = rng.normal(size=(len(users), 6))
    policy = make(40, 6)
    rewards = (xs * preferences[users]).sum(1) + 0.1 * rng.normal(size=len(users))
    policy.update_many(users, xs * units, rewards)
    assert same(policy.segments(2).labels, labels)


def test_mistakes_are_named() -> None:
    policy = coterie.HierUCB(3, 2)
    with pytest.raises(ArgumentError, match="k must be"):
        policy.segments(0)
    with pytest.raises(ArgumentError, match="previous must be"):
        policy.segments(previous=coterie.HierUCB(3, 4).segments())
