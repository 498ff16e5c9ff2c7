"""How kernels are compiled: once, cached on disk, and said aloud when it takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any, TypeVar
from uuid import uuid4

from numba import njit, typeof
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])

COMPILING = "coterie: compiling for this machine, once; the result is kept ..."

PATIENCE = 2.0
"""Seconds of compilation after which a person is told what is going on."""

SOURCES = sha256(b"".join(p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()
"""Part of every name in the cache: numba looks at one file to tell whether a kernel is stale, and ours
call each other across files; an index that another version wrote may name types that are gone."""

PROCESS = uuid4().hex[:12]
"""Part of the name of every file that this process writes into the cache."""


def compiled(function: F) -> F:
    """The function, compiled on first use without the GIL and without reordering any sum.

    No `fastmath`: the same inputs give the same bits, however the rounds are cut into calls.
    """
    dispatcher: F = njit(cache=True, nogil=True, error_model="numpy")(function)
    cache = getattr(dispatcher, "_cache", None)
    old = getattr(cache, "_cache_file", None)
    if cache is not None and old is not None:
        name = f"{function.__module__}.{function.__qualname__}-{SOURCES[:16]}"
        cache._cache_file = cache_file(type(old), old._cache_path, name)
    return dispatcher


def cache_file(kind: Any, folder: str, name: str) -> Any:
    """The index and the data files of a kernel in a cache folder.

    Data files carry the mark of the process that writes them: numba does not lock the folder, and two
    processes that number alike would put one kind's code under the other's name.
    """
    files = kind(cache_path=folder, filename_base=name, source_stamp=SOURCES)
    files._data_name_pattern = f"{name}.{PROCESS}-{{number:d}}.nbc"
    return files


def entry(kernel: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """The compiled code of a kernel for arguments like these, without looking at their types at each call.

    Saves 2 to 3 µs a call; whoever calls it answers for the types.
    """
    dispatcher: Any = kernel
    types = tuple(typeof(argument) for argument in arguments)
    dispatcher.compile(types)
    code: Callable[..., Any] = dispatcher.overloads[types].entry_point
    return code


class _Announcer(event.Listener):
    """Says that kernels are being compiled as soon as that has taken longer than patience."""

    def __init__(self) -> None:
        self._depth = 0
        self._spent = 0.0
        self._began = 0.0
        self._timer: Timer | None = None

    def on_start(self, event: event.Event) -> None:
        self._depth += 1
        if self._depth > 1 or self._spent > PATIENCE:
            return
        self._began = perf_counter()
        self._timer = Timer(PATIENCE - self._spent, self._say)
        self._timer.daemon = True
        self._timer.start()

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._spent += perf_counter() - self._began

    def _say(self) -> None:
        print(COMPILING, file=sys.stderr, flush=True)


event.register("numba:compile", _Announcer())
