"""Smoothed adversarial contexts: an adversary's arms, perturbed by truncated Gaussian noise (Sec. 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, sqrt

import numpy as np

from coterie.environments._sampling import blurred, distinct, products
from coterie.environments.blocks import BLOCK, Block
from coterie.environments.delays import as_delay
from coterie.environments.noise import as_noise
from coterie.environments.population import LinearWorld, check_range, expected_rewards
from coterie.errors import ArgumentError, unknown
from coterie.seeding import stream
from coterie.types import Floats, Ints
from coterie.validation import positive

Adversary = Callable[[np.random.Generator, Floats, int, int], Ints]
"""(generator, items, rounds, arms) → the item that stands behind each arm, (rounds, arms)."""


def random_items(rng: np.random.Generator, items: Floats, rounds: int, arms: int) -> Ints:
    """Choose distinct items at random, as in the paper's experiment (App. G.1)."""
    return distinct(rng.random((rounds, arms)), len(items))


def one_item(rng: np.random.Generator, items: Floats, rounds: int, arms: int) -> Ints:
    """Choose the same item for all arms of a round, so that only the perturbation distinguishes them."""
    return np.repeat(rng.integers(len(items), size=(rounds, 1)), arms, axis=1)


def narrow_items(rng: np.random.Generator, items: Floats, rounds: int, arms: int) -> Ints:
    """Choose the items nearest to one direction, the same in every round."""
    order = np.argsort(-expected_rewards(items[:1], items)[0], kind="stable")[:arms]
    return np.broadcast_to(order, (rounds, arms)).astype(np.int64)


ADVERSARIES: dict[str, Adversary] = {"random": random_items, "one": one_item, "narrow": narrow_items}


@dataclass(eq=False, repr=False, kw_only=True)
class Smoothed(LinearWorld):
    """Environment of smoothed adversarial contexts: an adversary's arms, perturbed   (Sec. 4.1).

    Arms are new in every round. What comes after `adversary` goes beyond the paper and is off by default.

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
    sigma : float, default √0.1
        Standard deviation σ of the perturbation of each coordinate, positive; σ² = 1/10 is the paper's
        experiment.
    truncation : float, default 1.0
        Bound R on the perturbation of each coordinate, at least sigma/10; the paper states none.
    adversary : {"random", "one", "narrow"} or callable, default "random"
        Items behind the arms: distinct ones at random, the same one for all arms of a round, or the same few
        in every round. A function is called as adversary(rng, items, rounds, arms) and returns row numbers of
        items, shape (rounds, arms).
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
        Bound ε* on the deviation of a mean from xᵀθ, at least 0: each user has a fixed one for each item
        behind an arm, whatever its perturbation, uniform in [−ε*, ε*] (Wang et al. 2023, *misspecified user
        models*).
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
        If a value is outside its range.
    UnknownName
        If there is no adversary of that name.

    Notes
    -----
    x = μ + ε, with μ the adversary's item and ε ~ N(0, σ²I), each coordinate conditioned to lie within [−R,
    R] (Assumption 4).

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> world = coterie.environments.Smoothed(data, n_users=8, n_clusters=2, n_arms=10, adversary="one")
    >>> world.block(0).items.shape
    (2560, 5)
    """

    sigma: float = sqrt(0.1)
    truncation: float = 1.0
    adversary: str | Adversary = "random"

    def __post_init__(self) -> None:
        """Draw the users and their clusters."""
        if positive("truncation", self.truncation) < 0.1 * positive("sigma", self.sigma):
            raise ArgumentError(
                f"truncation must be at least sigma / 10, got {self.truncation!r} for {self.sigma!r}"
            )
        if isinstance(self.adversary, str) and self.adversary not in ADVERSARIES:
            raise unknown("adversary", self.adversary, ADVERSARIES, "random, one and narrow are known")
        known = ADVERSARIES[self.adversary] if isinstance(self.adversary, str) else self.adversary
        self.adversary = self._adversary = known
        super().__post_init__()

    @property
    def lambda_x(self) -> float:
        """Variance that the perturbation gives every direction, whatever the adversary does."""
        edge = self.truncation / self.sigma
        density = np.exp(-(edge**2) / 2) / sqrt(2 * np.pi)
        inside = _normal_mass(edge)
        return float(self.sigma**2 * (1 - 2 * edge * density / inside))

    def block(self, number: int) -> Block:
        """Draw rounds number·256 to number·256 + 255, with arms of their own.

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
        items = self.dataset.items
        behind = np.ascontiguousarray(self._adversary(rng, items, BLOCK, self.n_arms), np.int64)
        arms = self._blurred(rng, items, behind, number).reshape(-1, self.dim)
        picks = np.arange(BLOCK * self.n_arms).reshape(BLOCK, self.n_arms)
        means = products(
            arms, picks, self.population.preferences_in(number), self.population.clusters_of(users, number)
        )
        means = self.deviations.added(means, users, behind)
        noise = as_noise(self.noise)
        if noise.binary:
            check_range(float(means.min()), float(means.max()))
        return Block(
            users=users,
            items=arms,
            picks=picks,
            means=means,
            noise=noise.draw(rng, BLOCK),
            delays=as_delay(self.delay).draw(rng, BLOCK),
            binary=noise.binary,
            lasting=False,
            signs=self.deviations.signs(users, number),
        )

    def _blurred(self, rng: np.random.Generator, items: Floats, behind: Ints, number: int) -> Floats:
        """Perturb the adversary's items; what falls outside ±R is drawn again, from another stream."""
        edge = self.truncation / self.sigma
        normals = rng.standard_normal((*behind.shape, self.dim))
        arms = np.empty(normals.shape)
        spares = 1024
        while True:
            spare = stream(self.seed, "spare", str(number)).standard_normal(spares)
            if blurred(items, behind, normals, spare, self.sigma, edge, arms):
                return arms
            spares *= 4


def _normal_mass(edge: float) -> float:
    """Compute the probability that a standard normal lies in [−edge, edge]."""
    return erf(edge / sqrt(2.0))
