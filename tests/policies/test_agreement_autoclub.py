"""AutoCLUB against its naive transcription: the same arm, clusters and estimates in every round."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import coterie
from policies.agreeing import SEEDS, TIE, clusters
from policies.test_agreement import Pair, play
from reference import autoclub
from worlds import World, world

pytestmark = pytest.mark.slow


def acting(policy: coterie.LinearBandit) -> NDArray[np.float64]:
    """The estimates that users act on, read off the scores of unit vectors."""
    offset = policy.learner.numbers()["offset"]
    means = [policy.scores(user, np.eye(policy.dim)).mean for user in range(policy.n_users)]
    return np.array(means) - offset


def walk_by_evidence(w: World, seed: int) -> tuple[int, autoclub.AutoCLUB]:
    """Play on both up to the first tie; returns how many rounds were compared.

    In every other setup users are few and reviewed often, and one more is never seen; in two of three, users
    arrive at half-time. In every fourth, user 0 answers at random, and one reward is far too
    great; in every fifth, 2 is added to all rewards.
    """
    crew = min(w.n_users, 4 + seed % 7) if seed % 2 else w.n_users
    late = seed % 3 if crew > 3 else 0
    fast = coterie.AutoCLUB(crew + seed % 2 - late, w.dim, ridge=w.ridge)
    slow = autoclub.AutoCLUB(crew + seed % 2 - late, w.dim, ridge=w.ridge)
    half = len(w.rounds) // 2
    for t, turn in enumerate(w.rounds):
        if t == half and late:
            fast.add_users(late)
            slow.welcome(late)
        present = crew if t >= half else crew - late
        turn = turn._replace(user=turn.user % present)
        if seed % 4 == 3 and (turn.user == 0 or t == half // 2):
            turn = turn._replace(noise=(30.0 if turn.user == 0 else 1000.0) * turn.noise)
        if seed % 5 == 4:
            turn = turn._replace(noise=turn.noise + 2.0)
        play(Pair(fast, slow), w, turn)
        if slow.margin < TIE:
            return t, slow
        assert clusters(fast) == slow.clusters()
        if t % 8 == 7:
            np.testing.assert_allclose(acting(fast), slow.estimates(), atol=1e-9)
        found = fast.learner.numbers()
        np.testing.assert_allclose(fast.learner.array("precisions"), slow.omega, rtol=1e-7)
        np.testing.assert_allclose([found["noise2"], found["weight"]], [slow.noise2, slow.lam], rtol=1e-9)
        np.testing.assert_allclose(found["offset"], slow.offset, rtol=1e-8)
    return len(w.rounds), slow


def test_autoclub_agrees_with_its_reference_while_users_move_and_clusters_merge() -> None:
    compared = moves = splits = merges = reweighted = 0
    for seed in SEEDS:
        rounds, slow = walk_by_evidence(world(seed, 400, noise=(0.1, 0.4)[seed % 2]), seed)
        compared += rounds
        moves += slow.moves
        splits += slow.splits
        merges += slow.merges
        reweighted += slow.reweighted
    assert compared > 0.97 * len(SEEDS) * 400
    assert moves > 450
    assert splits > 200
    assert merges > 20
    assert reweighted > 20
