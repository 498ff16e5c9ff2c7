"""Many users: nothing that a simulation keeps grows with users × items, or with records × users."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import coterie
from coterie.environments import Bernoulli, Stochastic, lifted
from coterie.simulation.rand_index import adjusted_rand, n_labels
from coterie.simulation.simulator import judged
from coterie.types import Ints
from inspection import count_labels_in, judge_clusters_for, without_table_of_means

USERS, RECORD = 5_000, 200


def naive_rand(a: Ints, b: Ints) -> float:
    """The adjusted Rand index by looking at every pair of users."""
    upper = np.triu_indices(len(a), 1)
    one, two = (a[:, None] == a[None, :])[upper], (b[:, None] == b[None, :])[upper]
    expected = one.sum() * two.sum() / len(one)
    most = (one.sum() + two.sum()) / 2
    return 1.0 if most == expected else float(((one & two).sum() - expected) / (most - expected))


@pytest.mark.parametrize("room", [0, 4])
@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 3), (30, 30), (2**40, 5), (2**40, 2**40)])
def test_the_rand_index_is_that_of_all_pairs(
    first: int, second: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_labels_in(room, monkeypatch)
    rng = np.random.default_rng(first)
    for _ in range(5):
        a, b = rng.integers(first, size=30), rng.integers(second, size=30)
        assert adjusted_rand(a, b) == pytest.approx(naive_rand(a, b), abs=1e-12)
        assert n_labels(a) == len(set(a.tolist()))


def test_users_who_are_not_there_yet_count_for_nothing() -> None:
    truth = np.array([0, 0, 1, 1])
    assert judged(np.array([7, 7, 9, -1]), truth) == (2, 1.0)
    assert judged(np.full(4, -1), truth)[0] == -1
    clusters, rand = judged(np.array([3, 3, 3, 3]), None)
    assert clusters == 1
    assert np.isnan(rand)


def test_a_simulation_keeps_no_labels_for_each_record() -> None:
    data = coterie.datasets.load("synthetic", dim=3, n_users=USERS, n_items=20)
    world = Stochastic(data, n_users=USERS, n_clusters=4, n_arms=5)
    policy = coterie.LinUCBInd(USERS, 3)
    coterie.simulate(policy, world, 256, record=1)
    tracemalloc.start()
    try:
        coterie.simulate(policy, world, 1_024, record=RECORD)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.25 * RECORD * USERS * 8


@pytest.mark.parametrize("binary", [False, True])
def test_rounds_are_the_same_whether_or_not_a_table_holds_the_means(
    binary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = coterie.datasets.load("synthetic", dim=7, n_users=60, n_items=40)
    data = lifted(data) if binary else data
    noise = Bernoulli() if binary else 0.1
    first = Stochastic(data, n_users=60, n_clusters=60, n_arms=9, noise=noise, seed=3)
    gamma, expected = first.gamma, [first.block(number).means for number in range(3)]
    without_table_of_means(monkeypatch)
    second = Stochastic(data, n_users=60, n_clusters=60, n_arms=9, noise=noise, seed=3)
    assert second.gamma == gamma
    for number, means in enumerate(expected):
        assert second.block(number).means.tobytes() == means.tobytes()


def test_a_world_whose_users_are_all_different_has_no_table_of_users_and_items() -> None:
    data = coterie.datasets.load("synthetic", dim=3, n_users=USERS, n_items=2_000)
    tracemalloc.start()
    try:
        world = Stochastic(data, n_users=USERS, n_clusters=USERS, n_arms=5)
        coterie.simulate(coterie.LinUCBInd(USERS, 3), world, 512, record=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.25 * USERS * 2_000 * 8


def test_the_time_to_judge_clusters_is_no_time_of_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    data = coterie.datasets.load("synthetic", dim=3, n_users=20, n_items=20)
    world = Stochastic(data, n_users=20, n_clusters=4, n_arms=5)
    judge_clusters_for(0.5, monkeypatch)
    assert coterie.simulate(coterie.LinUCBInd(20, 3), world, 20, record=1).seconds < 0.4
