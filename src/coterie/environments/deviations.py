"""Violations of the linear model: means that deviate from it, and users with corrupted rewards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from coterie.environments.blocks import BLOCK
from coterie.errors import ArgumentError
from coterie.seeding import stream
from coterie.types import Bools, Floats, Ints
from coterie.validation import nonnegative, whole

SIGNS = {"flip": -1.0, "random": 0.0}
"""Factor of the mean of a corrupted reward: inverted, or zero."""


@dataclass(frozen=True)
class Deviations:
    """Fixed deviations for each user and item, and users with corrupted first rewards; see `Stochastic`."""

    n_users: int
    n_items: int
    seed: int
    misspecification: float = 0.0
    corrupted: float = 0.0
    corruption: Literal["flip", "random"] = "flip"
    corrupted_rounds: int = 10_000

    def __post_init__(self) -> None:
        """Check the ranges."""
        nonnegative("misspecification", self.misspecification)
        if nonnegative("corrupted", self.corrupted) > 1:
            raise ArgumentError(f"corrupted must be a fraction from 0 to 1, got {self.corrupted!r}")
        if self.corruption not in SIGNS:
            raise ArgumentError(f"corruption must be 'flip' or 'random', got {self.corruption!r}")
        whole("corrupted_rounds", self.corrupted_rounds, 1)

    @cached_property
    def liars(self) -> Bools:
        """Mask of the corrupted users: the given fraction, rounded to the nearest number, at random."""
        chosen = np.zeros(self.n_users, np.bool_)
        count = round(self.corrupted * self.n_users)
        chosen[stream(self.seed, "corrupted").permutation(self.n_users)[:count]] = True
        return chosen

    @cached_property
    def _keys(self) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], ...]:
        """A random 64-bit word for each user and for each item."""
        rng = stream(self.seed, "misspecification")
        sizes = (self.n_users, self.n_items)
        return tuple(rng.integers(2**64, size=n, dtype=np.uint64) for n in sizes)

    def of(self, users: Ints, items: Ints) -> Floats:
        """Compute the deviations of a round's user for the items of its arms, shape (rounds, arms).

        They are hashes of the user's and the item's word (the finaliser of SplitMix64), so that no table of
        all pairs is needed.
        """
        user_keys, item_keys = self._keys
        word = user_keys[users][:, None] + item_keys[items]
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
        share = ((word ^ (word >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**53
        return np.asarray(self.misspecification * (2.0 * share - 1.0))

    def added(self, means: Floats, users: Ints, items: Ints) -> Floats:
        """Add the deviations to expected rewards, if there are any."""
        return means + self.of(users, items) if self.misspecification else means

    def signs(self, users: Ints, number: int) -> Floats | None:
        """Compute the factor of the mean of each round's reward; None if no round is corrupted."""
        rounds = number * BLOCK + np.arange(len(users))
        corrupted = self.liars[users] & (rounds < self.corrupted_rounds)
        return np.where(corrupted, SIGNS[self.corruption], 1.0) if corrupted.any() else None
