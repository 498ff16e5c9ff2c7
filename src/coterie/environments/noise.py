"""How a reward scatters about its mean."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import numpy as np

from coterie.errors import ArgumentError
from coterie.types import Floats
from coterie.validation import nonnegative, shown


class Noise(Protocol):
    """What an environment asks of its noise."""

    @property
    def binary(self) -> bool:
        """Are rewards 0 or 1, with the mean as their probability?"""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """What `binary` rewards compare with the mean, or what others add to it."""


@dataclass(frozen=True, slots=True)
class Gaussian:
    """reward = mean + N(0, σ²)."""

    sigma: float

    def __post_init__(self) -> None:
        """Refuse a negative σ."""
        nonnegative("sigma", self.sigma)

    @property
    def binary(self) -> bool:
        return False

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        return self.sigma * rng.standard_normal(n)


@dataclass(frozen=True, slots=True)
class Uniform:
    """reward = mean + U(−width, width): bounded."""

    width: float

    def __post_init__(self) -> None:
        """Refuse a negative width."""
        nonnegative("width", self.width)

    @property
    def binary(self) -> bool:
        return False

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        return self.width * (2.0 * rng.random(n) - 1.0)


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """reward = 1 with the mean as probability, else 0; every mean must lie in [0, 1]."""

    @property
    def binary(self) -> bool:
        return True

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.random(n)


def as_noise(noise: float | Noise) -> Noise:
    """A number stands for Gaussian noise of that σ."""
    if isinstance(noise, float | Real):
        return Gaussian(nonnegative("noise", noise))
    if not hasattr(noise, "draw"):
        raise ArgumentError(f"noise must be a number, Gaussian, Uniform or Bernoulli, got {shown(noise)}")
    return noise
