"""Snapshots of a policy's state: copied in a moment, written at leisure, read back bit for bit."""

from __future__ import annotations

import json
from collections import Counter
from io import BytesIO
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from coterie.errors import CoterieError, SnapshotError
from coterie.policies import snapshots as policy_snapshots
from coterie.service.identities import Catalogue, Users
from coterie.service.settings import PolicySettings
from coterie.service.state import PolicyState, Waiting
from coterie.types import Floats

FORMAT = "coterie-recommender"
VERSION = 1


class Capture(NamedTuple):
    """A copy of all of a state, which no longer changes."""

    settings: PolicySettings
    policy: policy_snapshots.State
    users: tuple[str, ...]
    items: list[str]
    vectors: Floats
    waiting: dict[str, Waiting]
    counts: dict[str, int]
    seq: int
    at: float


def capture(state: PolicyState) -> Capture:
    """Copy a state; the caller sees to it that nothing changes meanwhile."""
    items = state.catalogue.ids
    return Capture(
        settings=state.settings,
        policy=policy_snapshots.captured(state.policy),
        users=state.users.ids,
        items=items,
        vectors=state.catalogue.vectors(items) if items else np.empty((0, state.settings.dim)),
        waiting=dict(state.waiting),
        counts=dict(state.counts),
        seq=state.seq,
        at=state.at,
    )


def dumps(captured: Capture) -> bytes:
    """A snapshot as bytes: named arrays in a zip file, no pickle."""
    waiting = captured.waiting
    header = {
        "format": FORMAT,
        "version": VERSION,
        "settings": captured.settings.to_json(),
        "users": captured.users,
        "items": captured.items,
        "waiting": [
            [key, one.user, one.items, len(one.items), one.expires, one.drawn] for key, one in waiting.items()
        ],
        "counts": captured.counts,
        "seq": captured.seq,
        "at": captured.at,
    }
    vectors = b"".join([one.x for one in waiting.values()])
    arrays: dict[str, Any] = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "items": captured.vectors,
        "waiting": np.frombuffer(vectors).reshape(-1, captured.settings.dim),
        "policy": np.frombuffer(policy_snapshots.dumps(captured.policy), np.uint8),
    }
    file = BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def loads(content: bytes) -> PolicyState:
    """The state of a snapshot, which goes on as if it had never stopped."""
    try:
        with np.load(BytesIO(content), allow_pickle=False) as arrays:
            header = json.loads(arrays["header"].tobytes())
            if (header["format"], header["version"]) != (FORMAT, VERSION):
                raise SnapshotError(
                    f"a snapshot of version {header['version']} cannot be read by this Coterie"
                )
            return _rebuilt(header, arrays["items"], arrays["waiting"], arrays["policy"].tobytes())
    except (CoterieError, ValueError, KeyError, TypeError, OSError, EOFError, BadZipFile) as error:
        raise SnapshotError(f"the snapshot cannot be read: {' '.join(str(error).split())}") from None


def _rebuilt(header: dict[str, Any], items: Floats, waiting: Floats, policy: bytes) -> PolicyState:
    state = PolicyState(PolicySettings.from_json(header["settings"]))
    state.policy = policy_snapshots.loads(policy)
    state.users = Users(header["users"])
    state.catalogue = Catalogue(state.settings.dim, header["items"], items)
    start = 0
    for key, user, ids, count, expires, drawn in header["waiting"]:
        x = waiting[start : start + count].tobytes()
        state.start_waiting(key, Waiting(user, tuple(ids), x, expires, drawn))
        start += count
    state.counts = Counter(header["counts"])
    state.seq, state.at = header["seq"], header["at"]
    return state
