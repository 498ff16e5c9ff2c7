"""Snapshots of a policy's state: copied to the disk, stored at leisure, read back bit for bit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from coterie.errors import CoterieError, SnapshotError
from coterie.policies import snapshot_format
from coterie.policies import snapshots as policy_snapshots
from coterie.policies.array_files import (
    UNREADABLE,
    Array,
    Arrays,
    ArraySource,
    FileArray,
    PrefixedArrays,
    write_arrays,
)
from coterie.service.core.ids import Catalogue, Users
from coterie.service.core.state import PolicyState, Waiting
from coterie.service.settings import PolicySettings
from coterie.service.storage.copies import DiskCopy
from coterie.service.storage.event_store import PART, StoredSnapshot
from coterie.service.storage.increments import PatchedArrays, base_digest
from coterie.types import Floats

FORMAT = "coterie-recommender"
VERSION = 2
POLICY = "policy/"
"""What the names of the policy's arrays begin with."""


class Capture(NamedTuple):
    """A copy of all of a state, which no longer changes; the policy's arrays are files."""

    settings: PolicySettings
    policy: Arrays
    arrays: dict[str, FileArray]
    users: tuple[str, ...]
    items: list[str]
    vectors: Floats
    waiting: dict[str, Waiting]
    counts: dict[str, int]
    seq: int
    at: float


def capture(state: PolicyState, copy: DiskCopy) -> Capture:
    """Finish a copy of a state; the caller sees to it that nothing changes meanwhile."""
    items = state.catalogue.ids
    with state.policy.lock:
        policy = snapshot_format.content_of(snapshot_format.shared(state.policy)._replace(arrays={}))
        arrays = copy.finish(state.policy.learner)
    return Capture(
        settings=state.settings,
        policy=policy,
        arrays={f"state/{name}": array for name, array in arrays.items()},
        users=state.users.ids,
        items=items,
        vectors=state.catalogue.vectors(items) if items else np.empty((0, state.settings.dim)),
        waiting=dict(state.waiting),
        counts=dict(state.counts),
        seq=state.seq,
        at=state.at,
    )


def arrays_of(captured: Capture) -> dict[str, Array | FileArray]:
    """A state as named arrays: its own, and those of its policy under `policy/`."""
    waiting = captured.waiting
    header = {
        "format": FORMAT,
        "version": VERSION,
        "settings": captured.settings.to_json(),
        "items": captured.items,
        "waiting": [
            [key, one.user, one.items, len(one.items), one.expires, one.drawn] for key, one in waiting.items()
        ],
        "counts": captured.counts,
        "seq": captured.seq,
        "at": captured.at,
    }
    vectors = b"".join([one.x for one in waiting.values()])
    arrays: dict[str, Array | FileArray] = {
        "header": _text(header),
        "users": _text(captured.users),
        "items": captured.vectors,
        "waiting": np.frombuffer(vectors).reshape(-1, captured.settings.dim),
    }
    policy = captured.arrays | captured.policy
    return arrays | {f"{POLICY}{name}": array for name, array in policy.items()}


def _text(value: object) -> Array:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


class PartWriter:
    """A file that hands on what is written to it part by part.

    Parameters
    ----------
    put : callable
        Called as put(number, part) with each part.
    """

    def __init__(self, put: Callable[[int, bytes], None]) -> None:
        """Nothing is written yet."""
        self._put, self._rest, self._digest, self.count = put, bytearray(), blake2b(digest_size=16), 0

    def write(self, content: bytes | memoryview) -> int:
        """Take some bytes."""
        self._rest += memoryview(content)
        while len(self._rest) >= PART:
            self._hand_on(PART)
        return memoryview(content).nbytes

    def flush(self) -> None:
        """Do nothing: parts are handed on when they are full."""

    def _hand_on(self, size: int) -> None:
        part = bytes(self._rest[:size])
        del self._rest[:size]
        self._digest.update(part)
        self._put(self.count, part)
        self.count += 1

    def finish(self) -> str:
        """Hand on what is left; the checksum of everything."""
        if self._rest:
            self._hand_on(len(self._rest))
        return self._digest.hexdigest()


def write(arrays: Mapping[str, Array | FileArray], put: Callable[[int, bytes], None]) -> tuple[int, str]:
    """Write a snapshot or an increment part by part: how many there are, and their checksum."""
    file = PartWriter(put)
    write_arrays(file, arrays)
    digest = file.finish()
    return file.count, digest


def load(stored: StoredSnapshot) -> PolicyState:
    """The state of a snapshot, or of an increment and its base; it goes on as if it had never stopped."""
    try:
        source: ArraySource = stored.content.archive()
        if "increment" in source.stored:
            if stored.base is None or stored.base.digest != base_digest(source):
                raise SnapshotError("an increment whose base is not there")
            source = PatchedArrays(source, stored.base.archive())
        return _rebuilt(source)
    except (CoterieError, *UNREADABLE) as error:
        raise SnapshotError(f"the snapshot cannot be read: {' '.join(str(error).split())}") from None


def _rebuilt(source: ArraySource) -> PolicyState:
    header = json.loads(source.read("header").tobytes())
    if header["format"] != FORMAT or header["version"] not in (1, VERSION):
        raise SnapshotError(f"a snapshot of version {header['version']} cannot be read by this Coterie")
    if header["version"] == 1:  # the policy was a file within the file, and users stood in the header
        policy, users = policy_snapshots.loads(source.read("policy").tobytes()), header["users"]
    else:
        policy = policy_snapshots.from_arrays(PrefixedArrays(source, POLICY))
        users = json.loads(source.read("users").tobytes())
    state = PolicyState(PolicySettings.from_json(header["settings"]), policy)
    state.users = Users(users)
    state.catalogue = Catalogue(state.settings.dim, header["items"], source.read("items"))
    start, vectors_of_all = 0, source.read("waiting")
    for key, user, ids, count, expires, drawn in header["waiting"]:
        x = vectors_of_all[start : start + count].tobytes()
        state.start_waiting(key, Waiting(user, tuple(ids), x, expires, drawn))
        start += count
    state.counts = Counter(header["counts"])
    state.seq, state.at = header["seq"], header["at"]
    return state
