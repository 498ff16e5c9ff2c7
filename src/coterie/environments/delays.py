"""When feedback comes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.types import Ints
from coterie.validation import nonnegative, whole


@dataclass(frozen=True, slots=True)
class Delay:
    """Feedback arrives after a geometric number of rounds with this mean, never more than `most`.

    What is still under way at the horizon is lost to the policy.
    """

    mean: float = 0.0
    most: int = 0

    def __post_init__(self) -> None:
        """Refuse negative delays."""
        nonnegative("the mean delay", self.mean)
        whole("the longest delay", self.most, 0)
        if self.mean > 0 and self.most == 0:
            object.__setattr__(self, "most", max(1, int(np.ceil(10 * self.mean))))

    def draw(self, rng: np.random.Generator, n: int) -> Ints:
        """The delays of n rounds."""
        if self.mean == 0:
            return np.full(n, self.most, np.int64)
        return np.minimum(rng.geometric(1.0 / (1.0 + self.mean), n) - 1, self.most).astype(np.int64)


def as_delay(delay: int | Delay) -> Delay:
    """A number stands for a delay that is always the same."""
    return delay if isinstance(delay, Delay) else Delay(most=whole("delay", delay, 0))
