"""Compaction: old decisions lose what only their own answer needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import COLUMNS, Event, EventStore, checked_event, encode_detail

KEPT = (
    "ranking",
    "drawn",
    "generator",
    "version",
    "request",
    "catalogue",
    "unnamed",
    "propensity",
    "experiment",
    "deferred",
)
"""Fields of a decision that are needed to learn and to count it again, and to recognise its request."""
ROWS_PER_TRANSACTION = 1_000
"""Decisions that are written in one transaction."""


class Compacted(NamedTuple):
    """How many decisions were shortened, and by how many bytes in all."""

    decisions: int
    saved: int


def compact(store: EventStore, before: float) -> Compacted:
    """Shorten the decisions made before this time that have got a reward, and give the space back.

    State, rewards that come again, late rewards and the removal of users are as before. What goes: the arms
    that were offered and not chosen, and scores. So such a decision is no longer exported, and
    asking for it again by its id is a conflict that says so. The store is open, and no service uses it.
    """
    count = saved = 0
    dims = {name: json.loads(text)["dim"] for name, text in _created(store)}
    for page in _pages(store, before):
        shorter = [_shortened(event, dims[event.policy]) for event in page]
        with store.transaction():
            store.rewrite_events(shorter)
        count += len(shorter)
        saved += sum(_size(event) for event in page) - sum(_size(event) for event in shorter)
    store.execute("VACUUM")
    return Compacted(count, saved)


def _created(store: EventStore) -> list[tuple[str, str]]:
    """Return the names of all policies there ever were, and their settings."""
    found = store.query("SELECT policy, detail FROM log WHERE kind = ?", (events.CREATED,))
    return [(str(name), str(text)) for name, text in found]


def _pages(store: EventStore, before: float) -> Iterator[list[Event]]:
    """Yield the decisions that can be shortened, some at a time."""
    settled = (
        "SELECT 1 FROM log r WHERE r.decision = log.decision AND r.policy = log.policy AND r.kind IN (?, ?)"
    )
    statement = (
        f"SELECT {COLUMNS} FROM log WHERE seq > ? AND kind = ? AND at < ? AND EXISTS ({settled}) "
        f"ORDER BY seq LIMIT {ROWS_PER_TRANSACTION}"
    )
    after = 0
    while rows := store.query(statement, (after, events.DECISION, before, events.REWARD, events.EXPIRED)):
        page = [checked_event(row) for row in rows]
        after = page[-1].seq
        if whole := [event for event in page if "scores" in event.fields()]:
            yield whole


def _shortened(event: Event, dim: int) -> Event:
    """Return a decision with the vectors and the detail that are left of it."""
    fields = event.fields()
    kept = {name: fields[name] for name in KEPT if name in fields}
    return event._replace(x=event.chosen_vectors(dim).tobytes(), detail=encode_detail(kept))


def _size(event: Event) -> int:
    return len(event.x or b"") + len((event.detail or "").encode())
