"""The parts of AutoCLUB's learner, each used alone."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.policies.autoclub.clusters import Clusters
from coterie.policies.autoclub.hierarchical_model import ModelWeights
from coterie.policies.autoclub.histories import UserHistories
from coterie.policies.autoclub.prior import CommonPrior
from coterie.policies.autoclub.quorums import SharedValues, SizeLimits
from coterie.types import Floats

USERS, DIM = 6, 5


def rewarded(rounds: int, noise: float = 0.1) -> tuple[UserHistories, Floats, Floats, Floats]:
    """Histories of users of two kinds, their vectors and rewards, and the preferences of both kinds."""
    rng = np.random.default_rng(0)
    tastes, xs = rng.normal(size=(2, DIM)), rng.normal(size=(rounds, DIM))
    rewards = np.einsum("ij,ij->i", xs, tastes[np.arange(rounds) % 2]) + noise * rng.normal(size=rounds)
    users = UserHistories(USERS, DIM)
    for t in range(rounds):
        users.learn(t % USERS, xs[t], float(rewards[t]))
    return users, xs, rewards, tastes


@pytest.mark.parametrize("rounds", [USERS, 2 * USERS, 9 * USERS])  # vectors, the last vectors, triangles
def test_histories_give_back_every_sum(rounds: int) -> None:
    users, xs, rewards, _ = rewarded(rounds)
    for user in range(USERS):
        mine, own = xs[user::USERS], rewards[user::USERS]
        np.testing.assert_allclose(users.gram(user), mine.T @ mine, atol=1e-12)
        np.testing.assert_allclose(users.array("moments")[user], own @ mine, atol=1e-12)
        assert users.array("reward_squares")[user] == pytest.approx(own @ own)
    users.refresh_all()


def test_rewards_and_vectors_are_limited_until_a_quorum_confirms_their_size() -> None:
    limits, x = SizeLimits(3, 1), np.ones(1)
    assert limits.limited(0, x, 100.0) == 1.0  # the only user is a majority
    assert limits.limited(1, x, 1.5) == 1.0
    assert limits.limited(0, x, -100.0) == 0.04  # both of two
    assert limits.limited(2, x, 70.0) == 1.0  # two of three
    assert limits.limited(1, 100 * x, 0.0) == 0.04
    limits.refresh_all()
    assert limits.limited(1, x, -512.0) == 0.5


def test_a_value_is_shared_when_a_quorum_has_given_it() -> None:
    values = SharedValues(9, 1)
    assert [values.learn(user, 1.0, 9) for user in range(6)] == [False] * 4 + [True] * 2
    assert not values.learn(5, 0.123, 9)
    assert values.share(0) == 1.0
    assert values.share(5) == pytest.approx(0.123**2 / (1 + 0.123**2))
    assert values.share(8) == 1.0
    values.refresh_all()


def test_values_of_many_users_are_not_forgotten_for_those_of_one() -> None:
    values, rng = SharedValues(9, 1), np.random.default_rng(0)
    for user in range(9):
        values.learn(user, 0.0, 9)
    for value in rng.normal(size=5_000):
        values.learn(0, float(value), 9)
    assert values.learn(1, -0.0, 9)


def test_the_prior_finds_the_noise_from_regressions_of_users_alone() -> None:
    users, _, _, tastes = rewarded(300 * USERS, noise=0.2)
    prior = CommonPrior(users, SizeLimits(USERS, DIM), ridge=1.0)
    for _ in range(20):
        fits = [prior.fit(user) for user in range(USERS)]
    assert prior.noise2 == pytest.approx(0.04, rel=0.1)
    np.testing.assert_allclose(fits[3], tastes[1], atol=0.05)
    prior.refresh_all()


def test_clusters_need_neither_a_hierarchical_model_nor_effects() -> None:
    rng, tastes = np.random.default_rng(1), np.eye(DIM)
    users = UserHistories(USERS, DIM)
    clusters = Clusters(
        users, SharedValues(USERS, DIM), CommonPrior(users, SizeLimits(USERS, DIM), ridge=1.0)
    )
    for t in range(100 * USERS):
        x = rng.normal(size=DIM)
        clusters.learn(t % USERS, x, float(x @ tastes[t % 2] + 0.1 * rng.normal()))
    labels = clusters.partition.array("labels")
    assert clusters.partition.n_clusters == 2
    assert [label == labels[0] for label in labels] == [True, False] * 3
    clusters.refresh_all()


def test_the_model_that_predicts_better_gets_the_weight() -> None:
    weights, rng = ModelWeights(1, 1), np.random.default_rng(2)
    assert weights.weight() == 0.5
    for t in range(1, 200):
        reward = float(rng.normal())
        weights.update(reward, (3.0, 1.0), (0.0, 1.0), t)
    assert weights.weight() == 1.0
