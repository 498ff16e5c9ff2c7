"""AutoCLUB where the same few arms come in every round, beside LinUCB for each user and the oracle.

    python -m benchmarks.few_arms

10 arms, d = 5, 30 users in 3 clusters, σ = 0.3, 6,000 rounds, 20 seeds; β = σ for the other two. Nothing new
ever comes that would make a policy look elsewhere: whoever leaves the best arm aside too early pays for good.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import coterie
from coterie.types import Ints

ARMS, DIM, USERS, CLUSTERS, SIGMA, HORIZON, SEEDS = 10, 5, 30, 3, 0.3, 6_000, 20

MAKERS: dict[str, Callable[[Ints], coterie.Policy]] = {
    "AutoCLUB": lambda labels: coterie.AutoCLUB(USERS, DIM),
    "LinUCBInd": lambda labels: coterie.LinUCBInd(USERS, DIM, beta=SIGMA),
    "LinUCBOracle": lambda labels: coterie.LinUCBOracle(USERS, DIM, beta=SIGMA, labels=labels),
}


def regret(make: Callable[[Ints], coterie.Policy], seed: int) -> float:
    rng = np.random.default_rng(seed)
    arms, tastes = rng.normal(size=(ARMS, DIM)), rng.normal(size=(CLUSTERS, DIM))
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    tastes /= np.linalg.norm(tastes, axis=1)[:, None]
    labels = np.arange(USERS) % CLUSTERS
    policy, total = make(labels), 0.0
    for _ in range(HORIZON):
        user = int(rng.integers(USERS))
        arm, means = policy.recommend(user, arms), arms @ tastes[labels[user]]
        policy.update(user, arms[arm], float(means[arm] + SIGMA * rng.normal()))
        total += float(means.max() - means[arm])
    return total


def main() -> None:
    for name, make in MAKERS.items():
        found = [regret(make, seed) for seed in range(SEEDS)]
        print(f"{name:<14}mean {np.mean(found):5.0f}, most {max(found):5,.0f}", flush=True)


if __name__ == "__main__":
    main()
