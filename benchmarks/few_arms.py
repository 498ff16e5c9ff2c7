"""AutoCLUB where the same few arms come in every round, beside LinUCB for each user and the oracle.

    python -m benchmarks.few_arms

10 arms, d = 5, 30 users in 3 clusters, σ = 0.3, 6,000 rounds, 20 seeds; β = σ for the other two. No new
arm ever comes that would make a policy explore: whoever drops the best arm too early pays until the end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import coterie
from coterie.environments.blocks import BLOCK, Block
from coterie.types import Floats, Ints

ARMS, DIM, USERS, CLUSTERS, SIGMA, HORIZON, SEEDS = 10, 5, 30, 3, 0.3, 6_000, 20

MAKERS: dict[str, Callable[[Ints], coterie.Policy]] = {
    "AutoCLUB": lambda labels: coterie.AutoCLUB(USERS, DIM),
    "LinUCBInd": lambda labels: coterie.LinUCBInd(USERS, DIM, beta=SIGMA),
    "LinUCBOracle": lambda labels: coterie.LinUCBOracle(USERS, DIM, beta=SIGMA, labels=labels),
}


class FewArms:
    """An environment that offers the same arms in each of its `HORIZON` rounds."""

    n_users, dim, longest_delay = USERS, DIM, 0

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.seed, self.labels = seed, np.arange(USERS) % CLUSTERS
        self.arms, preferences = unit_rows(rng, ARMS), unit_rows(rng, CLUSTERS)
        self.means = preferences[self.labels] @ self.arms.T
        drawn = [(rng.integers(USERS), rng.normal()) for _ in range(HORIZON)]
        self.users = np.array([user for user, _ in drawn])
        self.noise = SIGMA * np.array([noise for _, noise in drawn])

    def present(self, number: int) -> int:
        return USERS

    def block(self, number: int) -> Block:
        rounds = slice(number * BLOCK, (number + 1) * BLOCK)
        users = self.users[rounds]
        return Block(
            users=users,
            items=self.arms,
            picks=np.tile(np.arange(ARMS), (len(users), 1)),
            means=self.means[users],
            noise=self.noise[rounds],
            delays=np.zeros(len(users), np.int64),
            binary=False,
            lasting=True,
        )


def unit_rows(rng: np.random.Generator, n: int) -> Floats:
    rows = rng.normal(size=(n, DIM))
    unit: Floats = rows / np.linalg.norm(rows, axis=1)[:, None]
    return unit


def main() -> None:
    for name, make in MAKERS.items():
        worlds = [FewArms(seed) for seed in range(SEEDS)]
        found = [coterie.simulate(make(w.labels), w, HORIZON, record=1).regret[-1] for w in worlds]
        print(f"{name:<14}mean {np.mean(found):5.0f}, most {max(found):5,.0f}", flush=True)


if __name__ == "__main__":
    main()
