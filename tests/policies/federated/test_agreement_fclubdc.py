"""FCLUBDC against its naive transcription: the same arms, global clusters and messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from policies.agreeing import TIE, alpha, clusters, low, radius
from reference.fclubdc import FCLUBDC
from worlds import world

pytestmark = pytest.mark.slow

ROUNDS, SEEDS = 90, range(16)
CLOSE = 1e-8
"""Nearer to its limit than this, rounding decides."""


def walk(seed: int) -> tuple[int, FCLUBDC]:
    """Play on both up to the first tie; some users come late."""
    w = low(world(seed, ROUNDS))
    late = seed % 3 if w.n_users > 3 else 0
    ratio = (1.01, 1.5, 3.0)[seed % 3]
    download, merging = ((1.05, 1.0), (1.2, 0.5))[seed % 2]
    sizes: dict[str, Any] = {"n_servers": 1 + seed % 3, "merging": merging, "upload": ratio}
    sizes["download"] = download
    fast = coterie.FCLUBDC(w.n_users - late, w.dim, alpha=alpha(seed), beta=0.4, ridge=w.ridge, **sizes)
    slow = FCLUBDC(w.n_users - late, w.dim, radius=radius(seed), beta=0.4, ridge=w.ridge, **sizes)
    for t, turn in enumerate(w.rounds):
        if t == ROUNDS // 2 and late:
            fast.add_users(late)
            slow.welcome(late)
        user = turn.user % slow.n_users
        scores = slow.scores(user, turn.arms)
        np.testing.assert_allclose(fast.scores(user, turn.arms).ucb, scores, atol=1e-8)
        arm = fast.recommend(user, turn.arms)
        assert scores[arm] >= scores.max() - TIE
        reward = w.reward(turn._replace(user=user), arm)
        fast.update(user, turn.arms[arm], reward)
        slow.update(user, turn.arms[arm], reward)
        if slow.margin < CLOSE:
            return t, slow
        assert clusters(fast) == slow.clusters()
        assert fast.communication.messages == slow.messages
    return ROUNDS, slow


def test_fclubdc_agrees_with_its_reference_while_servers_talk() -> None:
    compared = cuts = uploads = downloads = merges = 0
    for seed in SEEDS:
        rounds, slow = walk(seed)
        compared += rounds
        cuts, merges = cuts + slow.cuts, merges + slow.merges
        uploads, downloads = uploads + slow.uploads, downloads + slow.downloads
    assert compared > 0.8 * ROUNDS * len(SEEDS)
    assert cuts > 20
    assert uploads > 200
    assert downloads > 40
    assert merges > 50


def test_a_message_holds_a_symmetric_matrix_a_vector_and_a_count() -> None:
    policy = coterie.FCLUBDC(6, 3, n_servers=2, alpha=0.5, beta=0.1)
    for k in range(30):
        policy.update(k % 6, np.eye(3)[k % 3], 1.0)
    messages, numbers = policy.communication
    assert numbers == messages * (6 + 3 + 1) > 0


def test_servers_that_send_less_often_send_less() -> None:
    sent = []
    for ratio in (1.01, 1.2, 2.0):
        policy = coterie.FCLUBDC(6, 3, n_servers=3, alpha=0.5, beta=0.1, upload=ratio, download=ratio)
        rng = np.random.default_rng(0)
        for _ in range(400):
            policy.update(int(rng.integers(6)), rng.normal(size=3), float(rng.normal()))
        sent.append(policy.communication.messages)
    assert sent[0] > 2 * sent[1] > 4 * sent[2]


@pytest.mark.parametrize("wrong", [{"upload": 1.0}, {"download": 0.5}, {"n_servers": 0}, {"merging": 0.0}])
def test_a_setting_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    make = coterie.policies.find("FCLUBDC").make
    with pytest.raises(coterie.ArgumentError, match=next(iter(wrong))):
        make(4, 2, alpha=1.0, beta=0.1, **wrong)
