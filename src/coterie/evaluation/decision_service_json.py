"""Logs of Vowpal Wabbit and of Azure Personalizer: the "decision service JSON" (dsjson), an event a line.

Features become vectors by the hashing that the service uses for calls of Personalizer, so that a policy that
has learnt from such a log can go on with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import ArgumentError, DataError
from coterie.evaluation.arms import numbered_ids
from coterie.evaluation.log import Log
from coterie.feature_hashing import HashedFeatures, action_vectors, hash_features, user_and_context
from coterie.types import Floats
from coterie.validation import shown, whole

HASHED_DIM = 64
"""Length of the vectors, unless another is asked for."""
UNNAMED_USER = "everyone"
"""The user of events that name none."""
MOST_VECTORS_KEPT = 100_000
"""Vectors that are looked up to be kept once: actions come again in the same context."""


class LoggedEvent(NamedTuple):
    """A line: who was shown which of these actions, with what probability, and the reward."""

    user: str
    context: HashedFeatures
    ids: list[str | None]
    actions: list[HashedFeatures]
    chosen: int
    propensity: float
    reward: float
    time: float


def read_dsjson(path: Path, *, dim: int = HASHED_DIM, user: str | None = None) -> Log:
    """Read a log of Vowpal Wabbit or Azure Personalizer in the format dsjson.

    Parameters
    ----------
    path : Path
        A file with an event a line. Lines without a decision (rewards that found none) and events that were
        never activated (`_skipLearn`) are left out.
    dim : int
        Length of the vectors, 64 by default. Give a policy of a service the same one to go on with it.
    user : str, optional
        Where the context names the user, such as `GUser.id`; by default the feature `user` or its `id`.
        Events without it are of one user, `everyone`.

    Returns
    -------
    Log
        Rewards are negative costs. Actions are known by their `_tag`, if they have one.

    Raises
    ------
    DataError
        If a line cannot be used; the sentence names it.
    """
    whole("dim", dim, 1, 2**20)
    rows: dict[tuple[str | None, bytes], int] = {}
    vectors: list[Floats] = []
    ids: list[str | None] = []
    offers: list[int] = []
    starts = [0]
    events: list[tuple[str, int, float, float, float]] = []
    for event in _events(path, user):
        matrix = action_vectors(event.context, event.actions, dim)
        for name, vector in zip(event.ids, matrix, strict=True):
            key = (name, vector.tobytes())
            row = rows.get(key)
            if row is None:
                row = len(vectors)
                vectors.append(vector)
                ids.append(name)
                if len(rows) < MOST_VECTORS_KEPT:
                    rows[key] = row
            offers.append(row)
        starts.append(len(offers))
        events.append((event.user, event.chosen, event.propensity, event.reward, event.time))
    if not events:
        raise DataError("the log has no events with a decision")
    users, chosen, propensities, rewards, times = zip(*events, strict=True)
    user_ids, numbers = numbered_ids(users)
    item_ids, item_of = numbered_ids(ids)
    return Log(
        user_ids=user_ids,
        users=numbers,
        items=np.array(vectors),
        offers=np.array(offers),
        starts=np.array(starts),
        chosen=np.array(chosen),
        propensities=np.array(propensities, np.float64),
        rewards=np.array(rewards, np.float64),
        times=np.array(times, np.float64),
        item_ids=item_ids,
        item_of=item_of if item_ids else np.empty(0, np.int64),
    ).ordered()


def _events(path: Path, user: str | None) -> Iterator[LoggedEvent]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                fields = json.loads(line)
                if not isinstance(fields, dict):
                    raise ArgumentError(f"it must be an object, got {shown(fields)}")
                event = _event(fields, number, user)
            except (ValueError, TypeError, KeyError, AttributeError, ArgumentError) as error:
                reason = f"no {error}" if isinstance(error, KeyError) else str(error)
                raise DataError(f"line {number} is no event of dsjson: {reason}") from None
            if event is not None:
                yield event


def _event(fields: Mapping[str, Any], number: int, user: str | None) -> LoggedEvent | None:
    """Return the event of a line, or None if it holds nothing to learn from."""
    if "_outcomes" in fields:
        raise ArgumentError("it has several slots (_outcomes), and events of one slot are read")
    if "_label_cost" not in fields or fields.get("_skipLearn"):
        return None
    context, chosen = fields["c"], int(fields["_label_Action"]) - 1
    actions = context["_multi"]
    if not 0 <= chosen < len(actions):
        raise ArgumentError(f"_label_Action must be from 1 to {len(actions)}, got {chosen + 1}")
    name, others = user_and_context(_objects(context))
    if user is not None:
        name = _named_user(context, user)
    return LoggedEvent(
        user=UNNAMED_USER if name is None else name,
        context=hash_features(*others),
        ids=[_id_of(one) for one in actions],
        actions=[hash_features(*_described(one)) for one in actions],
        chosen=chosen,
        propensity=float(fields["_label_probability"]),
        reward=0.0 - float(fields["_label_cost"]),
        time=_seconds(fields.get("Timestamp"), number),
    )


def _objects(namespaces: Mapping[str, Any], bare: str = "FromUrl") -> list[dict[str, Any]]:
    """Return features by namespace; those that Personalizer has added around a request's own are bare."""
    found: list[dict[str, Any]] = []
    for name, value in namespaces.items():
        if name == bare and isinstance(value, list):
            found += [one for one in value if isinstance(one, dict)]
        elif not name.startswith("_"):
            found.append({name: value})
    return found


def _described(action: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the features of an action, as the service has them: its id first."""
    name = _id_of(action)
    rest = {key: value for key, value in action.items() if key != "i" or name is None}
    return [*([] if name is None else [{"id": name}]), *_objects(rest, "j")]


def _id_of(action: Mapping[str, Any]) -> str | None:
    """Return the id of an action: its tag, or what Personalizer wrote beside its features."""
    own = action.get("i")
    name = action.get("_tag") or (own.get("id") if isinstance(own, dict) else None)
    return None if name is None else str(name)


def _named_user(context: Mapping[str, Any], path: str) -> str:
    """Return the value of a feature, by the names that lead to it."""
    found: Any = [context]
    for name in path.split("."):
        found = [one[name] for one in found if isinstance(one, dict) and name in one]
        found = [inner for one in found for inner in (one if isinstance(one, list) else [one])]
    if not found or not isinstance(found[0], str | int):
        raise ArgumentError(f"no feature {shown(path)} names the user")
    return str(found[0])


def _seconds(timestamp: str | None, number: int) -> float:
    """Return a time in seconds since 1970; the number of the line where there is none."""
    return float(number) if timestamp is None else datetime.fromisoformat(timestamp).timestamp()
