"""Copies of whole stores, into the same or another kind of database: backup, restore and moving."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from coterie.errors import ArgumentError, CoterieError, StoreError
from coterie.service.storage.event_store import Event, EventStore, one_line

BATCH_EVENTS = 1_000
"""Events that are written by one statement, at most."""
BATCH_BYTES = 2**24
"""Bytes of these, unless one event has more."""
BATCH_CHUNKS = 256
"""Chunks of snapshots that are read and written at a time, 16 KiB each."""
SMALL_TABLES = {
    "snapshot": "policy, seq, manifest, digest",
    "key": "id, digest, role, policy, label, created",
    "experiment": "name, detail",
}
"""Tables that fit into memory, and their columns."""


class CopiedStore(NamedTuple):
    """How many events and chunks of snapshots a copy has."""

    events: int
    chunks: int


def count_rows(store: EventStore) -> int:
    """Return how many rows a copy will pass, about: a service may add some meanwhile."""
    (found,) = store.query("SELECT (SELECT COUNT(*) FROM log) + (SELECT COUNT(*) FROM chunk)")
    return int(found[0])


def copy_store(
    source: EventStore, target: EventStore, *, advance: Callable[[int], object] = lambda rows: None
) -> CopiedStore:
    """Copy everything that is committed in one store into another, which is empty; all of it or nothing.

    Policies, decisions that wait, snapshots, keys and experiments are the same to the last bit afterwards. A
    service may use the source meanwhile: the copy is of one moment.

    Parameters
    ----------
    source : EventStore
        Open, with or without its lock.
    target : EventStore
        Open, with its lock.
    advance : callable
        Called with the numbers of rows just copied.

    Raises
    ------
    ArgumentError
        If the target is not empty.
    StoreError
        If an event is damaged, or one of the stores cannot be used; the target stays empty.
    """
    _check_empty(target)
    try:
        with source.one_moment(), target.transaction():
            copied = CopiedStore(_copy_log(source, target, advance), _copy_chunks(source, target, advance))
            for table, columns in SMALL_TABLES.items():
                _insert(target, table, columns, source.query(f"SELECT {columns} FROM {table}"))
            # Marks of imports and erasures under way count for the copy; its owner is another process.
            target.execute("DELETE FROM meta WHERE name <> 'owner'")
            _insert(target, "meta", "name, value", source.query("SELECT * FROM meta WHERE name <> 'owner'"))
        target.convert()  # a source of the former format, which only its service may change
    except CoterieError:
        raise
    except Exception as error:  # of whichever database
        raise StoreError(f"nothing was copied: {one_line(error)}") from error
    return copied


def _check_empty(target: EventStore) -> None:
    for table in ("log", "key", "experiment"):
        if target.query(f"SELECT 1 FROM {table} LIMIT 1"):
            raise ArgumentError("the target must be a new or an empty store, and it has rows already")


def _copy_log(source: EventStore, target: EventStore, advance: Callable[[int], object]) -> int:
    """Copy the log, policy by policy; an event whose checksum is another is refused."""
    copied = 0
    for (policy,) in source.query("SELECT DISTINCT policy FROM log"):
        for batch in _batches(source.read(policy)):
            target.insert(batch)
            copied += len(batch)
            advance(len(batch))
    return copied


def _batches(events: Iterator[Event]) -> Iterator[list[Event]]:
    batch: list[Event] = []
    size = 0
    for event in events:
        batch.append(event)
        size += event.size
        if len(batch) >= BATCH_EVENTS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _copy_chunks(source: EventStore, target: EventStore, advance: Callable[[int], object]) -> int:
    """Copy the chunks of all snapshots, some at a time."""
    copied, policy, digest = 0, "", b""
    page = (
        "SELECT policy, digest, content FROM chunk WHERE policy > ? OR (policy = ? AND digest > ?) "
        f"ORDER BY policy, digest LIMIT {BATCH_CHUNKS}"
    )
    while rows := source.query(page, (policy, policy, digest)):
        _insert(target, "chunk", "policy, digest, content", rows)
        policy, digest = rows[-1][:2]
        copied += len(rows)
        advance(len(rows))
    return copied


def _insert(target: EventStore, table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        marks = ", ".join("?" * len(columns.split(",")))
        target.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)
