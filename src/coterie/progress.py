"""A progress bar for work of more than two seconds, on a terminal or in a notebook, if tqdm is installed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[int, float], None]
"""Called with the number of rounds just played and the run's regret so far."""

DELAY = 2.0
"""Seconds before a bar appears."""


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def is_shown() -> bool:
    """Whether stderr is a terminal or a notebook, and tqdm is installed."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return (terminal or in_notebook()) and find_spec("tqdm") is not None


@contextmanager
def progress_bar(
    total: int, unit: str, *, label: str | None = None, shown: bool | None = None, delay: float = DELAY
) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the work just done, from any thread; it draws a bar on a terminal.

    `shown` decides instead of `is_shown`; without tqdm nothing is drawn. The bar appears after `delay`
    seconds.
    """
    wanted = is_shown() if shown is None else shown and find_spec("tqdm") is not None
    if not wanted:
        yield lambda done: None
        return
    lock = Lock()
    with _bar_class()(
        total=total, desc=label, unit=unit, unit_scale=True, delay=delay, leave=False, file=sys.stderr
    ) as bar:

        def advance(done: int) -> None:
            with lock:
                bar.update(done)

        yield advance


def _bar_class() -> Any:
    """tqdm's widget in a notebook that can show it, its line of text elsewhere."""
    if not in_notebook():
        from tqdm import tqdm

        return tqdm
    with warnings.catch_warnings():  # it warns where the notebook has no widgets
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm as auto

    return auto
