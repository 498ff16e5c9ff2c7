"""The log as a table that `coterie evaluate` reads, and the way back: a warm start from such a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import ArgumentError
from coterie.service import events
from coterie.service.events import Event
from coterie.service.identities import Catalogue
from coterie.service.live import LivePolicy
from coterie.service.store import EventStore
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

    A default reward counts as one. Of a list, only the first position is told.
    """
    catalogue = Catalogue(dim)
    waiting: dict[str, _Open] = {}
    for event in store.read(policy):
        if event.kind == events.ITEMS:
            _change(catalogue, event, dim)
        elif event.kind == events.DECISION and "offered" in event.fields():
            waiting[event.decision or ""] = _Open(event, _offered(catalogue, event, dim))
        elif event.kind in (events.REWARD, events.EXPIRED) and event.reward is not None:
            opened = waiting.pop(event.decision or "", None)
            if opened is not None:
                yield _row(opened, event)


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
    told = opened.event.fields()
    assert rewarded.reward is not None
    return ExportRow(
        user=opened.event.user or "",
        arms=opened.arms.tolist(),
        arm=told["offered"].index(opened.event.item),
        propensity=told.get("propensity"),
        reward=rewarded.reward,
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


def import_lines(live: LivePolicy, lines: Iterable[bytes]) -> Imported:
    """Learn from lines as `json_lines` writes them, or with `x` instead of `arms` and `arm`.

    A line with a `decision_id` is counted once, however often it is imported. All lines are read before the
    first is counted: a wrong one refuses all.
    """
    rows = [
        _checked(number, line, live.state.settings.dim)
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    known = 0
    for user, x, reward, key in rows:
        result = live.feedback(user, reward, x=x, feedback_id=key)
        known += result.status == "duplicate"
    return Imported(len(rows) - known, known)


def _checked(number: int, line: bytes, dim: int) -> tuple[str, Floats, float, str | None]:
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
    if x.shape != (dim,) or not np.isfinite(x).all() or not np.isfinite(reward) or not isinstance(user, str):
        raise ArgumentError(
            f"line {number} must have {dim} finite numbers as x, a text as user, a finite reward"
        )
    return user, x, reward, None if key is None else f"import:{key}"[:256]
