"""Stochastic contexts: each round a user and a random set of the dataset's items (Sec. 3.1 and 6.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coterie.environments._sampling import distinct, looked_up
from coterie.environments.blocks import BLOCK, Block
from coterie.environments.delays import as_delay
from coterie.environments.noise import as_noise
from coterie.environments.population import LinearWorld, check_probabilities, expected_rewards
from coterie.seeding import stream
from coterie.types import Floats


@dataclass(eq=False, repr=False)
class Stochastic(LinearWorld):
    """A uniform user and `n_arms` distinct items a round; reward xᵀθ + noise.

    The rounds depend on the seed alone, never on the policy: every policy meets the same users, arms and
    noise. Everything after `seed` goes beyond the paper and is off by default.

    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> world = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=1)
    >>> sorted(set(world.labels.tolist()))
    [0, 1]
    """

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
        noise, table = as_noise(self.noise), self._table(number)
        if noise.binary and self.population.drift > 0:
            check_probabilities(table)
        return Block(
            users=users,
            items=self.dataset.items,
            picks=picks,
            means=looked_up(table, self.labels[users], picks),
            noise=noise.draw(rng, BLOCK),
            delays=as_delay(self.delay).draw(rng, BLOCK),
            binary=noise.binary,
            lasting=True,
        )

    def _table(self, number: int) -> Floats:
        """The expected reward of every item for every cluster during a block."""
        if self.population.drift == 0:
            return self.lasting_means
        return expected_rewards(self.population.preferences_in(number), self.dataset.items)
