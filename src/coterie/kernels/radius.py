"""The radius f(T) inside which a user's estimate is trusted, as six numbers.

    f(T) = (√(base + slope·ln(1 + scale·T)) + shift) / √(floor + growth·T)

The paper's f (Alg. 1) and the tuned α√((1 + ln(1 + T))/(1 + T)) are both of this form.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

from coterie.kernels.compiling import compiled


class Radius(NamedTuple):
    """The six numbers of f."""

    base: float
    slope: float
    scale: float
    shift: float
    floor: float
    growth: float


@compiled
def radius(shape: Radius, pulls: int) -> float:
    """f(T) for a user or cluster with T pulls."""
    top = sqrt(shape.base + shape.slope * log(1.0 + shape.scale * pulls)) + shape.shift
    return top / sqrt(shape.floor + shape.growth * pulls)
