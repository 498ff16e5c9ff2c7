"""How little regret is there to hope for? A policy that is told the clusters, and not who belongs to them.

    python -m benchmarks.told [--data DIR] [--seeds 5] [--long]

It knows the noise, the mean and the spread of preferences, how many clusters there are and how many users
each of them has, and every reward teaches the cluster that it truly came from. All that is left to infer is
where a user belongs, from how well each cluster foretold the user's own rewards; and since only the true
one learns from them, it is even favoured. Nobody who has to find the clusters knows as much. This is no
proof: one rule of choice, not the best. Worlds and seeds are those of `coterie reproduce auto`, whose figures
may be laid beside these.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from coterie.experiments.auto import WORLDS
from coterie.experiments.shelf import Shelf
from coterie.experiments.variations import PAPER, Variation
from coterie.experiments.worlds import Place
from coterie.progress import visible
from coterie.types import Floats

HORIZON = 20_000


class Told:
    """Ridge regressions of the true clusters, and each user's log odds of belonging to each of them."""

    def __init__(self, world: Place, sigma: float) -> None:
        sizes = np.bincount(world.labels)
        mean = world.preferences[world.labels].mean(axis=0)
        spread = float(((world.preferences[world.labels] - mean) ** 2).mean())
        self.labels, self.sigma = world.labels, sigma
        self.inverse = np.repeat(np.eye(world.dim)[None] * spread / sigma**2, len(sizes), axis=0)
        self.estimate = np.repeat(mean[None], len(sizes), axis=0)
        self.odds: Floats = np.tile(np.log(sizes / sizes.sum()), (world.n_users, 1))

    def choose(self, user: int, arms: Floats) -> int:
        """The mixture of all clusters as estimate, the width of the likeliest, σ as β."""
        weights = np.exp(self.odds[user] - self.odds[user].max())
        widths = ((arms @ self.inverse[weights.argmax()]) * arms).sum(axis=1)
        means = arms @ (weights @ self.estimate / weights.sum())
        return int(np.argmax(means + self.sigma * np.sqrt(widths)))

    def learn(self, user: int, x: Floats, reward: float) -> None:
        """Each cluster said beforehand what it expected; the true one learns."""
        gains = self.inverse @ x
        scale = 1.0 + gains @ x
        missed = reward - self.estimate @ x
        self.odds[user] -= 0.5 * (np.log(scale) + missed**2 / (self.sigma**2 * scale))
        own = self.labels[user]
        self.estimate[own] += gains[own] * missed[own] / scale[own]
        self.inverse[own] -= np.outer(gains[own], gains[own]) / scale[own]


def regret(world: Place, sigma: float, horizon: int) -> float:
    policy, total, played, number = Told(world, sigma), 0.0, 0, 0
    while played < horizon:
        block = world.block(number)
        for user, picks, means, noise in zip(block.users, block.picks, block.means, block.noise, strict=True):
            if played == horizon:
                break
            arm = policy.choose(user, block.items[picks])
            policy.learn(user, block.items[picks[arm]], float(means[arm] + noise))
            total += float(means.max() - means[arm])
            played += 1
        number += 1
    return total


def wanted(variation: Variation, long: bool) -> bool:
    """Worlds of stochastic contexts and Gaussian noise in which there are clusters to be told apart."""
    world = variation.world
    plain = world.setting == "stochastic" and world.rewards == "gaussian"
    return plain and world.n_clusters not in (1, world.n_users) and (long or variation.horizon is None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of data files; without it, synthetic data only")
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds (5)")
    parser.add_argument("--long", action="store_true", help="the worlds of 100,000 rounds too")
    given = parser.parse_args()
    if given.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {given.seeds}")
    shelf = Shelf(given.data)
    names = PAPER if given.data else ("synthetic",)
    for variation in WORLDS:
        if not wanted(variation, given.long):
            continue
        for name in names:
            if variation.datasets is not None and name not in variation.datasets:
                continue
            world = replace(variation.world, dataset=name)
            horizon = variation.horizon or HORIZON
            found = []
            with visible(given.seeds * horizon) as advance:
                for seed in range(given.seeds):
                    place = world.environment(shelf.dataset(world), seed)
                    found.append(regret(place, world.noise, horizon))
                    advance(horizon, found[-1])
            error = np.std(found, ddof=1) / len(found) ** 0.5 if len(found) > 1 else float("nan")
            where = f"{variation.label:<18}T = {horizon:<9,}{name:<12}"
            print(f"{where}{np.mean(found):7,.0f} ± {error:.0f}", flush=True)


if __name__ == "__main__":
    main()
