"""AutoCLUB keeps of users and clusters what it needs, and looks at no more clusters than it must."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie
from coterie.policies.autoclub.autoclub_learner import AutoClubLearner
from coterie.types import Floats
from inspection import keep_posteriors_of, learner_of, state_arrays, state_numbers

MOST_LISTED = 1024


def play(
    policy: coterie.LinearBandit, tastes: Floats, rounds: int, seed: int, *, level: float = 0.0
) -> Floats:
    """Random users and arms; returns Σxxᵀ of each user."""
    rng, dim = np.random.default_rng(seed), policy.dim
    grams = np.zeros((policy.n_users, dim, dim))
    for _ in range(rounds):
        user, arms = int(rng.integers(policy.n_users)), rng.normal(size=(4, dim))
        arms /= np.linalg.norm(arms, axis=1)[:, None]  # so that none is too long to count in full
        x = arms[policy.recommend(user, arms)]
        policy.update(user, x, float(level + x @ tastes[user % len(tastes)] + 0.1 * rng.normal()))
        grams[user] += np.outer(x, x)
    return grams


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 12), st.integers(1, 200))
def test_what_is_kept_is_whole_and_gives_back_all_sums(seed: int, dim: int, n: int, rounds: int) -> None:
    policy = coterie.AutoCLUB(n, dim)
    tastes = np.random.default_rng(seed).normal(size=(3, dim))
    grams = play(policy, tastes, rounds, seed, level=20.0)  # so that no reward is too large to count in full
    learner, numbers = learner_of(policy), state_numbers(policy)
    learner.refresh_all()  # raises if anything contradicts itself
    pulls, labels = policy.pulls, learner.labels()
    kept = np.where(pulls < (dim + 1) // 2, pulls, 0).sum()
    assert numbers["users.n_packed"] == (pulls >= (dim + 1) // 2).sum()
    assert kept <= numbers["users.used_vectors"] <= rounds
    for user in np.flatnonzero(pulls).tolist():
        number = int(learner.arrivals.of_all()[user])
        np.testing.assert_allclose(learner.users.gram(number), grams[user], atol=1e-9)
    for row in np.unique(labels).tolist():
        members = np.flatnonzero(labels == row)
        weights = learner.noise_weights()[members, None, None]
        gram, inverse = learner.clusters.sums.cluster(row)
        np.testing.assert_allclose(gram, (weights * grams[members]).sum(axis=0), atol=1e-8)
        floor = learner.array("clusters.sums.precisions")[row] * np.eye(dim)
        np.testing.assert_allclose(inverse @ (gram + floor), np.eye(dim), atol=1e-6)


def test_users_with_few_rewards_need_no_matrices() -> None:
    dim, n = 40, 300
    policy, rng = coterie.AutoCLUB(n, dim), np.random.default_rng(0)
    users = np.repeat(np.arange(n), 3)
    xs = rng.normal(size=(len(users), dim))
    policy.update_many(users, xs, xs[:, 0])
    learner = learner_of(policy)
    assert learner.array("users.vectors").shape == (3 * n, dim)
    assert learner.array("users.packed").shape[0] == 0
    assert learner.array("clusters.sums.inverses").shape[0] == 1  # they are together until each is reviewed


def test_users_who_join_one_by_one_share_one_matrix() -> None:
    dim = 40
    policy, rng = coterie.AutoCLUB(1, dim), np.random.default_rng(0)
    for user in range(200):
        x = rng.normal(size=dim)
        policy.update(user, x, float(x[0]))
        policy.add_users(1)
    learner = learner_of(policy)
    assert policy.labels().tolist() == [0] * 201
    assert learner.array("clusters.sums.inverses").shape[0] == 1
    learner.refresh_all()


def test_of_very_many_clusters_those_that_count_most_are_looked_at() -> None:
    n, dim = 1_300, 3
    policy, rng = coterie.AutoCLUB(n, dim), np.random.default_rng(1)
    tastes = rng.normal(size=(n, dim))
    for _ in range(12):
        users = rng.permutation(n)
        xs = rng.normal(size=(n, dim))
        rewards = np.einsum("ij,ij->i", xs, tastes[users]) + 1e-3 * rng.normal(size=n)
        policy.update_many(users, xs, rewards)
    learner, numbers = learner_of(policy), state_numbers(policy)
    counts, spots, sizes = (
        learner.array(f"clusters.partition.{name}") for name in ("effective_sizes", "positions", "sizes")
    )
    assert numbers["clusters.partition.n_clusters"] > MOST_LISTED
    assert 512 <= np.count_nonzero(spots) <= MOST_LISTED
    assert numbers["clusters.partition.least_size"] > 0
    assert counts[spots > 0].min() >= numbers["clusters.partition.least_size"]
    left_out = (spots == 0) & (sizes > 0)
    assert counts[left_out].max() <= numbers["clusters.partition.least_size"]
    copy = deepcopy(policy)
    for user in rng.integers(n, size=200).tolist():
        arms = rng.normal(size=(5, dim))
        arm = policy.recommend(user, arms)
        assert copy.recommend(user, arms) == arm
        for each in (policy, copy):
            each.update(user, arms[arm], float(arms[arm] @ tastes[user]))
    assert np.array_equal(policy.labels(), copy.labels())
    learner.refresh_all()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("users.places", 10**6, "'places'"),
        ("users.next_vector", 10**6, "vectors that are not those of its users"),
        ("clusters.sums.places", 10**6, "'places' of clusters"),
        ("clusters.partition.positions", 10**6, "candidates among its clusters"),
        ("hierarchy.cached_users", 10**6, "slots"),
        ("prior.order", 10**6, "'order'"),
    ],
)
def test_a_state_whose_places_are_none_is_refused(name: str, value: int, sentence: str) -> None:
    policy = coterie.AutoCLUB(6, 5)
    play(policy, np.random.default_rng(0).normal(size=(6, 5)), 20, seed=0)
    learner = learner_of(policy)
    arrays, numbers = learner.arrays(), learner.numbers()
    arrays[name][...] = value
    with pytest.raises(ValueError, match=sentence):
        learner.restore(lambda array, out: np.copyto(out, arrays[array]), numbers)


def keeping_two_posteriors(n: int, dim: int) -> coterie.AutoCLUB:
    policy = coterie.AutoCLUB(n, dim)
    keep_posteriors_of(policy, 2)
    return policy


def held(policy: coterie.LinearBandit) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in state_arrays(policy).items()}


def test_asking_changes_nothing_even_where_not_all_posteriors_are_kept() -> None:
    policy = keeping_two_posteriors(9, 4)
    play(policy, np.random.default_rng(0).normal(size=(9, 4)), 60, seed=0)
    before = held(policy)
    for user in range(9):
        policy.recommend(user, np.eye(4))
        policy.scores(user, np.eye(4))
        policy.explain(user, np.eye(4))
    assert held(policy) == before


@pytest.mark.parametrize("dim", [3, 12])
def test_who_was_asked_before_a_reward_makes_no_difference_to_what_is_learnt(dim: int) -> None:
    asked, quiet = keeping_two_posteriors(9, dim), keeping_two_posteriors(9, dim)
    rng, trusted = np.random.default_rng(2), 0
    tastes = rng.normal(size=(9, dim))
    for _ in range(150):
        other, user, x = int(rng.integers(9)), int(rng.integers(9)), rng.normal(size=dim)
        reward = float(x @ tastes[user] + rng.normal())
        trusted += state_numbers(asked)["weights.log_odds"] > -5
        if rng.random() < 0.2:
            asked.scores(user if rng.random() < 0.5 else other, rng.normal(size=(3, dim)))
        for policy in (asked, quiet):
            policy.update(user, x, reward)
    assert trusted > 50
    assert held(asked) == held(quiet)


def likeliest_of_all(learner: AutoClubLearner, user: int) -> list[int]:
    """The two clusters of least misfit but the user's own, after looking at every one on the list."""
    partition = learner.clusters.partition
    rows = np.setdiff1d(np.flatnonzero(partition.array("positions")), partition.array("labels")[user])
    numbers, estimates = learner.numbers(), learner.array("clusters.sums.estimates")[rows]
    moment = learner.array("users.moments")[user]
    moment = moment - numbers["prior.offset"] * learner.array("users.vector_sums")[user]
    fit = np.einsum("ki,ij,kj->k", estimates, learner.users.gram(user), estimates) - 2 * estimates @ moment
    loss = 0.5 * learner.array("users.noise_weights")[user] * fit / numbers["prior.noise2"]
    order = np.argsort(loss - np.log(partition.array("effective_sizes")[rows]))
    return [int(row) for row in rows[order[:2]]]


@pytest.mark.parametrize(("dim", "offset"), [(4, 0.0), (12, 0.0), (24, 0.0), (12, 5.0)])
def test_few_clusters_are_looked_at_closely_and_the_likeliest_are_among_them(dim: int, offset: float) -> None:
    n, rng = 300, np.random.default_rng(3)
    policy, tastes = coterie.AutoCLUB(n, dim), rng.normal(size=(n, dim)) / np.sqrt(dim)
    learner, close, listed = learner_of(policy), 0, 0
    for t in range(12 * n):
        user, arms = int(rng.integers(n)), rng.normal(size=(5, dim))
        x = arms[policy.recommend(user, arms)]
        policy.update(user, x, float(x @ tastes[user] + offset + 0.1 * rng.normal()))
        if t % 7 == 0:
            rows, looked_at = learner.clusters.likeliest(user)
            assert rows == likeliest_of_all(learner, user)
            close += looked_at
            listed += int(np.count_nonzero(learner.array("clusters.partition.positions")))
    assert listed > 10_000
    assert close < 0.5 * listed
