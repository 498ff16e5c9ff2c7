"""What every policy of the registry promises, whatever it clusters by."""

from __future__ import annotations

import inspect
from typing import cast

import numpy as np
import pytest

from contracts.examples import (
    ALL,
    EXAMPLES,
    ORDERLY,
    POPULARITY,
    SCORING,
    World,
    changed,
    feedback,
    make,
    memory,
    past_exploration,
    play,
)
from coterie import Scores
from coterie.policies import REGISTRY
from inspection import array_names, state_array

POOLED = ("CascadeLinUCB", "LinTSOne", "LinTSOracle", "LinUCBOne", "LinUCBOracle")
"""Policies whose estimates are those of told clusters."""
LEVELLED = ("Hier", "AutoCLUB", *POPULARITY)
"""These learn the common level of rewards, whatever the vector."""


def test_every_policy_of_the_registry_has_an_example() -> None:
    assert {example.split()[0] for example in EXAMPLES} == set(REGISTRY)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_registry_entry_makes_the_policy_that_it_names(name: str) -> None:
    entry = REGISTRY[name]
    assert entry.name == name == make(name).name
    assert entry.summary
    assert entry.use_when
    assert ">>>" in (inspect.getdoc(entry.make) or "")


@pytest.mark.parametrize("example", SCORING)
def test_a_decision_is_the_first_best_score_whenever_it_does_not_explore(example: str) -> None:
    policy = past_exploration(make(example))
    world = World(policy.dim, n_arms=9, seed=3)
    for t in range(80):
        arms = world.arms()
        arms[5] = arms[2]
        if t % 3 == 0:
            arms[7] = 0.0
        for user in range(policy.n_users):
            if not policy.exploring:
                assert policy.recommend(user, arms) == int(np.argmax(policy.scores(user, arms).ucb))
        policy.update(t % policy.n_users, arms[0], world.reward(t, arms[0]))


@pytest.mark.parametrize("example", ALL)
def test_scores_are_mean_plus_width_and_a_width_is_negative_for_the_cautious_alone(example: str) -> None:
    policy = past_exploration(make(example))
    arms = World(policy.dim, n_arms=20).arms()
    scores = policy.scores(1, arms)
    assert isinstance(scores, Scores)
    assert np.array_equal(scores.ucb, scores.mean + scores.width)
    assert np.all(scores.width <= 0 if example in ("OffC2LUB", "OffCLUB") else scores.width >= 0)
    assert scores.mean.shape == scores.width.shape == (20,)


@pytest.mark.parametrize("example", ALL)
def test_looking_changes_nothing(example: str) -> None:
    policy = make(example)
    for rounds in (0, 25, 300):
        play(policy, rounds)
        before = memory(policy)
        for user in range(policy.n_users):
            policy.scores(user, np.eye(policy.dim))
            policy.cluster_of(user)
        _ = policy.labels(), policy.exploring, policy.rounds, policy.estimates, policy.pulls, repr(policy)
        assert changed(before, policy) == []


@pytest.mark.parametrize("example", ALL)
def test_looking_does_not_change_what_is_decided_later(example: str) -> None:
    watched, alone = make(example), make(example)
    world = World(watched.dim)
    for t in range(400):
        arms = world.arms()
        watched.scores((t * 5) % 6, arms)
        user, x = t % 6, arms[0]
        watched.update(user, x, reward := world.reward(user, x))
        alone.update(user, x, reward)
        assert np.array_equal(watched.scores(user, arms).ucb, alone.scores(user, arms).ucb)


@pytest.mark.parametrize("example", ALL)
def test_a_decision_leaves_no_trace_but_the_numbers_drawn(example: str) -> None:
    asked, told = make(example), make(example)
    users, xs, rewards = feedback(asked, 300)
    for user, x, reward in zip(users, xs, rewards, strict=True):
        asked.recommend(int(user), np.eye(asked.dim))
        asked.update(int(user), x, float(reward))
        told.update(int(user), x, float(reward))
    assert set(changed(asked, told)) <= {"generator"}


