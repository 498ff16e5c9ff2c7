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
@given(st.integers(0, 10_000), st.integers(10, 99), st.floats(2, 90))
def test_a_reward_counts_for_no_more_than_a_quorum_has_sent(seed: int, when: int, power: float) -> None:
    """Of 5 users 3 must have reached 2^e, one may be the sender; larger ones than 2^(e+2) are shrunk."""
    rng = np.random.default_rng(seed)
    xs, rewards = rng.normal(size=(100, 3)), rng.normal(size=100)
    xs /= np.linalg.norm(xs, axis=1)[:, None]
    rewards[when] *= 10.0**power / abs(rewards[when])
    peaks = [np.abs(rewards[k:when:5]).max() for k in range(5) if k != when % 5]
    shrink = 4 * 2.0 ** np.floor(np.log2(sorted(peaks)[-2])) / 10.0**power
    spoilt, plain = coterie.AutoCLUB(5, 3), coterie.AutoCLUB(5, 3)
    spoilt.update_many(np.arange(100) % 5, xs, rewards)
    xs[when] *= shrink
    rewards[when] *= shrink
    plain.update_many(np.arange(100) % 5, xs, rewards)
    for name in ("users.moments", "users.reward_squares", "users.vector_sums"):
        np.testing.assert_allclose(state_array(spoilt, name), state_array(plain, name), rtol=1e-9, atol=1e-9)


def test_a_long_vector_is_shrunk_with_its_reward() -> None:
    policy = coterie.AutoCLUB(5, 2)
    for user in range(4):
        policy.update(user, [1.0, 0.0], 1.0)
    policy.update(4, [3e4, 4e4], 1.0)
    np.testing.assert_allclose(state_array(policy, "users.vector_sums")[4], [2.4, 3.2])
    np.testing.assert_allclose(state_array(policy, "users.reward_sums")[4], 8e-5)
