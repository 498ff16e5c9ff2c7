"""Output: tables and charts for a terminal, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import isfinite
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from coterie.types import Floats, Ints

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables with the number of BLAS threads; BLAS reads them when NumPy is imported."""

PIPE_WIDTH = 120
"""Columns of a table that goes to a pipe."""

MIN_PROSE_WIDTH = 24
"""The least width of a column of prose."""

COLUMN_GAP = 3
"""Columns between the columns of a table."""

BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a braille character: 4 rows × 2 columns of dots."""


def console(*, stderr: bool = False) -> Console:
    """A console that colours on a terminal only, and not at all under NO_COLOR."""
    from rich.console import Console

    shown = sys.stderr if stderr else sys.stdout
    # Rich assumes 80 columns for a pipe, which would cut tables that a file or a pager can hold.
    wide = None if shown.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(stderr=stderr, highlight=False, width=wide)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str | None = None,
    left: Collection[str] = (),
    prose: Collection[str] = (),
    optional: Sequence[str] = (),
) -> None:
    """Print a table that fits the terminal without breaking a number.

    Columns are flush right unless named in `left` or `prose`; the first never is. The first column and those
    of `prose` may be folded. Where the table is too wide, columns of `optional` are left out, the first ones
    first; then the others are printed in several tables below each other.
    """
    out = console()
    folded = {columns[0], *prose}
    widths = [_width(column, [row[k] for row in rows], column in folded) for k, column in enumerate(columns)]
    shown = list(range(len(columns)))
    for name in optional:
        # A number that is folded cannot be read, so whole columns go instead.
        if _total(widths, shown) > out.width:
            shown.remove(columns.index(name))
    for k, part in enumerate(_parts(widths, shown, out.width)):
        out.print(_table(columns, rows, part, title if k == 0 else None, {*left, *folded}, folded))


def print_line(markup: str) -> None:
    """Print a line of text, broken between words where the terminal is too narrow, but not around "="."""
    from rich.text import Text

    out = console()
    text = Text.from_markup(markup)
    if not (out.is_terminal or "COLUMNS" in os.environ):
        out.print(text, soft_wrap=True)
        return
    # A no-break space keeps "σ = 0.1" on one line; it has the same length, so positions in `text` stay valid.
    joined = (
        text.plain.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%").replace(" ± ", "\u00a0±\u00a0")
    )
    start = 0
    for line in wrap(joined, out.width, break_long_words=False, break_on_hyphens=False):
        start = joined.index(line, start)
        out.print(text[start : start + len(line)], soft_wrap=True)
        start += len(line)


def _width(column: str, cells: Sequence[str], is_folded: bool) -> int:
    from rich.text import Text

    longest = max((Text.from_markup(cell).cell_len for cell in cells), default=0)
    return max(len(column), min(longest, MIN_PROSE_WIDTH) if is_folded else longest)


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[k] for k in shown) + COLUMN_GAP * (len(shown) - 1) + 2


def _parts(widths: Sequence[int], shown: Sequence[int], width: int) -> Iterator[list[int]]:
    """The columns of each table: the first column and as many others as fit."""
    first, *others = shown
    part = [first]
    for k in others:
        if len(part) > 1 and _total(widths, [*part, k]) > width:
            yield part
            part = [first]
        part.append(k)
    yield part


def _table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    part: Sequence[int],
    title: str | None,
    left: Collection[str],
    folded: Collection[str],
) -> Table:
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for k in part:
        name, wraps = columns[k], columns[k] in folded
        justify: Any = "left" if name in left else "right"
        made.add_column(name, justify=justify, overflow="fold", no_wrap=not wraps)
    for row in rows:
        made.add_row(*(row[k] for k in part))
    return made


def write_json(value: Any) -> None:
    """The value as JSON on stdout; what is not finite becomes null."""
    print(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value


def one_blas_thread() -> None:
    """Set BLAS to one thread, unless a variable is set: runs in parallel share the processors."""
    for variable in THREADS:
        # Must happen before NumPy is imported: BLAS reads these variables once.
        os.environ.setdefault(variable, "1")


def print_note(line: str) -> None:
    """A remark on stderr, so that stdout stays clean."""
    print(line, file=sys.stderr)


class Curve(NamedTuple):
    """A curve of a chart; x ascends and y is at least 0."""

    name: str
    x: Floats
    y: Floats
    colour: str = ""


def braille_chart(curves: Sequence[Curve], *, width: int = 60, height: int = 12) -> list[Text]:
    """The lines of a chart of braille dots: an axis on the left, names on the right, rounds below."""
    from rich.text import Text

    top = max(float(curve.y.max()) for curve in curves) or 1.0
    end = max(float(curve.x[-1]) for curve in curves)
    cells, owners = _rasterise(curves, width, height, top, end)
    names = _name_rows(curves, height, top)
    margin = len(f"{top:,.0f}")
    lines = []
    for row in range(height):
        scale = f"{top:,.0f}" if row == 0 else "0" if row == height - 1 else ""
        line = Text(f"{scale:>{margin}} │", style="dim")
        for cell, owner in zip(cells[row], owners[row], strict=True):
            colour = curves[int(owner)].colour if owner >= 0 else ""
            line.append(chr(BRAILLE + int(cell)) if cell else " ", style=colour)
        if row in names:
            line.append(f" {curves[names[row]].name}", style=curves[names[row]].colour)
        lines.append(line)
    lines.append(Text(f"{'':>{margin}} └{'─' * width}", style="dim"))
    lines.append(Text(f"{'':>{margin}}  0{f'{end:,.0f} rounds':>{width - 1}}", style="dim"))
    return lines


def _rasterise(curves: Sequence[Curve], width: int, height: int, top: float, end: float) -> tuple[Ints, Ints]:
    """The dots of each character, and the curve that owns it: the one drawn first."""
    import numpy as np

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
                    cells[row, character] |= DOTS[between % 4][column % 2]
                    owners[row, character] = number
            before = dot
    return cells, owners


def _name_rows(curves: Sequence[Curve], height: int, top: float) -> dict[int, int]:
    """The curve named in each row: near where it ends, from the highest end to the lowest."""
    by_end = sorted(range(len(curves)), key=lambda n: -float(curves[n].y[-1]))
    taken: list[int] = []
    for number in by_end[:height]:
        wanted = min(int((1 - float(curves[number].y[-1]) / top) * height), height - 1)
        free = [row for row in range(height) if row not in taken]
        taken.append(min(free, key=lambda row: (abs(row - wanted), -row)))
    return dict(zip(sorted(taken), by_end, strict=False))
