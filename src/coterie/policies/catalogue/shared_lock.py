"""A lock for many readers or one writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class SharedLock:
    """Any number of threads may read at a time, and one may write while nobody reads.

    A writer that waits keeps new readers out: with decisions made all the time it would wait forever.
    Neither side may ask for the lock again while it holds it.
    """

    def __init__(self) -> None:
        """Start with the lock free."""
        self._changed = Condition()
        self._readers = 0
        self._writers = 0  # those that wait, and the one that writes
        self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock for reading."""
        with self._changed:
            self._changed.wait_for(lambda: self._writers == 0)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock for writing."""
        with self._changed:
            self._writers += 1
            self._changed.wait_for(lambda: self._readers == 0 and not self._writing)
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._writers -= 1
                self._changed.notify_all()
