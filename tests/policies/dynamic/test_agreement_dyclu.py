"""DyClu against its naive transcription: the same arms, neighbours, links and changes."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

import coterie
from inspection import state_arrays
from policies.agreeing import JUMPING_DIM, JUMPING_USERS, SEEDS, Pair, clusters, jumping, low, small
from policies.test_agreement_lists import show_all
from reference import dyclu
from worlds import Array, Round, World, world

pytestmark = pytest.mark.slow

ROUNDS = 100
CLOSE = 1e-6
"""Nearer to its limit than this, rounding decides a test."""


class Both(NamedTuple):
    fast: coterie.LinearBandit
    slow: dyclu.DyClu


def settings(seed: int) -> dict[str, Any]:
    """σ given or estimated, a given or theoretical factor, with and without detector and outdated models."""
    return {
        "beta": (0.4, None)[seed % 2],
        "level": (0.01, 0.2, 1e-4)[seed % 3],
        "noise": (None, 0.1, 0.05)[(seed // 2) % 3],
        "window": (20, 4, 0)[(seed // 3) % 3],
        "outdated": seed % 4 != 1,
        "growing": seed % 5 == 0,
    }


def both(n_users: int, w: World, seed: int) -> Both:
    given = settings(seed)
    fast = coterie.DyClu(n_users, w.dim, ridge=w.ridge, seed=seed, **given)
    return Both(fast, dyclu.DyClu(n_users, w.dim, ridge=w.ridge, **given))


def play(pair: Both, turn: Round, rewards: Array) -> None:
    scores = pair.slow.scores(turn.user, turn.arms)
    arm = pair.fast.recommend(turn.user, turn.arms)
    assert scores[arm] >= scores.max() - 1e-7
    np.testing.assert_allclose(pair.fast.scores(turn.user, turn.arms).ucb, scores, atol=1e-7)
    pair.fast.update(turn.user, turn.arms[arm], float(rewards[arm]))
    pair.slow.update(turn.user, turn.arms[arm], float(rewards[arm]))


def walk(w: World, seed: int) -> tuple[int, dyclu.DyClu]:
    """Play on both up to the first tie. Tastes turn; some users come late."""
    late = seed % 3 if w.n_users > 3 else 0
    pair, half = both(w.n_users - late, w, seed), len(w.rounds) // 2
    for t, turn in enumerate(w.rounds):
        if t == half and late:
            pair.fast.add_users(late)
            pair.slow.welcome(late)
        shown = turn._replace(user=turn.user % pair.slow.n_users)
        level = -2.0 if (t // 40) % 2 else 1.0
        play(pair, shown, level * np.array([w.reward(turn, arm) for arm in range(w.n_arms)]))
        if pair.slow.margin < CLOSE:
            return t, pair.slow
        assert clusters(pair.fast) == pair.slow.clusters()
    assert pair.fast.pulls.sum() == pair.fast.rounds == len(w.rounds)
    return len(w.rounds), pair.slow


def test_dyclu_agrees_with_its_reference_while_edges_go_and_return_and_users_change() -> None:
    compared = 0
    events = dict.fromkeys(("cuts", "returns", "refused", "changes", "linked"), 0)
    for seed in SEEDS:
        for shrink, n in ((low, 2 * ROUNDS), (small, ROUNDS)):
            rounds, slow = walk(shrink(world(seed, n)), seed)
            compared += rounds
            for name in events:
                events[name] += getattr(slow, name)
    assert compared > 0.9 * len(SEEDS) * 3 * ROUNDS
    assert events["cuts"] > 1000
    assert events["returns"] > 300
    assert events["refused"] > 200
    assert events["changes"] > 50
    assert events["linked"] > 300


def test_its_detector_finds_jumps_when_its_reference_does() -> None:
    changes = 0
    for seed in range(3):
        noise, window = (0.05, None)[seed % 2], (3, 6, 20)[seed]
        given: dict[str, Any] = {**settings(0), "beta": 0.1, "noise": noise, "window": window}
        fast = coterie.DyClu(JUMPING_USERS, JUMPING_DIM, ridge=0.1, **given)
        pair = Both(fast, dyclu.DyClu(JUMPING_USERS, JUMPING_DIM, ridge=0.1, **given))
        for turn, rewards in jumping(seed):
            play(pair, turn, rewards)
            assert pair.slow.margin >= CLOSE
            assert clusters(pair.fast) == pair.slow.clusters()
        changes += pair.slow.changes
    assert changes >= 15


def dyclu_lists(w: World, seed: int) -> Pair:
    return Pair(*both(w.n_users, w, seed))


def test_lists_of_dyclu_agree_with_their_reference_while_edges_are_cut() -> None:
    counted, played = show_all(dyclu_lists, 60, low)
    assert counted.decided > 0.9 * len(SEEDS) * 60
    assert sum(slow.cuts for slow in played if isinstance(slow, dyclu.DyClu)) > 50


def ranks_of(rows: Array) -> list[int]:
    """Ranks of two users, each with half of the rows."""
    policy = coterie.DyClu(2, rows.shape[1], noise=0.1)
    for k, x in enumerate(rows):
        policy.update(k % 2, x, 0.5)
    ranks: list[int] = state_arrays(policy)["ranks"].tolist()
    return ranks


def test_two_rewards_have_rank_two_however_columns_are_ordered() -> None:
    first, second = [1.053, 1.776, -2.553], [1.243, 2.096, 1.352]
    second[1] = second[0] * first[1] / first[0] * (1 + 4e-5)  # a small pivot
    rows = np.repeat(np.array([first, second]), 2, axis=0)
    for order in itertools.permutations(range(3)):
        assert ranks_of(rows[:, order]) == [2, 2]


def clear(rows: Array) -> bool:
    """Is no direction so small that it may count or not?"""
    scaled = rows / np.linalg.norm(rows, axis=0)
    return bool(np.linalg.svd(scaled, compute_uv=False).min() ** 2 > 1e-7)


def test_ranks_depend_neither_on_the_basis_nor_on_units_of_features() -> None:
    compared = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        dim = int(rng.integers(3, 9))
        n = int(rng.integers(1, dim + 2))
        rows = rng.normal(size=(n, dim))
        rows[:, 1] = rng.normal() * rows[:, 0] + 10 ** rng.uniform(-4.5, 0) * rng.normal(size=n)
        basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
        units = 10 ** rng.uniform(-4, 4, dim)
        for seen in (rows, rows[:, ::-1], rows @ basis, rows * units):
            if clear(seen):
                assert ranks_of(np.repeat(seen, 2, axis=0)) == [min(n, dim)] * 2
                compared += 1
    assert compared > 900


def test_decisions_are_the_same_in_rotated_bases() -> None:
    compared = cuts = 0
    for seed in range(12):
        w = low(world(seed, ROUNDS))
        basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(w.dim, w.dim)))[0]
        pair = both(w.n_users, w, seed)
        turned = coterie.DyClu(w.n_users, w.dim, ridge=w.ridge, **settings(seed))
        for turn in w.rounds:
            rewards = np.array([w.reward(turn, arm) for arm in range(w.n_arms)])
            scores = pair.fast.scores(turn.user, turn.arms).ucb
            np.testing.assert_allclose(turned.scores(turn.user, turn.arms @ basis).ucb, scores, atol=1e-6)
            arm = pair.fast.recommend(turn.user, turn.arms)
            play(pair, turn, rewards)
            turned.update(turn.user, turn.arms[arm] @ basis, float(rewards[arm]))
            if pair.slow.margin < CLOSE:
                break
            assert clusters(turned) == pair.slow.clusters()
            compared += 1
        cuts += pair.slow.cuts
    assert compared > 0.9 * 12 * ROUNDS
    assert cuts > 100
