"""Effects of items, and of pairs of a user and an item, as docs/algorithms/item-effects.md states them.

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


class Known(NamedTuple):
    """Of a key: b̂, the part of its variance that is explored, and what its own values count for."""

    mean: float
    variance: float
    share: float


class Effects:
    """Sums of every key, and the sums that the variance of effects comes from."""

    def __init__(
        self,
        *,
        explored: float = 0.25,
        least: float = 1.0,
        most: float = math.inf,
        most_weight: float = math.inf,
    ) -> None:
        self.P: dict[Hashable, float] = {}
        self.E: dict[Hashable, float] = {}
        self.clipped = 0
        self.explored, self.least, self.most, self.most_weight = explored, least, most, most_weight
        self.n = 0
        self.A = self.m = self.R = self.NR = self.C = self.Q = self.N = self.S = 0.0

    def learn(self, key: Hashable, y: float, level: float, a: float) -> None:
        off = y - level - self.m
        if self.R > 0:  # Row 1
            limit = 16 * math.sqrt(self.R / self.NR)
            self.clipped += abs(off) > limit
            off = min(limit, max(-limit, off))
        kept = level + self.m + off
        before = self.E[key] / self.P[key] - level - self.m if key in self.P else 0.0
        share = self.effect(key, level).share
        self.n += 1
        k = max(0.0, min(0.9995, 1 - 4 / self.n))
        self.R, self.NR = k * self.R + a * off**2, k * self.NR + 1  # Row 2
        v = (1 - share) * a if key in self.P else 0.0  # Row 3
        self.C, self.Q = k * self.C + v * off * before, k**2 * self.Q + (v * off * before) ** 2
        self.N, self.S = k * self.N + v, k * self.S + v * off**2
        self.A = k * self.A + a  # Row 4
        self.m += a * (off - share * before) / self.A
        P, E = self.P.get(key, 0.0) + a, self.E.get(key, 0.0) + a * kept
        self.P[key] = min(P, self.most_weight)
        self.E[key] = E * self.P[key] / P

    @property
    def kappa(self) -> float:
        """Row 5."""
        return max(self.least, self.S / self.C - 1)

    @property
    def margin(self) -> float:
        """How far the sums are from deciding otherwise about τ² > 0, relative to themselves."""
        gate = 4 * math.sqrt(self.Q)
        if gate == 0:
            return math.inf
        margin = abs(self.C - gate) / (abs(self.C) + gate)
        return min(margin, abs(self.kappa - self.most)) if self.C > gate else margin

    @property
    def tau2(self) -> float:
        """Row 5."""
        return self.C / self.N if self.C > 4 * math.sqrt(self.Q) and self.kappa < self.most else 0.0

    def effect(self, key: Hashable, level: float = 0.0) -> Known:
        """What is known of a key; zeros where there are no effects. Row 6."""
        if self.tau2 == 0:
            return Known(0.0, 0.0, 0.0)
        P, E = self.P.get(key, 0.0), self.E.get(key, 0.0)
        total = P + self.kappa
        return Known((E - P * (level + self.m)) / total, self.explored**2 / total, P / total)


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
            effect = self.effects.effect(item)
            scores.append(one.mean + effect.mean + one.beta * math.sqrt(one.width2 + effect.variance))
        return np.array(scores)

    def update(self, user: int, x: Array, reward: float, item: int) -> None:
        before = self.effects.tau2 > 0
        said = self.linear(user, x)
        effect = self.effects.effect(item).mean
        self.effects.learn(item, reward - said.mean, 0.0, 1 / (1 + said.width2))
        self.base.update(user, x, reward - effect)  # Row 8
        self.switches += (self.effects.tau2 > 0) != before
