"""The log as a table that `coterie evaluate` reads, and the way back: a warm start from such a table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import numpy as np

from coterie.errors import ArgumentError, Conflict
from coterie.service.core.ids import LONGEST_ID
from coterie.service.core.items import unpacked
from coterie.service.core.live_policy import FeedbackRequest, LivePolicy
from coterie.service.messages import sentence
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event, EventStore
from coterie.service.storage.journal import PendingResult
from coterie.validation import shown

if TYPE_CHECKING:
    import polars as pl

encode = msgspec.json.Encoder().encode
REWARDS_AT_ONCE = 100
"""Rewards that are read at a time, each with its decision, which may have a megabyte of arms."""
BYTES_AT_ONCE = 2**16
"""Bytes of JSON lines that are sent at a time, at least."""
ROW_GROUP = 1_000
"""Rows of a Parquet file that are in memory at a time, at most."""
ARMS_GROUP = 2**22
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
    x: list[float] | None
    propensity: float | None
    reward: float
    time: float
    decision_id: str
    catalogue: int | None
    items: list[str] | None
    exclude: list[str] | None
    only: list[str] | None
    arms: list[list[float]] | None
    arm: int | None
    ids: list[str] | None


class ItemRow(NamedTuple):
    """An item as it was from one version of the catalogue to another, which does not have it so any more."""

    id: str
    since: int
    until: int | None
    x: list[float]
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
                yield ItemRow(item, one.since, one.until, np.frombuffer(one.x).tolist(), list(one.tags))


def item_rows(store: EventStore, policy: str, dim: int) -> Iterator[ItemRow]:
    """Yield the items of a policy at all versions of its catalogue."""
    catalogue = CatalogueHistory(dim)
    for page in _pages(store, policy, (events.ITEMS,)):
        for event in page:
            catalogue.change(event)
    yield from catalogue.rows()


def export_rows(store: EventStore, policy: str, dim: int) -> Iterator[ExportRow]:
    """Yield the decisions of a policy that have a reward, in the order of the rewards.

    A default counts as a reward, unless the reward came late. Of a list the first position is exported: its
    probability, and whether it was clicked. Where the product showed something else (shadow mode), that is
    what was shown, if it was on offer; its propensity is not known here.

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
            if event.kind == events.EXPIRED and (event.reward is None or events.first(about, events.REWARD)):
                continue  # nothing was counted, or the reward comes later in the log
            row: ExportRow | None = _row(catalogue, decision, event, dim)
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
        x=decision.chosen_vectors(dim)[0].tolist(),
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
        if "catalogue" not in fields and ids == [str(place) for place in range(len(ids))]:
            row = row._replace(item=None)  # logs of format 3 do not say that these are no names
        return row._replace(x=None, arms=decision.vectors(dim).tolist(), arm=arm, ids=ids)
    if "count" in fields:
        return row
    named = fields.get("offered") if "all" not in fields else None  # as logs of format 3 have it
    if "items" in fields:
        named = catalogue.ids(fields["items"])
    excluded = catalogue.ids(fields["exclude"]) if "exclude" in fields else None
    return row._replace(catalogue=catalogue.version(decision.seq), items=named, exclude=excluded)


