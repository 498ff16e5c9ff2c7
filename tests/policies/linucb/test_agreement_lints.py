"""Thompson sampling against its naive transcription: the same arms, sample by sample."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.seeding import stream
from policies.agreeing import ROUNDS, SEEDS, TIE, Fast, clusters, fast_lints, labelled
from reference import lints
from worlds import Round, World, world

pytestmark = pytest.mark.slow


def play_lints(fast: Fast, slow: lints.LinTS, w: World, turn: Round) -> bool:
    """Play a round on both; returns whether the sample led elsewhere than the estimate would have."""
    posterior = fast.scores(turn.user, turn.arms)
    np.testing.assert_allclose(posterior.ucb, slow.scores(turn.user, turn.arms), atol=1e-8)
    arm = fast.recommend(turn.user, turn.arms)
    sample = slow.sample(turn.user, turn.arms)
    assert sample[arm] >= sample.max() - TIE
    reward = w.reward(turn, arm)
    fast.update(turn.user, turn.arms[arm], reward)
    slow.update(turn.user, turn.arms[arm], reward)
    return bool(posterior.mean[arm] < posterior.mean.max() - TIE)


@pytest.mark.parametrize("kind", ["one", "ind", "oracle"])
def test_thompson_sampling_agrees_with_its_reference_while_samples_overrule_estimates(kind: str) -> None:
    overruled = 0
    for seed in SEEDS:
        w = world(seed, ROUNDS)
        slow = lints.LinTS(
            w.n_users,
            w.dim,
            ridge=w.ridge,
            beta=0.4,
            labels=labelled(kind, w),
            rng=stream(seed, "policy"),
        )
        fast = fast_lints(kind, w, seed)
        for turn in w.rounds:
            overruled += play_lints(fast, slow, w, turn)
        assert clusters(fast) == slow.clusters()
    assert overruled > 1500
