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
from coterie.environments.population import LinearEnvironment, check_range, expected_rewards
from coterie.errors import ArgumentError, unknown
from coterie.seeding import stream
from coterie.types import Floats, Ints
from coterie.validation import positive

Adversary = Callable[[np.random.Generator, Floats, int, int], Ints]
"""(generator, items, rounds, arms) → the item from which each arm is generated, (rounds, arms)."""


def random_items(rng: np.random.Generator, items: Floats, rounds: int, arms: int) -> Ints:
    """Choose distinct items at random, as in the paper's experiment (App. G.1)."""
    return distinct(rng.random((rounds, arms)), len(items))


def one_item(rng: np.random.Generator, items: Floats, rounds: int, arms: int) -> Ints:
    """Choose the same item for all arms of a round, so that they differ only by the perturbation."""
    return np.repeat(rng.integers(len(items), size=(rounds, 1)), arms, axis=1)


def narrow_items(rng: np.random.Generator, items: Floats, rounds: int, arms: int) -> Ints:
    """Choose the items closest to one direction, the same in every round."""
    order = np.argsort(-expected_rewards(items[:1], items)[0], kind="stable")[:arms]
    return np.broadcast_to(order, (rounds, arms)).astype(np.int64)


ADVERSARIES: dict[str, Adversary] = {"random": random_items, "one": one_item, "narrow": narrow_items}


@dataclass(eq=False, repr=False, kw_only=True)
class Smoothed(LinearEnvironment):
    """Environment of smoothed adversarial contexts: an adversary's arms, perturbed   (Sec. 4.1).

    Arms are new in every round. The parameters after `adversary` are not in the paper and are off by default.

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
    sigma : float, default √0.1
        Standard deviation σ of the perturbation of each coordinate, positive; the paper's experiment uses
        σ² = 1/10.
    truncation : float, default 1.0
        Bound R on the perturbation of each coordinate, at least sigma/10; the paper does not state it.
    adversary : {"random", "one", "narrow"} or callable, default "random"
        Items from which the arms are generated: distinct random ones, the same one for all arms of a
        round, or the same few in every round. A function is called as adversary(rng, items, rounds, arms)
        and returns row numbers of items, shape (rounds, arms).
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
        item from which an arm is generated, independent of the perturbation and uniform in [−ε*, ε*] (Wang et
        al. 2023, *misspecified user models*).
    corrupted : float, default 0.0
        Fraction of users, from 0 to 1, whose rewards are corrupted in the first `corrupted_rounds` rounds
        (Wang et al. 2023, *corrupted user detection*). Regret is computed from the true means; rewards are
        the corrupted ones.
    corruption : {"flip", "random"}, default "flip"
        "flip": corrupted rewards are −xᵀθ + noise, and clicks have probability 1 − p instead of p. "random":
        corrupted rewards are only noise, and clicks have probability ½.
    corrupted_rounds : int, default 10_000
        Number of rounds with corrupted rewards, at least 1.
    jumps : float, default 0.0
        Mean number of a user's rounds after which its preference changes to that of another cluster; at
        least 1, or 0 for never. The number is uniform between 2/7 and 12/7 of the mean; 1750 gives 500 to
        3,000, as in Li, Wu and Wang (2021).

    Raises
    ------
    ArgumentError
        If a value is outside its range.
    UnknownName
        If there is no adversary of that name.

    Notes
    -----
    x = μ + ε, where μ is the adversary's item and ε ~ N(0, σ²I), with each coordinate conditioned to be in
    [−R, R] (Assumption 4).

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> env = coterie.environments.Smoothed(data, n_users=8, n_clusters=2, n_arms=10, adversary="one")
    >>> env.block(0).items.shape
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
        """Variance of the perturbation, the same in every direction.

        It is a lower bound on the variance of the arms in any direction, for any adversary.
        """
        edge = self.truncation / self.sigma
        density = np.exp(-(edge**2) / 2) / sqrt(2 * np.pi)
        inside = _normal_mass(edge)
        return float(self.sigma**2 * (1 - 2 * edge * density / inside))

    def block(self, number: int) -> Block:
        """Generate rounds number·256 to number·256 + 255, with new arms in each.

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
        """Perturb the adversary's items; values outside ±R are drawn again, from another random stream."""
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
    """Compute the probability that a standard normal variable is in [−edge, edge]."""
    return erf(edge / sqrt(2.0))
