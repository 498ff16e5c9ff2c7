"""SCLUB among more users than a word has bits: shortcuts past members leave every split as it is."""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from policies.agreeing import TIE, clusters
from policies.agreeing import radius as tuned_radius
from reference import sclub

USERS, ROUNDS, DIM = 200, 500, 3


def preferences(seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Three tastes."""
    rng = np.random.default_rng(seed)
    tastes = rng.normal(size=(3, DIM))
    return np.asarray(tastes[rng.integers(3, size=USERS)])


@pytest.mark.parametrize("seed", range(4))
def test_sclub_agrees_with_its_reference_in_small_and_in_large_clusters(seed: int) -> None:
    rng, theta = np.random.default_rng(seed), preferences(seed)
    alpha = (0.15, 0.3, 0.5, 0.9)[seed % 4]
    fast = coterie.SCLUB(USERS, DIM, confidence=coterie.Tuned(alpha=alpha, beta=0.4))
    slow = sclub.SCLUB(USERS, DIM, ridge=1.0, beta=0.4, radius=tuned_radius(seed))
    sizes: set[int] = set()
    for t in range(ROUNDS):
        user = int(USERS * rng.random() ** 4)  # few come often
        arms = rng.normal(size=(4, DIM))
        scores = slow.scores(user, arms)
        arm = fast.recommend(user, arms)
        assert scores[arm] >= scores.max() - TIE
        reward = float(theta[user] @ arms[arm]) + 0.05 * rng.normal()
        fast.update(user, arms[arm], reward)
        slow.update(user, arms[arm], reward)
        if t % 25 == 24:
            found = clusters(fast)
            assert found == slow.clusters()
            sizes.update(map(len, found))
    if alpha < 0.5:
        assert slow.splits > 10
        assert min(sizes) <= USERS // 64 < max(sizes)
