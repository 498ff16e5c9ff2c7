"""The store in PostgreSQL: an advisory lock, commits that wait for the disk."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import RLock, Thread
from typing import Any

from coterie.errors import StoreError
from coterie.extras import install_command
from coterie.service.storage.event_store import OWNER, TABLES, EventStore, one_line

LOCK = 0x436F7465726965  # "Coterie"
"""The number of the advisory lock; it holds for one database."""
PATIENCE = 5.0
"""Seconds to wait for the lock: the server may not have noticed yet that its last holder is gone."""


CONNECTION: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""How a connection is made, and how soon the system notices that its other end is gone."""
SETTINGS = (
    "SET synchronous_commit = on",
    "SET client_encoding = 'UTF8'",
    "SET lock_timeout = '5s'",
    "SET idle_in_transaction_session_timeout = '60s'",
)
LONGEST_STATEMENT = 10.0
"""Seconds after which a server that does not answer is given up."""
LONGEST_REWRITE = 3_600.0
"""The same for statements that change or copy much of a large log."""
REWRITES = ("DELETE", "UPDATE", "VACUUM", "CREATE")


class Watchdog:
    """Ends a connection whose server does not answer, since the library would wait for ever.

    A server that is stopped, or a network that swallows packets, answers nothing, not even to a request to
    cancel. Shutting the socket down makes the thread that waits for it get an error.
    """

    def __init__(self) -> None:
        """Start without a connection; the thread begins with the first."""
        self._watched: dict[int, tuple[float, Any]] = {}
        self._thread: Thread | None = None
        self._longest = LONGEST_REWRITE

    def hurry(self, seconds: float) -> None:
        """Give no block more than these seconds from now on, those under way included."""
        self._longest = seconds
        for key, (until, connection) in list(self._watched.items()):
            self._watched[key] = (min(until, time.monotonic() + seconds), connection)

    @contextmanager
    def watching(self, connection: Any, seconds: float) -> Iterator[None]:
        """End the connection unless the block is left in time."""
        if self._thread is None:
            self._thread = Thread(target=self._watch, name="coterie-watchdog", daemon=True)
            self._thread.start()
        key = id(connection)
        seconds = min(seconds, self._longest)
        self._watched[key] = (time.monotonic() + seconds, connection)
        try:
            yield
        finally:
            self._watched.pop(key, None)

    def _watch(self) -> None:
        while True:
            time.sleep(0.5)
            for key, (until, connection) in list(self._watched.items()):
                if time.monotonic() > until and self._watched.pop(key, None) is not None:
                    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as other:
                        other.shutdown(socket.SHUT_RDWR)


