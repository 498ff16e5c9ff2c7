"""The log as a table that `coterie evaluate` reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event, EventStore
from coterie.types import Floats

if TYPE_CHECKING:
    import polars as pl

encode = msgspec.json.Encoder().encode
REWARDS_AT_ONCE = 100
"""Rewards that are read at a time, each with its decision, which may have a megabyte of arms."""
BYTES_AT_ONCE = 2**16
"""Bytes of JSON lines that are sent at a time, at least."""
ROW_GROUP = 1_000
"""Rows of a Parquet file that are in memory at a time, at most."""
ARMS_GROUP = 2**20
"""Numbers in the arms of such rows, at most, if one row has not more."""


class ExportRow(NamedTuple):
    """A decision and its reward: the user, the arms offered, the one chosen and its probability."""

    user: str
    arms: Floats
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
        arms=opened.arms,
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
        lines += encode({**row._asdict(), "arms": row.arms.tolist()})
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
        sizes: list[int] = []
        for group in _groups(rows):
            sizes.append(len(group))
            parts.append(Path(folder, f"{len(parts):08}.parquet"))
            _frame(group).write_parquet(parts[-1], compression="lz4")
        if not parts:
            _frame([]).write_parquet(target)
            return
        # The last group holds the rest; the others are as large as memory allows.
        pl.scan_parquet(parts, low_memory=True).sink_parquet(target, row_group_size=min(sizes[:-1] or sizes))


def _groups(rows: Iterable[ExportRow]) -> Iterator[list[ExportRow]]:
    """Yield rows in lists that take a bounded amount of memory."""
    group: list[ExportRow] = []
    numbers = 0
    for row in rows:
        group.append(row)
        numbers += row.arms.size
        if len(group) >= ROW_GROUP or numbers >= ARMS_GROUP:
            yield group
            group, numbers = [], 0
    if group:
        yield group


def _frame(rows: Sequence[ExportRow]) -> pl.DataFrame:
    import polars as pl

    # Lists of lists of Python numbers take ten times as much memory, and hold Python's global lock, so that
    # no request is answered meanwhile.
    vectors = np.concatenate([row.arms for row in rows]) if rows else np.empty((0, 1))
    sizes = [len(row.arms) for row in rows]
    return pl.DataFrame(
        [
            pl.Series("user", [row.user for row in rows], pl.String),
            _lists("arms", pl.Series(vectors).cast(pl.List(pl.Float64)), sizes),
            pl.Series("arm", [row.arm for row in rows], pl.Int64),
            pl.Series("propensity", [row.propensity for row in rows], pl.Float64),
            pl.Series("reward", [row.reward for row in rows], pl.Float64),
            pl.Series("time", [row.time for row in rows], pl.Float64),
            pl.Series("decision_id", [row.decision_id for row in rows], pl.String),
            _lists("ids", pl.Series([one for row in rows for one in row.ids], dtype=pl.String), sizes),
        ]
    )


def _lists(name: str, values: pl.Series, sizes: Sequence[int]) -> pl.Series:
    """Return a column of lists, of these sizes, from all their values; none may be empty."""
    import polars as pl

    table = pl.DataFrame({"row": np.repeat(np.arange(len(sizes)), sizes), name: values})
    return table.group_by("row", maintain_order=True).agg(name).get_column(name)
