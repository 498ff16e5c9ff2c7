"""AutoCLUB's regret and the oracle's as multiples of the best other policy's: a line a world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.experiments.results import Panel, PolicyResult, RegretRatio, regret_ratios
from coterie.policies.registry import find

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

WIDTH, LINE_HEIGHT, MARGINS = 7.2, 0.19, 1.5
"""Inches: the width, a line, and all that is above and below the lines."""

LABEL_LINES = 1.2
"""Lines that the name of a world takes."""

TICKS = (0.03, 0.06, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
LIMIT_COLOUR = "#555555"
LABEL_TEXT: Mapping[str, Any] = MappingProxyType({"weight": "bold", "va": "center", "ha": "left"})


def ratios(panels: Sequence[Panel]) -> Canvas:
    """Datasets down, grouped by world, ratios across on a logarithmic scale."""
    from matplotlib.figure import Figure

    found = regret_ratios(panels)
    groups = [list(group) for _, group in groupby(found, key=lambda ratio: ratio.panel.label)]
    height = sum(len(group) + LABEL_LINES for group in groups)
    canvas = Figure(figsize=(WIDTH, LINE_HEIGHT * height + MARGINS))
    axes = canvas.subplots()
    top = 0.0
    for group in groups:
        axes.text(0.0, top, group[0].panel.label, transform=axes.get_yaxis_transform(), **LABEL_TEXT)
        for k, ratio in enumerate(group):
            _line(axes, top + k + 1, ratio)
        top += len(group) + LABEL_LINES
    axes.set_ylim(top - 0.5, -0.8)
    _scale(axes)
    _legend(canvas, axes)
    return canvas


def _line(axes: Axes, y: float, found: RegretRatio) -> None:
    """A dataset: its name on the left, who 1 stands for on the right, and the dots."""
    across = axes.get_yaxis_transform()
    axes.axhline(y, color="#e6e6e6", linewidth=0.6, zorder=0)
    axes.text(-0.01, y, found.panel.dataset_name, transform=across, va="center", ha="right")
    axes.text(1.01, y, find(found.rival.policy).style.label, transform=across, va="center", ha="left")
    if found.limit is not None:
        axes.plot(found.limit.factor, y, "|", color=LIMIT_COLOUR, markersize=9, label="AutoCLUB's limit")
    if found.oracle is not None:
        _dot(axes, y, found.oracle, found.rival, 6.5)
    _dot(axes, y, found.own, found.rival, 5.5)


def _dot(axes: Axes, y: float, result: PolicyResult, rival: PolicyResult, size: float) -> None:
    """A regret ± its standard error, in units of the rival's mean."""
    style, regret, unit = find(result.policy).style, result.final("regret"), rival.mean_regret
    axes.errorbar(
        regret.mean / unit,
        y,
        xerr=np.nan_to_num(regret.error / unit),
        color=style.colour,
        marker=style.marker,
        markersize=size,
        linestyle="none",
        label=style.label,
    )


def _scale(axes: Axes) -> None:
    """Ratios on a logarithmic scale, with a line at 1."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.axvline(1.0, color="#000000", linewidth=0.8, zorder=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("regret as a multiple of that of the policy on the right")


def _legend(canvas: Canvas, axes: Axes) -> None:
    found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    canvas.legend(found.values(), found.keys(), loc="outside lower center", ncols=len(found))
