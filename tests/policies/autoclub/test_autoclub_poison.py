"""AutoCLUB: what one user or one reward can do to the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import coterie
from coterie.datasets.dataset import Dataset
from coterie.environments import Stochastic
from coterie.environments.blocks import Block
from inspection import state_array, state_numbers


class Spoilt(Stochastic):
    """User 0 answers at random with a standard deviation; its arms are all alike to the regret."""

    deviation = 0.1

    def block(self, number: int) -> Block:
        block = super().block(number)
        lies = block.users == 0
        drawn = np.random.default_rng([self.seed, number]).normal(size=len(lies))
        return block._replace(
            means=np.where(lies[:, None], 0.0, block.means),
            noise=np.where(lies, self.deviation * drawn, block.noise),
        )


@pytest.fixture(scope="module")
def data() -> Dataset:
    return coterie.datasets.load("synthetic", dim=8, n_users=40, n_items=300)


def honest_regret(data: Dataset, deviation: float) -> float:
    found = 0.0
    for seed in range(5):
        world = Spoilt(data, n_users=20, n_clusters=4, n_arms=20, seed=seed)
        world.deviation = deviation
        found += coterie.simulate(coterie.AutoCLUB(20, 8), world, 6000, record=1).regret[-1]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [1.0, 10.0, 1e6])
def test_a_user_who_answers_at_random_costs_the_others_next_to_nothing(
    data: Dataset, deviation: float
) -> None:
    """Five short runs leave an error of about 8 %; one common noise level would cost a factor of 2 to 10."""
    assert honest_regret(data, deviation) < 1.25 * honest_regret(data, 0.1)


def tell(policy: coterie.LinearBandit, rewards: NDArray[np.float64], *, seed: int = 0) -> None:
    """Users in turn, each with vectors that depend on the seed alone."""
    xs = np.random.default_rng(seed).normal(size=(len(rewards), policy.dim))
    policy.update_many(np.arange(len(rewards)) % policy.n_users, xs, rewards)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.floats(-99, 99), st.integers(0, 4))
def test_whatever_one_sends_the_noise_of_the_others_is_found(seed: int, power: float, kind: int) -> None:
    """At random, constant, as it should be but in another unit, once in a while, with alternating signs."""
    n_users, dim, rounds = 8, 3, 1600
    rng, policy = np.random.default_rng(seed), coterie.AutoCLUB(n_users, dim)
    xs = np.random.default_rng(seed).normal(size=(rounds, dim))
    rewards = xs @ rng.normal(size=dim) + 0.1 * rng.normal(size=rounds)
    lies, size, sent = np.arange(rounds) % n_users == 0, 10.0**power, np.arange(rounds) // n_users
    answers = (rng.normal(size=rounds), 1.0, rewards, sent % 50 == 49, (-1.0) ** sent)[kind]
    tell(policy, np.where(lies, np.clip(size * answers, -9e99, 9e99), rewards), seed=seed)
    found = state_numbers(policy)
    assert 0.08 < np.sqrt(found["prior.noise2"]) < 0.15
    assert np.isfinite(policy.scores(1, np.eye(dim)).ucb).all()
    assert state_array(policy, "users.noise_weights")[1:].min() > 0.5


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(0, 99), st.floats(2, 90))
def test_the_greatest_reward_counts_for_at_most_twice_the_second(seed: int, when: int, power: float) -> None:
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=100)
    rewards[when] = sign = np.sign(rewards[when])
    second = np.sort(np.abs(np.delete(rewards, when)))[-1]
    great, usual = rewards.copy(), rewards.copy()
    great[when], usual[when] = sign * 10.0**power, sign * min(10.0**power, 2 * second)
    spoilt, plain = coterie.AutoCLUB(5, 3), coterie.AutoCLUB(5, 3)
    tell(spoilt, great, seed=seed)
    tell(plain, usual, seed=seed)
    for name in ("users.moments", "users.reward_squares"):
        found, wanted = state_array(spoilt, name), state_array(plain, name)
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_a_second_reward_of_that_size_is_believed() -> None:
    policy = coterie.AutoCLUB(2, 1)
    policy.update(0, [1.0], 5.0)
    assert state_array(policy, "users.moments")[0] == 0.0
    policy.update(1, [1.0], -4.0)
    assert state_array(policy, "users.moments").ravel().tolist() == [5.0, -4.0]
    policy.update(1, [1.0], 70.0)
    assert state_array(policy, "users.moments").ravel().tolist() == [5.0, 6.0]
    policy.update(0, [1.0], -20.0)
    assert state_array(policy, "users.moments").ravel().tolist() == [-15.0, 36.0]
