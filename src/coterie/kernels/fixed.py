"""Users pooled by labels that never change: LinUCB for all, for each, or for known clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.kernels.generic import View, labels, learns, views
from coterie.kernels.ridge import Ridge, absorb
from coterie.types import Floats, Ints


class Fixed(NamedTuple):
    """One row of statistics a label."""

    pools: Ridge
    labels: Ints
    pulls: Ints
    epochs: Ints
    clock: Ints
    ridge: float
    beta: float


@views(Fixed)
def view(state: Fixed, user: int) -> View:
    """The row of the user's label."""
    row = state.labels[user]
    return View(state.pools.estimate[row], state.pools.inverse[row], state.beta, row, state.ridge, np.inf)


@learns(Fixed)
def learn(state: Fixed, user: int, x: Floats, reward: float) -> None:
    """Add to the row of the user's label."""
    absorb(state.pools, state.labels[user], x, reward, np.empty(x.shape[0]))
    state.pulls[user] += 1
    state.clock[0] += 1


@labels(Fixed)
def label(state: Fixed, out: Ints) -> None:
    """The labels as they are kept."""
    out[:] = state.labels
