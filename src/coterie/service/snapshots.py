"""Snapshots of a policy's state: copied in a moment, written at leisure, read back bit for bit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from io import BytesIO
from typing import NamedTuple

import numpy as np

from coterie.errors import CoterieError, SnapshotError
from coterie.policies import snapshots as policy_snapshots
from coterie.policies.archives import UNREADABLE, Archive, Array, Arrays, write_arrays
from coterie.service.identities import Catalogue, Users
from coterie.service.increments import applied, base_digest
from coterie.service.settings import PolicySettings
from coterie.service.state import PolicyState, Waiting
from coterie.service.store import digest_of
from coterie.types import Floats

FORMAT = "coterie-recommender"
VERSION = 2
POLICY = "policy/"
"""What the names of the policy's arrays begin with."""


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


def arrays_of(captured: Capture) -> Arrays:
    """A state as named arrays: its own, and those of its policy under `policy/`."""
    waiting = captured.waiting
    header = {
        "format": FORMAT,
        "version": VERSION,
        "settings": captured.settings.to_json(),
        "items": captured.items,
        "waiting": [
            [key, one.user, one.items, len(one.vectors), one.expires, one.drawn]
            for key, one in waiting.items()
        ],
        "counts": captured.counts,
        "seq": captured.seq,
        "at": captured.at,
    }
    vectors = [one.vectors for one in waiting.values()]
    arrays: Arrays = {
        "header": _text(header),
        "users": _text(captured.users),
        "items": captured.vectors,
        "waiting": np.concatenate(vectors) if vectors else np.empty((0, captured.settings.dim)),
    }
    policy = policy_snapshots.content_of(captured.policy)
    return arrays | {f"{POLICY}{name}": array for name, array in policy.items()}


def _text(value: object) -> Array:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def dumps(arrays: Mapping[str, Array]) -> bytes:
    """A snapshot or an increment as bytes: named arrays in a zip file, no pickle."""
    file = BytesIO()
    write_arrays(file, arrays)
    return file.getvalue()


def loads(content: bytes, base: bytes | None = None) -> PolicyState:
    """The state of a snapshot, or of an increment and its base; it goes on as if it had never stopped."""
    try:
        arrays = _arrays(content)
        if (digest := base_digest(arrays)) is not None:
            if base is None or digest_of(base) != digest:
                raise SnapshotError("an increment whose base is not there")
            arrays = applied(arrays, _arrays(base))
        return _rebuilt(arrays)
    except (CoterieError, *UNREADABLE) as error:
        raise SnapshotError(f"the snapshot cannot be read: {' '.join(str(error).split())}") from None


def _arrays(content: bytes) -> Arrays:
    archive = Archive(BytesIO(content), len(content))
    return {name: archive.read(name) for name in archive.stored}


def _rebuilt(arrays: Arrays) -> PolicyState:
    header = json.loads(arrays["header"].tobytes())
    if header["format"] != FORMAT or header["version"] not in (1, VERSION):
        raise SnapshotError(f"a snapshot of version {header['version']} cannot be read by this Coterie")
    if header["version"] == 1:  # the policy was a file within the file, and users stood in the header
        policy = policy_snapshots.loads(arrays["policy"].tobytes())
        users = header["users"]
    else:
        inner = {name.removeprefix(POLICY): a for name, a in arrays.items() if name.startswith(POLICY)}
        policy, users = policy_snapshots.loads(dumps(inner)), json.loads(arrays["users"].tobytes())
    state = PolicyState(PolicySettings.from_json(header["settings"]))
    state.policy, state.users = policy, Users(users)
    state.catalogue = Catalogue(state.settings.dim, header["items"], arrays["items"])
    start = 0
    for key, user, ids, count, expires, drawn in header["waiting"]:
        vectors = arrays["waiting"][start : start + count].copy()
        state.start_waiting(key, Waiting(user, tuple(ids), vectors, expires, drawn))
        start += count
    state.counts = Counter(header["counts"])
    state.seq, state.at = header["seq"], header["at"]
    return state
