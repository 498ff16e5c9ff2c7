"""Explanations: they say what the policy does, and their parts sum to its scores."""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from inspection import keep_posteriors_of


def taught() -> coterie.AutoCLUB:
    """Six users in two clusters, of whom user 5 answers at random."""
    policy, rng = coterie.AutoCLUB(6, 3), np.random.default_rng(3)
    tastes = rng.normal(size=(2, 3))
    for turn in range(900):
        user, arms = turn % 6, rng.normal(size=(5, 3))
        x = arms[policy.recommend(user, arms)]
        noise = 0.1 * rng.normal() if user < 5 else 20.0 * rng.normal()
        policy.update(user, x, float(4.0 + x @ tastes[user % 2] + noise))
    return policy


def test_the_parts_of_a_score_sum_to_it() -> None:
    policy, arms = taught(), np.random.default_rng(0).normal(size=(7, 3))
    for user in range(6):
        parts = policy.explain(user, arms).scores
        assert parts is not None
        np.testing.assert_allclose(np.sum(parts, axis=0), policy.scores(user, arms).ucb, atol=1e-12)
        trust = policy.explain(user).hierarchy
        np.testing.assert_allclose(parts.offset, 4.0 * (1.0 - trust), atol=0.1)
        assert np.any(parts.hierarchy != 0) == (trust > 0)


def test_a_hierarchical_model_that_decides_alone_explains_users_without_kept_posteriors_too() -> None:
    """Posteriors are kept of two users: those of the others are found when they are asked for."""
    policy, rng = coterie.AutoCLUB(9, 4), np.random.default_rng(0)
    learner = keep_posteriors_of(policy, 2)
    xs = rng.normal(size=(90, 4))
    policy.update_many(np.arange(90) % 9, xs, xs[:, 0] + 0.1 * rng.normal(size=90))
    learner.weights.log_odds = 50.0
    for user in range(9):
        parts, scores = policy.explain(user, np.eye(4)).scores, policy.scores(user, np.eye(4))
        assert parts is not None
        np.testing.assert_array_equal(parts.hierarchy, scores.mean)
        assert not np.any([parts.offset, parts.cluster, parts.alternatives])


def test_a_user_learns_from_its_cluster_and_noise_counts_less() -> None:
    policy = taught()
    found = policy.explain(1)
    assert found.cluster.tolist() == policy.cluster_of(1).tolist()
    assert {1, 3} <= set(found.cluster.tolist())
    assert found.influence.sum() == pytest.approx(1.0)
    assert found.rewards == 150
    assert found.known > 0.9
    assert found.noise == pytest.approx(0.1, rel=0.3)
    assert found.noise_weight == 1.0
    liar = policy.explain(5)
    assert liar.noise_weight < 0.01
    assert "noisier than others" in str(liar)
    assert found.scores is None
    for user in range(6):
        one = policy.explain(user)
        other = one.alone if one.alone != one.weight else 0.0
        assert one.weight + other + one.elsewhere == pytest.approx(1.0)
        assert f"decisions follow clusters by {100 - round(100 * one.hierarchy)} %" in str(one)


def test_nobody_else_explains_and_wrong_arguments_are_refused() -> None:
    assert not hasattr(coterie.LinUCBOne(2, 2, beta=0.1), "explain")
    with pytest.raises(coterie.ArgumentError):
        coterie.AutoCLUB(2, 2).explain(2)
    with pytest.raises(coterie.ArgumentError):
        coterie.AutoCLUB(2, 2).explain(0, [[1.0]])


def test_of_a_newcomer_nothing_is_known() -> None:
    found = coterie.AutoCLUB(3, 2).explain(0)
    assert (found.rewards, found.known, found.influence.sum()) == (0, 0.0, 0.0)


def test_the_effect_of_an_item_has_a_name_of_its_own() -> None:
    """Items share vectors: what tells them apart is their effects, by id."""
    policy, rng = coterie.AutoCLUB(20, 3), np.random.default_rng(4)
    vectors, better = np.repeat(rng.normal(size=(10, 3)), 3, axis=0), rng.normal(size=30)
    for _ in range(2000):
        user, items = int(rng.integers(20)), rng.choice(30, 6, replace=False)
        item = int(items[policy.recommend(user, vectors[items], items=items)])
        policy.update(user, vectors[item], float(better[item] + 0.3 * rng.normal()), item=item)
    ids = np.arange(30)
    parts, scores = policy.explain(3, vectors, items=ids).scores, policy.scores(3, vectors, items=ids)
    assert parts is not None
    np.testing.assert_allclose(np.sum(parts, axis=0), scores.ucb, atol=1e-12)
    assert np.corrcoef(parts.items, better)[0, 1] > 0.5
    assert not parts.repeats.any()
    with pytest.raises(coterie.ArgumentError, match="arms must be given"):
        policy.explain(3, items=ids)
