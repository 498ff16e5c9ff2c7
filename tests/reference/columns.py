"""The units of columns of AutoCLUB, as row 1 of docs/algorithms/autoclub.md states them."""

import math

import numpy as np

from reference.users import Array


class Columns:
    """The exponents e of the columns, by the vectors that were voted with."""

    def __init__(self, dim: int) -> None:
        self.e = np.zeros(dim, dtype=np.int64)
        self.votes: list[Array] = []
        self.due = 8
        self.revisions = 0

    def inside(self, x: Array) -> Array:
        """A vector, or arms, in the units inside."""
        return np.ldexp(x, -self.e)

    def revised(self, x: Array, pulls: int) -> Array | None:
        """By what vectors inside are multiplied from now on; None if nothing changes."""
        if math.log2(pulls + 1) % 1 > 0:
            return None
        self.votes.append(x)
        if len(self.votes) < self.due:
            return None
        self.due = 2 * len(self.votes)
        usual = {j: size for j in range(len(x)) if (size := self.usual(j)) is not None}
        before, self.e = self.e, np.zeros_like(self.e)
        if usual and max(usual.values()) - min(usual.values()) >= 5:
            self.e = np.array(
                [usual[j] - min(usual.values()) if j in usual else e for j, e in enumerate(before)]
            )
        self.revisions += bool((self.e != before).any())
        return np.ldexp(1.0, before - self.e) if (self.e != before).any() else None

    def usual(self, j: int) -> int | None:
        """The upper quartile of the sizes of a column."""
        sizes = sorted(min(max(math.frexp(x[j])[1] - 1, -40), 23) for x in self.votes if x[j] != 0)
        return sizes[math.ceil(3 * len(sizes) / 4) - 1] if len(sizes) >= 8 else None
