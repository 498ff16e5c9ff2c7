"""Items have ids: checked by all policies, learnt from by those that learn effects of items."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import ALL, EFFECTS, SAMPLING, changed, is_one_sentence, make, memory, play
from coterie import ArgumentError, LinearBandit
from coterie.types import Floats

ARMS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
WRONG_OFFERS: dict[str, Any] = {
    "too few": [1, 2],
    "too many": [1, 2, 3, 4],
    "one twice": [1, 2, 1],
    "negative": [0, -1, 2],
    "too large": [0, 1, 2**62],
    "floats": [0.0, 1.0, 2.0],
    "truth values": [True, False, True],
    "a truth value": [5, True, 7],
    "a truth value of NumPy": (5, np.bool_(True), 7),
    "names": ["a", "b", "c"],
    "nothing": [None, None, None],
    "a single number": 3,
    "a matrix": [[0, 1, 2]],
}
WRONG_ITEMS: dict[str, Any] = {
    "negative": -1,
    "too large": 2**62,
    "a float": 1.0,
    "a truth value": True,
    "a name": "a",
    "a list": [1],
}
SHARED = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.2, 0.0, 0.1]])
"""Three items with the same vector, and one with another."""


@pytest.mark.parametrize("example", ALL)
def test_wrong_ids_are_refused_by_one_sentence_and_nothing_changes(example: str) -> None:
    policy = make(example)
    play(policy, 10)
    before = memory(policy)
    calls: list[Any] = []
    for wrong in WRONG_OFFERS.values():
        calls += [
            lambda w=wrong: policy.recommend(0, ARMS, items=w),
            lambda w=wrong: policy.recommend_list(0, ARMS, 2, items=w),
            lambda w=wrong: policy.recommend_many([0, 1], ARMS, items=w),
            lambda w=wrong: policy.recommend_pair(0, ARMS, items=w),
            lambda w=wrong: policy.scores(0, ARMS, items=w),
            lambda w=wrong: policy.update_list(0, ARMS, None, items=w),
        ]
    for name, wrong in WRONG_OFFERS.items():
        if name != "one twice":  # rewards of one item may come together
            calls.append(lambda w=wrong: policy.update_many([0, 1, 2], ARMS, np.ones(3), items=w))
    calls += [lambda w=wrong: policy.update(0, ARMS[0], 1.0, item=w) for wrong in WRONG_ITEMS.values()]
    calls += [
        lambda w=wrong: policy.update_pair(0, *ARMS[:2], items=w)
        for wrong in ([0], [0, -1], [0, 0.5], [7, True])
    ]
    for call in calls:
        with pytest.raises(ArgumentError) as caught:
            call()
        assert is_one_sentence(caught.value)
    assert changed(before, policy) == []


@pytest.mark.parametrize("example", [one for one in ALL if one not in (*EFFECTS, "COFIBA")])
def test_policies_without_effects_ignore_ids(example: str) -> None:
    with_ids, without = make(example), make(example)
    rng = np.random.default_rng(3)
    for _ in range(40):
        user, arms, reward = int(rng.integers(6)), rng.normal(size=(4, 3)), float(rng.normal())
        arm = with_ids.recommend(user, arms, items=[7, 3, 9, 1])
        assert arm == without.recommend(user, arms)
        with_ids.update(user, arms[arm], reward, item=[7, 3, 9, 1][arm])
        without.update(user, arms[arm], reward)
    assert changed(with_ids, without) == []


def sell(
    policy: LinearBandit, vectors: Floats, rounds: int = 1200, best: int = 1, first: int = 0
) -> list[int]:
    """Offer all items in every round; only one of them is good, which its vector does not say."""
    rng = np.random.default_rng(first + 1)
    ids, chosen = 10**12 + np.arange(len(vectors)), []
    for _ in range(rounds):
        user = int(rng.integers(policy.n_users))
        arm = policy.recommend(user, vectors, items=ids)
        if rng.random() < 0.5:
            arm = int(rng.integers(len(vectors)))
        policy.update(user, vectors[arm], float(arm == best) + 0.1 * rng.normal(), item=int(ids[arm]))
        chosen.append(arm)
    return chosen


@pytest.mark.parametrize("example", EFFECTS)
def test_of_items_with_equal_vectors_the_better_one_is_preferred(example: str) -> None:
    policy = make(example)
    chosen = sell(policy, SHARED)
    assert chosen[-200:].count(1) > 100  # half are drawn: 125 in expectation at best
    mean = policy.scores(0, SHARED, items=10**12 + np.arange(4)).mean
    assert mean[1] > mean[0] + 0.4
    assert mean[1] > mean[2] + 0.4


@pytest.mark.parametrize("example", EFFECTS)
def test_an_item_keeps_its_effect_when_its_vector_changes(example: str) -> None:
    policy = make(example)
    sell(policy, SHARED)
    ids, moved = 10**12 + np.arange(3), np.tile([0.1, 0.2, 0.3], (3, 1))
    mean = policy.scores(0, moved, items=ids).mean
    assert mean[1] > max(mean[0], mean[2]) + 0.4
    unknown = policy.scores(0, moved, items=[5, 6, 7])
    assert np.ptp(unknown.mean) == np.ptp(unknown.width) == 0.0
    assert unknown.width[0] > policy.scores(0, moved, items=ids).width[1]  # new items are tried


@pytest.mark.parametrize("example", EFFECTS)
def test_without_ids_equal_vectors_are_one_item(example: str) -> None:
    """Different vectors with ids or without: the same decisions."""
    vectors = np.random.default_rng(4).normal(size=(12, 3))
    effects = 2.0 * np.random.default_rng(5).normal(size=12)
    named, plain, rng = make(example), make(example), np.random.default_rng(6)
    for _ in range(250):
        user, items = int(rng.integers(6)), rng.permutation(12)[:5]
        arm = named.recommend(user, vectors[items], items=items)
        assert arm == plain.recommend(user, vectors[items])
        x, reward = vectors[items[arm]], float(effects[items[arm]] + 0.1 * rng.normal())
        named.update(user, x, reward, item=int(items[arm]))
        plain.update(user, x, reward)
    assert named.learner.items is not None
    assert plain.learner.items is not None
    assert named.learner.items.variance == plain.learner.items.variance
    assert named.learner.items.forgettable == 0 < plain.learner.items.forgettable == plain.learner.items.used


@pytest.mark.parametrize("example", EFFECTS)
def test_batches_are_exactly_single_calls(example: str) -> None:
    one, many = make(example), make(example)
    sell(one, SHARED, 120)
    sell(many, SHARED, 120)
    rng = np.random.default_rng(8)
    users, items, rewards = rng.integers(6, size=30), rng.integers(4, size=30), rng.normal(size=30)
    for user, item, reward in zip(users.tolist(), items.tolist(), rewards.tolist(), strict=True):
        one.update(user, SHARED[item], reward, item=item)
    many.update_many(users, SHARED[items], rewards, items=items)
    assert changed(one, many) == []
    if example not in SAMPLING and not one.exploring:
        chosen = [one.recommend(int(user), SHARED, items=[4, 5, 6, 7]) for user in users]
        assert many.recommend_many(users, SHARED, items=[4, 5, 6, 7]).tolist() == chosen
        tiled = np.tile(SHARED, (30, 1, 1))
        again = many.recommend_many(users, tiled, items=np.tile([4, 5, 6, 7], (30, 1)))
        assert again.tolist() == chosen
        assert many.recommend_list(0, SHARED, 4, items=[4, 5, 6, 7])[0] == one.recommend(
            0, SHARED, items=[4, 5, 6, 7]
        )


@pytest.mark.parametrize("example", EFFECTS)
def test_copies_and_snapshots_continue_with_the_same_effects(example: str, tmp_path: Path) -> None:
    policy = make(example)
    sell(policy, SHARED, 150)
    policy.save(tmp_path / "policy")
    twins = [pickle.loads(pickle.dumps(policy)), coterie.load(tmp_path / "policy")]
    wanted = sell(policy, SHARED, 60, first=9)
    for twin in twins:
        assert sell(twin, SHARED, 60, first=9) == wanted
        assert changed(policy, twin) == []


@pytest.mark.parametrize("example", EFFECTS)
def test_lists_teach_effects_and_duels_do_not(example: str) -> None:
    policy = make(example)
    policy.update_pair(0, ARMS[0], ARMS[1], items=[0, 1])
    assert policy.learner.items is not None
    assert policy.learner.items.used == 0
    policy.update_list(0, ARMS, 1, items=[7, 8, 9])
    assert policy.learner.items.used == 2  # what is below a click was not seen
    assert policy.recommend_pair(0, ARMS, items=[7, 8, 9]) == policy.recommend_pair(0, ARMS)


def test_memory_grows_with_items_that_were_rewarded() -> None:
    policy = make("CLUB items")
    few = policy.memory().parts["effects of items"]
    policy.update_many(np.zeros(1000, int), np.ones((1000, 3)), np.ones(1000), items=np.arange(1000) * 10**9)
    many = policy.memory().parts["effects of items"]
    assert few == 24 * 16
    assert 24 * 2000 <= many <= 24 * 4096
    assert "effects of items" not in make("CLUB").memory().parts
