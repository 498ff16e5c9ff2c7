"""What every policy does with pairs of arms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import ALL, changed, is_one_sentence, make, memory, past_exploration
from coterie.policies.protocols import PairPolicy


def duel(policy: coterie.LinearBandit, rounds: int, seed: int = 3) -> list[tuple[int, int]]:
    """Let users with two tastes compare; the pairs that were shown."""
    rng, tastes, shown = np.random.default_rng(seed), np.eye(3)[:2], []
    for _ in range(rounds):
        user, arms = int(rng.integers(policy.n_users)), rng.normal(size=(6, 3))
        pair = policy.recommend_pair(user, arms)
        won, lost = sorted(pair, key=lambda arm: -float(arms[arm] @ tastes[user % 2]))
        policy.update_pair(user, arms[won], arms[lost])
        shown.append(pair)
    return shown


@pytest.mark.parametrize("example", ALL)
def test_a_pair_is_the_best_arm_and_its_challenger(example: str) -> None:
    policy = past_exploration(make(example))
    assert isinstance(policy, PairPolicy)
    arms = np.array([[1.0, 0.0, 0.2], [0.0, 1.0, 0.0], [0.5, 0.5, -1.0], [-1.0, 0.3, 0.0]])
    for user in range(policy.n_users):
        if policy.exploring:
            break
        before = memory(policy)
        first, second = policy.recommend_pair(user, arms)
        assert changed(before, policy) == []
        assert first == int(np.argmax(policy.scores(user, arms).mean))
        assert second == int(np.argmax(policy.scores(user, arms - arms[first]).ucb))


@pytest.mark.parametrize("example", ALL)
def test_duels_are_learnt_and_a_restored_policy_goes_on(example: str, tmp_path: Path) -> None:
    policy = make(example)
    duel(policy, 60)
    assert policy.rounds == 60
    policy.save(tmp_path / "kept")
    restored = coterie.load(tmp_path / "kept")
    assert duel(policy, 40, seed=9) == duel(restored, 40, seed=9)
    assert changed(policy, restored) == []


@pytest.mark.parametrize("example", ALL)
def test_an_arm_against_itself_teaches_nothing_but_counts(example: str) -> None:
    policy = make(example)
    policy.update_pair(1, [0.5, 0.5, 0.0], [0.5, 0.5, 0.0])
    assert policy.rounds == 1
    assert np.all(policy.estimates == 0)
    assert policy.recommend_pair(0, [[1.0, 0.0, 0.0]]) == (0, 0)


def test_who_is_named_first_does_not_matter() -> None:
    one, two = (coterie.AutoCLUB(3, 2) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(300):  # the better arm wins always: an intercept must not learn that winners win
        user, (a, b) = int(rng.integers(3)), rng.normal(size=(2, 2))
        won, lost = (a, b) if a[0] > b[0] else (b, a)
        one.update_pair(user, won, lost)
        two.update_pair(user, won.tolist(), tuple(lost))
    assert changed(one, two) == []
    assert one.recommend_pair(0, [[0.1, 0.0], [1.0, 0.0], [-1.0, 0.0]])[0] == 1


def test_exploring_policies_show_two_different_arms_at_random() -> None:
    policy = coterie.UniCLUB(3, 3, confidence=coterie.Tuned(alpha=1.0, beta=0.1, explore=500), seed=4)
    pairs = [policy.recommend_pair(0, np.eye(3)) for _ in range(200)]
    assert {frozenset(pair) for pair in pairs} == {frozenset(p) for p in ((0, 1), (0, 2), (1, 2))}


WRONG: list[tuple[str, Any, Any, Any]] = [
    ("user", 9, [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ("winner", 0, [1.0, 0.0], [0.0, 0.0, 0.0]),
    ("loser", 0, [1.0, 0.0, 0.0], [0.0, np.nan, 0.0]),
    ("winner", 0, "abc", [0.0, 0.0, 0.0]),
    ("winner − loser", 0, [9e5, 0.0, 0.0], [-9e5, 0.0, 0.0]),
    ("winner", 0, [1e308, 0.0, 0.0], [-1e308, 0.0, 0.0]),
]


@pytest.mark.parametrize(("what", "user", "winner", "loser"), WRONG)
@pytest.mark.parametrize("example", ["COLDB", "CLUB", "AutoCLUB"])
def test_wrong_duels_are_refused_and_change_nothing(
    example: str, what: str, user: Any, winner: Any, loser: Any
) -> None:
    policy = make(example)
    duel(policy, 10)
    before = memory(policy)
    with pytest.raises(coterie.ArgumentError, match=what) as refused:
        policy.update_pair(user, winner, loser)
    assert is_one_sentence(refused.value)
    assert changed(before, policy) == []
    with pytest.raises(coterie.ArgumentError, match="arms"):
        policy.recommend_pair(0, [[1.0, np.inf, 0.0]])
    with pytest.raises(coterie.ArgumentError, match="arms"):
        policy.recommend_pair(0, [[9e5, 0.0, 0.0], [-9e5, 0.0, 0.0]])
    assert changed(before, policy) == []
