"""When a policy plays uniformly, whichever policy it serves."""

from __future__ import annotations

from typing import NamedTuple


class Schedule(NamedTuple):
    """`first` uniform rounds; then phases s = 0, 1, … if `phase` is positive.

    Phase s lasts ⌈2^(growth·s)·T⁽ˢ⁾⌉ rounds, of which the first T⁽ˢ⁾ = ⌈2ˢ·phase⌉ are uniform
    (Alg. 2, lines 7-10).
    """

    first: int = 0
    phase: float = 0.0
    growth: float = 2.0

    @property
    def ever(self) -> bool:
        """Has it uniform rounds at all?"""
        return self.first > 0 or self.phase > 0


def never() -> Schedule:
    """No uniform round."""
    return Schedule()


def uniform_first(rounds: int) -> Schedule:
    """The first rounds are uniform   (Alg. 1, line 3)."""
    return Schedule(first=int(rounds))
