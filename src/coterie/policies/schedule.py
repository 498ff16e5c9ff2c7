"""Schedules of uniform exploration."""

from __future__ import annotations

from typing import NamedTuple


class Schedule(NamedTuple):
    """When a policy plays uniformly: `first` rounds, then the start of each phase.

    Parameters
    ----------
    first : int, default 0
        Uniform rounds at the start.
    phase : float, default 0.0
        Uniform rounds T⁽⁰⁾ of phase 0; 0 for no phases.
    growth : float, default 2.0
        Growth α of the phases.

    Notes
    -----
    Phase s = 0, 1, … lasts ⌈2^(αs)·T⁽ˢ⁾⌉ rounds, of which the first T⁽ˢ⁾ = ⌈2ˢ·T⁽⁰⁾⌉ are uniform (Alg. 2,
    lines 7–10).

    Examples
    --------
    >>> Schedule(first=100).ever
    True
    """

    first: int = 0
    phase: float = 0.0
    growth: float = 2.0

    @property
    def ever(self) -> bool:
        """Whether there are uniform rounds at all."""
        return self.first > 0 or self.phase > 0


def never() -> Schedule:
    """Make a schedule without uniform rounds."""
    return Schedule()


def uniform_first(rounds: int) -> Schedule:
    """Make a schedule whose first rounds are uniform   (Alg. 1, line 3)."""
    return Schedule(first=int(rounds))
