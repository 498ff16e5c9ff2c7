"""AutoCLUB against its naive transcription where users change and where columns have different units."""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from inspection import learner_of
from policies.agreeing import TIE, clusters
from reference import autoclub
from worlds import Array

pytestmark = pytest.mark.slow


def walk(seed: int, units: Array, rounds: int, *, jumps: int = 0) -> tuple[int, autoclub.AutoCLUB]:
    """Play up to the first tie; returns how many rounds were compared.

    Four users of two kinds; every `jumps` rounds one of them becomes of the other kind.
    """
    rng = np.random.default_rng(seed)
    n_users, dim = 4, len(units)
    kinds, tastes = np.arange(n_users) % 2, 2.0 * rng.normal(size=(2, dim))
    fast, slow = coterie.AutoCLUB(n_users, dim), autoclub.AutoCLUB(n_users, dim, ridge=1.0)
    for t in range(rounds):
        if jumps and t % jumps == jumps - 1:
            kinds[t // jumps % n_users] ^= 1
        user, plain = int(rng.integers(n_users)), rng.normal(size=(4, dim)) / dim**0.5
        arms = plain * units
        scores = slow.scores(user, arms)
        arm = fast.recommend(user, arms)
        assert scores[arm] >= scores.max() - 1e-6 * max(1.0, scores.max())
        np.testing.assert_allclose(fast.scores(user, arms).ucb, scores, rtol=1e-6, atol=1e-6)
        reward = float(plain[arm] @ tastes[kinds[user]] + 0.1 * rng.normal())
        fast.update(user, arms[arm], reward)
        slow.update(user, arms[arm], reward)
        if slow.margin < TIE:
            return t, slow
        assert clusters(fast) == slow.clusters()
        assert fast.changes.total == slow.changes
        assert learner_of(fast).columns.array("exponents").tolist() == slow.columns.e.tolist()
    return rounds, slow


def test_autoclub_agrees_with_its_reference_while_users_change() -> None:
    played = [walk(seed, np.ones(3), 500, jumps=120) for seed in range(8)]
    assert sum(rounds for rounds, _ in played) > 0.95 * 8 * 500
    assert sum(slow.changes for _, slow in played) > 12


def test_autoclub_agrees_with_its_reference_while_it_learns_the_units_of_columns() -> None:
    units = 10.0 ** np.array([[0, 2, -2, 1], [3, 3, 0, 3], [-2, -1, 1, 2]])
    played = [walk(seed, units[seed % 3], 200) for seed in range(9)]
    assert sum(rounds for rounds, _ in played) > 0.95 * 9 * 200
    assert sum(slow.columns.revisions for _, slow in played) > 10
    for _, slow in played:
        assert np.ptp(slow.columns.e) > 5


def test_columns_in_other_units_and_users_who_change_agree_together() -> None:
    rounds, slow = walk(20, np.array([1.0, 100.0, 0.1]), 400, jumps=130)
    assert rounds > 380
    assert slow.changes > 0
    assert slow.columns.revisions > 0
