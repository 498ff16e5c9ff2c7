"""Smoothed adversarial contexts: an adversary's arms, each blurred by truncated Gaussian noise (Sec. 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, sqrt

import numpy as np

from coterie.environments._sampling import blurred, distinct, products
from coterie.environments.blocks import BLOCK, Block
from coterie.environments.delays import as_delay
from coterie.environments.noise import as_noise
from coterie.environments.population import LinearWorld, check_probabilities, expected_rewards
from coterie.errors import ArgumentError, unknown
from coterie.seeding import stream
from coterie.types import Floats, Ints
from coterie.validation import positive

Adversary = Callable[[np.random.Generator, Floats, int, int], Ints]
"""(generator, items, rounds, arms) → the item that stands behind each arm, (rounds, arms)."""


def random_items(rng: np.random.Generator, items: Floats, rounds: int, arms: int) -> Ints:
    """Distinct items at random, as in the paper's experiment (App. G.1)."""
    return distinct(rng.random((rounds, arms)), len(items))


def one_item(rng: np.random.Generator, items: Floats, rounds: int, arms: int) -> Ints:
    """Hostile: all arms of a round are the same item, so that only the noise tells them apart."""
    return np.repeat(rng.integers(len(items), size=(rounds, 1)), arms, axis=1)


def narrow_items(rng: np.random.Generator, items: Floats, rounds: int, arms: int) -> Ints:
    """Hostile: every round offers the items nearest to one and the same direction."""
    order = np.argsort(-expected_rewards(items[:1], items)[0], kind="stable")[:arms]
    return np.broadcast_to(order, (rounds, arms)).astype(np.int64)


ADVERSARIES: dict[str, Adversary] = {"random": random_items, "one": one_item, "narrow": narrow_items}


@dataclass(eq=False, repr=False, kw_only=True)
class Smoothed(LinearWorld):
    """x = μ + ε: the adversary's item and ε ~ N(0, σ²I), each coordinate within [−R, R] (Assumption 4).

    The paper's experiment has σ² = 1/10 and random items; it states no R. Settings not named here are
    those of `Stochastic`.

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
        """The variance that the noise gives every direction, whatever the adversary does."""
        edge = self.truncation / self.sigma
        density = np.exp(-(edge**2) / 2) / sqrt(2 * np.pi)
        inside = _normal_mass(edge)
        return float(self.sigma**2 * (1 - 2 * edge * density / inside))

    def block(self, number: int) -> Block:
        """Rounds number·BLOCK to (number + 1)·BLOCK − 1, with arms of their own."""
        rng = stream(self.seed, "rounds", str(number))
        users = self.population.arrivals(rng, number, BLOCK)
        items = self.dataset.items
        behind = self._adversary(rng, items, BLOCK, self.n_arms)
        arms = self._blurred(rng, items, behind, number).reshape(-1, self.dim)
        picks = np.arange(BLOCK * self.n_arms).reshape(BLOCK, self.n_arms)
        means = products(arms, picks, self.population.preferences_in(number), self.labels[users])
        noise = as_noise(self.noise)
        if noise.binary:
            check_probabilities(means)
        return Block(
            users=users,
            items=arms,
            picks=picks,
            means=means,
            noise=noise.draw(rng, BLOCK),
            delays=as_delay(self.delay).draw(rng, BLOCK),
            binary=noise.binary,
            lasting=False,
        )

    def _blurred(self, rng: np.random.Generator, items: Floats, behind: Ints, number: int) -> Floats:
        """The adversary's items plus noise; what falls outside ±R is drawn again, from a stream aside."""
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
    """The probability that a standard normal lies in [−edge, edge]."""
    return erf(edge / sqrt(2.0))
