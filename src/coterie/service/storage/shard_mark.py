"""The mark of a store that holds one shard of several: written when the store is made, checked ever after."""

from __future__ import annotations

from coterie.errors import ArgumentError
from coterie.placement import Placement
from coterie.service.storage.event_store import EventStore

MARK = "shard"
"""The name of the mark in the table `meta`."""


def read_mark(store: EventStore) -> Placement | None:
    """Return which shard an open store holds; None if it holds all users."""
    found = store.query("SELECT value FROM meta WHERE name = ?", (MARK,))
    if not found:
        return None
    shard, _, shards = found[0][0].partition(" of ")
    return Placement(int(shard), int(shards))


def check_mark(store: EventStore, placement: Placement | None) -> None:
    """Refuse a store that holds other users than it is opened for; an empty one is marked.

    The number of shards decides where a user is, so a store can never be opened as part of another number.
    """
    found = read_mark(store)
    if found == placement:
        return
    if found is not None and placement is None:
        raise ArgumentError(
            f"this store is {found}: serve the folder or database of all shards, with --shards {found.shards}"
        )
    if found is not None:
        raise ArgumentError(f"this store is {found}, and cannot be opened as {placement}")
    assert placement is not None
    if store.query("SELECT 1 FROM log LIMIT 1"):
        raise ArgumentError(
            f"this store has all users of a service without shards, and cannot be opened as {placement}"
        )
    with store.transaction():
        value = f"{placement.shard} of {placement.shards}"
        store.execute("INSERT INTO meta VALUES (?, ?)", [(MARK, value)])
