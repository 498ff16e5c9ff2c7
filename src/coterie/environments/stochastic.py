"""Stochastic contexts: each round a user and a random set of the dataset's items (Sec. 3.1 and 6.3)."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from coterie.datasets.dataset import Dataset
from coterie.environments._sampling import distinct, looked_up
from coterie.environments.blocks import BLOCK, Block
from coterie.environments.delays import Delay
from coterie.environments.noise import Noise, as_noise
from coterie.environments.population import Peopled, Population
from coterie.errors import ArgumentError
from coterie.seeding import stream
from coterie.types import Floats
from coterie.validation import shown, whole


class Stochastic(Peopled):
    """A uniform user and `n_arms` distinct items a round; reward xᵀθ + noise.

    The rounds depend on the seed alone, never on the policy: every policy meets the same users, arms and
    noise. Everything after `seed` goes beyond the paper and is off by default.

    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> world = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=1)
    >>> sorted(set(world.labels.tolist()))
    [0, 1]
    """

    def __init__(
        self,
        dataset: Dataset,
        n_users: int = 50,
        n_clusters: int = 10,
        n_arms: int = 100,
        noise: float | Noise = 0.1,
        seed: int = 0,
        *,
        sizes: Literal["equal", "zipf"] = "equal",
        zipf: float = 0.0,
        late: float = 0.0,
        settled: int = 10_000,
        drift: float = 0.0,
        delay: int | Delay = 0,
    ) -> None:
        """Draw the users and their clusters."""
        if not isinstance(dataset, Dataset):
            raise ArgumentError(f"dataset must come from coterie.datasets.load, got {shown(dataset)}")
        self.population = Population(dataset, n_users, n_clusters, seed, sizes, zipf, late, settled, drift)
        self.dataset, self.n_arms, self.seed = dataset, n_arms, seed
        self.noise = as_noise(noise)
        self.delay = delay if isinstance(delay, Delay) else Delay(most=whole("delay", delay, 0))
        if not 1 <= whole("n_arms", n_arms, 1) <= len(dataset.items):
            raise ArgumentError(f"n_arms must be from 1 to the {len(dataset.items)} items, got {n_arms!r}")
        if self.noise.binary:
            check_probabilities(self._table(0))

    @cached_property
    def lambda_x(self) -> float:
        """The least eigenvalue of E[XXᵀ] (Assumption 3)."""
        items = self.dataset.items
        return float(max(np.linalg.eigvalsh(items.T @ items / len(items))[0], 0.0))

    def block(self, number: int) -> Block:
        """Rounds number·BLOCK to (number + 1)·BLOCK − 1."""
        rng = stream(self.seed, "rounds", str(number))
        users = self.population.arrivals(rng, number, BLOCK)
        picks = distinct(rng.random((BLOCK, self.n_arms)), len(self.dataset.items))
        table = self._table(number)
        if self.noise.binary and self.population.drift > 0:
            check_probabilities(table)
        return Block(
            users=users,
            items=self.dataset.items,
            picks=picks,
            means=looked_up(table, self.labels[users], picks),
            noise=self.noise.draw(rng, BLOCK),
            delays=self.delay.draw(rng, BLOCK),
            binary=self.noise.binary,
            lasting=True,
        )

    def _table(self, number: int) -> Floats:
        """The expected reward of every item for every cluster during a block."""
        if self.population.drift == 0:
            return self._lasting_table
        return self.population.preferences_in(number) @ self.dataset.items.T

    @cached_property
    def _lasting_table(self) -> Floats:
        return self.preferences @ self.dataset.items.T


def check_probabilities(means: Floats) -> None:
    """Bernoulli rewards need means that are probabilities."""
    if means.min() < 0 or means.max() > 1:
        raise ArgumentError(
            f"Bernoulli rewards need means in [0, 1], got {means.min():.3g} to {means.max():.3g}; "
            "coterie.environments.lifted(dataset) maps means from [-1, 1] to [0, 1]"
        )
