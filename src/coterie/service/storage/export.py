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
from coterie.service.core.live_policy import FeedbackRequest, LivePolicy
from coterie.service.messages import sentence
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event, EventStore
from coterie.service.storage.journal import PendingResult
from coterie.types import Floats
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
    """A decision and its reward: the user, the arms offered, the one chosen and its probability."""

    user: str
    arms: list[list[float]]
    arm: int
    propensity: float | None
    reward: float
    time: float
    decision_id: str
    ids: list[str]


class CatalogueHistory:
    """The vectors of all items at any time: a decision is exported with those that it was made with.

    Only vectors that change take memory, however many decisions there are between.
    """

    def __init__(self, dim: int) -> None:
        """Start with an empty catalogue."""
        self._dim = dim
        self._versions: dict[str, tuple[list[int], list[bytes]]] = {}

    def change(self, event: Event) -> None:
        """Add the vectors that an event puts; those it removes are offered no more, and may stay."""
        for item, vector in zip(event.fields().get("put", ()), event.vectors(self._dim), strict=True):
            since, vectors = self._versions.setdefault(item, ([], []))
            content = vector.tobytes()
            if not vectors or vectors[-1] != content:
                since.append(event.seq)
                vectors.append(content)

    def vectors(self, items: Sequence[str], seq: int) -> Floats:
        """Return the vectors that items had at the event of this number, a row each."""
        rows = []
        for item in items:
            since, vectors = self._versions[item]
            rows.append(vectors[bisect_right(since, seq) - 1])
        return np.frombuffer(b"".join(rows)).reshape(len(items), self._dim)


class _OpenDecision(NamedTuple):
    event: Event
    arms: Floats


def export_rows(store: EventStore, policy: str, dim: int) -> Iterator[ExportRow]:
    """Yield the decisions of a policy that have a reward, in the order of the rewards.

    A default counts as a reward, unless the reward came late. Of a list the first position is exported: its
    probability, and whether it was clicked. Where the product showed something else (shadow mode), that is
    the arm if it was on offer; its propensity is not known here.

    Memory is bounded by a page of rewards with their decisions, and by the vectors that the catalogue has
    had: decisions are read from the store when their reward comes, however long ago they were made.
    """
    catalogue = CatalogueHistory(dim)
    for page in _pages(store, policy):
        keys = {event.decision for event in page if event.kind != events.ITEMS and event.decision is not None}
        known = _events_of(store, policy, sorted(keys))
        for event in page:
            if event.kind == events.ITEMS:
                catalogue.change(event)
                continue
            about = known.get(event.decision or "", [])
            decision = events.first(about, events.DECISION)
            if decision is None or "offered" not in decision.fields():
                continue  # of feedback, or compacted
            if event.kind == events.EXPIRED and (event.reward is None or events.first(about, events.REWARD)):
                continue  # nothing was counted, or the reward comes later in the log
            opened = _OpenDecision(decision, _offered(catalogue, decision, dim))
            shown = _shown_instead(opened, event)
            if shown is None:
                yield _row(opened, event)
            elif shown >= 0:
                yield _row(opened, event)._replace(arm=shown, propensity=None)


def _pages(store: EventStore, policy: str) -> Iterator[list[Event]]:
    """Yield changes of the catalogue, rewards and expiries, in order, some at a time."""
    statement = f"""SELECT {events.COLUMNS} FROM log WHERE policy = ? AND seq > ? AND kind IN (?, ?, ?)
        ORDER BY seq LIMIT {REWARDS_AT_ONCE}"""
    after = 0
    while rows := store.query(statement, (policy, after, events.ITEMS, events.REWARD, events.EXPIRED)):
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


def _shown_instead(opened: _OpenDecision, rewarded: Event) -> int | None:
    """Return the arm shown in shadow mode, −1 if it was not on offer; None in other modes."""
    if not rewarded.fields().get("shadow"):
        return None
    offered = opened.event.fields()["offered"]
    if rewarded.item in offered:
        return int(offered.index(rewarded.item))
    same = (row for row, x in enumerate(opened.arms) if x.tobytes() == rewarded.x)
    return next(same, -1)


def _offered(catalogue: CatalogueHistory, event: Event, dim: int) -> Floats:
    """Return all vectors that were offered: sent inline, or as the catalogue had them then."""
    fields = event.fields()
    if "arms" in fields:
        return event.vectors(dim)
    return catalogue.vectors(fields["offered"], event.seq)


def _row(opened: _OpenDecision, rewarded: Event) -> ExportRow:
    fields, reward = opened.event.fields(), rewarded.reward
    assert reward is not None
    if "ranking" in fields and rewarded.kind == events.REWARD:
        reward = float(rewarded.fields().get("clicked") == 0)
    return ExportRow(
        user=opened.event.user or "",
        arms=opened.arms.tolist(),
        arm=fields["offered"].index(opened.event.item),
        propensity=fields.get("first" if "ranking" in fields else "propensity"),
        reward=reward,
        time=opened.event.at,
        decision_id=opened.event.decision or "",
        ids=fields["offered"],
    )


def json_lines(rows: Iterable[ExportRow]) -> Iterator[bytes]:
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


def write_parquet(rows: Iterable[ExportRow], target: Path) -> None:
    """Write the rows as a Parquet file, a group of rows at a time.

    Each group is a file of its own first, in the folder of the target; polars then joins them group by group.
    """
    import polars as pl

    with TemporaryDirectory(dir=target.parent) as folder:
        parts: list[Path] = []
        for group in _groups(rows):
            parts.append(Path(folder, f"{len(parts):08}.parquet"))
            _frame(group).write_parquet(parts[-1])
        if not parts:
            _frame([]).write_parquet(target)
            return
        pl.scan_parquet(parts, low_memory=True).sink_parquet(target, row_group_size=ROW_GROUP)


def _groups(rows: Iterable[ExportRow]) -> Iterator[list[ExportRow]]:
    """Yield rows in lists that take a bounded amount of memory."""
    group: list[ExportRow] = []
    numbers = 0
    for row in rows:
        group.append(row)
        numbers += len(row.arms) * len(row.arms[0])
        if len(group) >= ROW_GROUP or numbers >= ARMS_GROUP:
            yield group
            group, numbers = [], 0
    if group:
        yield group


def _frame(rows: Sequence[ExportRow]) -> pl.DataFrame:
    import polars as pl

    vectors = pl.List(pl.List(pl.Float64))
    kinds: tuple[Any, ...] = (
        pl.String,
        vectors,
        pl.Int64,
        pl.Float64,
        pl.Float64,
        pl.Float64,
        pl.String,
        pl.List(pl.String),
    )
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    series = [
        pl.Series(name, list(values), kind)
        for name, values, kind in zip(ExportRow._fields, columns, kinds, strict=True)
    ]
    return pl.DataFrame(series)


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
    same = (one.user, one.reward) == (other.user, other.reward)
    return same and np.array_equal(np.asarray(one.x), np.asarray(other.x))


class LogLine(msgspec.Struct):
    """A line of a log, as `json_lines` writes it, or with `x` instead of `arms` and `arm`."""

    user: str
    reward: float
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
    return FeedbackRequest(read.user, read.reward, None, np.asarray(x, np.float64), key)


def _import_id(key: str) -> str:
    """Return the id of the feedback that a line becomes; a long one by its digest."""
    made = f"import:{key}"
    return made if len(made) <= LONGEST_ID else f"import:{sha256(key.encode('utf-8', 'replace')).hexdigest()}"
