"""ItemUCB and ItemTS, as docs/algorithms/itemucb.md and itemts.md state them.

"Row n" is the n-th row of the table on these pages.
"""

import math
from collections.abc import Hashable

import numpy as np

from reference.effects import Effects


class Items:
    """Sums of every item, and the first reward of each."""

    def __init__(self, *, ridge: float, scale: float) -> None:
        self.ridge, self.scale = ridge, scale
        self.sums = Effects(most=0.0)
        self.first: dict[Hashable, float] = {}
        self.rounds = 0

    def update(self, item: Hashable, reward: float) -> None:
        self.rounds += 1
        self.sums.learn(item, reward, 0.0, 1.0)  # Row 1
        if item not in self.first:
            self.first[item] = self.sums.E[item]  # Row 2

    @property
    def deviation(self) -> float:
        """Row 3."""
        return math.sqrt(self.sums.R / self.sums.NR) if self.sums.R > 0 else 1.0

    def mean(self, item: Hashable) -> float:
        """Row 4."""
        m = float(np.mean(list(self.first.values()))) if self.first else 0.0
        return (self.sums.E.get(item, 0.0) + self.ridge * m) / self.weight(item)

    def weight(self, item: Hashable) -> float:
        """n + λ."""
        return self.sums.P.get(item, 0.0) + self.ridge

    def bonus(self, item: Hashable) -> float:
        """Row 5 of ItemUCB."""
        t, K, weight = self.rounds + 1, max(len(self.first), 1), self.weight(item)
        return self.scale * self.deviation * math.sqrt(math.log(1 + t / (K * weight)) / weight)

    def sample(self, item: Hashable, rng: np.random.Generator) -> float:
        """Row 5 of ItemTS."""
        spread = self.scale * self.deviation / math.sqrt(self.weight(item))
        return self.mean(item) + spread * float(rng.standard_normal())
