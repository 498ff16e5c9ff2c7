"""The log: everything that ever changed a policy, in order, as records that any store can keep.

State is a function of the log. Whatever was random is in it: an event tells what was decided, and where the
policy's generator stood afterwards if the decision moved it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from coterie.types import Floats

_decode: Callable[[str], Any] = json.loads
_encode: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
if find_spec("msgspec") is not None:  # the same text, ten times faster
    import msgspec

    _decode = msgspec.json.Decoder().decode

    def _encode(value: Any) -> str:
        """The same as the encoder of the standard library."""
        return msgspec.json.encode(value).decode()


CREATED = "created"
"""A policy was made; `detail` holds its settings."""
CONFIGURED = "configured"
"""Settings that may change have changed; `detail` holds all of them."""
ITEMS = "items"
"""Items were set (`put`, vectors in `x`) or `removed`; with `all` the catalogue is cleared first."""
DECISION = "decision"
"""An arm or a list of arms was chosen for a user."""
REWARD = "reward"
"""The reward of a decision came; with `x` when the decision was not waiting any more."""
FEEDBACK = "feedback"
"""A reward came for an arm that something else chose; `decision` is the id of the feedback."""
EXPIRED = "expired"
"""Nothing came in time; the default reward was counted."""
RETIRED = "retired"
"""The policy serves no more; its log remains."""

REWARDED = (REWARD, FEEDBACK)
"""Kinds of event that settle a decision's id with a reward."""


class Event(NamedTuple):
    """One record of the log.

    `seq` numbers the events of a whole store from 1. `x` holds float64 values, rows first; `detail` is JSON.
    """

    seq: int
    policy: str
    kind: str
    at: float
    decision: str | None = None
    user: str | None = None
    item: str | None = None
    reward: float | None = None
    x: bytes | None = None
    detail: str | None = None

    def fields(self) -> dict[str, Any]:
        """The detail as it was written; shared, and not to be changed."""
        return _parsed(self.detail) if self.detail else {}

    def vectors(self, dim: int) -> Floats:
        """The vectors of `x`, one a row, read-only."""
        return np.frombuffer(self.x or b"").reshape(-1, dim)


def detail(**fields: Any) -> str:
    """Fields as they are kept in an event: compact JSON, without those that are None."""
    return written({name: value for name, value in fields.items() if value is not None})


def written(told: dict[str, Any]) -> str:
    """Fields as JSON; they are not to be changed any more."""
    text = _encode(told)
    _remember(text, told)
    return text


_PARSED: dict[str, dict[str, Any]] = {}
"""The latest details: an event is read several times in a row."""


def _parsed(text: str) -> dict[str, Any]:
    """The fields of a detail."""
    found = _PARSED.get(text)
    if found is None:
        found = _decode(text)
        _remember(text, found)
    return found


def _remember(text: str, told: dict[str, Any]) -> None:
    if len(_PARSED) >= 100:
        _PARSED.clear()
    _PARSED[text] = told


def chosen_vectors(event: Event, dim: int) -> Floats:
    """The vectors that a decision chose: picked from all that were offered, or kept alone."""
    rows, picked = event.vectors(dim), event.fields().get("arms")
    return rows if picked is None else rows[picked]


def first(events: Sequence[Event], *kinds: str) -> Event | None:
    """The first event of one of these kinds, if there is one."""
    for event in events:
        if event.kind in kinds:
            return event
    return None
