"""Imports: a policy learns from a log of another system, all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from coterie.errors import ArgumentError, Conflict, UnknownName
from coterie.service.core.ids import LONGEST_ID
from coterie.service.core.live_policy import FeedbackRequest, LivePolicy
from coterie.service.messages import sentence
from coterie.service.storage.event_store import Event
from coterie.service.storage.journal import PendingResult
from coterie.validation import shown


class Imported(NamedTuple):
    """How many rewards were counted, and how many were known already."""

    counted: int
    duplicates: int


def import_log(live: LivePolicy, log: bytes) -> Imported:
    """Learn from lines as an export has them, or with `x` instead of `arms` and `arm`.

    A line with a `decision_id` is counted once, however often it is imported. All lines are checked before
    the first is counted: what is wrong with one refuses all, and a process that is killed leaves all or none.
    All of them are durable when this returns. Other requests of this policy are refused meanwhile, and those
    of other policies are answered.
    """
    return _learn(
        live,
        [
            (f"line {number}", _read_line(number, line))
            for number, line in enumerate(log.split(b"\n"), 1)
            if line.strip()
        ],
    )


def learn_rows(live: LivePolicy, rows: Iterable[Mapping[str, Any]]) -> Imported:
    """Learn from rows with `user`, `item`, `reward` and perhaps `feedback_id`, all of them or none."""
    requests = []
    for number, row in enumerate(rows):
        where = f"row {number} (from 0)"
        if missing := [name for name in ("user", "item", "reward") if row.get(name) is None]:
            raise ArgumentError(f"{where} needs user, item and reward, got no {missing[0]}")
        key = row.get("feedback_id")
        request = FeedbackRequest(
            str(row["user"]), row["reward"], str(row["item"]), None, None if key is None else str(key)
        )
        requests.append((where, request))
    return _learn(live, requests)


def _learn(live: LivePolicy, requests: Sequence[tuple[str, FeedbackRequest]]) -> Imported:
    """Check all of them, then count all; what is wrong says where."""
    by_id: dict[str, FeedbackRequest] = {}
    added: list[Event] = []
    with live.importing():
        for where, one in requests:
            try:
                found = live.check_feedback(one)
                if one.id is not None:
                    if one.id in by_id:
                        _check_same(by_id[one.id], one)
                        continue
                    by_id[one.id] = one
            except Conflict as error:
                raise Conflict(f"{where}: {error}") from None
            except (ArgumentError, UnknownName) as error:
                raise type(error)(f"{where}: {error}") from None
            if not isinstance(found, PendingResult):
                added.append(found)
        live.import_feedback(added)
    live.duplicates += len(requests) - len(added)
    return Imported(len(added), len(requests) - len(added))


def _check_same(one: FeedbackRequest, other: FeedbackRequest) -> None:
    """Refuse a line that contradicts an earlier one of the same id."""
    same = (one.user, one.reward, one.item) == (other.user, other.reward, other.item)
    if not (same and np.array_equal(np.asarray(one.x), np.asarray(other.x))):
        raise Conflict("an earlier line has this decision_id, and says something else")


class LogLine(msgspec.Struct):
    """A line of a log, as an export has it, or with `x` instead of `arms` and `arm`."""

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
