"""When arms are played uniformly: a first stretch, then at the start of each of ever longer phases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.kernels.compiling import compiled


class Schedule(NamedTuple):
    """`first` rounds of exploration; then phases s = 0, 1, … if `phase` is positive.

    Phase s lasts ⌈2^(growth·s)·T⁽ˢ⁾⌉ rounds, of which the first T⁽ˢ⁾ = ⌈2ˢ·phase⌉ explore
    (Alg. 2, lines 7-10).
    """

    first: int
    phase: float
    growth: float


@compiled
def explores(schedule: Schedule, rounds: int) -> bool:
    """Is the round after this many finished ones uniform?"""
    if rounds < schedule.first:
        return True
    if schedule.phase <= 0.0:
        return False
    left = float(rounds - schedule.first)
    s = 0
    while True:
        uniform = np.ceil(schedule.phase * 2.0**s)
        length = np.ceil(2.0 ** (schedule.growth * s) * uniform)
        if left < length:
            return bool(left < uniform)
        left -= length
        s += 1
