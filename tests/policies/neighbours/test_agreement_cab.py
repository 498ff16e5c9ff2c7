"""CAB against its naive transcription: the same arms, and the same estimates of everybody."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import coterie
from policies.agreeing import SEEDS, TIE, Fast, Pair, small
from policies.test_agreement_lists import show_all
from reference import cab
from worlds import Round, World, world

pytestmark = pytest.mark.slow

ROUNDS = 100


class Both(NamedTuple):
    fast: coterie.LinearBandit
    slow: cab.CAB


def both(n_users: int, w: World, seed: int) -> Both:
    alpha, gamma = (0.05, 0.15, 0.4)[seed % 3], (0.2, 0.5, 2.0, 0.0)[seed % 4]
    fast = coterie.CAB(n_users, w.dim, alpha=alpha, gamma=gamma, ridge=w.ridge, seed=seed)
    return Both(fast, cab.CAB(n_users, w.dim, ridge=w.ridge, alpha=alpha, gamma=gamma))


def play(fast: Fast, slow: cab.CAB, w: World, turn: Round) -> bool:
    """Play a round on both; returns whether a comparison was a tie."""
    scores = slow.scores(turn.user, turn.arms)
    if slow.margin < TIE:
        return True
    arm = fast.recommend(turn.user, turn.arms)
    assert scores[arm] >= scores.max() - TIE
    np.testing.assert_allclose(fast.scores(turn.user, turn.arms).ucb, scores, atol=1e-8)
    reward = w.reward(turn, arm)
    fast.update(turn.user, turn.arms[arm], reward)
    slow.update(turn.user, turn.arms[arm], reward)
    return slow.margin < TIE


def walk(w: World, seed: int) -> tuple[int, cab.CAB]:
    """Play on both up to the first tie; returns how many rounds were compared. Some users come late."""
    late = seed % 3 if w.n_users > 3 else 0
    pair, half = both(w.n_users - late, w, seed), len(w.rounds) // 2
    for t, turn in enumerate(w.rounds):
        if t == half and late:
            pair.fast.add_users(late)
            pair.slow.welcome(late)
        if play(pair.fast, pair.slow, w, turn._replace(user=turn.user % pair.slow.n_users)):
            return t, pair.slow
        np.testing.assert_allclose(pair.fast.estimates, pair.slow.estimates(), atol=1e-8)
        assert pair.fast.pulls.tolist() == pair.slow.served
    return len(w.rounds), pair.slow


def test_cab_agrees_with_its_reference_while_rewards_are_shared() -> None:
    compared = shared = strangers = 0
    for seed in SEEDS:
        rounds, slow = walk(small(world(seed, ROUNDS)), seed)
        compared += rounds
        shared += slow.shared
        strangers += slow.strangers
    assert compared > 0.97 * len(SEEDS) * ROUNDS
    assert shared > 1000
    assert strangers > 10_000


def cab_lists(w: World, seed: int) -> Pair:
    return Pair(*both(w.n_users, w, seed))


def test_lists_of_cab_agree_with_their_reference() -> None:
    counted, played = show_all(cab_lists, 40, small)
    assert counted.decided > 0.95 * len(SEEDS) * 40
    assert sum(slow.shared for slow in played if isinstance(slow, cab.CAB)) > 300
