"""Distributions of the reward noise."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import numpy as np

from coterie.errors import ArgumentError
from coterie.types import Floats
from coterie.validation import nonnegative, probability, shown


class Noise(Protocol):
    """Protocol of the reward noise of an environment.

    Examples
    --------
    >>> noise: Noise = Gaussian(0.1)
    >>> noise.binary
    False
    """

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 or 1, with the mean as their probability."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw the noise of n rounds.

        Parameters
        ----------
        rng : numpy.random.Generator
            Random generator.
        n : int
            Number of rounds.

        Returns
        -------
        array of float, shape (n,)
            Numbers to add to the means; if `binary`, uniform numbers: a reward is 1 if its number is below
            the mean.
        """


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Gaussian noise: reward = mean + N(0, σ²).

    Parameters
    ----------
    sigma : float
        Standard deviation σ, at least 0, in the unit of rewards; 0.1 is usual for rewards in [−1, 1].

    Raises
    ------
    ArgumentError
        If σ is negative.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(0.1).draw(np.random.default_rng(0), 2).round(3).tolist()
    [0.013, -0.013]
    """

    sigma: float

    def __post_init__(self) -> None:
        """Check the range."""
        nonnegative("sigma", self.sigma)

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 or 1, with the mean as their probability."""
        return False

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw the noise of n rounds.

        Parameters
        ----------
        rng : numpy.random.Generator
            Random generator.
        n : int
            Number of rounds.

        Returns
        -------
        array of float, shape (n,)
            Numbers to add to the means.
        """
        return self.sigma * rng.standard_normal(n)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Bounded noise: reward = mean + U(−width, width).

    Parameters
    ----------
    width : float
        Half the width of the interval, at least 0, in the unit of rewards; the standard deviation is
        width/√3.

    Raises
    ------
    ArgumentError
        If the width is negative.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.abs(Uniform(0.5).draw(np.random.default_rng(0), 100)).max() <= 0.5)
    True
    """

    width: float

    def __post_init__(self) -> None:
        """Check the range."""
        nonnegative("width", self.width)

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 or 1, with the mean as their probability."""
        return False

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw the noise of n rounds.

        Parameters
        ----------
        rng : numpy.random.Generator
            Random generator.
        n : int
            Number of rounds.

        Returns
        -------
        array of float, shape (n,)
            Numbers to add to the means.
        """
        return self.width * (2.0 * rng.random(n) - 1.0)


@dataclass(frozen=True, slots=True)
class Cauchy:
    """Heavy-tailed noise: reward = mean + scale · C, where C has a Cauchy distribution, truncated.

    Parameters
    ----------
    scale : float
        Scale of the Cauchy distribution, at least 0: the median of the absolute noise.
    most : float, default 1000.0
        Largest absolute value of the noise, at least 0; larger values are clipped.

    Raises
    ------
    ArgumentError
        If a value is negative.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.abs(Cauchy(0.1).draw(np.random.default_rng(0), 10_000))
    >>> float(np.median(noise).round(2)), bool(noise.max() > 100)
    (0.1, True)
    """

    scale: float
    most: float = 1000.0

    def __post_init__(self) -> None:
        """Check the range."""
        nonnegative("scale", self.scale)
        nonnegative("most", self.most)

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 or 1, with the mean as their probability."""
        return False

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw the noise of n rounds.

        Parameters
        ----------
        rng : numpy.random.Generator
            Random generator.
        n : int
            Number of rounds.

        Returns
        -------
        array of float, shape (n,)
            Numbers to add to the means.
        """
        return np.clip(self.scale * rng.standard_cauchy(n), -self.most, self.most)


@dataclass(frozen=True, slots=True)
class Contaminated:
    """Gaussian noise with rare large values: reward = mean + N(0, σ²) or mean + N(0, (factor · σ)²).

    Parameters
    ----------
    sigma : float
        Standard deviation σ of most of the noise, at least 0.
    factor : float, default 50.0
        Ratio of the standard deviation of the large noise to σ, at least 0.
    share : float, default 0.01
        Fraction of rounds with the large noise, strictly between 0 and 1.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> noise = Contaminated(0.1).draw(np.random.default_rng(0), 10_000)
    >>> float(np.mean(np.abs(noise) > 0.5).round(2))
    0.01
    """

    sigma: float
    factor: float = 50.0
    share: float = 0.01

    def __post_init__(self) -> None:
        """Check the range."""
        nonnegative("sigma", self.sigma)
        nonnegative("factor", self.factor)
        probability("share", self.share)

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 or 1, with the mean as their probability."""
        return False

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw the noise of n rounds.

        Parameters
        ----------
        rng : numpy.random.Generator
            Random generator.
        n : int
            Number of rounds.

        Returns
        -------
        array of float, shape (n,)
            Numbers to add to the means.
        """
        sizes = np.where(rng.random(n) < self.share, self.factor * self.sigma, self.sigma)
        return np.asarray(sizes * rng.standard_normal(n))


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Clicks: the reward is 1 with the mean as probability, and otherwise 0.

    Every mean must be in [0, 1]; `lifted` changes a dataset so that this holds.

    Examples
    --------
    >>> Bernoulli().binary
    True
    """

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 or 1, with the mean as their probability."""
        return True

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw the noise of n rounds.

        Parameters
        ----------
        rng : numpy.random.Generator
            Random generator.
        n : int
            Number of rounds.

        Returns
        -------
        array of float, shape (n,)
            Uniform numbers: a reward is 1 if its number is below the mean.
        """
        return rng.random(n)


def as_noise(noise: float | Noise) -> Noise:
    """Convert a number to Gaussian noise with this σ."""
    if isinstance(noise, float | Real):
        return Gaussian(nonnegative("noise", noise))
    if not hasattr(noise, "draw"):
        raise ArgumentError(f"noise must be a number, Gaussian, Uniform or Bernoulli, got {shown(noise)}")
    return noise
