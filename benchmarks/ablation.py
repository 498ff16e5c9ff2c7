"""What each part of AutoCLUB is worth: its regret with the part left out, divided by that of the whole.

    python -m benchmarks.ablation [--seeds N] [--horizon N] [--parts PART ...] [WORLD ...]

Worlds have 50 users in 10 clusters, d = 20, 100 arms and σ = 0.1 unless their name says otherwise, and 10,000
rounds. A cell above 1 is what the part gains there; blank is within ± 0.02. The last three worlds are attacks
of `benchmarks.attacks`, and the regret is that of honest users. Seeds from 100 on, which choose: pages
report others. Standard errors are 0.01 to 0.04, with few fixed arms 0.05 to 0.15.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import coterie
from benchmarks import attacks, changes
from benchmarks.timing import Table
from coterie.experiments.specs import EnvironmentSpec
from coterie.policies.base import Plan

HARD = EnvironmentSpec(dim=20, pool_items=1000)
FIXED = replace(HARD, n_arms=10, pool_items=10, noise=0.03)
WORLDS = {
    "plain": HARD,
    "no clusters": replace(HARD, n_clusters=50),
    "continuum": replace(HARD, n_clusters=50, rank=3),
    "rewards + 5": replace(HARD, offset=5.0),
    "uneven noise": replace(HARD, noise=0.05, uneven=20.0),
    "heavy tails": replace(HARD, rewards="contaminated"),
    "a liar of sd 10": replace(HARD, liars=1, liar_sd=10.0),
    "one reward + 1,000": replace(HARD, outlier=1000.0),
    "10 fixed arms": FIXED,
    "one-hot": EnvironmentSpec(dim=10, n_arms=10, pool_items=10, onehot=True),
    "columns × 1, 10, 100": replace(HARD, feature_spread=100.0),
    "misspecified": replace(HARD, misspecification=0.2, pool_items=100, n_arms=20),
    "jumps": replace(HARD, dim=25, n_users=10, n_clusters=2, n_arms=10, jumps=500),
    "clicks": replace(HARD, n_arms=20, rewards="bernoulli"),
    "clicks at 8 %": replace(HARD, n_arms=20, rewards="bernoulli", attraction=0.08),
}
ATTACKS = {"sleepers": "five sleepers", "a bot": "a bot without noise", "long vectors": "a long vector"}
NEGLIGIBLE = 0.02
"""A part that gains no more than this anywhere is not worth its place."""


class Part(NamedTuple):
    """An object of the learner and the switch of it that leaves a part out."""

    owner: str
    switch: str


PARTS = {
    "limits": Part("limits", "omitted"),
    "shared values": Part("values", "omitted"),
    "noise weights": Part("prior", "omits_weights"),
    "fair share": Part("prior", "omits_shares"),
    "offset": Part("prior", "omits_offset"),
    "mixture": Part("clusters", "omits_mixture"),
    "merging": Part("clusters", "omits_merging"),
    "raised bonus": Part("clusters", "omits_raise"),
    "hierarchy": Part("weights", "omits_hierarchy"),
    "clusters": Part("weights", "omits_clusters"),
    "limit on odds": Part("weights", "omits_limit"),
    "units": Part("columns", "omitted"),
    "change test": Part("changes", "omitted"),
}
EFFECTS = "effects"
"""Those of items and of pairs, which are not even made."""


class WithoutEffects(coterie.AutoCLUB):
    """AutoCLUB that knows neither effects of items nor of pairs."""

    @staticmethod
    def _plan(n_users: int, dim: int, *, ridge: float, seed: int) -> Plan:
        return coterie.AutoCLUB._plan(n_users, dim, ridge=ridge, seed=seed)._replace(items=False)


def without(part: str | None) -> Callable[[int, int], coterie.AutoCLUB]:
    """AutoCLUB without one of its parts."""

    def make(n_users: int, dim: int) -> coterie.AutoCLUB:
        if part == EFFECTS:
            return WithoutEffects(n_users, dim)
        policy = coterie.AutoCLUB(n_users, dim)
        if part is not None:
            setattr(getattr(policy.learner, PARTS[part].owner), PARTS[part].switch, True)
        return policy

    return make


def regret(world: str, part: str | None, seed: int, horizon: int) -> float:
    if world in ATTACKS:
        attack = attacks.ATTACKS[ATTACKS[world]]
        return attacks.honest_regret(without(part), "d = 10, 2 clusters", seed, attack)
    env: Any = changes.made(world, WORLDS[world], seed)
    return float(coterie.simulate(without(part)(env.n_users, env.dim), env, horizon, record=1).regret[-1])


def ratios(world: str, parts: list[str], seeds: range, horizon: int) -> dict[str, float]:
    """Regret without each part, relative to the whole."""
    found = {}
    for part in (None, *parts):
        print(f"{world}: without {part}", end=20 * " " + "\r", file=sys.stderr, flush=True)
        found[part or ""] = np.mean([regret(world, part, seed, horizon) for seed in seeds])
    whole = found.pop("")
    return {part: float(value / whole) for part, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ablation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    every = [*PARTS, EFFECTS]
    parser.add_argument("world", nargs="*", metavar="WORLD", help="all by default")
    parser.add_argument(
        "--parts", nargs="+", default=every, choices=every, metavar="PART", help="all by default"
    )
    parser.add_argument("--seeds", type=int, default=3, help="seeds from 100 on, default 3")
    parser.add_argument("--horizon", type=int, default=10_000, help="rounds, default 10,000")
    given = parser.parse_args()
    known = (*WORLDS, *ATTACKS)
    if unknown := [name for name in given.world if name not in known]:
        parser.error(f"no world {unknown[0]!r}; there are: {', '.join(known)}")
    seeds, most = range(100, 100 + given.seeds), dict.fromkeys(given.parts, 0.0)
    rows = []
    for world in given.world or known:
        found = ratios(world, given.parts, seeds, given.horizon)
        most = {part: max(most[part], value) for part, value in found.items()}
        cells = ("" if abs(value - 1) <= NEGLIGIBLE else f"{value:.2f}" for value in found.values())
        rows.append((world, *cells))
    rows.append(("largest", *(f"{value:.2f}" for value in most.values())))
    Table("Regret without a part, relative to AutoCLUB's", ("world", *most), rows).show()
    useless = [part for part, value in most.items() if value <= 1 + NEGLIGIBLE]
    print(f"\ngain nothing anywhere: {', '.join(useless) or 'none'}")


if __name__ == "__main__":
    main()
