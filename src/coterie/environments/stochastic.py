"""Stochastic contexts: in each round a random user and random items of the dataset (Sec. 3.1 and 6.3)."""

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
    LinearEnvironment,
    check_probabilities,
    expected_rewards,
)
from coterie.seeding import stream
from coterie.types import Floats, Ints


@dataclass(eq=False, repr=False)
class Stochastic(LinearEnvironment):
    """Environment of stochastic contexts: in each round a random user and random items   (Sec. 3.1).

    The rounds depend only on the seed, never on the policy: every policy sees the same users, arms and
    noise. The parameters after `seed` are not in the paper and are off by default.

    Parameters
    ----------
    dataset : Dataset
        Vectors of users and items, from `coterie.datasets.load`.
    n_users : int, default 50
        Number of users, drawn from those of the dataset.
    n_clusters : int, default 10
        Number of clusters, from 1 to n_users. Users are assigned to clusters at random, and the preference
        of a cluster is the mean of its members' vectors.
    n_arms : int, default 100
        Number of arms in a round, from 1 to the number of items.
    noise : float or Noise, default 0.1
        Noise of rewards; a number is the σ of Gaussian noise. Use `Bernoulli()` for clicks.
    seed : int, default 0
        Seed of users, clusters and rounds, at least 0.
    sizes : {"equal", "zipf"}, default "equal"
        Sizes of the clusters: equal, or proportional to 1/rank.
    zipf : float, default 0.0
        Exponent of the arrival probabilities, at least 0: the user of rank k arrives with probability
        proportional to k^−zipf. 0 is uniform (Assumption 1), 1 is strongly uneven.
    late : float, default 0.0
        Fraction of users, from 0 to below 1, that appear one by one over the first `settled` rounds.
    settled : int, default 10_000
        Round by which all users have appeared, at least 1; it only has an effect with `late`.
    drift : float, default 0.0
        Distance that each preference moves in a thousand rounds, at least 0; its length stays the same.
    delay : int or Delay, default 0
        Rounds until feedback arrives: a constant, or random.
    misspecification : float, default 0.0
        Bound ε* on the deviation of a mean from xᵀθ, at least 0: each user has a fixed deviation for each
        item, uniform in [−ε*, ε*] (Wang et al. 2023, *misspecified user models*).
    corrupted : float, default 0.0
        Fraction of users, from 0 to 1, whose rewards are corrupted in the first `corrupted_rounds` rounds
        (Wang et al. 2023, *corrupted user detection*). Regret is computed from the true means; rewards are
        the corrupted ones.
    corruption : {"flip", "random"}, default "flip"
        Corrupted rewards: inverted, −xᵀθ + noise, or only noise; clicks have probability 1 − p or ½ instead
        of p.
    corrupted_rounds : int, default 10_000
        Number of rounds with corrupted rewards, at least 1.
    jumps : float, default 0.0
        Mean number of a user's rounds after which its preference changes to that of another cluster; at
        least 1, or 0 for never. The number is uniform between 2/7 and 12/7 of the mean; 1750 gives 500 to
        3,000, as in Li, Wu and Wang (2021).

    Raises
    ------
    ArgumentError
        If a value is outside its range, or the noise is Bernoulli and a mean is not in [0, 1].

    Notes
    -----
    A round has a uniformly random user i and `n_arms` distinct items; the reward of item x is xᵀθ_j(i) +
    noise, where j(i) is the cluster of the user (Sec. 3.1 and 6.3). The paper does not state the noise and
    the horizon of its experiments.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> env = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=1)
    >>> sorted(set(env.labels.tolist()))
    [0, 1]
    """

    @cached_property
    def lambda_x(self) -> float:
        """Smallest eigenvalue of E[XXᵀ] (Assumption 3)."""
        items = self.dataset.items
        return float(max(np.linalg.eigvalsh(items.T @ items / len(items))[0], 0.0))

    def block(self, number: int) -> Block:
        """Generate rounds number·256 to number·256 + 255.

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
        """Compute the expected rewards of a block's arms; from a table if it is small and does not change."""
        few = self.population.n_clusters * len(self.dataset.items) <= MOST_ENTRIES
        if few and self.population.drift == 0:
            return looked_up(self._lasting_means, clusters, picks)
        return products(self.dataset.items, picks, self.population.preferences_in(number), clusters)

    @cached_property
    def _lasting_means(self) -> Floats:
        """The expected reward of every item for every cluster."""
        return expected_rewards(self.preferences, self.dataset.items)
