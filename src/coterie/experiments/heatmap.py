"""Regret of every policy in every world as a multiple of the least there: one coloured table."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from coterie.experiments.results import ORACLE, Panel, multiples
from coterie.policies.registry import find

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

CELL_WIDTH, CELL_HEIGHT, MARGINS = 0.82, 0.23, (1.6, 1.9)
"""Inches: a cell, and what is beside and above the cells."""

TITLE_LETTERS = 13
"""Letters in a line of a world's name."""

WORST = 4.0
"""Multiples from here on have the same colour."""


def winners(panels: Sequence[Panel]) -> Canvas:
    """Policies down, the best on average first, worlds across; the least of a world is in bold."""
    from matplotlib.figure import Figure

    found = multiples(panels)
    width, height = CELL_WIDTH * len(panels) + MARGINS[0], CELL_HEIGHT * len(found) + MARGINS[1]
    canvas = Figure(figsize=(width, height))
    axes = canvas.subplots()
    values = np.array(list(found.values()))
    axes.pcolormesh(np.clip(np.log(values), 0.0, np.log(WORST)), cmap="YlOrRd", vmin=0.0, vmax=np.log(WORST))
    for row, (policy, line) in enumerate(found.items()):
        for column, value in enumerate(line):
            _write(axes, row, column, value, is_least=value == 1.0 and policy != ORACLE)
    axes.set_yticks(np.arange(len(found)) + 0.5, [find(name).style.label for name in found])
    axes.set_xticks(np.arange(len(panels)) + 0.5, [fill(panel.title, TITLE_LETTERS) for panel in panels])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    return canvas


def _write(axes: Axes, row: int, column: int, value: float, *, is_least: bool) -> None:
    """A multiple in its cell; nothing for a policy that did not take part."""
    if np.isfinite(value):
        colour = "#ffffff" if value > 0.75 * WORST else "#1a1a1a"
        weight = "bold" if is_least else "normal"
        axes.text(
            column + 0.5, row + 0.5, f"{value:.2f}", ha="center", va="center", color=colour, weight=weight
        )
