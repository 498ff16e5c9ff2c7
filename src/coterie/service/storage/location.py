"""Where a store is: from what `--store` says to a store."""

from __future__ import annotations

import re
from pathlib import Path

from coterie.errors import ArgumentError
from coterie.service.storage.event_store import EventStore
from coterie.service.storage.postgresql import PostgresStore
from coterie.service.storage.sqlite import SQLiteStore

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def open_store(where: str | EventStore | None) -> EventStore:
    """Return the store of a location, not open yet.

    Parameters
    ----------
    where : str, EventStore or None
        The path of a SQLite file, `sqlite:///PATH`, or `postgresql://…`; None keeps everything in memory. A
        store is returned as it is.

    Raises
    ------
    ArgumentError
        If `where` is a folder, or a URL of another kind, which would be taken for the path of a file.
    """
    if isinstance(where, EventStore):
        return where
    scheme = None if where is None else SCHEME.match(where)
    if where is not None and scheme is None and Path(where).is_dir():
        raise ArgumentError(
            f"store must be a file, and {where} is a folder; `coterie serve --shards` serves one of shards"
        )
    if where is None or scheme is None:
        return SQLiteStore(where)
    if scheme[1] in ("postgresql", "postgres"):
        return PostgresStore(where)
    path = where.removeprefix("sqlite:///")
    if path in (where, ""):
        raise ArgumentError(
            f"store must be the path of a SQLite file, sqlite:///PATH or postgresql://…, "
            f"got {shown_store(where)!r}"
        )
    return SQLiteStore(path)


def shown_store(where: str) -> str:
    """Return where a store is, without user and password."""
    scheme, mark, rest = where.partition("://")
    return re.sub(r"password=[^&]*", "password=…", f"{scheme}{mark}{rest.rpartition('@')[2]}")
