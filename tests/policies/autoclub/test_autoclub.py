"""AutoCLUB: its evidence is the marginal likelihood, its noise the true one, its clusters the true ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import coterie
from coterie.datasets.dataset import Dataset
from coterie.environments import Bernoulli, Shifted, Stochastic, lifted
from coterie.policies.kernel.linalg import eliminated, inverted
from inspection import learner_of, state_array, state_arrays, state_numbers


@pytest.fixture(scope="module")
def data() -> Dataset:
    return coterie.datasets.load("synthetic", dim=8, n_users=40, n_items=300)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(0, 30))
def test_differences_of_evidence_are_log_bayes_factors(seed: int, dim: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    weight, noise2 = float(rng.uniform(0.2, 5.0)), float(rng.uniform(0.01, 2.0))
    x, rewards, mean = rng.normal(size=(n, dim)), rng.normal(size=n), rng.normal(size=dim)
    dense, centred = weight * np.eye(dim) + x.T @ x, x.T @ (rewards - x @ mean)
    logdet, explained, solution = eliminated(np.triu(dense), centred.copy(), 0.5 * weight)
    np.testing.assert_allclose(solution, np.linalg.solve(dense, centred), atol=1e-9)
    np.testing.assert_allclose(inverted(dense, 0.5 * weight), np.linalg.inv(dense), atol=1e-9)
    ours = 0.5 * (dim * np.log(weight) - logdet + explained / noise2)  # E(S, c) of _autoclub.pyx
    if n:
        covariance = noise2 * (np.eye(n) + x @ x.T / weight)
        marginal = multivariate_normal(x @ mean, covariance).logpdf(rewards)
        nothing = multivariate_normal(x @ mean, noise2 * np.eye(n)).logpdf(rewards)
        assert ours == pytest.approx(marginal - nothing, abs=1e-7)
    else:
        assert ours == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.3])
def test_the_noise_the_differences_and_the_mean_are_found(data: Dataset, noise: float) -> None:
    world = Stochastic(data, n_users=20, n_clusters=4, n_arms=20, noise=noise, seed=3)
    policy = coterie.AutoCLUB(20, 8)
    coterie.simulate(policy, world, 6000)
    found, mean = state_numbers(policy), state_array(policy, "prior.mean")
    assert np.sqrt(found["prior.noise2"]) == pytest.approx(noise, rel=0.05)
    differing = world.preferences[world.labels] - world.preferences[world.labels].mean(axis=0)
    assert np.log(found["prior.precision"]) == pytest.approx(np.log(noise**2 / differing.var()), abs=0.7)
    assert np.linalg.norm(mean - world.preferences[world.labels].mean(axis=0)) < 0.15


def test_the_clusters_are_found(data: Dataset) -> None:
    for seed in range(3):
        world = Stochastic(data, n_users=20, n_clusters=4, n_arms=20, seed=seed)
        assert coterie.simulate(coterie.AutoCLUB(20, 8), world, 6000, record=2).ari[-1] == 1.0


def test_users_who_share_nothing_end_up_alone(data: Dataset) -> None:
    world = Stochastic(data, n_users=15, n_clusters=15, n_arms=20, seed=1)
    assert coterie.simulate(coterie.AutoCLUB(15, 8), world, 6000, record=2).clusters[-1] == 15


def test_where_all_are_alike_nearly_all_of_the_gain_of_pooling_is_had(data: Dataset) -> None:
    worlds = [Stochastic(data, n_users=15, n_clusters=1, n_arms=20, seed=s) for s in range(3)]
    auto = [coterie.simulate(coterie.AutoCLUB(15, 8), w, 6000, record=1).regret[-1] for w in worlds]
    alone = [
        coterie.simulate(coterie.LinUCBInd(15, 8, beta=0.1), w, 6000, record=1).regret[-1] for w in worlds
    ]
    assert sum(auto) < 0.5 * sum(alone)


def test_it_beats_both_extremes_where_there_are_clusters(data: Dataset) -> None:
    makers: dict[str, Callable[[], coterie.LinearBandit]] = {
        "auto": lambda: coterie.AutoCLUB(20, 8),
        "ind": lambda: coterie.LinUCBInd(20, 8, beta=0.1),
        "one": lambda: coterie.LinUCBOne(20, 8, beta=0.1),
    }
    worlds = [Stochastic(data, n_users=20, n_clusters=4, n_arms=20, seed=s) for s in range(3)]
    regrets = {
        name: sum(coterie.simulate(make(), w, 6000, record=1).regret[-1] for w in worlds)
        for name, make in makers.items()
    }
    assert regrets["auto"] < 0.75 * min(regrets["ind"], regrets["one"])


def test_rewards_of_zero_and_one_work_too(data: Dataset) -> None:
    world = Stochastic(lifted(data), n_users=12, n_clusters=2, n_arms=20, noise=Bernoulli(), seed=2)
    trace = coterie.simulate(coterie.AutoCLUB(12, 9), world, 8000, record=4)
    assert np.isfinite(trace.regret).all()
    assert (
        trace.regret[-1] < 0.9 * coterie.simulate(coterie.LinUCBInd(12, 9, beta=0.5), world, 8000).regret[-1]
    )


def test_pooled_statistics_are_the_sums_of_their_members(data: Dataset) -> None:
    world = Stochastic(data, n_users=20, n_clusters=4, n_arms=20, seed=5)
    policy = coterie.AutoCLUB(20, 8)
    coterie.simulate(policy, world, 1500)
    held, labels = state_arrays(policy), state_array(policy, "clusters.partition.labels")
    assert (
        state_numbers(policy)["clusters.partition.n_clusters"]
        == len(np.unique(labels))
        == (held["clusters.partition.sizes"] > 0).sum()
    )
    for row in np.unique(labels):
        members = np.flatnonzero(labels == row)
        gram = np.sum([learner_of(policy).users.gram(user) for user in members.tolist()], axis=0)
        matrix = gram + held["clusters.sums.precisions"][row] * np.eye(8)
        moment = held["users.moments"][members].sum(axis=0)
        assert held["clusters.partition.sizes"][row] == len(members)
        pooled, inverse = learner_of(policy).clusters.sums.cluster(int(row))
        np.testing.assert_allclose(pooled, gram, atol=1e-9)
        np.testing.assert_allclose(inverse @ matrix, np.eye(8), atol=1e-8)
        np.testing.assert_allclose(held["clusters.sums.moments"][row], moment, atol=1e-9)
        assert held["clusters.sums.pulls"][row] == held["users.pulls"][members].sum()


def test_the_sums_are_those_of_the_users_own_regressions(data: Dataset) -> None:
    world = Stochastic(data, n_users=20, n_clusters=4, n_arms=20, seed=5)
    policy = coterie.AutoCLUB(20, 8)
    coterie.simulate(policy, world, 1500)
    held, found = state_arrays(policy), state_numbers(policy)
    np.testing.assert_allclose(held["prior.sums"], held["prior.terms"].sum(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(held["prior.vote_sum"], held["prior.votes"].sum(axis=0), atol=1e-9)
    pulls, residual, left, freedom = held["prior.sums"][:4]
    assert found["prior.noise2"] == pytest.approx(residual / left)
    assert 0.8 * (pulls - freedom) < left <= (pulls - freedom) * (1 + 1e-9)
    assert found["prior.vote_squares"] == pytest.approx((held["prior.votes"] ** 2).sum())
    assert found["users.seen"] == (held["users.pulls"] > 0).sum()
    assert found["prior.fitted"] == (held["prior.terms"][:, 0] > 0).sum()
    assert found["users.reward_square"] <= held["users.reward_squares"].sum() * (1 + 1e-9)
    assert found["users.square_norms"] == pytest.approx(
        sum(np.trace(learner_of(policy).users.gram(user)) for user in range(20))
    )


@pytest.mark.parametrize("length", [0.0, 1e-12, 1e-8, 1e-4])
def test_the_mean_preference_stays_finite_where_next_to_nothing_is_known(length: float) -> None:
    policy = coterie.AutoCLUB(4, 3)
    rng = np.random.default_rng(0)
    for turn in range(80):
        policy.update(turn % 4, length * rng.normal(size=3), 1.0 + rng.normal())
    assert state_numbers(policy)["prior.fitted"] == 4
    assert np.isfinite(state_array(policy, "prior.mean")).all()
    assert np.isfinite(policy.scores(0, np.eye(3)).mean).all()


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(-30, 30))
def test_the_unit_of_rewards_does_not_matter(seed: int, power: int) -> None:
    """Rewards in another unit, here by a power of two so that nothing is rounded: the very same decisions."""
    rng = np.random.default_rng(seed)
    plain, scaled = coterie.AutoCLUB(6, 3), coterie.AutoCLUB(6, 3)
    tastes = rng.normal(size=(2, 3))
    for _ in range(150):
        user, arms = int(rng.integers(6)), rng.normal(size=(5, 3))
        arm = plain.recommend(user, arms)
        assert scaled.recommend(user, arms) == arm
        reward = float(arms[arm] @ tastes[user % 2] + 0.1 * rng.normal())
        plain.update(user, arms[arm], reward)
        scaled.update(user, arms[arm], reward * 2.0**power)
    assert plain.labels().tolist() == scaled.labels().tolist()


@pytest.mark.slow
def test_what_is_added_to_all_rewards_hardly_matters(data: Dataset) -> None:
    """Without an offset of its own, 5 would cost a factor of 10 to 30."""
    regrets = {}
    for offset in (0.0, 5.0, -300.0):
        worlds = [Stochastic(data, n_users=20, n_clusters=4, n_arms=20, seed=s) for s in range(5)]
        shifted = [Shifted(world, offset, intercept=False) for world in worlds]
        regrets[offset] = sum(
            coterie.simulate(coterie.AutoCLUB(20, 8), w, 6000, record=1).regret[-1] for w in shifted
        )
    assert max(regrets[5.0], regrets[-300.0]) < 1.2 * regrets[0.0]


def test_the_offset_is_found_and_scores_contain_it() -> None:
    policy, rng = coterie.AutoCLUB(6, 3), np.random.default_rng(0)
    tastes = rng.normal(size=(6, 3))
    for turn in range(1200):
        arms = rng.normal(size=(5, 3))
        x = arms[policy.recommend(turn % 6, arms)]
        policy.update(turn % 6, x, float(7.0 + x @ tastes[turn % 6] + 0.1 * rng.normal()))
    assert state_numbers(policy)["prior.offset"] == pytest.approx(7.0, abs=0.05)
    np.testing.assert_allclose(policy.scores(2, np.eye(3)).mean, 7.0 + tastes[2], atol=0.1)


def test_newcomers_act_in_the_largest_cluster_until_they_know_better(data: Dataset) -> None:
    world = Stochastic(data, n_users=20, n_clusters=4, n_arms=20, seed=5)
    policy = coterie.AutoCLUB(20, 8)
    coterie.simulate(policy, world, 1500)
    before = policy.labels().tolist()
    policy.add_users(2)
    policy.add_users(1)
    largest = policy.labels()[20]
    assert policy.labels().tolist() == [*before, *[largest] * 3]
    sizes = state_array(policy, "clusters.partition.effective_sizes")
    assert sizes.max() == sizes[learner_of(policy).labels()[20]]
    twin = before.index(largest)
    if learner_of(policy).explained(twin)["weight"] == 1.0:
        np.testing.assert_array_equal(policy.scores(20, np.eye(8)).mean, policy.scores(twin, np.eye(8)).mean)
    assert not policy.estimates[20:].any()


@pytest.mark.parametrize("ridge", [0.1, 1.0, 7.0])
def test_inverse_times_matrix_is_the_identity_after_100_000_updates(ridge: float) -> None:
    policy, rng, rounds = coterie.AutoCLUB(6, 3, ridge=ridge), np.random.default_rng(17), 100_000
    users = rng.choice(6, size=rounds, p=[0.4, 0.3, 0.2, 0.07, 0.02, 0.01])
    xs = rng.normal(size=(rounds, 3)) * [1.0, 1.0, 0.1]
    xs /= np.linalg.norm(xs, axis=1, keepdims=True)
    policy.update_many(users, xs, np.where(users % 2, xs[:, 0], xs[:, 1]) + 0.1 * rng.normal(size=rounds))
    held, labels = state_arrays(policy), learner_of(policy).labels()
    assert policy.labels().tolist() == [0, 1, 0, 1, 0, 1]
    for row in np.unique(labels):
        mine = xs[np.isin(users, np.flatnonzero(labels == row))]
        matrix = held["clusters.sums.precisions"][row] * np.eye(3) + mine.T @ mine
        np.testing.assert_allclose(
            learner_of(policy).clusters.sums.cluster(int(row))[1] @ matrix, np.eye(3), atol=1e-8
        )


def test_rewards_that_are_all_zero_are_no_trouble() -> None:
    policy, rng = coterie.AutoCLUB(4, 3), np.random.default_rng(0)
    for _ in range(200):
        user, arms = int(rng.integers(4)), rng.normal(size=(5, 3))
        policy.update(user, arms[policy.recommend(user, arms)], 0.0)
    assert np.isfinite(policy.estimates).all()


def test_a_round_without_noise_is_no_trouble(data: Dataset) -> None:
    world = Stochastic(data, n_users=12, n_clusters=3, n_arms=20, noise=0.0, seed=2)
    trace = coterie.simulate(coterie.AutoCLUB(12, 8), world, 2000, record=4)
    assert np.isfinite(trace.regret).all()


def test_without_noise_rounding_never_makes_a_user_unknowable() -> None:
    """λ falls and falls where nothing is noisy; it stays above what rounding can do to sums."""
    policy, rng = coterie.AutoCLUB(3, 2), np.random.default_rng(0)
    tastes = rng.normal(size=(3, 2))
    for _ in range(4000):
        user, arms = int(rng.choice(3, p=[0.9, 0.09, 0.01])), rng.normal(size=(4, 2))
        x = arms[policy.recommend(user, arms)]
        policy.update(user, x, float(x @ tastes[user]))
    found = state_numbers(policy)
    assert found["prior.precision"] >= 0.5e-12 * found["users.square_norms"] > 0.0
    assert np.isfinite(policy.estimates).all()
    np.testing.assert_allclose(policy.estimates, tastes, atol=0.05)


def test_an_arm_left_aside_after_bad_luck_is_tried_again() -> None:
    """Its bonus grows with the rewards that another arm has had."""
    policy, arms = coterie.AutoCLUB(1, 2), np.eye(2)
    rng = np.random.default_rng(0)
    for _ in range(30):
        policy.update(0, arms[0], 0.5 + 0.1 * rng.normal())
    for _ in range(3):
        policy.update(0, arms[1], 0.4 + 0.1 * rng.normal())
    before = policy.scores(0, arms)
    assert policy.recommend(0, arms) == 0
    while policy.recommend(0, arms) == 0 and policy.pulls[0] < 20_000:
        policy.update(0, arms[0], 0.5 + 0.1 * rng.normal())
    after = policy.scores(0, arms)
    assert policy.recommend(0, arms) == 1
    assert after.width[1] > 1.5 * before.width[1]
    assert after.width[0] < before.width[0]


@pytest.mark.parametrize("users", [3, 20])
def test_the_mean_preference_does_not_overshoot_where_arms_lie_along_one_direction(users: int) -> None:
    policy, along = coterie.AutoCLUB(users, 20), np.eye(20)[0]
    rng = np.random.default_rng(0)
    longest = 0.0
    for turn in range(40 * users):
        way = (-1.0) ** (turn // users)  # so that no offset explains the rewards
        policy.update(turn % users, way * along, way + 0.1 * rng.normal())
        longest = max(longest, float(np.linalg.norm(state_array(policy, "prior.mean"))))
    assert 0.6 < longest < 1.05
