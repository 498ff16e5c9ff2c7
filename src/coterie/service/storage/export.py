"""The log as tables that `coterie evaluate` reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from math import fsum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from coterie.errors import StoreError
from coterie.service.core.known_items import unpacked
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event, EventStore
from coterie.types import Floats

if TYPE_CHECKING:
    import polars as pl

encode = msgspec.json.Encoder(enc_hook=lambda vectors: vectors.tolist()).encode
REWARDS_AT_ONCE = 100
"""Rewards that are read at a time, each with its decision, which may have a megabyte of arms."""
BYTES_AT_ONCE = 2**16
"""Bytes of JSON lines that are sent at a time, at least."""
ROW_GROUP = 1_000
"""Rows of a Parquet file that are in memory at a time, at most."""
ARMS_GROUP = 2**20
"""Numbers in the arms of such rows, at most, if one row has not more."""


class ExportRow(NamedTuple):
    """A decision and its reward: the user, what was shown and its probability, and what it was chosen from.

    `catalogue` is the version of the catalogue, from which one of `items` was chosen (None: any) that has one
    of the tags `only` and is not one of `exclude`. Where a request brought arms with vectors of their own,
    it is None; `arms` and `ids` are all of them, if the log has them, and `arm` is the position of what was
    shown. `x` is the vector of what was shown, unless `arms` has it.
    """

    user: str
    item: str | None
    x: Floats | None
    propensity: float | None
    reward: float
    time: float
    decision_id: str
    catalogue: int | None
    items: list[str] | None
    exclude: list[str] | None
    only: list[str] | None
    arms: Floats | None
    arm: int | None
    ids: list[str] | None


class ItemRow(NamedTuple):
    """An item as it was from one version of the catalogue to another, which does not have it so any more."""

    id: str
    since: int
    until: int | None
    x: Floats
    tags: list[str]


class _Listing(NamedTuple):
    """The vector and the tags that an item has from one version of the catalogue to another."""

    since: int
    until: int | None
    x: bytes
    tags: tuple[str, ...]


class CatalogueHistory:
    """The catalogue at each of its versions; version n is what the nth change leaves.

    Only what changes takes memory, however many decisions there are between.
    """

    def __init__(self, dim: int) -> None:
        """Start with an empty catalogue, version 0."""
        self._dim = dim
        self._changes: list[int] = []
        self._ids: list[str] = []
        self._listings: dict[str, list[_Listing]] = {}

    def change(self, event: Event) -> None:
        """Go on to the next version."""
        fields = event.fields()
        self._changes.append(event.seq)
        version, tags, put = len(self._changes), fields.get("tags") or {}, fields.get("put", ())
        gone = fields.get("removed", ())
        if fields.get("all"):
            gone = [*gone, *(self._listings.keys() - set(put))]
        for item, vector in zip(put, event.vectors(self._dim), strict=True):
            kept = () if fields.get("all") else None  # a new catalogue knows no tags of the former one
            self._put(_Listing(version, None, vector.tobytes(), ()), item, tags.get(item, kept))
        for item in gone:
            self._end(item, version)

    def _put(self, listing: _Listing, item: str, tags: Sequence[str] | None) -> None:
        """Let an item be something from now on; without `tags`, it keeps those that it has."""
        if item not in self._listings:
            self._ids.append(item)
        last = self.listing(item, listing.since)
        listing = listing._replace(tags=tuple(tags) if tags is not None else last.tags if last else ())
        if last is None or (last.x, last.tags) != (listing.x, listing.tags):
            self._end(item, listing.since)
            self._listings.setdefault(item, []).append(listing)

    def _end(self, item: str, version: int) -> None:
        """Let an item no longer be as it is, if it is there."""
        known = self._listings.get(item)
        if known and known[-1].until is None:
            last = known.pop()
            if last.since < version:
                known.append(last._replace(until=version))

    def ids(self, places: str) -> list[str]:
        """Return the ids of items that an event names by their places."""
        return [self._ids[place] for place in unpacked(places).tolist()]

    def version(self, seq: int) -> int:
        """Return the version at the event of this number."""
        return bisect_right(self._changes, seq)

    def listing(self, item: str, version: int) -> _Listing | None:
        """Return what an item was at a version; None if it was not there."""
        for one in self._listings.get(item, ()):
            if one.since <= version and (one.until is None or version < one.until):
                return one
        return None

    def with_vector(self, x: bytes, version: int) -> Iterator[str]:
        """Yield the ids of the items that had this vector at a version."""
        for item in self._listings:
            found = self.listing(item, version)
            if found is not None and found.x == x:
                yield item

    def rows(self) -> Iterator[ItemRow]:
        """Yield all items there ever were, in the order in which they came."""
        for item, listings in self._listings.items():
            for one in listings:
                yield ItemRow(item, one.since, one.until, np.frombuffer(one.x), list(one.tags))


def item_rows(store: EventStore, policy: str, dim: int) -> Iterator[ItemRow]:
    """Yield the items of a policy at all versions of its catalogue."""
    catalogue = CatalogueHistory(dim)
    for page in _pages(store, policy, (events.ITEMS,)):
        for event in page:
            catalogue.change(event)
    yield from catalogue.rows()


def export_rows(store: EventStore, policy: str, dim: int) -> Iterator[ExportRow]:
    """Yield the decisions of a policy that have a reward, in the order of the rewards.

    A default counts as a reward, unless the reward came late; parts add up. Of a list the first position is
    exported: its probability, and whether it was clicked. Where the product showed something else (shadow
    mode), that is what was shown, if it was on offer; its propensity is not known here.

    Memory is bounded by a page of rewards with their decisions, and by the vectors that the catalogue has
    had: decisions are read from the store when their reward comes, however long ago they were made.
    """
    catalogue = CatalogueHistory(dim)
    for page in _pages(store, policy, (events.ITEMS, events.REWARD, events.EXPIRED)):
        keys = {event.decision for event in page if event.kind != events.ITEMS and event.decision is not None}
        known = _events_of(store, policy, sorted(keys))
        for event in page:
            if event.kind == events.ITEMS:
                catalogue.change(event)
                continue
            about = known.get(event.decision or "", [])
            decision = events.first(about, events.DECISION)
            if decision is None or "scores" not in decision.fields():
                continue  # of feedback, or compacted
            rewards = [one for one in about if one.kind == events.REWARD]
            if event.kind == events.EXPIRED and (event.reward is None or rewards):
                continue  # nothing was counted, or the reward comes later in the log
            if rewards and event.seq != rewards[0].seq:
                continue  # a part that came late: it is in the sum of the first row
            total = fsum(one.reward or 0.0 for one in rewards or [event])
            row: ExportRow | None = _row(catalogue, decision, event._replace(reward=total), dim)
            if row is not None and event.fields().get("shadow"):
                row = _shown_instead(catalogue, row, event)
            if row is not None:
                yield row


def _pages(store: EventStore, policy: str, kinds: Sequence[str]) -> Iterator[list[Event]]:
    """Yield events of these kinds, in order, some at a time."""
    places = ", ".join("?" * len(kinds))
    statement = f"""SELECT {events.COLUMNS} FROM log WHERE policy = ? AND seq > ? AND kind IN ({places})
        ORDER BY seq LIMIT {REWARDS_AT_ONCE}"""
    after = 0
    while rows := store.query(statement, (policy, after, *kinds)):
        yield [events.checked_event(row) for row in rows]
        after = rows[-1][0]


def _events_of(store: EventStore, policy: str, keys: Sequence[str]) -> dict[str, list[Event]]:
    """Return all events of these decisions, by the decision's id."""
    found: dict[str, list[Event]] = {}
    if keys:
        places = ", ".join("?" * len(keys))
        statement = f"""SELECT {events.COLUMNS} FROM log WHERE decision IN ({places}) AND policy = ?
            ORDER BY seq"""
        for row in store.query(statement, (*keys, policy)):
            event = events.checked_event(row)
            found.setdefault(event.decision or "", []).append(event)
    return found


