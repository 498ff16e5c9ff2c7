"""Where output goes: tables for people, JSON for programs, and nothing to look at in a pipe."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""What tells BLAS how many threads to use; to be set before NumPy is imported."""

PIPE_WIDTH = 120  # columns of a table that nobody folds


def console(*, stderr: bool = False) -> Console:
    """A console that colours on a terminal only, and not at all under NO_COLOR."""
    from rich.console import Console

    shown = sys.stderr if stderr else sys.stdout
    wide = None if shown.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(stderr=stderr, highlight=False, width=wide)


def table(*columns: str, title: str | None = None, left: Iterable[str] = ()) -> Table:
    """A table with light rules; columns are flush right unless named in `left`, the first always is."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    flush = {columns[0], *left}
    for column in columns:
        made.add_column(column, justify="left" if column in flush else "right", overflow="fold")
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


def one_thread() -> None:
    """Tell BLAS to keep to one thread unless told otherwise: runs side by side share the processors."""
    for variable in THREADS:
        os.environ.setdefault(variable, "1")


def note(line: str) -> None:
    """A remark for the person at the terminal, on stderr so that stdout stays clean."""
    print(line, file=sys.stderr)
