"""Small worlds whose truth is known, and logs from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import coterie
from coterie.environments import Block, Stochastic
from coterie.environments.blocks import BLOCK
from coterie.evaluation import Log, LoggingPolicy
from coterie.policies.protocols import Policy
from coterie.types import Floats, Ints

USERS, DIM, ARMS = 6, 4, 4
Maker = Callable[[Log, int], Policy]

MAKERS: dict[str, Maker] = {
    "AutoCLUB": lambda log, seed: coterie.AutoCLUB(log.n_users, log.dim, seed=seed),
    "LinUCBInd": lambda log, seed: coterie.LinUCBInd(log.n_users, log.dim, beta=0.3, seed=seed),
    "LinTSOne": lambda log, seed: coterie.LinTSOne(log.n_users, log.dim, beta=0.3, seed=seed),
}


class Later:
    """The same world with its rounds from a later block on: new rounds, the same users."""

    def __init__(self, world: Stochastic, first: int) -> None:
        self.world, self.first, self.seed = world, first, world.seed
        self.n_users, self.dim, self.labels, self.longest_delay = world.n_users, world.dim, world.labels, 0

    def present(self, number: int) -> int:
        return self.world.present(self.first + number)

    def block(self, number: int) -> Block:
        return self.world.block(self.first + number)


def world(seed: int = 0, *, noise: float = 0.3, arms: int = ARMS) -> Stochastic:
    data = coterie.datasets.load("synthetic", dim=DIM, n_users=20, n_items=60)
    return Stochastic(data, n_users=USERS, n_clusters=2, n_arms=arms, noise=noise, seed=seed)


def logged(
    environment: Stochastic | Later,
    horizon: int,
    share: float,
    *,
    seed: int = 0,
    policy: Policy | None = None,
) -> Log:
    logger = LoggingPolicy(policy or coterie.LinUCBOne(USERS, DIM, beta=0.3), share, seed=seed)
    coterie.simulate(logger, environment, horizon, record=1)
    return logger.log()


def means(environment: Stochastic | Later, horizon: int) -> Floats:
    """The expected reward of every arm in every round, (horizon, K)."""
    blocks = [environment.block(number).means for number in range(-(-horizon // BLOCK))]
    return np.concatenate(blocks)[:horizon]


class Noting:
    """A policy that remembers what it recommended."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.arms = policy, list[int]()

    def recommend(self, user: int, arms: Floats) -> int:
        self.arms.append(self.policy.recommend(user, arms))
        return self.arms[-1]

    def update(self, user: int, x: Floats, reward: float) -> None:
        self.policy.update(user, x, reward)


def example(**changes: object) -> dict[str, object]:
    """A table of four events."""
    arms = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    return {
        "user": ["b", "a", "b", "c"],
        "arms": [arms, arms, arms[:2], arms],
        "arm": [1, 0, 1, 2],
        "propensity": [0.5, 0.5, 0.25, 0.3],
        "reward": [1.0, 0.0, 0.5, 0.0],
        "time": [4, 1, 2, 3],
        **changes,
    }


def assert_same_log(one: Log, two: Log) -> None:
    assert one.user_ids == two.user_ids
    for name in ("users", "starts", "chosen", "propensities", "rewards", "times"):
        first: Ints = getattr(one, name)
        assert np.array_equal(first, getattr(two, name)), name
    assert np.array_equal(one.items[one.offers], two.items[two.offers])
    assert offered_ids(one) == offered_ids(two)


def offered_ids(log: Log) -> list[int | str | None]:
    """The id of each arm of each event."""
    if not log.item_ids:
        return []
    return [log.item_ids[item] if item >= 0 else None for item in log.item_of[log.offers]]
