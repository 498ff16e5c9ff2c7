"""Worlds and policies of others cannot make the compiled loop read or write where it must not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import is_one_sentence
from coterie.datasets.dataset import Dataset
from coterie.environments import Bernoulli, Block, Cascade, Stochastic, lifted


@pytest.fixture(scope="module")
def data() -> Dataset:
    return coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=60)


def world(data: Dataset) -> Stochastic:
    return Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=1)


class First:
    """A policy that plays the first arm, with whatever attributes a test gives it."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def recommend(self, user: int, arms: Any) -> int:
        return 0

    def update(self, user: int, x: Any, reward: float) -> None:
        pass


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(coterie.ArgumentError) as caught:
        call()
    assert is_one_sentence(caught.value), str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("more", [3, 100_000])
@pytest.mark.parametrize("name", ["LinUCBInd", "SCLUB", "AutoCLUB"])
def test_users_added_during_a_simulation_are_refused_at_the_next_block(
    data: Dataset, name: str, more: int
) -> None:
    confidence = {"confidence": coterie.Tuned(alpha=0.0, beta=0.1)} if name == "SCLUB" else {}
    policy = getattr(coterie, name)(8, 5, **confidence)

    def grow(rounds: int, regret: float) -> None:
        if policy.n_users < 10:
            policy.add_users(more)

    said = refusal(lambda: coterie.simulate(policy, world(data), 2_000, record=10, progress=grow))
    assert said.startswith("the policy must not have more users than the environment")


@pytest.mark.parametrize("users", [np.int64(5_000_000), 9, np.uint8(200), "8", 0])
def test_a_policy_whose_number_of_users_does_not_fit_is_refused(data: Dataset, users: Any) -> None:
    refusal(lambda: coterie.simulate(First(n_users=users), world(data), 600))


def test_a_policy_with_too_few_users_needs_add_users(data: Dataset) -> None:
    said = refusal(lambda: coterie.simulate(First(n_users=5), world(data), 600))
    assert said == "the policy has 5 users and no add_users, the environment has 8"


SPOILT: dict[str, Callable[[Block], Block]] = {
    "users beyond": lambda b: b._replace(users=b.users + 10**7),
    "users negative": lambda b: b._replace(users=b.users - 100),
    "picks beyond": lambda b: b._replace(picks=b.picks + 10**7),
    "picks negative": lambda b: b._replace(picks=b.picks - 10**7),
    "means too short": lambda b: b._replace(means=b.means[:3]),
    "noise too short": lambda b: b._replace(noise=b.noise[:3]),
    "delays beyond": lambda b: b._replace(delays=b.delays + 5),
    "items too narrow": lambda b: b._replace(items=np.ascontiguousarray(b.items[:, :2])),
    "a list longer than the arms": lambda b: b._replace(length=11, noise=np.zeros((len(b.users), 11))),
}


class Spoilt(Stochastic):
    """A world whose blocks are changed before they are played."""

    kind = ""

    def block(self, number: int) -> Block:
        return SPOILT[self.kind](super().block(number))


@pytest.mark.parametrize("kind", sorted(SPOILT))
@pytest.mark.parametrize("ours", [True, False])
def test_a_block_that_contradicts_itself_is_refused(data: Dataset, kind: str, ours: bool) -> None:
    spoilt = Spoilt(data, n_users=8, n_clusters=2, n_arms=10, seed=1)
    spoilt.kind = kind
    policy: Any = coterie.LinUCBInd(8, 5, beta=0.1) if ours else First()
    refusal(lambda: coterie.simulate(policy, spoilt, 300))


@pytest.mark.parametrize("horizon", [np.uint32(600), np.int8(100), np.uint8(255)])
def test_a_horizon_of_numpy_ends_where_it_says(data: Dataset, horizon: Any) -> None:
    trace = coterie.simulate(coterie.LinUCBOne(8, 5), world(data), horizon, record=1)
    assert trace.rounds.tolist() == [int(horizon)]


def test_a_dataset_is_no_world(data: Dataset) -> None:
    place: Any = data
    assert "must be an Environment" in refusal(lambda: coterie.simulate(coterie.LinUCBOne(8, 5), place, 10))


@pytest.mark.parametrize(
    "wrong", [{"seeds": 2}, {"environment": 3}, {"policies": {}}, {"policies": [1]}, {"policies": {"a": 1}}]
)
def test_simulate_many_says_what_it_takes(data: Dataset, wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "policies": {"one": lambda w, seed: coterie.LinUCBOne(8, 5)},
        "environment": lambda seed: world(data),
        "seeds": [0],
    }
    given = {**good, **wrong}
    refusal(lambda: coterie.simulate_many(given["policies"], given["environment"], 10, seeds=given["seeds"]))


@pytest.mark.parametrize("answer", [[0, 0, 1], [0, 0, 1, 2], [0, 1], 3, [0, 1, 99], [0.0, 1.0, 2.0]])
def test_a_list_that_is_none_is_refused_by_its_own_name(data: Dataset, answer: Any) -> None:
    class Lists:
        def recommend_list(self, user: int, arms: Any, k: int) -> Any:
            return answer

        def update_list(self, user: int, xs: Any, clicked: int | None) -> None:
            pass

    base = Stochastic(lifted(data), n_users=8, n_clusters=2, n_arms=10, seed=1, noise=Bernoulli())
    said = refusal(lambda: coterie.simulate(Lists(), Cascade(base, 3), 10))
    assert said.startswith("recommend_list must return")


def test_uniform_rounds_are_counted_through_the_methods_too(data: Dataset) -> None:
    def policy() -> coterie.LinearBandit:
        return coterie.UniCLUB(8, 5, confidence=coterie.Tuned(alpha=1.0, beta=0.1, explore=100))

    class Methods:
        def __init__(self, inner: coterie.LinearBandit) -> None:
            self.inner = inner

        @property
        def exploring(self) -> bool:
            return self.inner.exploring

        def recommend(self, user: int, arms: Any) -> int:
            return self.inner.recommend(user, arms)

        def update(self, user: int, x: Any, reward: float) -> None:
            self.inner.update(user, x, reward)

    compiled = coterie.simulate(policy(), world(data), 300, record=3)
    driven = coterie.simulate(Methods(policy()), world(data), 300, record=3)
    assert compiled.explored.tolist() == driven.explored.tolist() == [1.0, 0.5, 1 / 3]