def _row(catalogue: CatalogueHistory, decision: Event, rewarded: Event, dim: int) -> ExportRow:
    """Return the row of a decision and its reward."""
    fields, reward = decision.fields(), rewarded.reward
    assert reward is not None
    if "ranking" in fields and rewarded.kind == events.REWARD:
        reward = float(rewarded.fields().get("clicked") == 0)
    row = ExportRow(
        user=decision.user or "",
        item=None if "unnamed" in fields else decision.item,
        x=decision.chosen_vectors(dim)[0],
        propensity=fields.get("first" if "ranking" in fields else "propensity"),
        reward=reward,
        time=decision.at,
        decision_id=decision.decision or "",
        catalogue=None,
        items=None,
        exclude=None,
        only=fields.get("only"),
        arms=None,
        arm=None,
        ids=None,
    )
    if "arms" in fields:  # with vectors of their own, all of which are kept
        arm, ids = fields["arms"][0], fields["offered"]
        names = None if row.item is None else ids
        return row._replace(x=None, arms=decision.vectors(dim), arm=arm, ids=names)
    if "count" in fields:
        return row
    named = catalogue.ids(fields["items"]) if "items" in fields else None
    excluded = catalogue.ids(fields["exclude"]) if "exclude" in fields else None
    return row._replace(catalogue=catalogue.version(decision.seq), items=named, exclude=excluded)


def _shown_instead(catalogue: CatalogueHistory, row: ExportRow, rewarded: Event) -> ExportRow | None:
    """Return the row with what was shown in shadow mode in place of what was chosen; None if not on offer."""
    row = row._replace(propensity=None)
    if row.arms is not None:
        ids = row.ids or []
        if rewarded.item in ids:
            return row._replace(arm=ids.index(rewarded.item), item=rewarded.item)
        same = (n for n, x in enumerate(row.arms) if x.tobytes() == rewarded.x)
        arm = next(same, None)
        return None if arm is None else row._replace(arm=arm, item=ids[arm] if ids else None)
    x = np.frombuffer(rewarded.x or b"")
    if row.catalogue is None:  # the log has the chosen arm alone
        same_arm = row.x is not None and np.array_equal(row.x, x)
        return row if same_arm and rewarded.item in (None, row.item) else None
    found = [rewarded.item] if rewarded.item else catalogue.with_vector(rewarded.x or b"", row.catalogue)
    for item in found:
        if _is_on_offer(catalogue, row, item):
            return row._replace(item=item, x=x)
    return None


