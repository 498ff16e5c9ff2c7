"""A progress bar for what takes more than two seconds, where someone is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeAlias

Advance: TypeAlias = Callable[[int], object]

PATIENCE = 2.0  # seconds without a bar


def watched() -> bool:
    """Whether a bar can be drawn and is of use to anyone."""
    return sys.stderr is not None and sys.stderr.isatty() and find_spec("tqdm") is not None


@contextmanager
def progress(label: str, total: int) -> Iterator[Advance]:
    """A function to be told of bytes done; it draws a bar on a terminal and is silent elsewhere."""
    if not watched():
        yield lambda done: None
        return
    from tqdm import tqdm

    with tqdm(desc=label, total=total, unit="B", unit_scale=True, delay=PATIENCE, leave=False) as bar:
        yield bar.update
