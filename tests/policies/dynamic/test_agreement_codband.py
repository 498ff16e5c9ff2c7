"""CoDBand against its naive transcription: the same arms, clusters and concentration, draw by draw."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import coterie
from coterie.seeding import stream
from inspection import state_numbers
from policies.agreeing import (
    JUMPING_DIM,
    JUMPING_NOISE,
    JUMPING_USERS,
    SEEDS,
    TIE,
    Fast,
    Pair,
    clusters,
    jumping,
)
from policies.test_agreement_lists import show_all
from reference import codband
from worlds import Array, Round, World, world

pytestmark = pytest.mark.slow

ROUNDS = 120


def settings(seed: int) -> dict[str, Any]:
    """Noise too small, right and too large; α₀ given or drawn; the detector on in two of three setups."""
    return {
        "noise": (0.05, 0.1, 0.3)[seed % 3],
        "scale": (0.2, 1.0)[seed % 2],
        "concentration": (None, 0.5, None)[seed % 3],
        "shape": (1.0, 4.0)[seed % 2],
        "rate": 2.0,
        "window": (6, 0, 20)[(seed // 3) % 3],
    }


class Both(NamedTuple):
    fast: coterie.LinearBandit
    slow: codband.CoDBand


def both(n_users: int, w: World, seed: int, given: dict[str, Any]) -> Both:
    key, rng = int(stream(seed, "clusters").integers(2**63)), stream(seed, "policy")
    fast = coterie.CoDBand(n_users, w.dim, ridge=w.ridge, seed=seed, **given)
    return Both(fast, codband.CoDBand(n_users, w.dim, ridge=w.ridge, key=key, rng=rng, **given))


def play(fast: Fast, slow: codband.CoDBand, turn: Round, rewards: Array) -> None:
    np.testing.assert_allclose(
        fast.scores(turn.user, turn.arms).ucb, slow.scores(turn.user, turn.arms), atol=1e-7
    )
    arm = fast.recommend(turn.user, turn.arms)
    sample = slow.sample(turn.user, turn.arms)
    assert sample[arm] >= sample.max() - 1e-7
    told = float(rewards[arm])
    fast.update(turn.user, turn.arms[arm], told)
    slow.update(turn.user, turn.arms[arm], told)


def walk(w: World, seed: int) -> tuple[int, codband.CoDBand]:
    """Play on both up to the first draw that rounding decides. Tastes turn; some users come late."""
    late = seed % 3 if w.n_users > 3 else 0
    given, half = settings(seed), len(w.rounds) // 2
    fast, slow = both(w.n_users - late, w, seed, given)
    for t, turn in enumerate(w.rounds):
        if t == half and late:
            fast.add_users(late)
            slow.welcome(late)
        shown = turn._replace(user=turn.user % slow.n_users)
        level = -4.0 if (t // 25) % 2 else 1.0
        play(fast, slow, shown, level * np.array([w.reward(turn, arm) for arm in range(w.n_arms)]))
        if slow.margin < TIE:
            return t, slow
        assert clusters(fast) == slow.clusters()
        np.testing.assert_allclose(state_numbers(fast)["concentration"], slow.concentration, rtol=1e-9)
    return len(w.rounds), slow


def test_codband_agrees_with_its_reference_while_clusters_open_and_close_and_users_change() -> None:
    compared = 0
    events = dict.fromkeys(("moves", "opened", "closed", "changes"), 0)
    for seed in SEEDS:
        rounds, slow = walk(world(seed, ROUNDS), seed)
        compared += rounds
        for name in events:
            events[name] += getattr(slow, name)
    assert compared > 0.97 * len(SEEDS) * ROUNDS
    assert events["moves"] > 300
    assert events["opened"] > 200
    assert events["closed"] > 50
    assert events["changes"] > 30


def test_deserted_clusters_are_forgotten_where_there_is_no_more_room() -> None:
    """Two users whose tastes turn around all the time leave more clusters behind than are remembered."""
    w = world(1, 400, noise=0.01)
    given = {**settings(0), "noise": 0.01, "concentration": 30.0, "window": 2}
    fast, slow = both(w.n_users, w, 1, given)
    for t, turn in enumerate(w.rounds):
        level = float((t // 8) % 7) - 3.0
        play(fast, slow, turn, level * turn.arms[:, 0] + turn.noise)
        assert clusters(fast) == slow.clusters()
    assert slow.forgotten > 5


def test_its_detector_finds_jumps_when_its_reference_does() -> None:
    changes = 0
    for seed in range(3):
        w = world(seed, 0)._replace(n_users=JUMPING_USERS, dim=JUMPING_DIM, ridge=0.1)
        given = {**settings(seed), "noise": JUMPING_NOISE, "window": (3, 6, 20)[seed]}
        fast, slow = both(w.n_users, w, seed, given)
        for turn, rewards in jumping(seed):
            play(fast, slow, turn, rewards)
            assert slow.margin >= TIE
            assert clusters(fast) == slow.clusters()
        changes += slow.changes
    assert changes >= 15


def codband_lists(w: World, seed: int) -> Pair:
    return Pair(*both(w.n_users, w, seed, settings(seed)))


def test_lists_of_codband_agree_with_their_reference_while_users_move() -> None:
    counted, played = show_all(codband_lists, 60, lambda w: w)
    assert counted.decided > 0.97 * len(SEEDS) * 60
    assert sum(slow.moves for slow in played if isinstance(slow, codband.CoDBand)) > 100