class PostgresStore(EventStore):
    """A database that one service at a time writes to.

    Everything is written on the connection that holds the advisory lock: a service that has lost the lock
    has lost that connection, and cannot write.

    Parameters
    ----------
    url : str
        `postgresql://user:password@host/database`.
    """

    remote = True

    def __init__(self, url: str) -> None:
        """Name a store; `open` connects."""
        try:
            import psycopg
        except ImportError:
            raise StoreError(f"PostgreSQL needs psycopg: {install_command('psycopg')}") from None
        self._psycopg = psycopg
        self._url = url
        self._writer: psycopg.Connection[Any] | None = None
        self._reader: psycopg.Connection[Any] | None = None
        self._reading = RLock()
        self._in_one_moment = False
        self._watchdog = Watchdog()

    OWNER = f"{OWNER} FOR UPDATE"  # a transaction under way holds up whoever wants to take over

    def open(self, *, lock: bool = True, again: bool = False) -> None:
        """Connect twice, take the lock, make the tables."""
        try:
            self.close()
            if not again:
                self._epoch = None
            self._writer = self._connection()
            if lock:
                self._take_lock()
            self._reader = self._connection()
            self.check_format()  # before anything is written
            for table in TABLES:
                self.execute(table.format(number="BIGINT", double="DOUBLE PRECISION", bytes="BYTEA"))
            self.set_format()
            if lock:
                self.claim()
                self.convert()
        except (self._psycopg.Error, OSError, ValueError) as error:
            self.close()
            if isinstance(error, StoreError):
                raise
            raise self._unusable(error) from None

    def check_exists(self) -> None:
        """Raise StoreError if the database has no tables of ours."""
        try:
            self._reader = self._connection()
            if not self.has_table("meta"):
                raise StoreError("there is no store in this PostgreSQL database")
        except self._psycopg.Error as error:
            raise self._unusable(error) from None
        finally:
            self.close()

    def _unusable(self, error: BaseException) -> StoreError:
        reason = without_secrets(one_line(error), self._url)
        return StoreError(f"PostgreSQL cannot be used as a store: {reason}")

    def _connection(self) -> Any:
        """Return a connection whose commits wait for the disk."""
        made = self._psycopg.connect(self._url, autocommit=True, **CONNECTION)
        with self._watchdog.watching(made, LONGEST_STATEMENT):
            for setting in SETTINGS:
                made.execute(setting)
        return made

    def _take_lock(self) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            if self.fetch("SELECT pg_try_advisory_lock(?)", (LOCK,)) == [(True,)]:
                return
            if time.monotonic() > until:
                raise StoreError("the database is in use by another service; one store has one service")
            time.sleep(0.1)

    def hurry(self) -> None:
        """Let no statement take longer than ordinary ones may: a service that ends must not wait an hour."""
        self._watchdog.hurry(LONGEST_STATEMENT)

    def close(self) -> None:
        """Disconnect, which releases the lock."""
        with self._reading:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    with suppress(self._psycopg.Error, OSError):
                        connection.close()
            self._reader = self._writer = None

    def execute(self, statement: str, rows: Sequence[Sequence[Any]] = ((),)) -> None:
        """Perform a statement for each row, on the connection that writes."""
        if self._writer is None:
            raise self._psycopg.OperationalError("the store is closed")
        written: Any = statement.replace("?", "%s")
        longest = LONGEST_REWRITE if statement.startswith(REWRITES) else LONGEST_STATEMENT
        with self._watchdog.watching(self._writer, longest), self._writer.cursor() as cursor:
            if len(rows) == 1:
                cursor.execute(written, rows[0])
            else:
                cursor.executemany(written, rows)

    def fetch(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement, on the connection that writes."""
        if self._writer is None:
            raise self._psycopg.OperationalError("the store is closed")
        written: Any = statement.replace("?", "%s")
        with self._watchdog.watching(self._writer, LONGEST_STATEMENT):
            return list(self._writer.execute(written, values).fetchall())

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement, on the connection that reads."""
        written: Any = statement.replace("?", "%s")
        with self._reading:
            if self._reader is None:
                raise StoreError("the store is closed")
            try:
                try:
                    return self._read(written, values)
                except self._psycopg.OperationalError:
                    if self._in_one_moment:  # another connection would see another one
                        raise
                    self._reader.close()
                    self._reader = self._connection()
                    return self._read(written, values)
            except self._psycopg.Error as error:
                raise StoreError(f"PostgreSQL cannot be read: {one_line(error)}") from None

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Let all queries of a block see the store as it was at its first one."""
        with self._reading:
            if self._reader is None:
                raise StoreError("the store is closed")
            self._reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            self._in_one_moment = True
            try:
                yield
            finally:
                self._in_one_moment = False
                with suppress(self._psycopg.Error):
                    self._reader.execute("ROLLBACK")

    def _read(self, statement: Any, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        assert self._reader is not None
        with self._watchdog.watching(self._reader, LONGEST_STATEMENT):
            return list(self._reader.execute(statement, values).fetchall())

    def has_table(self, name: str) -> bool:
        """Tell whether a table exists."""
        return self.query("SELECT to_regclass(?)", (name,)) != [(None,)]

    def check_place(self) -> None:
        """Do nothing: a commit that returned is in the database."""

    def leave_in_child(self) -> None:
        """Do nothing: the library leaves connections alone that another process has made."""

    def erase_removed(self) -> None:
        """Do nothing: the server overwrites removed rows when it vacuums, and recycles its own log later."""

    def reuse_log(self) -> None:
        """Do nothing: the server recycles its own log."""

    def roll_back(self) -> None:
        """Undo a transaction if the connection still lives."""
        with suppress(self._psycopg.Error, AttributeError):
            assert self._writer is not None
            with self._watchdog.watching(self._writer, LONGEST_STATEMENT):
                self._writer.execute("ROLLBACK")


def without_secrets(text: str, url: str) -> str:
    """Return a text without the password of a URL, even of one that cannot be parsed because of it."""
    rest = url.partition("://")[2]
    password = rest.rpartition("@")[0].partition(":")[2]
    pieces = {password, *re.split(r"[@:/?#%]", password), *re.findall(r"password=([^&]*)", rest)}
    for piece in sorted(pieces, key=len, reverse=True):
        text = text.replace(piece, "…") if len(piece) > 2 else text
    return text
