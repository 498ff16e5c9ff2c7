"""What shards cost: `python -m benchmarks.shards` plays AutoCLUB as one policy, and in shards.

All shard counts of a seed see the same users, arms and noise; regret is told beside that of one policy.
"""

from __future__ import annotations

import argparse
from time import process_time

import coterie
from benchmarks.timing import Table
from coterie.environments import Stochastic
from coterie.progress import progress_bar

DIM, ARMS, NOISE = 20, 20, 0.3


def world(users: int, clusters: int, seed: int) -> Stochastic:
    data = coterie.datasets.load("synthetic", dim=DIM, n_users=users, n_items=2_000, seed=0)
    return Stochastic(data, n_users=users, n_clusters=clusters, n_arms=ARMS, noise=NOISE, seed=seed)


def regret(users: int, clusters: int, rounds: int, shards: int, seed: int) -> float:
    """The regret of AutoCLUB in so many shards."""
    policy = coterie.Sharded(
        lambda n_users, shard: coterie.AutoCLUB(n_users, DIM, seed=seed), shards, n_users=users
    )
    with progress_bar(users * rounds, "round", label=f"{users:,} users, {shards} shards") as advance:
        trace = coterie.simulate(
            policy,
            world(users, clusters, seed),
            users * rounds,
            record=1,
            progress=lambda played, _: advance(played),
        )
    return float(trace.regret[-1])


def regrets(users: int, clusters: int, rounds: int, shards: list[int], seeds: range) -> Table:
    rows = []
    alone = [0.0] * len(seeds)
    for count in [1, *(one for one in shards if one > 1)]:
        began = process_time()
        found = [regret(users, clusters, rounds, count, seed) for seed in seeds]
        alone = found if count == 1 else alone
        ratios = [mine / other for mine, other in zip(found, alone, strict=True)]
        rows.append(
            (
                f"{count}",
                f"{users // clusters // count:,}",
                " ".join(f"{one:,.0f}" for one in found),
                " ".join(f"{one:.3f}" for one in ratios),
                f"{1e6 * (process_time() - began) / users / rounds / len(seeds):.0f}",
            )
        )
    return Table(
        f"AutoCLUB, {users:,} users in {clusters} clusters, {rounds} rounds each, d = {DIM}, K = {ARMS}, "
        f"noise {NOISE}, seeds {seeds.start} to {seeds.stop - 1}",
        ("shards", "users of a cluster in a shard", "regret", "beside one policy", "µs a round"),
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[4_000, 10_000])
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=30, help="rounds of each user, on average")
    parser.add_argument("--shards", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--seeds", type=int, default=2, help="how many seeds, from 0 on")
    options = parser.parse_args()
    for users in options.users:
        regrets(users, options.clusters, options.rounds, options.shards, range(options.seeds)).show()


if __name__ == "__main__":
    main()
