"""The log as a table that `coterie evaluate` reads, and the way back: a warm start from such a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import ArgumentError, Conflict
from coterie.service.core.ids import LONGEST_ID
from coterie.service.core.live_policy import FeedbackRequest, LivePolicy
from coterie.service.core.state import Catalogue
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event, EventStore
from coterie.service.storage.journal import Pending
from coterie.types import Floats
from coterie.validation import shown

BATCH = 1_000
"""Rows that are written or read at a time."""


class ExportRow(NamedTuple):
    """A decision and its reward: who came, what was offered, what was chosen with which probability."""

    user: str
    arms: list[list[float]]
    arm: int
    propensity: float | None
    reward: float
    time: float
    decision_id: str
    ids: list[str]


class _Open(NamedTuple):
    event: Event
    arms: Floats


def export_rows(store: EventStore, policy: str, dim: int) -> Iterator[ExportRow]:
    """The decisions of a policy that have a reward, in the order of the rewards.

    A default counts as a reward, unless the reward came late. Of a list the first position is told: its
    probability, and whether it was clicked. Where the product showed something else (shadow mode), that is
    the arm if it was on offer; its propensity is not known here.
    """
    catalogue = Catalogue(dim)
    waiting: dict[str, _Open] = {}
    for event in store.read(policy):
        key = event.decision or ""
        if event.kind == events.ITEMS:
            _change(catalogue, event, dim)
        elif event.kind == events.DECISION and "offered" in event.fields():
            waiting[key] = _Open(event, _offered(catalogue, event, dim))
        elif event.kind == events.EXPIRED and key in waiting:
            if event.reward is None or events.first(store.find(policy, key), events.REWARD) is not None:
                continue  # nothing was counted, or the reward comes later in the log
            yield _row(waiting.pop(key), event)
        elif event.kind == events.REWARD and key in waiting:
            opened = waiting.pop(key)
            shown = _shown_instead(opened, event)
            if shown is None:
                yield _row(opened, event)
            elif shown >= 0:
                yield _row(opened, event)._replace(arm=shown, propensity=None)


def _shown_instead(opened: _Open, rewarded: Event) -> int | None:
    """The arm that the product showed, in shadow mode: −1 if it was not on offer; None in other modes."""
    if not rewarded.fields().get("shadow"):
        return None
    offered = opened.event.fields()["offered"]
    if rewarded.item in offered:
        return int(offered.index(rewarded.item))
    same = (row for row, x in enumerate(opened.arms) if x.tobytes() == rewarded.x)
    return next(same, -1)


def _change(catalogue: Catalogue, event: Event, dim: int) -> None:
    told = event.fields()
    if told.get("all"):
        catalogue.remove(catalogue.ids)
    catalogue.put(told.get("put", ()), event.vectors(dim))
    catalogue.remove(told.get("removed", ()))


def _offered(catalogue: Catalogue, event: Event, dim: int) -> Floats:
    """All vectors that were offered: told inline, or as the catalogue had them then."""
    told = event.fields()
    return event.vectors(dim) if "arms" in told else catalogue.vectors(told["offered"])


def _row(opened: _Open, rewarded: Event) -> ExportRow:
    told, reward = opened.event.fields(), rewarded.reward
    assert reward is not None
    if "ranking" in told and rewarded.kind == events.REWARD:
        reward = float(rewarded.fields().get("clicked") == 0)
    return ExportRow(
        user=opened.event.user or "",
        arms=opened.arms.tolist(),
        arm=told["offered"].index(opened.event.item),
        propensity=told.get("first" if "ranking" in told else "propensity"),
        reward=reward,
        time=opened.event.at,
        decision_id=opened.event.decision or "",
        ids=told["offered"],
    )


def json_lines(rows: Iterable[ExportRow]) -> Iterator[bytes]:
    """The rows as lines of JSON."""
    for row in rows:
        yield json.dumps(row._asdict(), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def parquet(rows: Iterable[ExportRow]) -> bytes:
    """The rows as a Parquet file."""
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
    schema = dict(zip(ExportRow._fields, kinds, strict=True))
    file = BytesIO()
    pl.DataFrame([row._asdict() for row in rows], schema=schema).write_parquet(file)
    return file.getvalue()


class Imported(NamedTuple):
    """How many rewards were counted, and how many were known already."""

    counted: int
    duplicates: int


def import_lines(live: LivePolicy, lines: Iterable[bytes]) -> Pending[Imported]:
    """Learn from lines as `json_lines` writes them, or with `x` instead of `arms` and `arm`.

    A line with a `decision_id` is counted once, however often it is imported. All lines are checked before
    the first is counted: a wrong one refuses all.
    """
    told = [(number, _read_line(number, line)) for number, line in enumerate(lines, 1) if line.strip()]
    by_id: dict[str, FeedbackRequest] = {}
    with live.reading():
        for number, one in told:
            try:
                live.check_feedback(one)
                if one.id is not None and not _same(by_id.setdefault(one.id, one), one):
                    raise Conflict("an earlier line has this decision_id, and says something else")
            except Conflict as error:
                raise Conflict(f"line {number}: {error}") from None
            except ArgumentError as error:
                raise ArgumentError(f"line {number}: {error}") from None
    results = [live.feedback(*one[:2], x=one.x, feedback_id=one.id) for _, one in told]
    known = sum(one.result.status == "duplicate" for one in results)
    return Pending(Imported(len(results) - known, known), max((one.seq for one in results), default=0))


def _same(one: FeedbackRequest, other: FeedbackRequest) -> bool:
    """Do two lines tell the same?"""
    same = (one.user, one.reward) == (other.user, other.reward)
    return same and np.array_equal(np.asarray(one.x), np.asarray(other.x))


def _read_line(number: int, line: bytes) -> FeedbackRequest:
    """A line of a log: the user, the vector that was shown, the reward, and an id to count it once."""
    try:
        told: Any = json.loads(line)
        rows = told["x"] if "x" in told else told["arms"][told["arm"]]
        x = np.asarray(rows, np.float64)
        user, reward = told["user"], float(told["reward"])
        key = told.get("decision_id")
    except (ValueError, KeyError, TypeError, IndexError):
        wanted = "user, reward and x (or arms and arm)"
        raise ArgumentError(f"line {number} must be JSON with {wanted}, got {shown(line[:60])}") from None
    return FeedbackRequest(user, reward, None, x, None if key is None else _import_id(str(key)))


def _import_id(key: str) -> str:
    """The id of the feedback that a line with a decision's id becomes; a long one by its digest."""
    made = f"import:{key}"
    return made if len(made) <= LONGEST_ID else f"import:{sha256(key.encode('utf-8', 'replace')).hexdigest()}"
