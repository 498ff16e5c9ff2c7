"""DynUCB against its naive transcription: the same arms and clusters, for single arms and for lists."""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from coterie.seeding import stream
from policies.agreeing import ROUNDS, SEEDS, TIE, Fast, Pair, clusters
from policies.test_agreement_lists import show_all
from reference import dynucb
from worlds import Round, World, world

pytestmark = pytest.mark.slow


def play_dynucb(fast: Fast, slow: dynucb.DynUCB, w: World, turn: Round) -> None:
    scores = slow.scores(turn.user, turn.arms)
    arm = fast.recommend(turn.user, turn.arms)
    assert scores[arm] >= scores.max() - TIE
    np.testing.assert_allclose(fast.scores(turn.user, turn.arms).ucb, scores, atol=1e-8)
    reward = w.reward(turn, arm)
    fast.update(turn.user, turn.arms[arm], reward)
    slow.update(turn.user, turn.arms[arm], reward)


def walk_dynucb(w: World, seed: int) -> tuple[int, dynucb.DynUCB]:
    """Play on both up to the first tie; returns how many rounds were compared. Some users come late."""
    late = seed % 3 if w.n_users > 3 else 0
    early, n_clusters, half = w.n_users - late, 1 + seed % 5, len(w.rounds) // 2
    fast = coterie.DynUCB(early, w.dim, n_clusters=n_clusters, alpha=0.4, ridge=w.ridge, seed=seed)
    slow = dynucb.DynUCB(
        early, w.dim, n_clusters=n_clusters, ridge=w.ridge, alpha=0.4, rng=stream(seed, "clusters")
    )
    assert clusters(fast) == slow.clusters()
    for t, turn in enumerate(w.rounds):
        if t == half and late:
            fast.add_users(late)
            slow.welcome(late)
            assert clusters(fast) == slow.clusters()
        play_dynucb(fast, slow, w, turn._replace(user=turn.user % slow.n_users))
        if slow.margin < TIE:
            return t, slow
        assert clusters(fast) == slow.clusters()
    return len(w.rounds), slow


def test_dynucb_agrees_with_its_reference_while_users_move() -> None:
    compared = moves = 0
    for seed in SEEDS:
        rounds, slow = walk_dynucb(world(seed, ROUNDS), seed)
        compared += rounds
        moves += slow.moves
    assert compared > 0.97 * len(SEEDS) * ROUNDS
    assert moves > 400


def dynucb_lists(w: World, seed: int) -> Pair:
    n_clusters = 1 + seed % 5
    fast = coterie.DynUCB(w.n_users, w.dim, n_clusters=n_clusters, alpha=0.4, ridge=w.ridge, seed=seed)
    slow = dynucb.ListDynUCB(
        w.n_users, w.dim, n_clusters=n_clusters, ridge=w.ridge, alpha=0.4, rng=stream(seed, "clusters")
    )
    return Pair(fast, slow)


def test_lists_of_dynucb_agree_with_their_reference_while_users_move() -> None:
    counted, played = show_all(dynucb_lists, 80, lambda w: w)
    assert counted.decided > 0.9 * len(SEEDS) * 80
    assert sum(slow.moves for slow in played if isinstance(slow, dynucb.ListDynUCB)) > 150
