"""The store in PostgreSQL: an advisory lock, commits that wait for the disk."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import RLock
from typing import Any

from coterie.errors import StoreError
from coterie.extras import install_command
from coterie.service.storage.event_store import TABLES, EventStore, one_line

LOCK = 0x436F7465726965  # "Coterie"
"""The number of the advisory lock; it holds for one database."""
PATIENCE = 5.0
"""Seconds to wait for the lock: the server may not have noticed yet that its last holder is gone."""


class PostgresStore(EventStore):
    """A database that one service at a time writes to.

    Everything is written on the connection that holds the advisory lock: who has lost the lock has lost the
    connection, and cannot write.

    Parameters
    ----------
    url : str
        `postgresql://user:password@host/database`.
    """

    def __init__(self, url: str) -> None:
        """A store that is not open yet."""
        try:
            import psycopg
        except ImportError:
            raise StoreError(f"PostgreSQL needs psycopg: {install_command('psycopg')}") from None
        self._psycopg = psycopg
        self._url = url
        self._writer: psycopg.Connection[Any] | None = None
        self._reader: psycopg.Connection[Any] | None = None
        self._reading = RLock()

    def open(self, *, lock: bool = True) -> None:
        """Connect twice, take the lock, make the tables."""
        try:
            self.close()
            self._writer = self._connection()
            if lock:
                self._take_lock()
            self._reader = self._connection()
            self.check_format()  # before anything is written
            for table in TABLES:
                self._writer.execute(table.format(number="BIGINT", double="DOUBLE PRECISION", bytes="BYTEA"))
            self.set_format()
        except (self._psycopg.Error, OSError, ValueError) as error:
            self.close()
            if isinstance(error, StoreError):
                raise
            told = without_secrets(one_line(error), self._url)
            raise StoreError(f"PostgreSQL cannot be used as a store: {told}") from None

    def _connection(self) -> Any:
        """A connection whose commits wait for the disk."""
        made = self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        made.execute("SET synchronous_commit = on")
        made.execute("SET client_encoding = 'UTF8'")
        return made

    def _take_lock(self) -> None:
        assert self._writer is not None
        until = time.monotonic() + PATIENCE
        while True:
            row = self._writer.execute("SELECT pg_try_advisory_lock(%s)", (LOCK,)).fetchone()
            if row is not None and row[0]:
                return
            if time.monotonic() > until:
                raise StoreError("the database is in use by another service; one store has one service")
            time.sleep(0.1)

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
        with self._writer.cursor() as cursor:
            if len(rows) == 1:
                cursor.execute(written, rows[0])
            else:
                cursor.executemany(written, rows)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement, on the connection that reads."""
        written: Any = statement.replace("?", "%s")
        with self._reading:
            if self._reader is None:
                raise StoreError("the store is closed")
            try:
                try:
                    return self._reader.execute(written, values).fetchall()
                except self._psycopg.OperationalError:
                    self._reader.close()
                    self._reader = self._connection()
                    return self._reader.execute(written, values).fetchall()
            except self._psycopg.Error as error:
                raise StoreError(f"PostgreSQL cannot be read: {one_line(error)}") from None

    def has_table(self, name: str) -> bool:
        """Tell whether a table exists."""
        return self.query("SELECT to_regclass(?)", (name,)) != [(None,)]

    def check_place(self) -> None:
        """A commit that returned is in the database."""

    def roll_back(self) -> None:
        """Undo a transaction if the connection still lives."""
        with suppress(self._psycopg.Error, AttributeError):
            assert self._writer is not None
            self._writer.execute("ROLLBACK")


def without_secrets(text: str, url: str) -> str:
    """A text without what a URL says of a password, even one that broke the URL."""
    rest = url.partition("://")[2]
    password = rest.rpartition("@")[0].partition(":")[2]
    pieces = {password, *re.split(r"[@:/?#%]", password), *re.findall(r"password=([^&]*)", rest)}
    for piece in sorted(pieces, key=len, reverse=True):
        text = text.replace(piece, "…") if len(piece) > 2 else text
    return text