@pytest.mark.parametrize("example", ALL)
def test_many_updates_are_the_same_as_one_by_one(example: str) -> None:
    many, single = make(example), make(example)
    for seed, rounds in enumerate((1, 70, 250)):
        users, xs, rewards = feedback(many, rounds, seed=seed)
        many.update_many(users, xs, rewards)
        for user, x, reward in zip(users, xs, rewards, strict=True):
            single.update(int(user), x, float(reward))
        assert changed(many, single) == []


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("rounds", [0, 100])
def test_many_decisions_are_the_same_as_one_by_one_numbers_drawn_included(example: str, rounds: int) -> None:
    many, single = make(example), make(example)
    for policy in (many, single):
        play(policy, rounds)
    world = World(many.dim, n_arms=4)
    users, sets = world.rng.integers(many.n_users, size=50), np.array([world.arms() for _ in range(50)])
    one_by_one = [single.recommend(int(u), arms) for u, arms in zip(users, sets, strict=True)]
    shared = [single.recommend(int(u), sets[0]) for u in users]
    assert many.recommend_many(users, sets).tolist() == one_by_one
    assert many.recommend_many(users, sets[0]).tolist() == shared
    assert changed(many, single) == []


@pytest.mark.parametrize("example", ALL)
def test_nobody_asking_and_nothing_told_is_fine(example: str) -> None:
    policy = make(example)
    before = memory(policy)
    assert policy.recommend_many([], np.eye(3)).shape == (0,)
    policy.update_many([], np.empty((0, 3)), [])
    assert changed(before, policy) == []


@pytest.mark.parametrize("example", ALL)
def test_two_policies_of_the_same_seed_agree(example: str) -> None:
    one, other = make(example), make(example)
    assert play(one, 400) == play(other, 400)
    assert changed(one, other) == []


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize(
    ("n_users", "dim", "n_arms"), [(1, 1, 1), (1, 3, 4), (5, 1, 3), (2, 2, 1), (70, 2, 3)]
)
def test_the_smallest_sizes_work(example: str, n_users: int, dim: int, n_arms: int) -> None:
    policy = make(example, n_users=n_users, dim=dim)
    chosen = play(policy, 150, n_arms=n_arms)
    assert set(chosen) <= set(range(n_arms))
    assert policy.rounds == 150
    assert policy.pulls.sum() == 150
    assert policy.labels().shape == (n_users,)
    assert policy.estimates.shape == (n_users, dim)
    assert np.all(np.isfinite(policy.estimates))


@pytest.mark.parametrize("example", ALL)
def test_zero_vectors_teach_nothing_but_count(example: str) -> None:
    policy = make(example)
    for t in range(30):
        policy.update(t % 6, np.zeros(3), 1.0)
    assert policy.rounds == 30
    assert np.all(policy.estimates == 0)
    assert np.all(policy.pulls == 5)
    scores = policy.scores(0, np.zeros((4, 3)))
    if example.startswith(LEVELLED) and not example.endswith("plain"):
        assert np.all(scores.ucb == scores.ucb[0])
    else:
        assert np.all(scores.ucb == 0)
    if not policy.exploring and example != "ItemTS":  # which draws a sample for each arm
        assert policy.recommend(0, np.zeros((4, 3))) == 0


@pytest.mark.parametrize("example", SCORING)
def test_the_first_of_repeated_arms_wins(example: str) -> None:
    policy = make(example)
    arms = World(policy.dim, n_arms=6).arms()
    policy.update_many(np.zeros(6, int), arms, np.linspace(0.0, 0.5, 6))  # no two are the same to ItemUCB
    past_exploration(policy)
    for user in range(policy.n_users):
        best = policy.recommend(user, arms)
        twice = np.concatenate([arms, arms, arms])
        assert policy.recommend(user, twice) == best
        assert policy.recommend(user, twice[best + 1 :]) == 5
        assert policy.recommend(user, np.tile(arms[best], (8, 1))) == 0


@pytest.mark.parametrize("example", ALL)
def test_users_never_seen_have_the_estimate_zero(example: str) -> None:
    policy = make(example)
    assert np.all(policy.estimates == 0)
    assert np.all(policy.pulls == 0)
    for t in range(40):
        policy.update(2 * (t % 2), np.eye(3)[t % 3], 0.7)
    if example.split()[0] not in (*POOLED, "GOBLin", "GraphUCB"):
        assert np.all(policy.estimates[[1, 3, 4, 5]] == 0)
    assert policy.pulls.tolist() == [20, 0, 20, 0, 0, 0]
    if not example.split()[0].endswith(("One", "CascadeLinUCB")):
        assert np.all(policy.estimates[5] == 0)


