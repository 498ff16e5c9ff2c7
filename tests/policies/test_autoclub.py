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
from coterie.environments import Bernoulli, Stochastic, lifted
from coterie.kernels.autoclub import NOISE2, WEIGHT
from coterie.kernels.evidence import back_substitute, combine, eliminate, evidence


@pytest.fixture(scope="module")
def data() -> Dataset:
    return coterie.datasets.load("synthetic", dim=8, n_users=40, n_items=300)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(0, 30))
def test_differences_of_evidence_are_log_bayes_factors(seed: int, dim: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    weight, noise2 = float(rng.uniform(0.2, 5.0)), float(rng.uniform(0.01, 2.0))
    x, rewards = rng.normal(size=(n, dim)), rng.normal(size=n)
    gram, moment = x.T @ x, x.T @ rewards
    matrix = np.empty((dim, dim))
    combine(gram, np.zeros((dim, dim)), 1.0, weight, matrix)
    reduced = moment.copy()
    logdet, explained = eliminate(matrix, reduced)
    solution = np.empty(dim)
    back_substitute(matrix, reduced, solution)
    np.testing.assert_allclose(solution, np.linalg.solve(weight * np.eye(dim) + gram, moment), atol=1e-9)
    ours = evidence(dim, weight, logdet, explained, noise2)
    if n:
        covariance = noise2 * (np.eye(n) + x @ x.T / weight)
        marginal = multivariate_normal(np.zeros(n), covariance).logpdf(rewards)
        nothing = multivariate_normal(np.zeros(n), noise2 * np.eye(n)).logpdf(rewards)
        assert ours == pytest.approx(marginal - nothing, abs=1e-7)
    else:
        assert ours == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.3])
def test_the_noise_is_found(data: Dataset, noise: float) -> None:
    world = Stochastic(data, n_users=20, n_clusters=4, n_arms=20, noise=noise, seed=3)
    policy = coterie.AutoCLUB(20, 8)
    coterie.simulate(policy, world, 6000)
    assert np.sqrt(policy.partition.state.scalars[NOISE2]) == pytest.approx(noise, rel=0.1)
    assert policy.partition.state.scalars[WEIGHT] >= 1.0


def test_the_clusters_are_found(data: Dataset) -> None:
    for seed in range(3):
        world = Stochastic(data, n_users=20, n_clusters=4, n_arms=20, seed=seed)
        assert coterie.simulate(coterie.AutoCLUB(20, 8), world, 6000, record=2).ari[-1] == 1.0


def test_users_who_share_nothing_stay_alone_and_users_who_are_alike_stay_together(data: Dataset) -> None:
    nobody = Stochastic(data, n_users=15, n_clusters=15, n_arms=20, seed=1)
    assert coterie.simulate(coterie.AutoCLUB(15, 8), nobody, 6000, record=2).clusters[-1] == 15
    everybody = Stochastic(data, n_users=15, n_clusters=1, n_arms=20, seed=1)
    assert coterie.simulate(coterie.AutoCLUB(15, 8), everybody, 6000, record=2).clusters[-1] <= 2


def test_it_beats_both_extremes_where_there_are_clusters(data: Dataset) -> None:
    makers: dict[str, Callable[[], coterie.Policy]] = {
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
    state = policy.partition.state
    assert state.clock[1] == len(np.unique(state.labels)) == (state.sizes > 0).sum()
    for row in np.unique(state.labels):
        members = np.flatnonzero(state.labels == row)
        gram = state.grams[members].sum(axis=0)
        matrix = gram + state.pool_weights[row] * np.eye(8)
        assert state.sizes[row] == len(members)
        np.testing.assert_allclose(state.pool_grams[row], gram, atol=1e-9)
        np.testing.assert_allclose(state.pools.inverse[row] @ matrix, np.eye(8), atol=1e-8)
        np.testing.assert_allclose(
            state.pools.moment[row], state.users.moment[members].sum(axis=0), atol=1e-9
        )
        assert state.pool_logdets[row] == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-7)
        assert state.pools.pulls[row] == state.users.pulls[members].sum()


def test_a_round_without_noise_is_no_trouble(data: Dataset) -> None:
    world = Stochastic(data, n_users=12, n_clusters=3, n_arms=20, noise=0.0, seed=2)
    trace = coterie.simulate(coterie.AutoCLUB(12, 8), world, 2000, record=4)
    assert np.isfinite(trace.regret).all()
