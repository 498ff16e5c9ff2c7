"""What is in the cache of compiled kernels, and how to take over what another process compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numba import typeof

from coterie.kernels.compiling import SOURCES, cache_file
from coterie.kernels.play import play
from coterie.policies.base import Policy

DISPATCHER: Any = play


def kind(policy: Policy) -> Any:
    """The type of a policy's state: the loop over rounds is compiled once for each."""
    return typeof(policy.partition.state)


def compiled() -> set[Any]:
    """The kinds whose loop over rounds is in the cache, compiled for this processor."""
    here = DISPATCHER.targetctx.codegen().magic_tuple()
    index = DISPATCHER._cache._cache_file._load_index()
    return {types[0] for types, processor, _ in index if processor == here}


def adopt(folder: Path) -> None:
    """Put what a process compiled into a cache folder of its own into ours, as if it had been compiled here.

    Processes that share a folder could give two kernels the same name: numba does not lock it.
    """
    cache = DISPATCHER._cache
    files: Any = type(cache._cache_file)
    for index in folder.glob(f"*/*-{SOURCES[:16]}.nbi"):
        theirs = cache_file(files, str(index.parent), index.stem)
        ours = cache_file(files, cache.cache_path, index.stem)
        known = ours._load_index()
        for key in theirs._load_index():
            code = theirs.load(key)  # None if the process was stopped before it was written
            if key not in known and code is not None:
                ours.save(key, code)