@pytest.mark.parametrize("example", ALL)
def test_whatever_holds_the_numbers_the_decision_is_the_same(example: str) -> None:
    policy = past_exploration(make(example))
    arms = np.array([[1, 0, 2], [0, 1, -1], [1, 1, 0]], np.float64)
    wanted = policy.scores(3, arms)
    wide = np.zeros((3, 6))
    wide[:, ::2] = arms
    readonly = arms.copy()
    readonly.flags.writeable = False
    int_like = cast(int, np.int64(3))
    same = (
        arms.tolist(),
        tuple(map(tuple, arms.tolist())),
        arms.astype(np.int32),
        arms.astype(np.int8),
        arms.astype(np.float32),
        arms.astype(np.float16),
        arms.astype(">f8"),
        np.asfortranarray(arms),
        wide[:, ::2],
        readonly,
    )
    for held in same:
        assert np.array_equal(policy.scores(3, held).ucb, wanted.ucb)
        if example in SCORING:
            assert policy.recommend(int_like, held) == int(np.argmax(wanted.ucb))


@pytest.mark.parametrize("example", ALL)
def test_whatever_holds_the_feedback_the_lesson_is_the_same(example: str) -> None:
    plain, others = make(example), make(example)
    x, user, reward = np.array([1.0, 0.0, -2.0]), cast(int, np.uint8(1)), cast(float, np.float32(1.0))
    wide = np.zeros(6)
    wide[::2] = x
    for held in ([1, 0, -2], x.astype(np.float32), x.astype(np.int16), wide[::2], (1, 0, -2)):
        plain.update(1, x, 1.0)
        others.update(user, held, reward)
    assert changed(plain, others) == []


@pytest.mark.parametrize("example", ALL)
def test_what_comes_in_is_neither_modified_nor_kept(example: str) -> None:
    policy, twin = make(example), make(example)
    users, xs, rewards = feedback(policy, 40)
    copies = users.copy(), xs.copy(), rewards.copy()
    arms = np.eye(3)
    policy.recommend(0, arms)
    twin.recommend(0, arms.copy())
    policy.update_many(users, xs, rewards)
    policy.update(0, x := xs[0].copy(), 0.5)
    assert all(np.array_equal(a, b) for a, b in zip((users, xs, rewards), copies, strict=True))
    assert np.array_equal(arms, np.eye(3))
    before, held = memory(policy), [state_array(policy, name) for name in array_names(policy)]
    for given in (users, xs, rewards, arms, x):
        assert not any(np.shares_memory(given, array) for array in held)
        given[...] = 3
    assert changed(before, policy) == []


@pytest.mark.parametrize("example", ALL)
def test_what_goes_out_cannot_be_written_into(example: str) -> None:
    policy = make(example)
    play(policy, 20)
    scores = policy.scores(0, np.eye(3))
    before = memory(policy)
    for handed in (policy.estimates, policy.pulls):
        with pytest.raises(ValueError, match="read-only"):
            handed[0] = 9
    for owned in (policy.labels(), policy.cluster_of(0), *scores):
        owned[...] = 77
    assert changed(before, policy) == []


@pytest.mark.parametrize("example", ALL)
def test_labels_are_numbered_by_appearance_and_a_cluster_holds_its_user(example: str) -> None:
    policy = past_exploration(make(example))
    labels = policy.labels()
    assert labels.dtype == np.int64
    seen: list[int] = []
    seen.extend(int(label) for label in labels if label not in seen)
    assert seen == sorted(seen)
    for user in range(policy.n_users):
        cluster = policy.cluster_of(user).tolist()
        assert user in cluster
        assert cluster == sorted(set(cluster))
        if policy.name not in ("PhaseUniCLUB", "RCLUMB", "DyClu", "LOCB"):  # whose clusters overlap
            assert cluster == np.flatnonzero(labels == labels[user]).tolist()
        assert all(user in policy.cluster_of(other) for other in cluster)


@pytest.mark.parametrize("example", ALL)
def test_late_batched_and_unordered_feedback_is_taken_in(example: str) -> None:
    prompt, late = make(example), make(example)
    users, xs, rewards = feedback(prompt, 120)
    prompt.update_many(users, xs, rewards)
    order = np.random.default_rng(0).permutation(120)
    for batch in np.array_split(order, 7):
        late.update_many(users[batch], xs[batch], rewards[batch])
    assert late.rounds == prompt.rounds == 120
    assert np.array_equal(late.pulls, prompt.pulls)
    if example not in ORDERLY:
        assert np.allclose(late.estimates, prompt.estimates, atol=1e-10)
