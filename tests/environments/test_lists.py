"""Lists in worlds of real feedback, and the worlds in which lists cannot be shown."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.datasets import payoff_table
from coterie.environments import Bernoulli, Cascade, Payoffs, Rounds, Shifted, Stochastic, lifted
from coterie.experiments.specs import EnvironmentSpec
from reference.cascade import Visit, play

RNG = np.random.default_rng(5)
ITEMS = RNG.normal(size=(40, 4)) / 2
LIKED = RNG.random((12, 40)) < 0.2
DATA = coterie.datasets.load("synthetic", dim=4, n_users=20, n_items=50)


def made() -> Cascade:
    return Cascade(Payoffs(LIKED.astype(float), ITEMS, n_arms=8, seed=3), 3)


def test_an_item_attracts_if_its_user_said_so() -> None:
    world = made()
    visits = []
    for number in range(2):
        block = world.block(number)
        liked = LIKED[world.members[block.users][:, None], block.picks]
        np.testing.assert_array_equal(block.means, liked)
        visits += [
            Visit(int(block.users[t]), block.items[block.picks[t]], block.means[t], block.noise[t])
            for t in range(256)
        ]
    whole, stepped = coterie.CascadeLinUCB(12, 4, beta=0.3), coterie.CascadeLinUCB(12, 4, beta=0.3)
    trace = coterie.simulate(whole, world, 512)
    outcome = play(stepped, visits, 3)
    assert trace.reward[-1] == outcome.clicks
    assert trace.regret[-1] == pytest.approx(outcome.regret)
    assert whole.rounds == stepped.rounds
    most = sum(visit.attractions.any() for visit in visits)
    assert outcome.clicks + outcome.regret == pytest.approx(most)  # nothing is left to chance


def test_it_is_what_its_base_is() -> None:
    world = made()
    assert (world.n_users, world.dim, world.n_arms, world.seed, world.labels) == (12, 4, 8, 3, None)
    for other in (copy.deepcopy(world), pickle.loads(pickle.dumps(world))):
        np.testing.assert_array_equal(other.block(4).noise, world.block(4).noise)
    longer = Shifted(world)
    assert (longer.dim, longer.block(0).length) == (5, 3)


@pytest.mark.parametrize(
    "base",
    [
        lambda: Payoffs(LIKED / 2, ITEMS, n_arms=8),
        lambda: Payoffs(LIKED.astype(float), ITEMS, n_arms=8, default=0.5),
        lambda: Stochastic(DATA, 8, 2, 10),
        lambda: Rounds([0], [ITEMS[:3]], [[0.0, 1.0, 0.0]]),
        lambda: made(),
        lambda: None,
    ],
)
def test_lists_need_clicks(base: Any) -> None:
    with pytest.raises(coterie.ArgumentError, match="base must be") as caught:
        Cascade(base(), 3)
    assert "\n" not in str(caught.value)


def test_a_spec_makes_lists_of_rare_clicks_and_of_real_feedback() -> None:
    spec = EnvironmentSpec(n_users=8, n_clusters=2, n_arms=6, dim=4, rewards="bernoulli", list_length=3)
    usual, rare = spec.make(DATA, 5), replace(spec, attraction=0.25).make(DATA, 5)
    np.testing.assert_allclose(rare.block(0).means, 0.25 * usual.block(0).means)
    base = Stochastic(lifted(DATA, 0.25), 8, 2, 6, noise=Bernoulli(), seed=5)
    np.testing.assert_array_equal(rare.block(2).means, base.block(2).means)
    real = EnvironmentSpec(setting="payoffs", n_users=7, n_arms=5, list_length=2)
    world = real.make(payoff_table(LIKED.astype(float), ITEMS), 1)
    assert isinstance(world, Cascade)
    assert (world.n_users, world.length) == (7, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"list_length": 3},
        {"list_length": 0, "rewards": "bernoulli"},
        {"attraction": 0.5},
        {"attraction": 0.5, "setting": "payoffs"},
    ],
)
def test_a_spec_of_no_clicks_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(coterie.ArgumentError):
        EnvironmentSpec(**wrong)
