"""Simulated duels: who wins, what is counted, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import is_one_sentence
from coterie.datasets.dataset import Dataset
from coterie.environments import Bernoulli, Duel, Smoothed, Stochastic, lifted
from coterie.environments.blocks import BLOCK
from coterie.experiments.specs import EnvironmentSpec
from coterie.simulation.duels import win_probability
from coterie.types import Floats


@pytest.fixture(scope="module")
def data() -> Dataset:
    return coterie.datasets.load("synthetic", dim=4, n_users=40, n_items=60)


class Fixed:
    """Always shows the same two arms, and keeps what it was told."""

    def __init__(self, answer: Any = (0, 1)) -> None:
        self.answer = answer
        self.told: list[tuple[int, Floats, Floats]] = []

    def recommend_pair(self, user: int, arms: Floats) -> Any:
        return self.answer

    def update_pair(self, user: int, winner: Floats, loser: Floats) -> None:
        self.told.append((user, winner, loser))


def test_every_duel_is_told_and_counted(data: Dataset) -> None:
    world, policy = Duel(Stochastic(data, 8, 2, 5, seed=3), 4.0), Fixed()
    trace = coterie.simulate(policy, world, BLOCK + 40, record=BLOCK + 40)
    blocks = [world.block(0), world.block(1)]
    rounds = [(b.users[t], b.items[b.picks[t]], b.means[t], b.noise[t]) for b in blocks for t in range(BLOCK)]
    regret = 0.0
    for (user, arms, means, noise), told, seen in zip(rounds, policy.told, trace.regret, strict=False):
        first = noise < win_probability(4.0 * (means[0] - means[1]))
        assert told[0] == user
        assert np.array_equal(told[1], arms[0 if first else 1])
        assert np.array_equal(told[2], arms[1 if first else 0])
        regret += 2 * means.max() - means[0] - means[1]
        assert seen == pytest.approx(regret)
    assert len(policy.told) == BLOCK + 40
    assert trace.reward[-1] == pytest.approx(sum(m[0] + m[1] for _, _, m, _ in rounds[: BLOCK + 40]))
    assert trace.clusters[-1] == -1


def test_the_better_arm_wins_as_often_as_the_logistic_model_says(data: Dataset) -> None:
    world = Duel(Stochastic(data, 8, 2, 2, seed=3), 6.0)
    blocks = [world.block(k) for k in range(40)]
    gaps = np.concatenate([b.means[:, 0] - b.means[:, 1] for b in blocks])
    wins = np.concatenate([b.noise for b in blocks]) < [win_probability(6.0 * gap) for gap in gaps]
    likely = gaps > 0.1
    wanted = np.mean([win_probability(6.0 * gap) for gap in gaps[likely]])
    assert abs(wins[likely].mean() - wanted) < 0.02  # about 4,500 duels: a standard error of 0.007


@pytest.mark.parametrize("base", [Stochastic, Smoothed])
def test_policies_learn_from_duels(data: Dataset, base: type[Stochastic] | type[Smoothed]) -> None:
    world = Duel(base(data, 8, 2, 10, seed=1), 10.0)
    for policy in (
        coterie.COLDB(8, 4, confidence=coterie.Tuned(alpha=8.0, beta=1.0)),
        coterie.AutoCLUB(8, 4),
        coterie.LinUCBInd(8, 4, beta=0.5),
    ):
        trace = coterie.simulate(policy, world, 1500, record=3)
        assert trace.regret[2] - trace.regret[1] < 0.8 * trace.regret[0]
        assert policy.rounds == 1500


def test_newcomers_are_let_in(data: Dataset) -> None:
    world = Duel(Stochastic(data, 8, 2, 5, late=0.5, settled=BLOCK, seed=1), 10.0)
    policy = coterie.CLUB(world.present(0), 4, confidence=coterie.Tuned(alpha=2.0, beta=0.5))
    coterie.simulate(policy, world, 2 * BLOCK)
    assert policy.n_users == 8


@pytest.mark.parametrize("answer", [(0, 9), (0,), 3, None, (0, -1), ("a", "b"), (0.0, 1.0)])
def test_answers_that_are_no_pair_are_refused(data: Dataset, answer: Any) -> None:
    world = Duel(Stochastic(data, 8, 2, 5))
    with pytest.raises(coterie.ArgumentError, match="two row numbers from 0 to 4") as refused:
        coterie.simulate(Fixed(answer), world, 10)
    assert is_one_sentence(refused.value)


def test_policies_without_pairs_and_pairs_without_duels_are_refused(data: Dataset) -> None:
    class Single:
        def recommend(self, user: int, arms: Floats) -> int:
            return 0

        def update(self, user: int, x: Floats, reward: float) -> None: ...

    base = Stochastic(data, 8, 2, 5)
    with pytest.raises(coterie.ArgumentError, match="recommend_pair and update_pair"):
        coterie.simulate(Single(), Duel(base), 10)
    with pytest.raises(coterie.ArgumentError, match="recommend and update"):
        coterie.simulate(Fixed(), base, 10)


def test_worlds_that_cannot_duel_are_refused(data: Dataset) -> None:
    base = Stochastic(data, 8, 2, 5)
    wrong: Any = Duel(base)
    with pytest.raises(coterie.ArgumentError, match="base must be"):
        Duel(wrong)
    for sharpness in (0.0, -1.0, float("nan")):
        with pytest.raises(coterie.ArgumentError, match="sharpness"):
            Duel(base, sharpness)
    for unfit in (Stochastic(data, 8, 2, 5, delay=3), Stochastic(data, 8, 2, 5, corrupted=0.2)):
        with pytest.raises(coterie.ArgumentError, match="corrupted and delay"):
            Duel(unfit)
    clicks = Duel(Stochastic(lifted(data), 8, 2, 5, noise=Bernoulli()))  # preferences between probabilities
    assert clicks.block(0).sharpness == 1.0


def test_a_spec_makes_duels() -> None:
    spec = EnvironmentSpec(n_users=8, n_clusters=2, n_arms=5, dim=4, pool_users=20, pool_items=60, duels=3.0)
    world = spec.make(coterie.datasets.load("synthetic", dim=4, n_users=20, n_items=60), 2)
    assert isinstance(world, Duel)
    assert (world.sharpness, spec.reward_deviation) == (3.0, 0.5)
    for wrong in ({"setting": "stream"}, {"liars": 1}, {"list_length": 2, "rewards": "bernoulli"}):
        unfit: dict[str, Any] = wrong
        with pytest.raises(coterie.ArgumentError, match="duels"):
            EnvironmentSpec(duels=1.0, **unfit)
    with pytest.raises(coterie.ArgumentError, match="duels"):
        EnvironmentSpec(duels=-1.0)
