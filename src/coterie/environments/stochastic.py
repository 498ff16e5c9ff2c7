"""Stochastic contexts: each round a user and a random set of the dataset's items (Sec. 3.1 and 6.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coterie.environments._sampling import distinct, looked_up, products
from coterie.environments.blocks import BLOCK, Block
from coterie.environments.delays import as_delay
from coterie.environments.noise import as_noise
from coterie.environments.population import (
    MOST_ENTRIES,
    LinearWorld,
    check_probabilities,
    expected_rewards,
)
from coterie.seeding import stream
from coterie.types import Floats, Ints


@dataclass(eq=False, repr=False)
class Stochastic(LinearWorld):
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
        Sizes of the clusters: all equal, or proportional to 1/rank.
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
    misspecification : float, default 0.0
        Bound ε* on the deviation of a mean from xᵀθ, at least 0: each user has a fixed one for each item,
        uniform in [−ε*, ε*] (Wang et al. 2023, *misspecified user models*).
    corrupted : float, default 0.0
        Share of users, from 0 to 1, who lie in the first `corrupted_rounds` rounds (Wang et al. 2023,
        *corrupted user detection*). Regret is that of the true means, reward the one that was observed.
    corruption : {"flip", "random"}, default "flip"
        Their rewards: the opposite, −xᵀθ + noise, or noise alone; of clicks 1 − p or ½ in place of p.
    corrupted_rounds : int, default 10_000
        Rounds in which they lie, at least 1.
    jumps : float, default 0.0
        Rounds of its own after which a user's taste jumps to that of another cluster, on average; at least 1,
        or 0 for never. It is uniform between 2/7 and 12/7 of that; 1750 makes 500 to 3,000, as in Li, Wu and
        Wang (2021).

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
        noise = as_noise(self.noise)
        if noise.binary and self.population.drift > 0:
            now = self.population.preferences_in(number)
            check_probabilities(now, self.dataset.items, self.misspecification)
        clusters = self.population.clusters_of(users, number)
        return Block(
            users=users,
            items=self.dataset.items,
            picks=picks,
            means=self.deviations.added(self._means(number, clusters, picks), users, picks),
            noise=noise.draw(rng, BLOCK),
            delays=as_delay(self.delay).draw(rng, BLOCK),
            binary=noise.binary,
            lasting=True,
            signs=self.deviations.signs(users, number),
        )

    def _means(self, number: int, clusters: Ints, picks: Ints) -> Floats:
        """The expected rewards of a block's arms; from a table if there are few clusters that stay."""
        few = self.population.n_clusters * len(self.dataset.items) <= MOST_ENTRIES
        if few and self.population.drift == 0:
            return looked_up(self._lasting_means, clusters, picks)
        return products(self.dataset.items, picks, self.population.preferences_in(number), clusters)

    @cached_property
    def _lasting_means(self) -> Floats:
        """The expected reward of every item for every cluster."""
        return expected_rewards(self.preferences, self.dataset.items)
