"""Simulated cascades against lists shown one by one, and what a cascade means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt

import numpy as np
import pytest

import coterie
from coterie.environments import Bernoulli, Cascade, Smoothed, Stochastic, lifted
from policies.agreeing import Fast, clusters
from reference.cascade import Visit, click_probability, first_click, regret_over_all_lists
from reference.cascade import play as play_cascade
from reference.cascade import regret as cascade_regret


def cascade(*, smoothed: bool, length: int) -> tuple[Stochastic | Smoothed, Cascade]:
    data = lifted(coterie.datasets.load("synthetic", dim=5, n_users=40, n_items=200))
    if smoothed:
        base: Stochastic | Smoothed = Smoothed(
            data, n_users=12, n_clusters=3, n_arms=10, noise=Bernoulli(), seed=3, sigma=0.01, truncation=0.02
        )
    else:
        base = Stochastic(data, n_users=12, n_clusters=3, n_arms=10, noise=Bernoulli(), seed=3)
    return base, Cascade(base, length)


def visits(w: Cascade, rounds: int) -> Iterator[Visit]:
    """What `rounds` users are offered, a block of the world after the other."""
    played = 0
    while played < rounds:
        block = w.block(played // len(w.block(0).users))
        for t in range(min(len(block.users), rounds - played)):
            yield Visit(int(block.users[t]), block.items[block.picks[t]], block.means[t], block.noise[t])
        played += len(block.users)


def cascade_policies(w: Cascade) -> list[Callable[[], Fast]]:
    confidence = coterie.Tuned(alpha=0.6, beta=0.3, explore=60)
    return [
        lambda: coterie.UniCLUB(w.n_users, w.dim, confidence=confidence, seed=5),
        lambda: coterie.UniSCLUB(w.n_users, w.dim, confidence=confidence, seed=5),
        lambda: coterie.LinTSInd(w.n_users, w.dim, beta=0.3, seed=5),
        lambda: coterie.AutoCLUB(w.n_users, w.dim, seed=5),
    ]


@pytest.mark.parametrize("smoothed", [False, True])
def test_a_simulated_cascade_agrees_with_lists_shown_one_by_one(smoothed: bool) -> None:
    _, w = cascade(smoothed=smoothed, length=3)
    for make in cascade_policies(w):
        simulated, stepped = make(), make()
        trace = coterie.simulate(simulated, w, 600, record=1)
        outcome = play_cascade(stepped, visits(w, 600), 3)
        assert int(trace.reward[-1]) == outcome.clicks
        np.testing.assert_allclose(trace.regret[-1], outcome.regret, rtol=1e-9)
        assert simulated.rounds == stepped.rounds
        assert clusters(simulated) == clusters(stepped)


@pytest.mark.parametrize("smoothed", [False, True])
def test_an_item_attracts_with_the_probability_of_the_linear_model(smoothed: bool) -> None:
    base, w = cascade(smoothed=smoothed, length=2)
    expected = clicks = 0.0
    for visit in visits(w, 1000):
        theta = base.preferences[base.labels[visit.user]]
        np.testing.assert_allclose(visit.attractions, visit.arms @ theta, atol=1e-12)
        expected += click_probability(visit.attractions[:2])
        clicks += first_click(visit.attractions[:2], visit.draws) is not None
    assert abs(clicks - expected) < 4 * sqrt(1000 * 0.25)


def test_the_most_attractive_arms_make_the_best_list() -> None:
    rng = np.random.default_rng(0)
    for n_arms in range(1, 8):
        weights = rng.random(n_arms)
        for length in range(1, n_arms + 1):
            shown = rng.permutation(n_arms)[:length].tolist()
            every = regret_over_all_lists(weights, shown)
            assert cascade_regret(weights, shown) == pytest.approx(every, abs=1e-12)
