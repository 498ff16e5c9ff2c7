"""What HierUCB and HierTS are for: sharing without clusters, whatever rewards and features look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.errors import ArgumentError
from coterie.types import Floats
from inspection import state_array

ROUNDS = 1_500
Make = Callable[..., coterie.LinearBandit]


def regret(
    policy: coterie.Policy, tastes: Floats, *, scale: float = 1.0, offset: float = 0.0, unit: float = 1.0
) -> float:
    """The regret of serving users with these tastes; features, rewards and their unit may be changed."""
    rng = np.random.default_rng(7)
    lost = 0.0
    for _ in range(ROUNDS):
        user, arms = int(rng.integers(len(tastes))), rng.normal(size=(10, tastes.shape[1])) / 3.0
        noise, means = 0.1 * rng.normal(), arms @ tastes[user]
        arm = policy.recommend(user, scale * arms)
        policy.update(user, scale * arms[arm], unit * (float(means[arm]) + noise + offset))
        lost += float(means.max() - means[arm])
    return lost


def low_rank(n_users: int, dim: int, rank: int = 2) -> Floats:
    """Tastes that differ along few directions only."""
    rng = np.random.default_rng(3)
    tastes = rng.normal(size=(n_users, rank)) @ rng.normal(size=(rank, dim))
    return np.asarray(tastes / np.sqrt((tastes**2).sum(axis=1).mean()))


TASTES = low_rank(40, 9)
MAKERS: list[Make] = [coterie.HierUCB, coterie.HierTS]


def test_a_whole_covariance_is_learnt_where_tastes_differ_along_few_directions() -> None:
    hierarchical = regret(coterie.HierUCB(40, 9), TASTES)
    assert hierarchical < 0.75 * regret(coterie.LinUCBInd(40, 9, beta=0.1), TASTES)
    assert regret(coterie.AutoCLUB(40, 9), TASTES) < 1.1 * hierarchical  # which averages with it


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_added_to_all_rewards_does_not_matter(make: Make) -> None:
    centred = regret(make(40, 9), TASTES)
    for offset in (5.0, -300.0):
        assert regret(make(40, 9), TASTES, offset=offset) == pytest.approx(centred, rel=0.05)


def test_without_an_intercept_what_is_added_to_all_rewards_does_matter() -> None:
    plain = regret(coterie.HierUCB(40, 9, intercept=False), TASTES)
    assert regret(coterie.HierUCB(40, 9, intercept=False), TASTES, offset=5.0) > 2 * plain


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("scale", [1e-5, 1e-2, 1e2, 1e5])
def test_the_scale_of_features_hardly_matters(make: Make, scale: float) -> None:
    assert regret(make(40, 9), TASTES, scale=scale) < 1.15 * regret(make(40, 9), TASTES) + 2.0


@pytest.mark.parametrize("unit", [1e-20, 1e-3, 1e3, 1e20])
def test_the_unit_of_rewards_does_not_matter(unit: float) -> None:
    expected = regret(coterie.HierUCB(40, 9), TASTES)
    assert regret(coterie.HierUCB(40, 9), TASTES, unit=unit) == pytest.approx(expected, rel=0.02)


def test_newcomers_start_from_what_all_have_in_common() -> None:
    rng, taste = np.random.default_rng(0), np.array([1.0, -1.0, 0.5])
    policy = coterie.HierUCB(20, 3)
    for _ in range(600):
        x = rng.normal(size=3)
        policy.update(int(rng.integers(19)), x, 2.0 + float(x @ taste) + 0.1 * rng.normal())
    scores = policy.scores(19, np.eye(3))
    assert np.allclose(scores.mean, 2.0 + taste, atol=0.1)
    assert scores.width.max() < 0.2


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("reward", [0.0, 1.0, -3e5])
@pytest.mark.parametrize("n_users", [1, 4])
def test_rewards_that_are_all_the_same_are_no_trouble(make: Make, reward: float, n_users: int) -> None:
    policy, rng = make(n_users, 3), np.random.default_rng(1)
    for t in range(300):
        arms = rng.normal(size=(4, 3))
        arm = policy.recommend(t % n_users, arms)
        policy.update(t % n_users, arms[arm], reward)
    scores = policy.scores(0, np.eye(3))
    assert np.allclose(scores.mean, reward, rtol=1e-2, atol=1e-6)
    assert np.all(np.isfinite(scores.width))


def test_one_user_learns_like_a_regression_of_its_own() -> None:
    taste = low_rank(1, 9)
    assert regret(coterie.HierUCB(1, 9), taste) < 1.5 * regret(coterie.LinUCBInd(1, 9, beta=0.1), taste)


def test_users_who_never_come_change_nothing() -> None:
    few, many = coterie.HierUCB(5, 3), coterie.HierUCB(500, 3)
    rng = np.random.default_rng(2)
    for _ in range(200):
        user, x, reward = int(rng.integers(5)), rng.normal(size=3), float(rng.normal())
        few.update(user, x, reward)
        many.update(user, x, reward)
    arms = rng.normal(size=(20, 3))
    assert np.array_equal(few.scores(4, arms).ucb, many.scores(4, arms).ucb)
    assert np.array_equal(many.scores(300, arms).ucb, many.scores(499, arms).ucb)


def test_a_prior_given_whole_is_the_posterior_of_textbooks() -> None:
    mean, covariance = np.array([0.5, -0.2]), np.array([[2.0, 0.3], [0.3, 1.0]])
    policy = coterie.HierUCB(2, 2, noise=0.5, mean=mean, covariance=covariance, intercept=False)
    xs, rewards = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 2.0]]), np.array([1.0, 0.0, -1.0])
    policy.update_many([0, 0, 0], xs, rewards)
    precision = np.linalg.inv(covariance)
    posterior = np.linalg.inv(precision + xs.T @ xs / 0.25)
    expected = posterior @ (precision @ mean + xs.T @ rewards / 0.25)
    scores = policy.scores(0, np.eye(2))
    assert np.allclose(scores.mean, expected)
    assert np.allclose(scores.width, np.sqrt(np.diag(posterior)))
    assert np.allclose(policy.scores(1, np.eye(2)).mean, mean)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "noise zero": ({"noise": 0.0}, "noise must be positive"),
    "mean too short": ({"mean": np.zeros(2)}, "the intercept first, got"),
    "mean nan": ({"mean": [0.0, np.nan, 0.0]}, "mean"),
    "covariance of the wrong shape": ({"covariance": np.eye(2)}, "covariance must have shape"),
    "covariance not symmetric": ({"covariance": np.eye(3) + np.triu(np.ones((3, 3)), 1)}, "symmetric"),
    "covariance not definite": ({"covariance": np.ones((3, 3))}, "positive definite"),
    "intercept a number": ({"intercept": 1}, "intercept must be True or False"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_prior_is_refused_in_a_sentence(case: str) -> None:
    arguments, said = WRONG[case]
    with pytest.raises(ArgumentError, match=said):
        coterie.HierUCB(3, 2, **arguments)


def test_a_prior_given_is_copied() -> None:
    mean = np.zeros(3)
    policy = coterie.HierUCB(3, 2, mean=mean)
    mean[:] = 9.0
    assert not policy.arguments["mean"].any()
    policy.add_users(1)
    assert not state_array(policy, "prior.mean").any()
