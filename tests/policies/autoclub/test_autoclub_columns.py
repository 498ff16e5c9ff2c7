"""AutoCLUB where columns have units of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import coterie
from coterie.errors import ArgumentError
from inspection import state_array, state_numbers

UNITS = np.array([1.0, 64.0, 1024.0])
USERS, DIM = 6, 3
History: TypeAlias = list[tuple[int, NDArray[np.float64], float]]


def rounds(n: int, seed: int = 0) -> History:
    rng = np.random.default_rng(seed)
    tastes = rng.normal(size=(USERS, DIM))
    vectors = rng.uniform(0.5, 1.5, size=(n, DIM)) * rng.choice([-1.0, 1.0], size=(n, DIM))
    users = rng.integers(USERS, size=n)
    noise = 0.1 * rng.normal(size=n)
    return [(int(i), x, float(x @ tastes[i] + e)) for i, x, e in zip(users, vectors, noise, strict=True)]


def taught(history: History, units: NDArray[np.float64]) -> coterie.LinearBandit:
    policy = coterie.AutoCLUB(USERS, DIM)
    for user, x, reward in history:
        policy.update(user, x * units, reward)
    return policy


def scales(policy: coterie.LinearBandit) -> list[float]:
    return [float(scale) for scale in state_array(policy, "columns.scales")]


def test_after_the_first_rewards_the_units_of_columns_make_no_difference() -> None:
    history = rounds(120)
    policy, level = taught(history, UNITS), taught(history[32:], np.ones(DIM))
    arms = np.random.default_rng(1).normal(size=(8, DIM))
    assert scales(policy) == UNITS.tolist()
    assert policy.pulls.sum() == policy.rounds == 120
    assert policy.labels().tolist() == level.labels().tolist()
    for user in range(USERS):
        assert policy.scores(user, arms * UNITS).ucb.tolist() == level.scores(user, arms).ucb.tolist()
        assert policy.recommend(user, arms * UNITS) == level.recommend(user, arms)
        found, wanted = policy.recommend_list(user, arms * UNITS, 3), level.recommend_list(user, arms, 3)
        assert list(found) == list(wanted)
    np.testing.assert_allclose(policy.estimates * UNITS, level.estimates)


@pytest.mark.parametrize(
    "history",
    [rounds(120), [(i, x * np.array([1.0, 5.0, 19.0]), r) for i, x, r in rounds(120, 2)]],
    ids=["alike", "not very different"],
)
def test_columns_of_about_one_size_are_left_alone(history: History) -> None:
    assert scales(taught(history, np.ones(DIM))) == [0.0] * DIM


def test_few_vectors_tell_nothing_of_columns() -> None:
    few = rounds(15)
    assert scales(taught([few[k % 15] for k in range(120)], UNITS)) == [0.0] * DIM


def test_a_constant_column_is_no_measure_of_others() -> None:
    history = [(i, np.array([5000.0, x[1], x[2]]), r) for i, x, r in rounds(60)]
    assert scales(taught(history, np.ones(DIM))) == [0.0] * DIM
    assert scales(taught(history, np.array([1.0, 1.0, 64.0]))) == [1.0, 1.0, 64.0]


def test_a_column_of_next_to_nothing_is_not_blown_up_to_everything() -> None:
    found = scales(taught(rounds(60), np.array([1e-12, 1.0, 1.0])))
    assert found[0] == 1.0
    assert found[1] == found[2] == 2.0**20


def test_a_snapshot_goes_on_with_levelled_columns(tmp_path: Path) -> None:
    policy = taught(rounds(80), UNITS)
    policy.save(tmp_path / "policy.coterie")
    revived = coterie.load(tmp_path / "policy.coterie")
    for user, x, reward in rounds(20, seed=3):
        arms = [x * UNITS, -x * UNITS]
        assert revived.recommend(user, arms) == policy.recommend(user, arms)
        policy.update(user, x * UNITS, reward)
        revived.update(user, x * UNITS, reward)
    assert state_numbers(revived) == state_numbers(policy)


def test_a_vector_too_long_is_refused_however_columns_are_levelled() -> None:
    policy = taught(rounds(60), UNITS)
    long = np.array([0.0, 0.0, 1e7])
    for ask in (lambda: policy.recommend(0, [long, UNITS]), lambda: policy.update(0, long, 1.0)):
        with pytest.raises(ArgumentError, match="shorter"):
            ask()
