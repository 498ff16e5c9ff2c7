"""Worlds whose means deviate from a linear model, and worlds in which users lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from coterie import ArgumentError
from coterie.environments import Bernoulli, Block, Cascade, Shifted, Smoothed, Stochastic, lifted
from coterie.types import Floats

DATA = coterie.datasets.load("synthetic", dim=4, n_users=40, n_items=60)


def stochastic(**wishes: Any) -> Stochastic:
    return Stochastic(DATA, **{"n_users": 12, "n_clusters": 3, "n_arms": 10, "seed": 5, **wishes})


def smoothed(**wishes: Any) -> Smoothed:
    return Smoothed(dataset=DATA, **{"n_users": 12, "n_clusters": 3, "n_arms": 10, "seed": 5, **wishes})


class Diary:
    """A policy that plays the first arm and writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[float] = []

    def recommend(self, user: int, arms: Floats) -> int:
        return 0

    def update(self, user: int, x: Floats, reward: float) -> None:
        self.told.append(reward)


def told(world: Stochastic | Smoothed | Shifted, rounds: int) -> Floats:
    diary = Diary()
    coterie.simulate(diary, world, rounds)
    return np.array(diary.told)


def deviations_by_pair(world: Stochastic, base: Stochastic, blocks: int) -> dict[tuple[int, int], set[float]]:
    found: dict[tuple[int, int], set[float]] = {}
    for number in range(blocks):
        ours, plain = world.block(number), base.block(number)
        assert np.array_equal(ours.picks, plain.picks)
        assert np.array_equal(ours.noise, plain.noise)
        added = (ours.means - plain.means).round(12)
        for user, items, row in zip(ours.users, ours.picks, added, strict=True):
            for item, one in zip(items, row, strict=True):
                found.setdefault((int(user), int(item)), set()).add(float(one))
    return found


def test_every_user_has_one_fixed_deviation_for_every_item() -> None:
    found = deviations_by_pair(stochastic(misspecification=0.3), stochastic(), 12)
    assert len(found) == 12 * 60
    assert all(len(values) == 1 for values in found.values())
    values = np.array([value for one in found.values() for value in one])
    assert len(np.unique(values)) == len(values)
    assert np.abs(values).max() <= 0.3
    assert abs(values.mean()) < 4 * 0.3 / np.sqrt(3 * len(values))  # uniform: σ = ε/√3
    assert values.std() == pytest.approx(0.3 / np.sqrt(3), rel=0.08)
    of_users = np.array([values[k::60].mean() for k in range(60)])
    assert of_users.std() < 0.1


def test_they_depend_on_the_seed() -> None:
    users, items = np.arange(12), np.tile(np.arange(10), (12, 1))
    one, same = stochastic(misspecification=0.3).deviations, stochastic(misspecification=0.3).deviations
    other = stochastic(misspecification=0.3, seed=6).deviations
    assert np.array_equal(one.of(users, items), same.of(users, items))
    assert not np.isclose(one.of(users, items), other.of(users, items)).any()


def test_smoothed_arms_deviate_by_the_item_behind_them() -> None:
    plain, world = smoothed(adversary="narrow").block(2), smoothed(adversary="narrow", misspecification=0.2)
    block = world.block(2)
    added = block.means - plain.means
    assert np.array_equal(block.items, plain.items)
    first = {user: added[block.users == user][0] for user in set(block.users.tolist())}
    for user, row in zip(block.users.tolist(), added, strict=True):
        np.testing.assert_allclose(row, first[user], atol=1e-12)  # the same few items in every round
    assert np.abs(added).max() <= 0.2
    assert len(np.unique(added.round(12))) == 12 * 10


@pytest.mark.parametrize("make", [stochastic, smoothed])
@pytest.mark.parametrize(("corruption", "sign"), [("flip", -1.0), ("random", 0.0)])
def test_liars_lie_in_the_first_rounds_and_nobody_else_ever(make: Any, corruption: str, sign: float) -> None:
    world: Stochastic = make(corrupted=0.25, corruption=corruption, corrupted_rounds=700)
    assert world.liars.sum() == 3
    blocks = [world.block(number) for number in range(4)]
    users = np.concatenate([block.users for block in blocks])
    means = np.concatenate([block.means[:, 0] for block in blocks])
    noise = np.concatenate([block.noise for block in blocks])
    lies = world.liars[users] & (np.arange(1024) < 700)
    assert 50 < lies.sum() < 300
    assert blocks[3].signs is None
    np.testing.assert_allclose(told(world, 1024), np.where(lies, sign, 1.0) * means + noise, atol=1e-12)
    np.testing.assert_array_equal(make().block(1).means, blocks[1].means)


def test_a_lie_about_a_click_has_the_opposite_probability() -> None:
    data = lifted(DATA)
    world = Stochastic(data, 12, 3, 10, Bernoulli(), 5, corrupted=1.0, corrupted_rounds=10**6)
    blocks = [world.block(number) for number in range(8)]
    means = np.concatenate([block.means[:, 0] for block in blocks])
    uniform = np.concatenate([block.noise for block in blocks])
    assert np.array_equal(told(world, 2048), (uniform < 1.0 - means).astype(np.float64))
    silent = Stochastic(data, 12, 3, 10, Bernoulli(), 5, corrupted=1.0, corruption="random")
    assert np.array_equal(told(silent, 2048), (uniform < 0.5).astype(np.float64))


def test_regret_is_that_of_the_true_means() -> None:
    honest, lying = stochastic(), stochastic(corrupted=0.5)
    traces = [coterie.simulate(Diary(), world, 600) for world in (honest, lying)]
    assert np.array_equal(traces[0].regret, traces[1].regret)
    assert traces[0].reward[-1] != traces[1].reward[-1]


def test_compiled_policies_are_told_the_same() -> None:
    class Wrapped:
        def __init__(self) -> None:
            self.policy = coterie.LinUCBInd(12, 4, beta=0.1)

        def recommend(self, user: int, arms: Floats) -> int:
            return self.policy.recommend(user, arms)

        def update(self, user: int, x: Floats, reward: float) -> None:
            self.policy.update(user, x, reward)

    world = Shifted(stochastic(corrupted=0.5, misspecification=0.1), 0.3, intercept=False)
    compiled = coterie.simulate(coterie.LinUCBInd(12, 4, beta=0.1), world, 900)
    assert np.array_equal(compiled.regret, coterie.simulate(Wrapped(), world, 900).regret)
    assert (compiled.reward == coterie.simulate(Wrapped(), world, 900).reward).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"misspecification": -0.1},
        {"misspecification": float("nan")},
        {"corrupted": -0.1},
        {"corrupted": 1.1},
        {"corruption": "shout"},
        {"corrupted_rounds": 0},
    ],
)
def test_what_is_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        stochastic(**wrong)


def test_probabilities_that_might_leave_0_to_1_and_lists_of_liars_are_refused() -> None:
    data = lifted(DATA)
    with pytest.raises(ArgumentError, match=r"\[0, 1\]"):
        Stochastic(data, 12, 3, 10, Bernoulli(), misspecification=0.7)
    with pytest.raises(ArgumentError, match="corrupted"):
        Cascade(Stochastic(data, 12, 3, 10, Bernoulli(), corrupted=0.2), 3)


def test_a_block_with_signs_of_a_wrong_shape_is_refused() -> None:
    class Wrong(Stochastic):
        def block(self, number: int) -> Block:
            return super().block(number)._replace(signs=np.ones(3))

    with pytest.raises(ArgumentError, match="shapes"):
        coterie.simulate(Diary(), Wrong(DATA, 12, 3, 10), 300)
