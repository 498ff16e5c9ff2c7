"""Lines of the log, written by a thread: a pipe that nobody reads must stop no request and no commit."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Full, Queue
from threading import Thread

MOST_RECORDS = 10_000
"""Records that wait to be written; further ones are dropped."""
LAST_LINES = 2.0
"""Seconds that the end of the process waits until the last lines are written."""
STDERR = 2


class BackgroundHandler(logging.Handler):
    """Hands records to a thread, which writes them to a file descriptor.

    The thread bypasses `sys.stderr`: Python takes the lock of that object when it ends, and could not end
    while a thread holds it in a write that does not return.

    Parameters
    ----------
    formatter : Formatter
        Makes lines of records.
    descriptor : int
        Where to write them.
    """

    def __init__(self, formatter: logging.Formatter, descriptor: int = STDERR) -> None:
        """Start the thread."""
        super().__init__()
        self.setFormatter(formatter)
        self._descriptor = descriptor
        self._records: Queue[logging.LogRecord | None] = Queue(MOST_RECORDS)
        self._thread = Thread(target=self._write, name="coterie-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record, or drop it if too many wait."""
        with suppress(Full):
            self._records.put_nowait(record)

    def finish(self) -> None:
        """Return when all is written, or when it takes too long."""
        with suppress(Full):
            self._records.put_nowait(None)
            self._thread.join(LAST_LINES)

    def _write(self) -> None:
        while (record := self._records.get()) is not None:
            with suppress(Exception):  # a line that cannot be written is lost, and those after it are not
                line = f"{self.format(record)}\n".encode(errors="replace")
                while line:
                    line = line[os.write(self._descriptor, line) :]


@contextmanager
def logging_in_background(level: str, formatter: logging.Formatter | None = None) -> Iterator[None]:
    """Let a thread write what uvicorn, this library and others log, until the end of the block.

    `level` is that of this library; uvicorn has its own setting. Lines are as uvicorn formats them, unless a
    formatter is given.
    """
    uvicorn_log = logging.getLogger("uvicorn")
    usual = next((one.formatter for one in uvicorn_log.handlers if one.formatter), logging.Formatter())
    handler = BackgroundHandler(formatter or usual)
    replaced = {log: log.handlers for log in (logging.getLogger(), uvicorn_log)}
    for log in replaced:
        log.handlers = [handler]
    ours = logging.getLogger("coterie")
    before_level = ours.level
    ours.setLevel(level.upper())
    try:
        yield
    finally:
        handler.finish()
        ours.setLevel(before_level)
        for log, before in replaced.items():
            log.handlers = before
