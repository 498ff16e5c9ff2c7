"""Delays of feedback."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.types import Ints
from coterie.validation import nonnegative, whole


@dataclass(frozen=True, slots=True)
class Delay:
    """Delay of feedback: a geometric number of rounds, truncated at a maximum.

    Feedback that has not arrived at the horizon never reaches the policy.

    Parameters
    ----------
    mean : float, default 0.0
        Mean delay in rounds, at least 0; with 0 every delay is exactly `most`.
    most : int, default 0
        Longest delay in rounds, at least 0; 0 with a positive mean sets it to ten times the mean.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Examples
    --------
    >>> Delay(mean=20.0).most
    200
    """

    mean: float = 0.0
    most: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        nonnegative("the mean delay", self.mean)
        whole("the longest delay", self.most, 0)
        if self.mean > 0 and self.most == 0:
            object.__setattr__(self, "most", max(1, int(np.ceil(10 * self.mean))))

    def draw(self, rng: np.random.Generator, n: int) -> Ints:
        """Draw the delays of n rounds.

        Parameters
        ----------
        rng : numpy.random.Generator
            Random generator.
        n : int
            Number of rounds.

        Returns
        -------
        array of int, shape (n,)
            Delays in rounds.
        """
        if self.mean == 0:
            return np.full(n, self.most, np.int64)
        return np.minimum(rng.geometric(1.0 / (1.0 + self.mean), n) - 1, self.most).astype(np.int64)


def as_delay(delay: int | Delay) -> Delay:
    """Convert a number to a constant delay."""
    return delay if isinstance(delay, Delay) else Delay(most=whole("delay", delay, 0))
