"""Rewards of a user for the very same vector, as docs/algorithms/autoclub.md states it: rows 16 and 17."""

import statistics
from typing import NamedTuple

from reference.users import Array


class Again(NamedTuple):
    """A reward for a vector that the user had told of: ω, r, and the mean of the n rewards before."""

    weight: float
    reward: float
    mean: float
    n: int


class Repeats:
    """What users told of each vector, and how rewards for the same vector agree."""

    def __init__(self) -> None:
        self.told: dict[tuple[int, bytes], tuple[float, int]] = {}
        self.groups: list[list[Again]] = [[] for _ in range(16)]

    def knows(self, user: int, x: Array) -> bool:
        return (user, x.tobytes()) in self.told

    def first(self, user: int, x: Array, reward: float) -> None:
        self.told[user, x.tobytes()] = reward, 1

    def again(self, user: int, x: Array, reward: float, weight: float) -> None:
        """Row 16."""
        mean, n = self.told[user, x.tobytes()]
        self.groups[user % 16].append(Again(weight, reward, mean, n))
        self.told[user, x.tobytes()] = mean + (reward - mean) / (n + 1), min(n + 1, 32)

    def disagreement(self, noise2: float) -> float:
        """The upper median of all groups that have repeats. Row 16."""
        return statistics.median_high(self.of_group(group, noise2) for group in self.groups if group)

    def of_group(self, group: list[Again], noise2: float) -> float:
        """Row 16."""
        within = sum(a.weight * (a.reward - a.mean) ** 2 * a.n / (a.n + 1) for a in group)
        level = sum(a.weight * a.reward for a in group) / sum(a.weight for a in group)
        spread = sum(a.weight * (a.reward - level) ** 2 for a in group)
        return (within + 5 * noise2) / (min(spread, len(group) * noise2) + 5 * noise2)

    def recalled(self, user: int, x: Array, phi: float) -> tuple[float, float, float]:
        """The share k, the mean and the variance of what the user told of a vector. Row 17."""
        mean, n = self.told.get((user, x.tobytes()), (0.0, 0))
        if n == 0:
            return 0.0, 0.0, 0.0
        share = n * phi / (n * phi + 1 - phi)
        return share, mean, share * (1 - phi) / n
