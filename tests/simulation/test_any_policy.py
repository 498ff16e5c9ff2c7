"""`simulate` takes any object with `recommend` and `update`, and gives it the very rounds that ours get."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import changed, is_one_sentence
from coterie import ArgumentError, LinearBandit, simulate
from coterie.datasets.dataset import Dataset
from coterie.environments.blocks import BLOCK
from coterie.policies import REGISTRY
from coterie.types import Floats, Ints
from simulation.test_simulate import USERS, WORLDS, make


@pytest.fixture(scope="module")
def data() -> Dataset:
    return coterie.datasets.load("synthetic", dim=6, n_users=40, n_items=60)


class Wrapped:
    """One of our policies, of which nothing is seen but three methods."""

    def __init__(self, policy: LinearBandit) -> None:
        self._policy = policy

    def recommend(self, user: int, arms: Floats, *, items: Ints | None = None) -> int:
        return self._policy.recommend(user, arms, items=items)

    def update(self, user: int, x: Floats, reward: float, *, item: int | None = None) -> None:
        self._policy.update(user, x, reward, item=item)

    def labels(self) -> Ints:
        return self._policy.labels()


class Answers:
    """A policy that always answers the same."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def recommend(self, user: int, arms: Floats) -> Any:
        return self.answer

    def update(self, user: int, x: Floats, reward: float) -> None:
        pass


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize("kind", [kind for kind in WORLDS if kind != "late"])
def test_a_wrapped_policy_has_the_trace_of_the_compiled_one(data: Dataset, name: str, kind: str) -> None:
    world = WORLDS[kind](data)
    horizon = 3 * BLOCK + 17 if kind in ("stochastic", "delayed") else BLOCK + 17
    compiled, stepping = make(name, world), make(name, world)
    fast = simulate(compiled, world, horizon, record=horizon)
    slow = simulate(Wrapped(stepping), world, horizon, record=horizon)
    for field in ("rounds", "regret", "reward", "clusters", "ari"):
        np.testing.assert_array_equal(getattr(fast, field), getattr(slow, field), err_msg=field)
    assert not slow.explored.any()  # a stranger does not say when it explores
    assert slow.policy == "Wrapped"
    assert set(changed(compiled, stepping)) <= {"epochs"}


class Growing(Wrapped):
    """The same with a number of users that can grow."""

    @property
    def n_users(self) -> int:
        return self._policy.n_users

    def add_users(self, n: int) -> None:
        self._policy.add_users(n)


WRAPPED = ["CLUB", "SCLUB", "AutoCLUB", "LinUCBInd", "LinTSInd", "PhaseUniCLUB", "HierUCB", "HierTS"]


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_policy_gets_users_who_come_later(data: Dataset, name: str) -> None:
    world = WORLDS["late"](data)
    first = world.present(0)
    assert first < USERS
    settings = {**make(name, world).arguments, "n_users": first}
    compiled, stepping = REGISTRY[name].make(**settings), REGISTRY[name].make(**settings)
    fast = simulate(compiled, world, 4 * BLOCK, record=50)
    slow = simulate(Growing(stepping), world, 4 * BLOCK, record=50)
    assert stepping.n_users == compiled.n_users == USERS
    for field in ("regret", "reward", "clusters", "ari"):
        np.testing.assert_array_equal(getattr(fast, field), getattr(slow, field), err_msg=field)


@pytest.mark.parametrize("answer", [9, -1, 10**30, None, 1.0, np.float64(1), "0", [0], np.arange(2), np.nan])
def test_an_answer_that_is_no_arm_is_refused_by_one_sentence(data: Dataset, answer: Any) -> None:
    with pytest.raises(ArgumentError, match="recommend must return row numbers from 0 to 8") as caught:
        simulate(Answers(answer), WORLDS["stochastic"](data), 10)
    assert is_one_sentence(caught.value), str(caught.value)


@pytest.mark.parametrize("answer", [0, 8, np.int64(3), np.uint8(3), np.array(3)])
def test_an_answer_may_be_any_kind_of_whole_number(data: Dataset, answer: Any) -> None:
    assert simulate(Answers(answer), WORLDS["stochastic"](data), 10).rounds[-1] == 10


def test_a_policy_without_labels_has_no_clusters(data: Dataset) -> None:
    trace = simulate(Answers(0), WORLDS["stochastic"](data), 300, record=3)
    assert trace.clusters.tolist() == [-1, -1, -1]
    assert np.isnan(trace.ari).all()
    assert "clusters" not in repr(trace)
    assert (np.diff(trace.regret) > 0).all()


@pytest.mark.parametrize("labels", [None, [0, 1], [0.5] * USERS, [-1] * USERS, "abc", [[0]] * USERS])
def test_labels_that_are_none_are_refused_by_one_sentence(data: Dataset, labels: Any) -> None:
    policy: Any = Answers(0)
    policy.labels = lambda: labels
    with pytest.raises(ArgumentError, match=r"labels\(\) must return an integer") as caught:
        simulate(policy, WORLDS["stochastic"](data), 10)
    assert is_one_sentence(caught.value), str(caught.value)


@pytest.mark.parametrize("policy", [None, 3, "CLUB", object(), Answers, coterie.CLUB])
def test_what_cannot_recommend_and_update_is_refused(data: Dataset, policy: Any) -> None:
    with pytest.raises(ArgumentError, match="policy must have the methods recommend and update") as caught:
        simulate(policy, WORLDS["stochastic"](data), 10)
    assert is_one_sentence(caught.value), str(caught.value)


def test_what_a_policy_raises_comes_through(data: Dataset) -> None:
    class Broken(Answers):
        def update(self, user: int, x: Floats, reward: float) -> None:
            raise RuntimeError("out of order")

    with pytest.raises(RuntimeError, match="out of order"):
        simulate(Broken(0), WORLDS["stochastic"](data), 10)


def test_a_policy_may_keep_and_write_into_what_it_is_handed(data: Dataset) -> None:
    class Scribbling(Answers):
        def recommend(self, user: int, arms: Floats) -> int:
            arms[...] = np.nan
            return 0

        def update(self, user: int, x: Floats, reward: float) -> None:
            x[...] = np.nan

    world = WORLDS["stochastic"](data)
    scribbled, clean = simulate(Scribbling(0), world, 600), simulate(Answers(0), world, 600)
    np.testing.assert_array_equal(scribbled.regret, clean.regret)
    assert np.isfinite(world.block(0).items).all()
