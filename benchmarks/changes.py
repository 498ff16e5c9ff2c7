"""Users who change: AutoCLUB's regret beside that of the best tuned rival; false alarms where nobody does.

    python -m benchmarks.changes [--seeds N] [--rivals NAME ...] [WORLD ...]

Worlds: `jumps` is that of DyClu's authors (10 users who move between 2 clusters, d = 25, 10 arms);
`drift 0.1` and `drift 0.3` let every preference move by that much in a thousand rounds (50 users in 10
clusters, d = 20); in `seasons` all users change at once, every 5,000 rounds, and change back
(20 users in 4 clusters, d = 20). Constants of rivals are the best of their grids on seed 100; seeds from 0 on
are reported. `alarms` counts the changes that AutoCLUB reports in worlds without any, 20,000 rewards a seed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import coterie
from benchmarks.timing import Table, at_most
from coterie.environments.blocks import BLOCK, Block, Environment
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.experiments.tuning import candidates

HARD = EnvironmentSpec(dim=20, pool_items=1000)
FEW = EnvironmentSpec(dim=20, pool_items=1000, n_users=20, n_clusters=4, n_arms=20)
CHANGING = {
    "jumps": (replace(HARD, dim=25, n_users=10, n_clusters=2, n_arms=10, jumps=1750), 30_000, 1.10),
    "drift 0.1": (replace(HARD, drift=0.1), 20_000, 1.0),
    "drift 0.3": (replace(HARD, drift=0.3), 20_000, 1.0),
    "seasons": (FEW, 20_000, 1.05),
}
"""The environment, the horizon and the largest ratio that is wanted."""
RIVALS = ("DyClu", "CoDBand", "DynUCB", "CLUB", "LinUCBInd", "HierUCB")
STILL = {
    "plain": HARD,
    "no clusters": replace(HARD, n_clusters=50),
    "continuum": replace(HARD, n_clusters=50, rank=3),
    "uneven noise": replace(HARD, noise=0.05, uneven=20.0),
    "Cauchy noise": replace(HARD, rewards="cauchy"),
    "1 % of noise × 50": replace(HARD, rewards="contaminated"),
    "a liar": replace(HARD, liars=1, liar_sd=10.0),
    "one reward + 1,000": replace(HARD, outlier=1000.0),
    "10 fixed arms": replace(HARD, n_arms=10, pool_items=10, noise=0.03),
    "one-hot": EnvironmentSpec(dim=10, n_arms=10, pool_items=10, onehot=True),
    "clicks": replace(HARD, n_arms=20, rewards="bernoulli"),
    "clicks at 8 %": replace(HARD, n_arms=20, rewards="bernoulli", attraction=0.08),
}


class Seasons:
    """Rounds of two environments in turn, so many blocks of each."""

    def __init__(self, worlds: tuple[Environment, Environment], blocks: int) -> None:
        self.worlds, self.blocks = worlds, blocks

    def block(self, number: int) -> Block:
        return self.worlds[number // self.blocks % 2].block(number)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.worlds[0], name)


def made(name: str, spec: EnvironmentSpec, seed: int) -> Any:
    """The environment of a seed."""
    data = coterie.datasets.load(spec.dataset, **spec.data_options())
    if name != "seasons":
        return spec.make(data, seed)
    return Seasons((spec.make(data, seed), spec.make(data, seed + 10_000)), 5_000 // BLOCK)


def regret(name: str, policy: PolicySpec, seed: int) -> float:
    spec, horizon, _ = CHANGING[name]
    world = made(name, spec, seed)
    return float(coterie.simulate(policy.make(world, seed), world, horizon, record=1).regret[-1])


def best_of(name: str, policy: str) -> PolicySpec:
    """The constants of least regret on seed 100."""
    points = candidates(policy, CHANGING[name][0])
    return min(points, key=lambda point: regret(name, point, 100)) if len(points) > 1 else points[0]


def compared(name: str, rivals: tuple[str, ...], seeds: range) -> Iterator[tuple[str, ...]]:
    """A row of cells: AutoCLUB, the best rival and the ratio."""
    found = {}
    for policy in ("AutoCLUB", *rivals):
        print(f"{name}: {policy}", end="     \r", file=sys.stderr, flush=True)
        chosen = best_of(name, policy)
        found[policy] = float(np.mean([regret(name, chosen, seed) for seed in seeds]))
    own = found.pop("AutoCLUB")
    best = min(found, key=lambda policy: found[policy])
    yield (name, f"{own:,.0f}", best, f"{found[best]:,.0f}", *at_most(own / found[best], CHANGING[name][2]))


def alarms(seeds: range) -> list[tuple[str, ...]]:
    """What AutoCLUB takes for changes where there are none."""
    rows, total = [], 0
    for name, spec in STILL.items():
        print(name, end="          \r", file=sys.stderr, flush=True)
        count = 0
        for seed in seeds:
            world = made(name, spec, seed)
            policy = coterie.AutoCLUB(world.n_users, world.dim)
            coterie.simulate(policy, world, 20_000, record=1)
            count += policy.changes.total
        rows.append((name, f"{20_000 * len(seeds):,}", str(count)))
        total += count
    return [*rows, ("all", f"{20_000 * len(seeds) * len(STILL):,}", str(total))]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.changes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("world", nargs="*", metavar="WORLD", help="or `alarms`; all by default")
    parser.add_argument("--seeds", type=int, default=5, help="seeds from 0 on, default 5")
    parser.add_argument("--rivals", nargs="+", default=RIVALS, choices=RIVALS, help="all by default")
    given = parser.parse_args()
    known = (*CHANGING, "alarms")
    if unknown := [name for name in given.world if name not in known]:
        parser.error(f"no world {unknown[0]!r}; there are: {', '.join(known)}")
    seeds, chosen = range(given.seeds), given.world or known
    rows = [row for name in CHANGING if name in chosen for row in compared(name, tuple(given.rivals), seeds)]
    if rows:
        heads = ("world", "AutoCLUB", "best rival", "its regret", "ratio", "wanted", "holds")
        Table("Regret where users change", heads, rows).show()
    if "alarms" in chosen:
        Table("False alarms of AutoCLUB", ("world", "rewards", "alarms"), alarms(seeds)).show()


if __name__ == "__main__":
    main()
