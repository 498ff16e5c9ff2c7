"""Catalogue, settings, policies and keys in all shards: shard 0 orders them, the others follow its log.

The log of shard 0 has every change as an event, in order and durable. Each other shard reads once a second
what is new there, makes the same change in its own service, and remembers in its own store how far it has
come. So a shard that was away catches up by itself, and there is no second log that could disagree.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from threading import Event as Signal
from threading import Lock, Thread
from typing import Any, NamedTuple

import msgspec

from coterie.errors import CoterieError, StoreError
from coterie.service.core.engine import PolicyEngine
from coterie.service.item_tables import ItemTable
from coterie.service.settings import CHANGEABLE, PolicySettings
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import COLUMNS, Event, EventStore, checked_event

LEADER = 0
"""The shard that orders changes."""
POSITION = "changes"
"""The name in the table `meta` of how far a shard has followed the log of shard 0."""
CHANGES = (events.CREATED, events.CONFIGURED, events.ITEMS, events.RETIRED)
BATCH = 8
"""Changes that are sent at a time; the vectors of one may have megabytes."""
INTERVAL = 1.0
"""Seconds between two looks at the log of shard 0."""
KEYS = "SELECT id, digest, role, policy, label, created FROM key ORDER BY id"
REQUIRED = "SELECT 1 FROM meta WHERE name = 'keys'"
logger = logging.getLogger(__name__)


class ChangeBatch(NamedTuple):
    """Changes after a position, how far they reach, whether there are more, and all keys."""

    events: list[Event]
    upto: int
    more: bool
    keys: list[tuple[str, str, str, str | None, str, float]]
    keys_required: bool


def read_changes(store: EventStore, after: int) -> ChangeBatch:
    """Return the changes in the log of shard 0 after this number, some at a time."""
    last = store.query("SELECT MAX(seq) FROM log")[0][0] or 0
    marks = ", ".join("?" * len(CHANGES))
    rows = store.query(
        f"SELECT {COLUMNS} FROM log WHERE seq > ? AND seq <= ? AND kind IN ({marks}) "
        f"ORDER BY seq LIMIT {BATCH}",
        (after, last, *CHANGES),
    )
    found = [checked_event(row) for row in rows]
    more = len(found) == BATCH
    keys: list[Any] = store.query(KEYS)
    required = bool(keys) or bool(store.query(REQUIRED))
    return ChangeBatch(found, found[-1].seq if more else max(last, after), more, keys, required)


def read_position(store: EventStore) -> int | None:
    """Return how far a shard has followed shard 0; None if it has never heard from it."""
    found = store.query("SELECT value FROM meta WHERE name = ?", (POSITION,))
    return int(found[0][0]) if found else None


def apply_change(engine: PolicyEngine, event: Event) -> None:
    """Make a change that shard 0 has made; making the last one again changes nothing."""
    name, known = event.policy, event.policy in engine.policies or event.policy in engine.quarantined
    if event.kind == events.CREATED:
        if not known:
            engine.settle(engine.create(name, PolicySettings.from_json(event.detail or "{}")))
    elif event.kind == events.RETIRED:
        if known:
            engine.settle(engine.retire(name))
    elif event.kind == events.CONFIGURED:
        settings = PolicySettings.from_json(event.detail or "{}")
        engine.settle(engine.find(name).configure(**{one: getattr(settings, one) for one in CHANGEABLE}))
    else:
        _apply_items(engine, event)


def _apply_items(engine: PolicyEngine, event: Event) -> None:
    live, fields = engine.find(event.policy), event.fields()
    with live.reading() as state:
        dim, items = state.settings.dim, state.items
        removed = [one for one in fields.get("removed", ()) if one in items]
    table = ItemTable(fields.get("put", []), event.vectors(dim), fields.get("tags"))
    engine.settle(live.change_items(table, remove=removed, replace_all=bool(fields.get("all"))))


class Follower:
    """Keeps a shard in step with shard 0, in a thread of its own.

    Parameters
    ----------
    engine : PolicyEngine
        Of this shard, open.
    fetch : callable
        Called as fetch(position); returns the next changes of shard 0, or raises StoreError.
    refresh_keys : callable
        Called when the keys in the store have changed.
    """

    def __init__(
        self,
        engine: PolicyEngine,
        fetch: Callable[[int], ChangeBatch],
        refresh_keys: Callable[[], None],
    ) -> None:
        """Start to follow."""
        self._engine, self._fetch, self._refresh_keys = engine, fetch, refresh_keys
        self._pulling, self._stop = Lock(), Signal()
        self.position = read_position(engine.store)
        self.in_step_at: float | None = None
        self.reason = "shard 0 has not been reached yet"
        Thread(target=self._follow, name="coterie-follower", daemon=True).start()

    @property
    def ready(self) -> bool:
        """Whether this shard has ever heard from shard 0; before, it knows neither policies nor keys."""
        return self.position is not None

    def catch_up(self) -> None:
        """Make all changes that shard 0 has made until now; StoreError if that cannot be done yet."""
        with self._pulling:
            more = True
            while more:
                batch = self._fetch(self.position or 0)
                for event in batch.events:
                    apply_change(self._engine, event)
                self._remember(batch)
                more = batch.more
            self.in_step_at, self.reason = time.time(), ""

    def _remember(self, batch: ChangeBatch) -> None:
        """Write keys and position, in one transaction; nothing is written if nothing has changed."""
        store = self._engine.store
        keys = [tuple(one) for one in batch.keys]
        same_keys = [tuple(one) for one in store.query(KEYS)] == keys
        # Decisions move the end of the log all the time; that alone is written seldom.
        if self.position is not None and same_keys and not batch.events:
            self.position = batch.upto
            return
        self._engine.journal.attempt(partial(_write, store, keys, batch))
        self.position = batch.upto
        self._refresh_keys()

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                self.catch_up()
            except CoterieError as error:
                if str(error) != self.reason:
                    logger.warning("this shard is not in step with shard 0: %s", error)
                self.reason = str(error)
            except Exception:
                logger.exception("following shard 0 failed, and is tried again")
            self._stop.wait(INTERVAL)

    def close(self) -> None:
        """Stop following."""
        self._stop.set()


def _write(store: EventStore, keys: list[tuple[Any, ...]], batch: ChangeBatch) -> None:
    with store.transaction():
        store.execute("DELETE FROM key")
        if keys:
            store.execute("INSERT INTO key VALUES (?, ?, ?, ?, ?, ?)", keys)
        if batch.keys_required:
            store.execute("INSERT INTO meta VALUES ('keys', 'required') ON CONFLICT DO NOTHING")
        store.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [(POSITION, str(batch.upto))],
        )


encode_changes = msgspec.msgpack.Encoder().encode
decode_changes = msgspec.msgpack.Decoder(ChangeBatch).decode


def fetched(status: int, content: bytes) -> ChangeBatch:
    """Return the changes in an answer of shard 0; StoreError if it could not give them."""
    if status != 200:
        raise StoreError(f"shard 0 answered {status}")
    return decode_changes(content)
