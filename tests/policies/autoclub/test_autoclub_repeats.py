"""AutoCLUB where users answer the same to the same item: remembered, not learnt; no change elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie.environments import Payoffs, Stochastic
from coterie.environments.blocks import BLOCK
from inspection import learner_of, state_array, state_numbers


def opinions(n_users: int = 40, n_items: int = 30, seed: int = 0) -> Payoffs:
    """Ratings of which a vector tells about half."""
    rng = np.random.default_rng(seed)
    items, tastes = rng.normal(size=(n_items, 4)), rng.normal(size=(n_users, 4))
    ratings = tastes @ items.T / 2 + rng.normal(size=(n_users, n_items))
    return Payoffs(np.round(ratings), items, n_arms=8, seed=seed)


def taught() -> coterie.AutoCLUB:
    policy = coterie.AutoCLUB(40, 4)
    coterie.simulate(policy, opinions(), 3000)
    return policy


def test_ratings_that_repeat_are_remembered() -> None:
    world, ours, others = opinions(seed=5), coterie.AutoCLUB(40, 4), coterie.HierUCB(40, 4)
    regret = [coterie.simulate(policy, world, 4000, record=1).regret[-1] for policy in (ours, others)]
    assert regret[0] < 0.6 * regret[1]
    found = state_numbers(ours)
    assert 0 < learner_of(ours).pairs.shrinkage < 0.1
    assert found["skipped"] > 2000
    assert np.sqrt(found["prior.noise2"]) == pytest.approx(1.0, rel=0.25)  # what vectors do not tell
    assert ours.pulls.sum() == ours.rounds == 4000


def test_noise_that_is_fresh_each_time_is_not_remembered() -> None:
    """But for a few of the first rewards, where both models still miss the same part of the same pair."""
    data = coterie.datasets.load("synthetic", dim=4, n_users=40, n_items=12)
    for noise in (0.01, 0.3):
        world = Stochastic(data, n_users=12, n_clusters=3, n_arms=6, noise=noise, seed=1)
        policy = coterie.AutoCLUB(12, 4)
        coterie.simulate(policy, world, 4000)
        assert learner_of(policy).pairs.used < 1000
        assert learner_of(policy).pairs.variance == 0
        assert state_numbers(policy)["skipped"] < 40


@pytest.mark.parametrize("rate", [0.01, 0.02, 0.3])
def test_rare_clicks_are_noise(rate: float) -> None:
    rng, arms = np.random.default_rng(2), np.eye(5)
    policy = coterie.AutoCLUB(20, 5)
    for _ in range(4000):
        user = int(rng.integers(20))
        policy.update(user, arms[policy.recommend(user, arms)], float(rng.random() < rate))
    assert state_numbers(policy)["skipped"] < 40


def test_a_liar_does_not_make_the_others_forget() -> None:
    world, policy = opinions(seed=6), coterie.AutoCLUB(40, 4)
    rng = np.random.default_rng(1)
    for turn in range(4000):
        block, k = world.block(turn // BLOCK), turn % BLOCK
        user, arms = int(block.users[k]), block.items[block.picks[k]]
        arm = policy.recommend(user, arms)
        reward = 1e6 * rng.normal() if user < 3 else block.means[k, arm]
        policy.update(user, arms[arm], float(reward))
    assert 0 < learner_of(policy).pairs.shrinkage < 0.5
    assert state_numbers(policy)["skipped"] > 1500


def test_a_score_is_what_the_user_told_of_the_arm() -> None:
    policy, world = taught(), opinions()
    block = world.block(0)
    user, arms = int(block.users[0]), block.items[block.picks[0]]
    for arm in arms:  # remembered from now on
        policy.update(user, arm, 1.5)
    assert np.abs(policy.scores(user, arms).mean - 1.5).max() < 1.0
    parts, scores = policy.explain(user, arms).scores, policy.scores(user, arms)
    assert parts is not None
    np.testing.assert_allclose(np.sum(parts, axis=0), scores.ucb, atol=1e-12)
    assert (parts.repeats != 0).all()
    fresh = policy.explain(user, arms + 0.5).scores
    assert fresh is not None
    assert not fresh.repeats.any()
    assert policy.recommend(user, arms) == int(np.argmax(scores.ucb))
    assert policy.recommend_list(user, arms, 3)[0] == int(np.argmax(scores.ucb))


def test_a_restored_policy_remembers(tmp_path: Path) -> None:
    policy = taught()
    policy.save(tmp_path / "policy.coterie")
    again, world = coterie.load(tmp_path / "policy.coterie"), opinions(seed=9)
    first, second = (coterie.simulate(each, world, 1000, record=1) for each in (policy, again))
    assert first.regret.tolist() == second.regret.tolist()
    assert state_numbers(again) == state_numbers(policy)


def test_more_pairs_than_there_is_room_for() -> None:
    rng, policy = np.random.default_rng(4), coterie.AutoCLUB(4, 1)
    for start in range(0, 100_000, 20_000):
        x = np.arange(start, start + 20_000)[:, None] / 1e4 + 1.0
        policy.update_many(rng.integers(4, size=20_000), x, rng.normal(size=20_000))
    assert 0 < learner_of(policy).pairs.used <= 65_536
    assert np.count_nonzero(state_array(policy, "pairs.keys")) == learner_of(policy).pairs.used
    assert state_numbers(policy)["skipped"] == 0


def test_pairs_go_by_ids_where_items_have_them() -> None:
    """Two items share a vector: what a user told of one is not what it told of the other."""
    rng, policy = np.random.default_rng(7), coterie.AutoCLUB(30, 3)
    vectors, told = np.repeat(rng.normal(size=(10, 3)), 2, axis=0), rng.normal(size=(30, 20))
    for _ in range(6000):
        user, items = int(rng.integers(30)), rng.choice(20, 5, replace=False)
        arm = policy.recommend(user, vectors[items], items=items)
        policy.update(user, vectors[items[arm]], told[user, items[arm]], item=int(items[arm]))
    assert state_numbers(policy)["skipped"] > 3000
    policy.update(0, vectors[4], told[0, 4], item=4)
    policy.update(0, vectors[5], told[0, 5], item=5)
    scores = policy.scores(0, vectors[4:6], items=[4, 5])
    np.testing.assert_allclose(scores.mean, told[0, 4:6], atol=0.3)
