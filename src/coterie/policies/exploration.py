"""When a policy plays uniformly, whichever policy it serves."""

from __future__ import annotations

from coterie.kernels.schedule import Schedule


def never() -> Schedule:
    """No uniform round."""
    return Schedule(0, 0.0, 2.0)


def uniform_first(rounds: int) -> Schedule:
    """The first rounds are uniform (Alg. 1, line 3)."""
    return Schedule(int(rounds), 0.0, 2.0)
