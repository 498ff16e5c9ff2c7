"""The embedded store: one SQLite file, or nothing but memory."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import IO, Any

from coterie.errors import StoreError
from coterie.service.storage.event_store import TABLES, EventStore
from coterie.storage import atomic_write

PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",  # what is removed is overwritten
    "PRAGMA busy_timeout = 5000",
)

ROWS_AT_ONCE = 500
"""Rows of one statement; SQLite takes 32,766 values."""


class SQLiteStore(EventStore):
    """A file in write-ahead mode; a commit returns when it is on the disk.

    A lock on `NAME-lock` beside the file keeps a second process out; the system releases it when the process
    ends, however it ends.

    Parameters
    ----------
    path : str or path, optional
        The file, which is made if it is not there; None keeps everything in memory.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """A store that is not open yet."""
        self.path = None if path is None else Path(path).absolute()
        self.durable = path is not None
        self.folder = None if self.path is None else self.path.parent
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._reading = RLock()
        self._lock: IO[bytes] | None = None
        self._inode: tuple[int, int] | None = None

    def open(self, *, lock: bool = True) -> None:
        """Take the lock, connect twice, make the tables."""
        try:
            if self.path is not None and self._lock is None and lock:
                self._lock = take_lock(self.path)
            self._connect()
        except (sqlite3.Error, OSError, ValueError) as error:
            self.close()
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"the store {self.path} cannot be opened: {error}") from None

    def _connect(self) -> None:
        self._disconnect()
        if self._inode is not None:
            self.check_place()  # never go on with an empty file where there was a full one
        self._writer = self._writer or self._connection()
        self._reader = self._writer if self.path is None else self._connection()
        self.check_format()  # before anything is written
        for table in TABLES:
            self._writer.execute(table.format(number="INTEGER", double="REAL", bytes="BLOB"))
        if self.path is not None:
            self._inode = _inode(self.path)
        self.set_format()

    def _connection(self) -> sqlite3.Connection:
        made = sqlite3.connect(self.path or ":memory:", isolation_level=None, check_same_thread=False)
        for pragma in PRAGMAS:
            made.execute(pragma)
        return made

    def close(self) -> None:
        """Disconnect and release the lock."""
        self._disconnect()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _disconnect(self) -> None:
        if self.path is None and self._writer is not None:
            return  # what is in memory would be gone
        with self._reading:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    with suppress(sqlite3.Error):
                        connection.close()
            self._reader = self._writer = None

    def execute(self, statement: str, rows: Sequence[Sequence[Any]] = ((),)) -> None:
        """Perform a statement for each row, on the connection that writes."""
        if self._writer is None:
            raise sqlite3.OperationalError("the store is closed")
        statement = "BEGIN IMMEDIATE" if statement == "BEGIN" else statement
        head, mark, row = statement.partition(" VALUES ")
        if len(rows) == 1 or not mark:
            for values in rows:
                self._writer.execute(statement, values)
            return
        for start in range(0, len(rows), ROWS_AT_ONCE):
            # One statement for many rows: after each, this thread has to wait until others let it run.
            some = rows[start : start + ROWS_AT_ONCE]
            together = f"{head} VALUES {', '.join([row] * len(some))}"
            self._writer.execute(together, [value for values in some for value in values])

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement, on the connection that reads."""
        with self._reading:
            if self._reader is None:
                raise StoreError(f"the store {self.path} is closed")
            try:
                return self._reader.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"the store {self.path} cannot be read: {error}") from None

    def has_table(self, name: str) -> bool:
        """Tell whether a table exists."""
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def check_place(self) -> None:
        """Raise if the file was removed or replaced: the commit went to one that nobody will find."""
        if self.path is None:
            return
        try:
            found = _inode(self.path)
        except FileNotFoundError:
            found = None
        if found != self._inode:
            raise OSError(f"{self.path} was removed or replaced; put it back, or start again")

    def roll_back(self) -> None:
        """Undo a transaction if one is open."""
        with suppress(sqlite3.Error, AttributeError):
            assert self._writer is not None
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    @classmethod
    def copied(cls, path: Path) -> SQLiteStore:
        """A store in memory with what a file holds; the file is not written."""
        made = cls()
        try:
            source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            made._writer = made._connection()
            source.backup(made._writer)
            source.close()
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be read: {error}") from None
        return made

    def copy_to(self, path: Path) -> None:
        """Write a copy of everything that is committed to another file, whole or not at all."""
        with TemporaryDirectory() as folder:
            copy = Path(folder, "copy.db")
            target = sqlite3.connect(copy)
            try:
                with self._reading:
                    assert self._reader is not None
                    self._reader.backup(target)
            finally:
                target.close()
            atomic_write(path, copy.read_bytes())


def take_lock(path: Path) -> IO[bytes]:
    """Hold the lock of a store, or say who is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = open(path.with_name(f"{path.name}-lock"), "a+b")
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StoreError(
            f"the store {path} is in use by another process; one store has one service"
        ) from None
    return file


def _inode(path: Path) -> tuple[int, int]:
    """Which file a path leads to now."""
    found = os.stat(path)
    return found.st_dev, found.st_ino
