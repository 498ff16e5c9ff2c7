"""A copy of a policy on disk, made while it serves: it takes no memory, and hardly a moment.

Most of it is written piece by piece, and requests come between the pieces. Then, while nothing changes, all
of it is compared with the policy, and what has changed meanwhile is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from errno import ENOSPC
from math import prod
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryFile, gettempdir
from typing import IO

import numpy as np

from coterie.policies.array_files import Array, FileArray
from coterie.policies.kernel.learner import Learner

PIECE = 2**20
"""Bytes that are copied or compared at a time."""


class DiskCopy:
    """The arrays of a learner in files that are gone when they are closed, or the process ends.

    Parameters
    ----------
    folder : Path, optional
        A folder on a disk with room for the policy; the system's for temporary files by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """A copy of nothing yet."""
        self._folder, self._opened = folder, ExitStack()
        self._files: dict[str, IO[bytes]] = {}

    def __enter__(self) -> DiskCopy:
        """Close all files afterwards."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all files."""
        self._opened.close()

    def new_file(self) -> IO[bytes]:
        """An empty file."""
        return self._opened.enter_context(TemporaryFile(dir=self._folder))

    def prepare(self, look: Callable[[], AbstractContextManager[Learner]]) -> None:
        """Copy each piece as it is while `look` lets nothing change; the whole is of no single moment.

        OSError if there is no room for the copy and for as much again, which a snapshot of it may take: the
        log is on the same disk, and must not find it full.
        """
        with look() as learner:
            sizes = {name: learner.array(name).nbytes for name in learner.names()}
        needed, free = 2 * sum(sizes.values()), disk_usage(self._folder or gettempdir()).free
        if needed > free:
            raise OSError(ENOSPC, f"{needed} bytes of disk are needed, and {free} are free")
        for name in sizes:
            file, start = self._file(name), 0
            while True:
                with look() as learner:
                    piece = next(row_pieces(learner.array(name), start), np.empty(0)).copy()
                if not len(piece):
                    break
                file.write(piece.data)
                start += len(piece)

    def finish(self, learner: Learner) -> dict[str, FileArray]:
        """Write what has changed since; the caller sees to it that nothing changes meanwhile."""
        return {name: self._finish(name, learner.array(name)) for name in learner.names()}

    def _finish(self, name: str, array: Array) -> FileArray:
        file, place = self._file(name), 0
        for piece in row_pieces(array):
            content = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
            file.seek(place)
            if not np.array_equal(np.frombuffer(file.read(len(content)), np.uint8), content):
                file.seek(place)
                file.write(content.data)
            place += len(content)
        file.truncate(place)
        return FileArray(file, array.shape, array.dtype)

    def _file(self, name: str) -> IO[bytes]:
        if name not in self._files:
            self._files[name] = self.new_file()
        return self._files[name]


def row_pieces(array: Array, start: int = 0) -> Iterator[Array]:
    """The rows of an array from one on, about a megabyte at a time; views."""
    rows = max(1, PIECE // max(1, array.itemsize * prod(array.shape[1:])))
    return (array[k : k + rows] for k in range(start, len(array), rows))
