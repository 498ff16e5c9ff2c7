"""A progress bar for anything over two seconds: on a terminal, if tqdm is there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, float], None]
"""Called with the number of rounds just played and the run's regret so far."""


@contextmanager
def quiet(total: int, *, forced: bool = False) -> Iterator[Progress]:
    """Nothing is shown."""
    yield lambda rounds, regret: None


@contextmanager
def visible(total: int, *, forced: bool = False) -> Iterator[Progress]:
    """A bar that appears after two seconds; nothing when stderr is not a terminal, unless forced."""
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda rounds, regret: None
        return
    lock = Lock()
    hidden = not (forced or sys.stderr.isatty())
    with tqdm(total=total, unit="round", unit_scale=True, delay=2.0, disable=hidden, leave=False) as bar:

        def advance(rounds: int, regret: float) -> None:
            with lock:
                bar.update(rounds)

        yield advance
