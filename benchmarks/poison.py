"""Corrupted users and rewards: AutoCLUB's regret of the other users, beside that without corruption.

    python -m benchmarks.poison [SEED ...]

50 users in 10 clusters, 100 arms, d = 20, σ = 0.1, 20,000 rounds on synthetic data. The first users lie, as
each line says; the regret is that of the others. It is divided by that of the same rounds in which liars
never come, and single rewards are as they should be. Seeds 0 to 4 unless others are named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import coterie
from coterie.environments import Stochastic
from coterie.environments.blocks import BLOCK

HORIZON = 20_000
Reward = Callable[[np.random.Generator, int, float, float], float]
"""What a liar answers: from a generator, the round, the mean of the arm and the reward that it should be."""


class Attack(NamedTuple):
    """The number of corrupted users and their rewards; with none, the change of single rewards."""

    liars: int
    answer: Reward


def noise(sd: float) -> Reward:
    return lambda rng, turn, mean, reward: float(sd * rng.normal())


def times(factor: float) -> Reward:
    return lambda rng, turn, mean, reward: factor * reward


def only(*turns: int, add: float) -> Reward:
    return lambda rng, turn, mean, reward: reward + add * (turn in turns)


def turncoat(rng: np.random.Generator, turn: int, mean: float, reward: float) -> float:
    return reward if turn < HORIZON // 4 else -reward


def cauchy(rng: np.random.Generator, turn: int, mean: float, reward: float) -> float:
    return float(rng.standard_cauchy())


ATTACKS = {
    "1 at random, sd 1": Attack(1, noise(1)),
    "1 at random, sd 2": Attack(1, noise(2)),
    "1 at random, sd 5": Attack(1, noise(5)),
    "1 at random, sd 10": Attack(1, noise(10)),
    "1 at random, sd 1,000": Attack(1, noise(1e3)),
    "1 at random, Cauchy": Attack(1, cauchy),
    "1 always 0": Attack(1, times(0.0)),
    "1 always 1": Attack(1, lambda rng, turn, mean, reward: 1.0),
    "1 always 1,000": Attack(1, lambda rng, turn, mean, reward: 1e3),
    "1 inverted": Attack(1, times(-1.0)),
    "1 times 10": Attack(1, times(10.0)),
    "1 times 1,000": Attack(1, times(1e3)),
    "1 inverted after a while": Attack(1, turncoat),
    "5 at random, sd 10": Attack(5, noise(10)),
    "5 inverted": Attack(5, times(-1.0)),
    "5 inverted, times 1,000": Attack(5, times(-1e3)),
    "5 collude: all 1": Attack(5, lambda rng, turn, mean, reward: 1.0),
    "one reward + 100": Attack(0, only(1_000, add=1e2)),
    "one reward + 1,000": Attack(0, only(1_000, add=1e3)),
    "the first reward + 1,000": Attack(0, only(0, add=1e3)),
    "reward 21 − 1,000,000": Attack(0, only(20, add=-1e6)),
}


def rounds(world: Stochastic) -> Iterator[tuple[int, int, np.ndarray, np.ndarray, float]]:
    """Number, user, arms, means and noise of each round."""
    for turn in range(HORIZON):
        if turn % BLOCK == 0:
            block = world.block(turn // BLOCK)
        k = turn % BLOCK
        yield turn, int(block.users[k]), block.items[block.picks[k]], block.means[k], float(block.noise[k])


def honest_regret(seed: int, attack: Attack, *, absent: bool = False) -> float:
    """Regret of honest users; corrupted users are left out if they are absent."""
    data = coterie.datasets.load("synthetic", dim=20, n_users=1000, n_items=1000)
    world = Stochastic(data, n_users=50, n_clusters=10, n_arms=100, noise=0.1, seed=seed)
    policy, rng, regret = coterie.AutoCLUB(50, 20), np.random.default_rng(seed), 0.0
    for turn, user, arms, means, noise in rounds(world):
        corrupted = user < attack.liars
        if corrupted and absent:
            continue
        arm = policy.recommend(user, arms)
        reward = float(means[arm]) + noise
        if not absent and (corrupted or attack.liars == 0):
            reward = attack.answer(rng, turn, float(means[arm]), reward)
        policy.update(user, arms[arm], reward)
        regret += 0.0 if corrupted else float(means.max() - means[arm])
    return regret


def main() -> None:
    seeds = [int(text) for text in sys.argv[1:]] or list(range(5))
    without = {
        n: np.mean([honest_regret(seed, Attack(n, cauchy), absent=True) for seed in seeds]) for n in (0, 1, 5)
    }
    for name, attack in ATTACKS.items():
        found = float(np.mean([honest_regret(seed, attack) for seed in seeds]))
        print(f"{name:<28}{found:6.0f}{found / without[attack.liars]:7.2f} times", flush=True)


if __name__ == "__main__":
    main()
