"""A small chart in the terminal: curves of braille dots, each named where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coterie.types import Floats, Ints

if TYPE_CHECKING:
    from rich.text import Text

DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # 4 rows × 2 columns a character
BLANK = 0x2800


class Curve(NamedTuple):
    """Something to draw; x ascends and y is at least 0."""

    name: str
    x: Floats
    y: Floats
    colour: str = ""


def chart(curves: Sequence[Curve], *, width: int = 60, height: int = 12) -> list[Text]:
    """The lines of the chart: an axis on the left, names on the right, rounds below."""
    from rich.text import Text

    top = max(float(curve.y.max()) for curve in curves) or 1.0
    end = max(float(curve.x[-1]) for curve in curves)
    cells, owners = _drawn(curves, width, height, top, end)
    names = _placed(curves, height, top)
    margin = len(f"{top:,.0f}")
    lines = []
    for row in range(height):
        scale = f"{top:,.0f}" if row == 0 else "0" if row == height - 1 else ""
        line = Text(f"{scale:>{margin}} │", style="dim")
        for cell, owner in zip(cells[row], owners[row], strict=True):
            line.append(chr(BLANK + int(cell)) if cell else " ", style=_colour(curves, int(owner)))
        if row in names:
            line.append(f" {curves[names[row]].name}", style=curves[names[row]].colour)
        lines.append(line)
    lines.append(Text(f"{'':>{margin}} └{'─' * width}", style="dim"))
    lines.append(Text(f"{'':>{margin}}  0{f'{end:,.0f} rounds':>{width - 1}}", style="dim"))
    return lines


def _drawn(curves: Sequence[Curve], width: int, height: int, top: float, end: float) -> tuple[Ints, Ints]:
    """The dots of each character, and the curve that owns it: the one drawn first."""
    cells, owners = np.zeros((height, width), np.int64), np.full((height, width), -1, np.int64)
    grid = (np.arange(2 * width) + 0.5) / (2 * width) * end
    for number, curve in enumerate(curves):
        values = np.interp(grid, np.append(0.0, curve.x), np.append(0.0, curve.y))
        dots = np.clip(np.round((1 - values / top) * (4 * height - 1)), 0, 4 * height - 1).astype(int)
        before = dots[0]
        for column, dot in enumerate(dots):
            for between in range(min(before, dot), max(before, dot) + 1):  # steep curves have no gaps
                row, character = between // 4, column // 2
                if owners[row, character] in (-1, number):
                    cells[row, character] |= DOTS[between % 4, column % 2]
                    owners[row, character] = number
            before = dot
    return cells, owners


def _placed(curves: Sequence[Curve], height: int, top: float) -> dict[int, int]:
    """The row of each name: where its curve ends, or the nearest row that is free."""
    taken: dict[int, int] = {}
    for number in sorted(range(len(curves)), key=lambda n: -float(curves[n].y[-1])):
        wanted = min(int((1 - float(curves[number].y[-1]) / top) * height), height - 1)
        free = [row for row in range(height) if row not in taken]
        if free:
            taken[min(free, key=lambda row: (abs(row - wanted), -row))] = number
    return _in_order(taken, curves)


def _in_order(taken: dict[int, int], curves: Sequence[Curve]) -> dict[int, int]:
    """The same rows with names from the highest end to the lowest."""
    numbers = sorted(taken.values(), key=lambda n: -float(curves[n].y[-1]))
    return dict(zip(sorted(taken), numbers, strict=True))


def _colour(curves: Sequence[Curve], owner: int) -> str:
    return curves[owner].colour if owner >= 0 else ""
