"""LOCB against its naive transcription: the same arms and clusters, for single arms and for lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import coterie
from coterie.seeding import stream
from policies.agreeing import ROUNDS, SEEDS, TIE, Fast, Pair, alpha, clusters, low, radius
from policies.test_agreement_lists import show_all
from reference import locb
from worlds import Round, World, world

pytestmark = pytest.mark.slow


class Both(NamedTuple):
    fast: coterie.LinearBandit
    slow: locb.LOCB


def both(n_users: int, w: World, seed: int, *, growing: bool = False) -> Both:
    n_seeds, gamma = (1, 3, 5, 60)[seed % 4], (0.2, 1.5)[seed % 2]
    confidence = coterie.Tuned(alpha=alpha(seed), beta=0.4)
    fast = coterie.LOCB(
        n_users,
        w.dim,
        confidence=confidence,
        n_seeds=n_seeds,
        gamma=gamma,
        growing=growing,
        ridge=w.ridge,
        seed=seed,
    )
    order = np.argsort(stream(seed, "seeds").random(n_users))
    slow = locb.LOCB(
        n_users,
        w.dim,
        seeds=sorted(order[:n_seeds].tolist()),
        ridge=w.ridge,
        beta=0.4,
        radius=radius(seed),
        gamma=gamma,
    )
    return Both(fast, slow)


def play(fast: Fast, slow: locb.LOCB, w: World, turn: Round) -> None:
    scores = slow.scores(turn.user, turn.arms)
    arm = fast.recommend(turn.user, turn.arms)
    assert scores[arm] >= scores.max() - TIE
    np.testing.assert_allclose(fast.scores(turn.user, turn.arms).ucb, scores, atol=1e-8)
    reward = w.reward(turn, arm)
    fast.update(turn.user, turn.arms[arm], reward)
    slow.update(turn.user, turn.arms[arm], reward)


def walk(w: World, seed: int) -> tuple[int, locb.LOCB]:
    """Play on both up to the first tie; returns how many rounds were compared. Some users come late."""
    late = seed % 3 if w.n_users > 3 else 0
    pair, half = both(w.n_users - late, w, seed), len(w.rounds) // 2
    for t, turn in enumerate(w.rounds):
        if t == half and late:
            pair.fast.add_users(late)
            pair.slow.welcome(late)
        play(pair.fast, pair.slow, w, turn._replace(user=turn.user % pair.slow.n_users))
        if pair.slow.margin < TIE:
            return t, pair.slow
        assert clusters(pair.fast) == pair.slow.clusters()
    return len(w.rounds), pair.slow


def test_locb_agrees_with_its_reference_while_users_leave_and_join() -> None:
    compared = 0
    events = dict.fromkeys(("left", "joined", "final", "alone"), 0)
    for seed in SEEDS:
        rounds, slow = walk(world(seed, ROUNDS), seed)
        compared += rounds
        for name in events:
            events[name] += getattr(slow, name)
    assert compared > 0.97 * len(SEEDS) * ROUNDS
    assert events["left"] > 300
    assert events["joined"] > 8
    assert events["final"] > 20
    assert events["alone"] > 200


def test_users_whom_noise_drove_away_join_again_as_in_the_reference() -> None:
    left = joined = 0
    for seed in (3, 6, 7, 10):
        rounds, slow = walk(low(world(seed, 300, noise=1.0)), seed)
        assert rounds == 300
        left, joined = left + slow.left, joined + slow.joined
    assert left > 200
    assert joined > 80


def locb_lists(w: World, seed: int) -> Pair:
    return Pair(*both(w.n_users, w, seed))


def test_lists_of_locb_agree_with_their_reference_while_users_leave() -> None:
    counted, played = show_all(locb_lists, 80, lambda w: w)
    assert counted.decided > 0.97 * len(SEEDS) * 80
    assert sum(slow.left for slow in played if isinstance(slow, locb.LOCB)) > 100
