"""Environments that violate assumptions of policies: random users, outliers, spread within clusters."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from coterie.environments._sampling import products
from coterie.environments.blocks import BLOCK, Block
from coterie.environments.noise import as_noise
from coterie.environments.population import PopulationEnvironment
from coterie.environments.smoothed import Smoothed
from coterie.environments.stochastic import Stochastic
from coterie.errors import ArgumentError
from coterie.seeding import stream
from coterie.types import Floats, Ints
from coterie.validation import nonnegative, number, positive, shown, whole

OUTLIER_ROUND = 1000
"""Round, counted from 0, to whose reward `outlier` is added."""

NOISY_SHARE = 5
"""One in this many users has more noise than the others."""


class Disturbed(PopulationEnvironment):
    """Rounds of another environment with random users, outlier rewards, or spread within clusters.

    Users, arms and rounds are those of the base, and every disturbance is off by default. Policies that give
    all rewards the same weight, or assume identical users in a cluster, have more regret here.

    Parameters
    ----------
    base : Stochastic or Smoothed
        Environment whose rewards are not 0 or 1.
    liars : int, default 0
        Number of randomly drawn users whose rewards are random and do not depend on the arm. For these users
        all arms have mean 0, so that they add no regret, and each is a cluster of its own.
    liar_sd : float, default 5.0
        Standard deviation of their rewards, at least 0.
    outlier : float, default 0.0
        Number added to a single reward, that of round 1,000.
    uneven : float, default 1.0
        Factor of the noise of a fifth of the users, drawn at random; positive.
    within : float, default 0.0
        Length of each user's deviation from the preference of its cluster, in units of the gap γ between
        clusters; at least 0. Directions are drawn at random.

    Raises
    ------
    ArgumentError
        If the base is another environment or its rewards are 0 or 1, or a value is outside its range.

    Notes
    -----
    The preference of user i is θ_i = θ_j(i) + within · γ · e_i, with j(i) the cluster of the user and e_i of
    length 1. `labels` and `gamma` are those of the clusters.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> env = Disturbed(Stochastic(data, n_users=8, n_clusters=2, n_arms=10), liars=1, liar_sd=10.0)
    >>> env.liars
    array([6])
    >>> sorted(set(env.labels.tolist()))
    [0, 1, 2]
    """

    def __init__(
        self,
        base: Stochastic | Smoothed,
        *,
        liars: int = 0,
        liar_sd: float = 5.0,
        outlier: float = 0.0,
        uneven: float = 1.0,
        within: float = 0.0,
    ) -> None:
        """Disturb the rounds of an environment."""
        if not isinstance(base, Stochastic | Smoothed) or as_noise(base.noise).binary:
            raise ArgumentError(
                f"base must be Stochastic or Smoothed with rewards other than 0 and 1, got {shown(base)}"
            )
        self.base, self.n_liars = base, whole("liars", liars, 0, base.n_users)
        self.liar_sd, self.outlier = nonnegative("liar_sd", liar_sd), number("outlier", outlier)
        self.uneven, self.within = positive("uneven", uneven), nonnegative("within", within)
        if self.within > 0 and base.population.n_clusters == 1:
            raise ArgumentError(
                "within is in units of the gap between clusters: n_clusters must be at least 2"
            )
        self.dataset, self.population, self.delay = base.dataset, base.population, base.delay
        self.seed, self.n_arms, self.noise = base.seed, base.n_arms, base.noise

    def __repr__(self) -> str:
        """Show the base and the disturbances that are not at their default."""
        usual = {"liars": 0, "outlier": 0.0, "uneven": 1.0, "within": 0.0}
        here = {"liars": self.n_liars, **{name: getattr(self, name) for name in usual if name != "liars"}}
        changed = ", ".join(f"{name} {here[name]:g}" for name in usual if here[name] != usual[name])
        return f"<{type(self).__name__}{f' by {changed}' if changed else ''}: {self.base!r}>"

    @cached_property
    def liars(self) -> Ints:
        """Users with random rewards, ascending."""
        return np.sort(stream(self.seed, "liars").permutation(self.n_users)[: self.n_liars])

    @cached_property
    def noisy(self) -> Ints:
        """Users whose noise is `uneven` times that of the others, ascending."""
        count = max(1, self.n_users // NOISY_SHARE)
        return np.sort(stream(self.seed, "uneven").permutation(self.n_users)[:count])

    @cached_property
    def deviations(self) -> Floats:
        """Deviation of each user's preference from that of its cluster, shape (n_users, dim)."""
        drawn = stream(self.seed, "within").standard_normal((self.n_users, self.dim))
        lengths = np.linalg.norm(drawn, axis=1, keepdims=True)
        return np.asarray(drawn * (self.within * self.gamma if self.within else 0.0) / lengths)

    @property
    def labels(self) -> Ints:
        """True cluster of each user, shape (n_users,); users with random rewards are singletons."""
        return self._labels

    @property
    def preferences(self) -> Floats:
        """True preference θ of each cluster at the start, shape (clusters, dim); zero for random rewards."""
        return np.vstack([self.population.preferences, np.zeros((self.n_liars, self.dim))])

    @property
    def lambda_x(self) -> float:
        """Smallest eigenvalue of E[XXᵀ] of the base (Assumption 3)."""
        return self.base.lambda_x

    def block(self, number: int) -> Block:
        """Generate rounds number·256 to number·256 + 255 of the base, with the disturbances.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
        block = self.base.block(number)
        means, noise = block.means, block.noise * self._factors[block.users]
        if self.within > 0:
            means = means + products(block.items, block.picks, self.deviations, block.users)
        if self.n_liars > 0:
            random = np.isin(block.users, self.liars)
            rewards = self.liar_sd * stream(self.seed, "liars", str(number)).standard_normal(BLOCK)
            means, noise = np.where(random[:, None], 0.0, means), np.where(random, rewards, noise)
        if number == OUTLIER_ROUND // BLOCK:
            noise[OUTLIER_ROUND % BLOCK] += self.outlier
        return block._replace(means=means, noise=noise)

    @cached_property
    def _labels(self) -> Ints:
        """The labels of the base, with new ones for users with random rewards."""
        labels = self.population.labels.copy()
        labels[self.liars] = self.population.n_clusters + np.arange(self.n_liars)
        return labels

    @cached_property
    def _factors(self) -> Floats:
        """Noise factor of each user."""
        factors = np.ones(self.n_users)
        factors[self.noisy] = self.uneven
        return factors
