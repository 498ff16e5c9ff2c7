"""Regret of three policies that know what no real policy can know at the start: limits of what can be gained.

    python -m benchmarks.informed [--data DIR] [--seeds 5] [--long]

All of them know the noise and the mean of preferences.

- `clusters` knows the number of clusters, their sizes and the variance of preferences, and each reward
  updates the model of the user's true cluster. It only has to infer a user's cluster, from how well each
  cluster predicted the user's rewards; since only the true cluster learns from them, that one is favoured.
- `spread` knows the variance of preferences, and learns about each user from that user alone.
- `directions` does so too, and knows the full covariance of preferences: the directions in which users
  differ.

This is not a proof: the rule of choice need not be the best. Environments and seeds are those of
`coterie reproduce auto`, so that numbers can be compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from coterie.environments.population import PopulationEnvironment
from coterie.errors import MissingData
from coterie.experiments.figures import find_figure
from coterie.experiments.reproduction import FigurePlan, PanelSpec
from coterie.experiments.runner import DataFiles
from coterie.experiments.tuning import TuningProtocol
from coterie.policies import Policy
from coterie.progress import progress_bar
from coterie.simulation import simulate
from coterie.types import Floats


class Clusters:
    """Ridge regressions of the true clusters, and each user's log odds of belonging to each of them."""

    def __init__(self, world: PopulationEnvironment, sigma: float) -> None:
        sizes, (mean, around) = np.bincount(world.labels), moments(world)
        spread = np.trace(around) / world.dim
        self.cluster_of, self.sigma = world.labels, sigma
        self.inverse = np.repeat(np.eye(world.dim)[None] * spread / sigma**2, len(sizes), axis=0)
        self.estimate = np.repeat(mean[None], len(sizes), axis=0)
        self.odds: Floats = np.tile(np.log(sizes / sizes.sum()), (world.n_users, 1))

    def recommend(self, user: int, arms: Floats) -> int:
        """The mixture of all clusters as estimate, the width of the likeliest, σ as β."""
        weights = np.exp(self.odds[user] - self.odds[user].max())
        estimate = weights @ self.estimate / weights.sum()
        return best(arms, estimate, self.inverse[weights.argmax()], self.sigma)

    def update(self, user: int, x: Floats, reward: float) -> None:
        """Update the odds by each cluster's prediction; then the true cluster learns."""
        scale = 1.0 + (self.inverse @ x) @ x
        missed = reward - self.estimate @ x
        self.odds[user] -= 0.5 * (np.log(scale) + missed**2 / (self.sigma**2 * scale))
        own = self.cluster_of[user]
        absorb(self.estimate[own], self.inverse[own], x, reward)


class Users:
    """A regression for each user, about the mean of preferences and with their covariance before it."""

    def __init__(self, world: PopulationEnvironment, sigma: float, *, directions: bool) -> None:
        mean, around = moments(world)
        if not directions:
            around = np.eye(world.dim) * np.trace(around) / world.dim
        self.sigma = sigma
        self.inverse = np.repeat(around[None] / sigma**2, world.n_users, axis=0)
        self.estimate = np.repeat(mean[None], world.n_users, axis=0)

    def recommend(self, user: int, arms: Floats) -> int:
        """The user's own estimate and width, σ as β."""
        return best(arms, self.estimate[user], self.inverse[user], self.sigma)

    def update(self, user: int, x: Floats, reward: float) -> None:
        """The user's own regression learns."""
        absorb(self.estimate[user], self.inverse[user], x, reward)


INFORMED: dict[str, Callable[[PopulationEnvironment, float], Policy]] = {
    "clusters": Clusters,
    "spread": partial(Users, directions=False),
    "directions": partial(Users, directions=True),
}


def moments(world: PopulationEnvironment) -> tuple[Floats, Floats]:
    """The mean and the covariance of preferences over users."""
    all_users = world.preferences[world.labels]
    mean: Floats = all_users.mean(axis=0)
    return mean, (all_users - mean).T @ (all_users - mean) / world.n_users


def best(arms: Floats, estimate: Floats, inverse: Floats, sigma: float) -> int:
    """The arm of greatest mean and standard deviation."""
    widths = np.maximum(((arms @ inverse) * arms).sum(axis=1), 0.0)
    return int(np.argmax(arms @ estimate + sigma * np.sqrt(widths)))


def absorb(estimate: Floats, inverse: Floats, x: Floats, reward: float) -> None:
    """One more reward for a regression, in world."""
    gain = inverse @ x
    scale = 1.0 + float(gain @ x)
    estimate += gain * (reward - float(estimate @ x)) / scale
    inverse -= np.outer(gain, gain) / scale


def wanted(panel: PanelSpec, long: bool) -> bool:
    """Environments with clusters, stochastic contexts and Gaussian noise."""
    world = panel.environment
    plain = world.setting == "stochastic" and world.rewards == "gaussian"
    return plain and world.n_clusters not in (1, world.n_users) and (long or panel.variation.horizon is None)


def report(panel: PanelSpec, data: DataFiles, seeds: Sequence[int]) -> str:
    """A line of what each of them has in a world."""
    line = f"{panel.label:<30}{panel.environment.dataset:<12}"
    with progress_bar(len(INFORMED) * len(seeds) * panel.horizon, "round") as advance:
        for what, informed in INFORMED.items():
            found = []
            for seed in seeds:
                world = panel.environment.make(data.dataset(panel.environment), seed)
                assert isinstance(world, PopulationEnvironment)
                policy = informed(world, panel.environment.noise)
                trace = simulate(policy, world, panel.horizon, record=1)
                advance(panel.horizon)
                found.append(trace.regret[-1])
            error = np.std(found, ddof=1) / len(found) ** 0.5 if len(found) > 1 else float("nan")
            line += f"{what} {np.mean(found):7,.0f} ± {error:<5.0f}"
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of data files; without it, synthetic data only")
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds (5)")
    parser.add_argument("--long", action="store_true", help="the worlds of 100,000 rounds too")
    given = parser.parse_args()
    if given.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {given.seeds}")
    figure = find_figure("auto") if given.data else find_figure("auto").on(("synthetic",))
    plan = FigurePlan(figure=figure, seeds=tuple(range(given.seeds)), protocol=TuningProtocol())
    data = DataFiles(given.data)
    try:
        for panel in plan.panel_specs():
            if wanted(panel, given.long):
                print(report(panel, data, plan.seeds), flush=True)
    except MissingData as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