def _shown_instead(catalogue: CatalogueHistory, row: ExportRow, rewarded: Event) -> ExportRow | None:
    """Return the row with what was shown in shadow mode in place of what was chosen; None if not on offer."""
    row = row._replace(propensity=None)
    if row.arms is not None and row.ids is not None:
        if rewarded.item in row.ids:
            return row._replace(arm=row.ids.index(rewarded.item), item=rewarded.item)
        same = (n for n, x in enumerate(row.arms) if np.array(x).tobytes() == rewarded.x)
        arm = next(same, None)
        return None if arm is None else row._replace(arm=arm, item=row.item and row.ids[arm])
    x = np.frombuffer(rewarded.x or b"").tolist()
    if row.catalogue is None:  # the log has the chosen arm alone
        return row if row.x == x and rewarded.item in (None, row.item) else None
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

    Each group is a file of its own first, in the folder of the target; polars then joins them group by group.
    """
    import polars as pl

    with TemporaryDirectory(dir=target.parent) as folder:
        parts: list[Path] = []
        for group in _groups(rows):
            parts.append(Path(folder, f"{len(parts):08}.parquet"))
            _frame(group, kind).write_parquet(parts[-1])
        if not parts:
            _frame([], kind).write_parquet(target)
            return
        pl.scan_parquet(parts, low_memory=True).sink_parquet(target, row_group_size=ROW_GROUP)


def _groups(rows: Iterable[ExportRow | ItemRow]) -> Iterator[list[ExportRow | ItemRow]]:
    """Yield rows in lists that take a bounded amount of memory."""
    group: list[ExportRow | ItemRow] = []
    numbers = 0
    for row in rows:
        group.append(row)
        arms = row.arms if isinstance(row, ExportRow) and row.arms else [row.x or []]
        numbers += len(arms) * len(arms[0])
        if len(group) >= ROW_GROUP or numbers >= ARMS_GROUP:
            yield group
            group, numbers = [], 0
    if group:
        yield group


def _frame(rows: Sequence[ExportRow | ItemRow], kind: type[ExportRow | ItemRow]) -> pl.DataFrame:
    import polars as pl

    vector, ids = pl.List(pl.Float64), pl.List(pl.String)
    types: dict[str, Any] = {
        **dict.fromkeys(("user", "item", "id", "decision_id"), pl.String),
        **dict.fromkeys(("propensity", "reward", "time"), pl.Float64),
        **dict.fromkeys(("catalogue", "arm", "since", "until"), pl.Int64),
        **dict.fromkeys(("items", "exclude", "only", "ids", "tags"), ids),
        "x": vector,
        "arms": pl.List(vector),
    }
    columns = zip(*rows, strict=True) if rows else [()] * len(kind._fields)
    return pl.DataFrame(
        [
            pl.Series(name, list(values), types[name])
            for name, values in zip(kind._fields, columns, strict=True)
        ]
    )


class Imported(NamedTuple):
    """How many rewards were counted, and how many were known already."""

    counted: int
    duplicates: int


def import_lines(live: LivePolicy, lines: Iterable[bytes]) -> PendingResult[Imported]:
    """Learn from lines as `json_lines` writes them, or with `x` instead of `arms` and `arm`.

    A line with a `decision_id` is counted once, however often it is imported. All lines are checked before
    the first is counted, and all are committed in one transaction: what is wrong with one refuses all, and a
    process that is killed leaves all or none.
    """
    requests = [(number, _read_line(number, line)) for number, line in enumerate(lines, 1) if line.strip()]
    by_id: dict[str, FeedbackRequest] = {}
    with live.importing():
        for number, one in requests:
            try:
                live.check_feedback(one)
                if one.id is not None and not _same(by_id.setdefault(one.id, one), one):
                    raise Conflict("an earlier line has this decision_id, and says something else")
            except Conflict as error:
                raise Conflict(f"line {number}: {error}") from None
            except ArgumentError as error:
                raise ArgumentError(f"line {number}: {error}") from None
        (counted, known), seq = live.feedback_together([one for _, one in requests])
    return PendingResult(Imported(counted, known), seq)


def _same(one: FeedbackRequest, other: FeedbackRequest) -> bool:
    """Tell whether two lines say the same."""
    same = (one.user, one.reward, one.item) == (other.user, other.reward, other.item)
    return same and np.array_equal(np.asarray(one.x), np.asarray(other.x))


class LogLine(msgspec.Struct):
    """A line of a log, as `json_lines` writes it, or with `x` instead of `arms` and `arm`."""

    user: str
    reward: float
    item: str | None = None
    x: list[float] | None = None
    arms: list[list[float]] | None = None
    arm: Annotated[int, msgspec.Meta(ge=0)] | None = None
    decision_id: str | int | None = None


line_decoder = msgspec.json.Decoder(LogLine)


def _read_line(number: int, line: bytes) -> FeedbackRequest:
    """Return a line as feedback: who was shown which vector, the reward, and an id to count it once."""
    try:
        read = line_decoder.decode(line)
    except msgspec.ValidationError as error:
        raise ArgumentError(f"line {number}: {sentence(str(error), 'the line')}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise ArgumentError(f"line {number} must be JSON, got {shown(line[:60])}") from None
    if (read.x is None) == (read.arms is None or read.arm is None):
        raise ArgumentError(f"line {number} needs x, or arms and arm, got {shown(line[:60])}")
    x = read.x
    if x is None:
        assert read.arms is not None
        assert read.arm is not None
        if read.arm >= len(read.arms):
            raise ArgumentError(f"line {number}: arm must be below {len(read.arms)}, got {read.arm}")
        x = read.arms[read.arm]
    key = None if read.decision_id is None else _import_id(str(read.decision_id))
    return FeedbackRequest(read.user, read.reward, read.item, np.asarray(x, np.float64), key)


def _import_id(key: str) -> str:
    """Return the id of the feedback that a line becomes; a long one by its digest."""
    made = f"import:{key}"
    return made if len(made) <= LONGEST_ID else f"import:{sha256(key.encode('utf-8', 'replace')).hexdigest()}"
