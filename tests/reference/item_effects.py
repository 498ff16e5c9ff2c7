"""Effects of items beside any linear model, as docs/algorithms/item-effects.md states them.

"Row n" is the n-th row of the table on that page.
"""

import math
from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

import numpy as np

from reference.users import Array


class Linear(NamedTuple):
    """What a linear model says of an arm: mean, variance relative to the noise, scale of the bonus."""

    mean: float
    width2: float
    beta: float


class Base(Protocol):
    def update(self, user: int, x: Array, reward: float) -> None: ...


class Effects:
    """Sums of every item, and the sums that the variance of effects comes from."""

    def __init__(self) -> None:
        self.P: dict[Hashable, float] = {}
        self.E: dict[Hashable, float] = {}
        self.n = 0
        self.A = self.m = self.R = self.NR = self.C = self.Q = self.N = 0.0
        self.clipped = 0

    def learn(self, item: Hashable, e: float, a: float) -> None:
        off = e - self.m
        if self.R > 0:  # Row 1
            most = 16 * math.sqrt(self.R / self.NR)
            self.clipped += abs(off) > most
            off = min(most, max(-most, off))
        self.n += 1
        k = max(0.0, min(0.9995, 1 - 4 / self.n))
        self.R, self.NR = k * self.R + a * off**2, k * self.NR + 1  # Row 2
        self.C, self.Q, self.N = k * self.C, k**2 * self.Q, k * self.N  # Row 3
        if item in self.P:
            c = off * (self.E[item] / self.P[item] - self.m)
            self.C, self.Q, self.N = self.C + c, self.Q + c**2, self.N + 1
        e = self.m + off
        self.A = k * self.A + a  # Row 4
        self.m += a * off / self.A
        self.P[item] = self.P.get(item, 0.0) + a
        self.E[item] = self.E.get(item, 0.0) + a * e

    @property
    def margin(self) -> float:
        """How far the sums are from deciding otherwise about τ² > 0, relative to themselves."""
        most = 4 * math.sqrt(self.Q)
        return abs(self.C - most) / (abs(self.C) + most) if most > 0 else math.inf

    @property
    def tau2(self) -> float:
        return self.C / self.N if self.C > 4 * math.sqrt(self.Q) else 0.0  # Row 5

    def effect(self, item: Hashable) -> tuple[float, float]:
        """b̂ and a quarter of its variance relative to the noise. Row 6."""
        kappa = max(0.5, self.R / self.NR / self.tau2 - 1)
        P, E = self.P.get(item, 0.0), self.E.get(item, 0.0)
        return (E - P * self.m) / (P + kappa), 0.25 / (P + kappa)


class WithItems:
    """A reference of a policy, and effects beside it; `linear` is what its model says of an arm."""

    def __init__(self, base: Base, linear: Callable[[int, Array], Linear]) -> None:
        self.base, self.linear, self.effects = base, linear, Effects()
        self.on = self.switches = 0

    def scores(self, user: int, arms: Array, items: list[int]) -> Array:
        found = [self.linear(user, x) for x in arms]
        if self.effects.tau2 == 0:
            return np.array([one.mean + one.beta * math.sqrt(one.width2) for one in found])
        self.on += 1
        scores = []
        for one, item in zip(found, items, strict=True):  # Row 6
            b, variance = self.effects.effect(item)
            scores.append(one.mean + b + one.beta * math.sqrt(one.width2 + variance))
        return np.array(scores)

    def update(self, user: int, x: Array, reward: float, item: int) -> None:
        before = self.effects.tau2 > 0
        said = self.linear(user, x)
        self.effects.learn(item, reward - said.mean, 1 / (1 + said.width2))
        self.base.update(user, x, reward)
        self.switches += (self.effects.tau2 > 0) != before
