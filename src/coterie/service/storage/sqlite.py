"""The embedded store: one SQLite file, or memory alone."""

from __future__ import annotations

import ctypes
import os
import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from threading import RLock
from typing import IO, Any, ClassVar

from coterie.atomic_files import atomic_write
from coterie.errors import StoreError
from coterie.service.storage.event_store import TABLES, EventStore

PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # fsync of the write-ahead log at every commit
    "PRAGMA secure_delete = ON",  # the ids and vectors of a removed user are overwritten, not only unlinked
    "PRAGMA busy_timeout = 5000",
)

Inode = tuple[int, int]
MOUNTS = Path("/proc/self/mountinfo")
ROWS_AT_ONCE = 500
"""Rows of one statement; SQLite takes 32,766 values."""


class SQLiteStore(EventStore):
    """A file in write-ahead mode; a commit returns when it is on the disk.

    A lock on the file itself keeps a second process out, through whatever path it comes; the system releases
    it when the process ends, however it ends. The file is readable by its owner alone unless it was there.

    Parameters
    ----------
    path : str or path, optional
        The file, which is made if it is not there; None keeps everything in memory.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Name a store; `open` connects."""
        self.path = None if path is None else Path(path).absolute()
        self.durable = path is not None
        self.folder = None if self.path is None else self.path.parent
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._reading = RLock()
        self._lock: StoreLock | None = None
        self._inodes: dict[Path, Inode] = {}
        self._sizes: dict[Path, int] = {}

    def open(self, *, lock: bool = True, again: bool = False) -> None:
        """Take the lock, connect twice, make the tables."""
        try:
            if not again:
                self._epoch, self._inodes = None, {}
                self._make_file(lock)
                self._remove_exports(lock)
            self._connect(owner=lock)
        except (sqlite3.Error, OSError, ValueError) as error:
            self._disconnect()
            if not again:
                self.close()  # after a failure the lock is kept: nobody else may go on with the store
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"the store {self.path} cannot be opened: {error}") from None

    def check_exists(self) -> None:
        """Raise StoreError if there is no such file, or an empty one."""
        if self.path is not None and not (self.path.is_file() and self.path.stat().st_size):
            raise StoreError(f"there is no store {self.path}")

    def _make_file(self, lock: bool) -> None:
        if self.path is None:
            return
        if lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError, FileNotFoundError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        if lock and self._lock is None:
            self._lock = StoreLock(self.path)
        _check_single_name(self.path)

    def export_folder(self) -> TemporaryDirectory[str]:
        """Return a folder of this store for an export; what a killed process leaves, `open` removes."""
        if self.path is None:
            return super().export_folder()
        return TemporaryDirectory(dir=self.folder, prefix=self._export_prefix)

    @property
    def _export_prefix(self) -> str:
        return "" if self.path is None else f"{self.path.name}-export-"

    def _remove_exports(self, lock: bool) -> None:
        """Remove exports that a killed process left: users in them may be removed from now on."""
        if self.folder is not None and lock:
            for left in self.folder.iterdir():
                if left.name.startswith(self._export_prefix):
                    rmtree(left, ignore_errors=True)

    def _connect(self, *, owner: bool) -> None:
        self._disconnect()
        if self.path is not None and self._inodes:
            self._check_inode(self.path)  # or SQLite would begin an empty file where there was a full one
        self._reader = self._reader or sqlite3.connect(
            self.path or ":memory:", isolation_level=None, check_same_thread=False
        )
        self.check_format()  # before anything is written, the mode of the journal included
        self._prepare(self._reader)
        self._writer = self._reader if self.path is None else self._connection()
        for table in TABLES:
            self._writer.execute(table.format(number="INTEGER", double="REAL", bytes="BLOB"))
        self.set_format()
        if self.path is not None:
            if owner:
                self.claim()
                self.convert()
            real = self.path.resolve()
            wal = real.with_name(f"{real.name}-wal")
            self._inodes = {self.path: _inode(self.path)}
            if wal.exists():  # it stays as long as there are connections
                self._inodes[wal] = _inode(wal)
            self._sizes = dict.fromkeys(self._inodes, 0)

    def _connection(self) -> sqlite3.Connection:
        made = sqlite3.connect(self.path or ":memory:", isolation_level=None, check_same_thread=False)
        self._prepare(made)
        return made

    def _prepare(self, connection: sqlite3.Connection) -> None:
        for pragma in PRAGMAS:
            connection.execute(pragma)

    def close(self) -> None:
        """Disconnect and release the lock."""
        self._disconnect()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def hurry(self) -> None:
        """Do nothing: a file is not waited for as a server is."""

    def leave_in_child(self) -> None:
        """Never close the connections: SQLite would wait for locks of threads that are not in the child."""
        for connection in (self._reader, self._writer):
            if connection is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def _disconnect(self) -> None:
        if self.path is None and self._writer is not None:
            return  # a database in memory ends with its connection
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
            # One statement for many rows: after each statement this thread waits for the GIL again.
            some = rows[start : start + ROWS_AT_ONCE]
            together = f"{head} VALUES {', '.join([row] * len(some))}"
            self._writer.execute(together, [value for values in some for value in values])

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement, on the connection that reads."""
        with self._reading:
            if self._reader is None:
                raise StoreError(f"the store {self.path} is closed")
            try:
                return self._reader.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"the store {self.path} cannot be read: {error}") from None

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Let all queries of a block see the store as it was at its first one."""
        with self._reading:
            self.query("BEGIN")
            try:
                yield
            finally:
                self.query("ROLLBACK")

    def fetch(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement, on the connection that writes."""
        if self._writer is None:
            raise sqlite3.OperationalError("the store is closed")
        return self._writer.execute(statement, values).fetchall()

    def has_table(self, name: str) -> bool:
        """Tell whether a table exists."""
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def check_place(self) -> None:
        """Raise if a file was removed, replaced or cut: the next process would not find the commit.

        Commits are in the `-wal` file until they are copied to the main one.
        """
        for path in self._inodes:
            size = self._check_inode(path)
            if size < self._sizes[path]:  # SQLite shortens neither file while it is open
                raise OSError(f"{path} was cut from {self._sizes[path]} bytes to {size}")
            self._sizes[path] = size

    def _check_inode(self, path: Path) -> int:
        """Raise if a path does not lead to the same file any more; return the size of the file."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._inodes[path]:
            raise OSError(f"{path} was removed or replaced; put it back, or start again")
        return found.st_size

    def erase_removed(self) -> None:
        """Write the file anew and empty the `-wal` file.

        `secure_delete` overwrites removed rows, but not the copies that were left when SQLite moved rows from
        one page to another, and the zeros reach the file only with a checkpoint.
        """
        if self.path is None:
            return
        self.execute("VACUUM")
        self._sizes = dict.fromkeys(self._inodes, 0)
        ((busy, *_),) = self.fetch("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:  # for as long as `PRAGMA busy_timeout` says
            raise sqlite3.OperationalError("another process reads the store, and keeps what was removed")

    def reuse_log(self) -> None:
        """Move what is in the `-wal` file into the database, so that later commits need no longer file."""
        self.fetch("PRAGMA wal_checkpoint(RESTART)")

    def roll_back(self) -> None:
        """Undo a transaction if one is open."""
        with suppress(sqlite3.Error, AttributeError):
            assert self._writer is not None
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    @classmethod
    def copied(cls, path: Path) -> SQLiteStore:
        """Return a store in memory with the content of a file, which is not written."""
        made = cls()
        try:
            source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            made._writer = made._connection()
            source.backup(made._writer)
            made._reader = made._writer
            source.close()
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be read: {error}") from None
        return made

    def copy_to(self, path: Path) -> None:
        """Write a copy of everything that is committed to another file, complete or not at all."""
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


class StoreLock:
    """The lock of a store, which one process has.

    On Linux it is on the database file: `flock` and the locks that SQLite takes do not see each other there.
    The process must not close the file while SQLite uses it, since that would release the locks of SQLite; so
    files that are locked by this process are known, and not opened a second time. On other systems it is on a
    file beside it.
    """

    _held: ClassVar[dict[Inode, StoreLock]] = {}

    def __init__(self, path: Path) -> None:
        """Take the lock; StoreError if another process has it, or this one."""
        self._inode = _inode(path)
        if self._inode in self._held:
            raise in_use(path)
        real = path.resolve()
        beside = sys.platform != "linux"
        self._file = open(real.with_name(f"{real.name}-lock") if beside else real, "ab" if beside else "rb")
        try:
            _lock_file(self._file)
        except OSError:
            self._file.close()
            raise in_use(path) from None
        self._held[self._inode] = self

    def release(self) -> None:
        """Let others have it; the store has disconnected before."""
        self._held.pop(self._inode, None)
        self._file.close()

    @classmethod
    def release_in_child(cls) -> None:
        """Close what a forked process has inherited, so that it does not keep the lock after its parent."""
        for lock in list(cls._held.values()):
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=StoreLock.release_in_child)


def in_use(path: Path) -> StoreError:
    """Return what a second service of a store is told."""
    return StoreError(f"the store {path} is in use by another process; one store has one service")


def _check_single_name(path: Path) -> None:
    """Refuse a file with another name: SQLite looks for the latest commits beside the name that it is given.

    Whoever comes by another name after a crash does not see them, and whoever comes back overwrites what was
    written meanwhile.
    """
    if not path.exists():
        return
    if os.stat(path).st_nlink > 1:
        raise StoreError(
            f"the store {path} has another name, a hard link, by which its latest commits are not found; "
            "keep one of the names"
        )
    if MOUNTS.exists():
        real = os.fspath(path.resolve())
        mounted = (line.split(" ")[4] for line in MOUNTS.read_text().splitlines())
        if real in (re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), one) for one in mounted):
            raise StoreError(
                f"the store {path} is mounted as a single file, and its latest commits would be in another "
                "file beside it; mount the folder"
            )


def _lock_file(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _inode(path: Path) -> Inode:
    """Return which file a path leads to now."""
    found = os.stat(path)
    return found.st_dev, found.st_ino