def _is_on_offer(catalogue: CatalogueHistory, row: ExportRow, item: str) -> bool:
    listing = None if row.catalogue is None else catalogue.listing(item, row.catalogue)
    return (
        listing is not None
        and (row.items is None or item in row.items)
        and item not in (row.exclude or ())
        and (row.only is None or not set(row.only).isdisjoint(listing.tags))
    )


def json_lines(rows: Iterable[ExportRow | ItemRow]) -> Iterator[bytes]:
    """Yield the rows as lines of JSON, some kilobytes at a time."""
    lines = bytearray()
    for row in rows:
        lines += encode(row._asdict())
        lines += b"\n"
        if len(lines) >= BYTES_AT_ONCE:
            yield bytes(lines)
            lines.clear()
    if lines:
        yield bytes(lines)


def write_parquet(rows: Iterable[ExportRow | ItemRow], target: Path, kind: type[ExportRow | ItemRow]) -> None:
    """Write rows of a kind as a Parquet file, a group of rows at a time.

    StoreError if the disk has no room. Each group is a file of its own first, in the folder of the target;
    polars then joins them group by group.
    """
    import polars as pl

    try:
        _write_groups(rows, target, kind)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise unwritten(error) from None


def unwritten(error: Exception) -> StoreError:
    """Return what is said of an export that cannot be written."""
    return StoreError(f"the export cannot be written to the disk: {events.one_line(error)}")


def _write_groups(rows: Iterable[ExportRow | ItemRow], target: Path, kind: type[ExportRow | ItemRow]) -> None:
    import polars as pl

    with TemporaryDirectory(dir=target.parent) as folder:
        parts: list[Path] = []
        sizes: list[int] = []
        for group in _groups(rows):
            sizes.append(len(group))
            parts.append(Path(folder, f"{len(parts):08}.parquet"))
            _frame(group, kind).write_parquet(parts[-1], compression="lz4")
        if not parts:
            _frame([], kind).write_parquet(target)
            return
        # The last group holds the rest; the others are as large as memory allows.
        pl.scan_parquet(parts, low_memory=True).sink_parquet(target, row_group_size=min(sizes[:-1] or sizes))


def _groups(rows: Iterable[ExportRow | ItemRow]) -> Iterator[list[ExportRow | ItemRow]]:
    """Yield rows in lists that take a bounded amount of memory."""
    group: list[ExportRow | ItemRow] = []
    numbers = 0
    for row in rows:
        group.append(row)
        vectors = row.arms if isinstance(row, ExportRow) and row.arms is not None else row.x
        numbers += 0 if vectors is None else vectors.size
        if len(group) >= ROW_GROUP or numbers >= ARMS_GROUP:
            yield group
            group, numbers = [], 0
    if group:
        yield group


def _frame(rows: Sequence[ExportRow | ItemRow], kind: type[ExportRow | ItemRow]) -> pl.DataFrame:
    import polars as pl

    types: dict[str, Any] = {
        **dict.fromkeys(("user", "item", "id", "decision_id"), pl.String),
        **dict.fromkeys(("propensity", "reward", "time"), pl.Float64),
        **dict.fromkeys(("catalogue", "arm", "since", "until"), pl.Int64),
        **dict.fromkeys(("items", "exclude", "only", "ids", "tags"), pl.List(pl.String)),
    }
    columns = zip(*rows, strict=True) if rows else [()] * len(kind._fields)
    return pl.DataFrame(
        [
            pl.Series(name, values, types[name]) if name in types else _vectors(name, values)
            for name, values in zip(kind._fields, columns, strict=True)
        ]
    )


def _vectors(name: str, values: Sequence[Floats | None]) -> pl.Series:
    """Return a column of vectors, or of lists of vectors for `arms`.

    Lists of Python numbers would take ten times as much memory, and Python's global lock for so long that
    requests would wait.
    """
    import polars as pl

    present = [one for one in values if one is not None]
    rows = np.concatenate([np.atleast_2d(one) for one in present]) if present else np.empty((0, 1))
    found = pl.Series(name, rows).cast(pl.List(pl.Float64))
    if name == "arms":
        found = _lists(found, [len(one) for one in present])
    place = count()
    return found.gather(pl.Series([None if one is None else next(place) for one in values], dtype=pl.UInt32))


def _lists(values: pl.Series, sizes: Sequence[int]) -> pl.Series:
    """Return a column of lists of these sizes, none of them empty, from all their values."""
    import polars as pl

    table = pl.DataFrame([pl.Series("row", np.repeat(np.arange(len(sizes)), sizes)), values])
    return table.group_by("row", maintain_order=True).agg(values.name).get_column(values.name)
