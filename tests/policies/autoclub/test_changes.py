"""Users who change, and columns in different units: what AutoCLUB does about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie.environments import Bernoulli, Stochastic
from coterie.policies.autoclub.adaptive.change_test import ChangeTest
from coterie.policies.autoclub.adaptive.column_scales import ColumnScales
from coterie.types import Floats
from inspection import learner_of

KNOWN, PRIOR = (0.0, 1.0), (0.0, 100.0)
"""Mean and variance of a reward by what is known of a user, and by the prior."""


def teach(policy: coterie.LinearBandit, user: int, taste: Floats, rewards: int, *, seed: int = 0) -> None:
    rng = np.random.default_rng([seed, user])
    for _ in range(rewards):
        x = rng.normal(size=policy.dim)
        policy.update(user, x, float(x @ taste + 0.1 * rng.normal()))


def changed() -> coterie.AutoCLUB:
    """A policy of four users, of whom user 2 has changed."""
    policy = coterie.AutoCLUB(4, 3)
    for user in range(4):
        teach(policy, user, np.array([1.0, 0.0, 0.0]), 60)
    teach(policy, 2, np.array([-1.0, 0.0, 0.0]), 40, seed=1)
    return policy


# The test of a change, alone.


def test_rewards_that_the_prior_predicts_better_are_a_change() -> None:
    test = ChangeTest(1, 1)
    found = [test.learn(0, 10.0, KNOWN, PRIOR, 100) for _ in range(14)]
    assert found == [False] * 11 + [True] * 3  # 2 for each, above ln 10⁶ + 2 ln 101
    test.refresh_all()


def test_no_single_reward_is_a_change() -> None:
    test = ChangeTest(1, 1)
    assert not test.learn(0, 1e9, KNOWN, PRIOR, 0)
    assert test.array("evidence")[0] == 2.0
    assert not any(test.learn(0, 0.1, KNOWN, PRIOR, n) for n in range(1, 50))
    assert test.array("evidence")[0] == 0.0


def test_a_user_who_has_always_been_noisy_does_not_change() -> None:
    test, rng = ChangeTest(1, 1), np.random.default_rng(0)
    assert not any(test.learn(0, 4.0 * rng.normal(), KNOWN, PRIOR, n) for n in range(5_000))


def test_the_last_changes_are_recorded_latest_first() -> None:
    test = ChangeTest(1, 1)
    for number in range(40):
        test.record(number, 10 * number)
    users, rounds = test.recorded()
    assert users.tolist() == list(range(39, 7, -1))
    assert rounds[0] == 390


# A user who changes.


def test_a_user_who_changes_starts_again_and_is_explained() -> None:
    policy = changed()
    assert policy.changes.total == 1
    assert policy.changes.users.tolist() == [2]
    assert 260 > policy.changes.rounds[0] > 240
    found = policy.explain(2)
    assert (found.rewards, found.changes) == (100, 1)
    assert 20 < found.since_change < 40
    assert f"has changed once, last {found.since_change} rewards ago" in str(found)
    assert policy.explain(1).changes == 0
    assert policy.labels().tolist() == [0, 0, 1, 0]
    assert policy.scores(2, np.eye(3)[:1]).mean[0] == pytest.approx(-1.0, abs=0.2)
    assert policy.pulls.tolist() == [60, 60, 100, 60]


def test_a_user_who_changes_back_is_where_it_was() -> None:
    policy = changed()
    teach(policy, 2, np.array([1.0, 0.0, 0.0]), 40, seed=3)
    assert policy.explain(2).changes == 2
    assert policy.labels().tolist() == [0, 0, 0, 0]


def test_a_change_of_one_user_leaves_what_is_known_of_others() -> None:
    before, after = coterie.AutoCLUB(4, 3), changed()
    for user in range(4):
        teach(before, user, np.array([1.0, 0.0, 0.0]), 60)
    arms = np.random.default_rng(5).normal(size=(20, 3))
    np.testing.assert_allclose(after.scores(0, arms).mean, before.scores(0, arms).mean, atol=0.1)


def test_a_user_who_has_changed_survives_snapshots_and_new_users(tmp_path: Path) -> None:
    policy = changed()
    policy.save(tmp_path / "policy")
    loaded = coterie.load(tmp_path / "policy")
    assert isinstance(loaded, coterie.AutoCLUB)
    assert loaded.changes.users.tolist() == [2]
    for each in (policy, loaded):
        each.add_users(2)
        for user in range(6):
            teach(each, user, np.array([0.0, 1.0, 0.0]), 40, seed=2)
    arms = np.random.default_rng(5).normal(size=(20, 3))
    assert policy.changes.total == loaded.changes.total > 1
    assert policy.pulls.sum() == policy.rounds
    for user in range(6):
        assert np.array_equal(policy.scores(user, arms).ucb, loaded.scores(user, arms).ucb)
        assert policy.explain(user).changes == loaded.explain(user).changes


@pytest.mark.slow
def test_jumps_cost_no_more_than_dyclu_pays() -> None:
    data = coterie.datasets.load("synthetic", dim=10, n_users=40, n_items=300)
    own = rival = 0.0
    for seed in range(3):
        world = Stochastic(data, n_users=10, n_clusters=2, n_arms=10, jumps=400, seed=seed)
        policy = coterie.AutoCLUB(10, 10)
        own += float(coterie.simulate(policy, world, 12_000, record=1).regret[-1])
        assert policy.changes.total > 10
        dyclu = coterie.DyClu(10, 10, beta=0.1, noise=0.1)
        rival += float(coterie.simulate(dyclu, world, 12_000, record=1).regret[-1])
    assert own < rival


@pytest.mark.slow
@pytest.mark.parametrize("clicks", [False, True])
def test_nobody_is_found_to_change_where_nobody_does(clicks: bool) -> None:
    data = coterie.datasets.load("synthetic", dim=10, n_users=40, n_items=300)
    noise = Bernoulli() if clicks else 0.1
    lifted = coterie.environments.lifted(data) if clicks else data
    for seed in range(3):
        world = Stochastic(lifted, n_users=30, n_clusters=5, n_arms=10, noise=noise, seed=seed)
        policy = coterie.AutoCLUB(30, world.dim)
        coterie.simulate(policy, world, 33_400, record=1)
        assert policy.changes.total == 0


# Units of columns.


def test_columns_of_like_sizes_are_left_as_they_are() -> None:
    columns, rng = ColumnScales(1, 4), np.random.default_rng(0)
    for _ in range(100):
        assert columns.learn(rng.normal(size=4) * [1.0, 2.0, 4.0, 0.5], 0) is None


def test_columns_in_other_units_are_divided_by_them_exactly() -> None:
    columns, rng = ColumnScales(1, 3), np.random.default_rng(0)
    changes = [columns.learn(rng.normal(size=3) * [1.0, 1024.0, 1.0 / 1024], 0) for _ in range(64)]
    found = np.prod([change for change in changes if change is not None], axis=0)
    np.testing.assert_array_equal(found, columns.raw_factors())
    np.testing.assert_allclose(np.log2(found / found[0]), [0, -10, 10], atol=1)
    columns.refresh_all()


def test_a_column_that_is_nearly_always_0_is_no_small_one() -> None:
    columns, rng = ColumnScales(1, 2), np.random.default_rng(0)
    for _ in range(256):
        assert columns.learn(np.array([1.0, float(rng.random() < 0.05)]), 0) is None


def test_neither_one_vector_nor_a_busy_user_sets_the_units_of_all() -> None:
    policy, rng = coterie.AutoCLUB(20, 4), np.random.default_rng(0)
    for t in range(400):
        policy.update(t % 19, rng.normal(size=4), 0.1 * rng.normal())
        policy.update(19, np.geomspace(1.0, 1e5, 4), 1.0)
    assert not learner_of(policy).columns.array("exponents").any()


def test_units_are_revised_when_the_first_users_were_not_like_the_rest() -> None:
    policy, rng = coterie.AutoCLUB(60, 4), np.random.default_rng(0)
    for user in range(12):
        policy.update(user, rng.normal(size=4) * [1.0, 1.0, 1.0, 1e4], 0.1 * rng.normal())
    assert learner_of(policy).columns.array("exponents").any()
    for t in range(2_000):
        policy.update(12 + t % 48, rng.normal(size=4), 0.1 * rng.normal())
    assert not learner_of(policy).columns.array("exponents").any()


@pytest.mark.slow
def test_regret_does_not_depend_on_units() -> None:
    data = coterie.datasets.load("synthetic", dim=10, n_users=40, n_items=300)
    units = np.geomspace(1.0, 1e4, 10)
    other = data._replace(users=data.users / units, items=data.items * units)
    regrets = [
        sum(
            coterie.simulate(
                coterie.AutoCLUB(20, 10), Stochastic(each, 20, 4, 20, seed=seed), 4_000, record=1
            ).regret[-1]
            for seed in range(5)
        )
        for each in (data, other)
    ]
    assert regrets[1] < 1.15 * regrets[0]
