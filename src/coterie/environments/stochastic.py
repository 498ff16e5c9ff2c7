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
    """Environment of stochastic contexts: each round a random user and random items   (Sec. 3.1).

    The rounds depend on the seed alone, never on the policy: every policy meets the same users, arms and
    noise. What comes after `seed` goes beyond the paper and is off by default.

    Parameters
    ----------
    dataset : Dataset
        Vectors of users and items, from `coterie.datasets.load`.
    n_users : int, default 50
        Number of users, drawn from those of the dataset.
    n_clusters : int, default 10
        Number of clusters, from 1 to n_users. Clusters are made up: users are assigned at random, and the
        preference of a cluster is the mean of its members' vectors.
    n_arms : int, default 100
        Number of arms in a round, from 1 to the number of items.
    noise : float or Noise, default 0.1
        Noise of rewards; a number is the σ of Gaussian noise. Use `Bernoulli()` for clicks.
    seed : int, default 0
        Seed of users, clusters and rounds, at least 0.
    sizes : {"equal", "zipf"}, default "equal"
        Sizes of the clusters: all alike, or proportional to 1/rank.
    zipf : float, default 0.0
        Exponent of arrival frequencies, at least 0: the user of rank k comes in proportion to k^−zipf. 0 is
        uniform (Assumption 1), 1 is strongly uneven.
    late : float, default 0.0
        Share of users, from 0 to below 1, who appear one by one over the first `settled` rounds.
    settled : int, default 10_000
        Round by which all users have appeared, at least 1; only matters with `late`.
    drift : float, default 0.0
        Distance that each preference wanders in a thousand rounds, at least 0; its length stays the same.
    delay : int or Delay, default 0
        Rounds until feedback arrives: the same for all, or random.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or the noise is Bernoulli and a mean is no probability.

    Notes
    -----
    A round has a uniform user i and `n_arms` distinct items; the reward of item x is xᵀθ_j(i) + noise, with
    j(i) the cluster of the user (Sec. 3.1 and 6.3). The paper states neither the noise nor the horizon of its
    experiments.

    Examples
    --------
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
        """Least eigenvalue of E[XXᵀ] (Assumption 3)."""
        items = self.dataset.items
        return float(max(np.linalg.eigvalsh(items.T @ items / len(items))[0], 0.0))

    def block(self, number: int) -> Block:
        """Draw rounds number·256 to number·256 + 255.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
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
        """Compute the expected reward of every item for every cluster during a block."""
        if self.population.drift == 0:
            return self._lasting_table
        return self.population.preferences_in(number) @ self.dataset.items.T

    @cached_property
    def _lasting_table(self) -> Floats:
        return self.preferences @ self.dataset.items.T


def check_probabilities(means: Floats) -> None:
    """Refuse means that are no probabilities, for Bernoulli rewards."""
    if means.min() < 0 or means.max() > 1:
        raise ArgumentError(
            f"Bernoulli rewards need means in [0, 1], got {means.min():.3g} to {means.max():.3g}; "
            "coterie.environments.lifted(dataset) maps means from [-1, 1] to [0, 1]"
        )
