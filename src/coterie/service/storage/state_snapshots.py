"""Snapshots of a policy's state: named arrays, cut into chunks that are stored once, and a manifest of them.

A chunk is named by the digest of its content. A snapshot writes the chunks that the store does not have yet,
then its manifest; so the second snapshot of a large policy writes little more than what has changed. Nothing
that is read is believed: digests and sizes are checked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import CoterieError, SnapshotError, StoreError
from coterie.policies import snapshot_format
from coterie.policies import snapshots as policy_snapshots
from coterie.policies.array_files import (
    UNREADABLE,
    Array,
    Arrays,
    ArraySource,
    Bytes,
    FileArray,
    PrefixedArrays,
    pieces,
)
from coterie.service.core.known_items import KnownItems, Numbering
from coterie.service.core.outcomes import Outcomes
from coterie.service.core.state import UNKNOWN_USER, PolicyState, Waiting
from coterie.service.settings import PolicySettings
from coterie.service.storage.event_store import EventStore, digest_of
from coterie.types import Floats, Ints

CHUNK = 2**14
"""Bytes of a chunk. Smaller ones share more between snapshots; larger ones make fewer rows: 65,536 a GB."""
CHUNKS_AT_ONCE = 64
"""Chunks that are written, read or removed in one statement, so that events do not wait for all of them."""
DIGEST = 16
"""Bytes of a digest."""
POLICY = "policy/"
"""What the names of the policy's arrays begin with."""


class ChunkedArray(NamedTuple):
    """An array in a manifest: its shape and type, and the digests of its chunks, joined."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    digests: bytes

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return prod(self.shape) * self.dtype.itemsize


class Manifest(NamedTuple):
    """The arrays of a snapshot by name, and the size of a chunk; the last one of an array is shorter."""

    chunk: int
    arrays: dict[str, ChunkedArray]

    def encode(self) -> bytes:
        """Return a line of JSON, then all digests."""
        described = [[name, one.dtype.str, one.shape] for name, one in self.arrays.items()]
        head = json.dumps({"chunk": self.chunk, "arrays": described}).encode()
        return b"\n".join([head, b"".join([one.digests for one in self.arrays.values()])])

    @classmethod
    def decode(cls, content: bytes) -> Manifest:
        """Read what `encode` wrote; SnapshotError if sizes contradict each other."""
        try:
            head, _, digests = content.partition(b"\n")
            described = json.loads(head)
            chunk, start, arrays = int(described["chunk"]), 0, {}
            for name, kind, shape in described["arrays"]:
                one = ChunkedArray(tuple(int(n) for n in shape), np.dtype(kind), b"")
                if one.dtype.hasobject or min(one.shape, default=0) < 0:
                    raise ValueError(f"{name!r} has an impossible type or shape")
                end = start + DIGEST * -(-one.nbytes // chunk)
                arrays[str(name)] = one._replace(digests=digests[start:end])
                start = end
            if start != len(digests):
                raise ValueError("it lists another number of chunks than its arrays have")
        except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
            raise SnapshotError(f"the manifest contradicts itself: {error}") from None
        return cls(chunk, arrays)

    def digests(self) -> set[bytes]:
        """Return the digests of all chunks."""
        return {digest for one in self.arrays.values() for digest in _split(one.digests, DIGEST)}


def write_chunks(
    arrays: Mapping[str, Array | FileArray],
    known: set[bytes],
    put: Callable[[Sequence[tuple[bytes, bytes]]], None],
    chunk: int = CHUNK,
) -> Manifest:
    """Hand on the chunks of arrays that are not `known` yet, some at a time; the manifest of all.

    `known` is changed: a chunk that occurs twice is written once.
    """
    fresh: list[tuple[bytes, bytes]] = []
    listed: dict[str, ChunkedArray] = {}
    for name, array in arrays.items():
        digests = []
        for content in _chunks(array, chunk):
            digests.append(digest_of(content))
            if digests[-1] not in known:
                known.add(digests[-1])
                fresh.append((digests[-1], content))
            if len(fresh) == CHUNKS_AT_ONCE:
                put(fresh)
                fresh = []
        listed[name] = ChunkedArray(array.shape, array.dtype, b"".join(digests))
    if fresh:
        put(fresh)
    return Manifest(chunk, listed)


def _chunks(array: Array | FileArray, chunk: int) -> Iterator[bytes]:
    """Yield the bytes of an array, rows first, some at a time."""
    # Chunks of an array begin at multiples of their size: a row that changes leaves the others as they are.
    rest = b""
    for piece in pieces(np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array):
        rest += piece.tobytes()
        whole = len(rest) - len(rest) % chunk
        yield from _split(rest[:whole], chunk)
        rest = rest[whole:]
    if rest:
        yield rest


def _split(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


class ChunkedArrays:
    """The arrays of a manifest; their chunks are read when an array is needed.

    Parameters
    ----------
    manifest : Manifest
        What there is.
    read_chunks : callable
        Returns the content of some digests, without those that are missing or damaged.
    """

    def __init__(
        self, manifest: Manifest, read_chunks: Callable[[Sequence[bytes]], Mapping[bytes, bytes]]
    ) -> None:
        """Read no chunk yet."""
        self.stored, self._chunk, self._read_chunks = manifest.arrays, manifest.chunk, read_chunks

    def read(self, name: str) -> Array:
        """Return one array, in memory of its own."""
        made = np.empty(self.stored[name].shape, self.stored[name].dtype)
        for _ in self.fill(name, made):
            pass
        return made

    def fill(self, name: str, out: Array) -> Iterator[Array]:
        """Write an array into another of its shape and type; yield what was just written, piece by piece."""
        target = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        self._fill_bytes(name, target.reshape(-1).view(np.uint8))
        if target is not out:
            out[...] = target
        yield from (piece.view(out.dtype) for piece in pieces(target))

    def _fill_bytes(self, name: str, content: Bytes) -> None:
        digests, start = _split(self.stored[name].digests, DIGEST), 0
        for first in range(0, len(digests), CHUNKS_AT_ONCE):
            some = digests[first : first + CHUNKS_AT_ONCE]
            found = self._read_chunks(list(set(some)))  # a chunk may occur often
            for digest in some:
                chunk = found.get(digest, b"")
                if len(chunk) != min(self._chunk, len(content) - start):
                    raise SnapshotError(f"a chunk of {name!r} is missing or damaged")
                content[start : start + len(chunk)] = np.frombuffer(chunk, np.uint8)
                start += len(chunk)


class Capture(NamedTuple):
    """A copy of all of a state, which no longer changes; the policy's arrays are files."""

    settings: PolicySettings
    policy: Arrays
    arrays: dict[str, FileArray]
    users: tuple[str, ...]
    known_items: tuple[str, ...]
    listed_items: list[int]
    items: Ints
    vectors: Floats
    tags: dict[str, list[str]]
    waiting: dict[str, Waiting]
    counts: dict[str, int]
    outcomes: dict[str, Any]
    item_outcomes: Floats
    seq: int
    at: float


def capture(state: PolicyState, arrays: Mapping[str, FileArray]) -> Capture:
    """Copy a state whose policy's arrays were copied to files; nothing may change meanwhile."""
    catalogue = state.items.catalogue
    return Capture(
        settings=state.settings,
        policy=snapshot_format.content_of(snapshot_format.shared(state.policy)._replace(arrays={})),
        arrays={f"state/{name}": array for name, array in arrays.items()},
        users=state.users.ids,
        known_items=state.items.known.ids,
        listed_items=list(state.items.listed),
        items=catalogue.ids.copy(),
        vectors=catalogue.vectors.copy(),
        tags=state.items.tags,
        waiting=dict(state.waiting),
        counts=dict(state.counts),
        outcomes=state.outcomes.as_json(),
        item_outcomes=state.outcomes.items.copy(),
        seq=state.seq,
        at=state.at,
    )


def arrays_of(captured: Capture) -> dict[str, Array | FileArray]:
    """Return a state as named arrays: its own, and those of its policy under `policy/`."""
    waiting = captured.waiting
    header = {
        "settings": captured.settings.to_json(),
        "waiting": [_fields_of(key, one) for key, one in waiting.items()],
        "counts": captured.counts,
        "seq": captured.seq,
        "at": captured.at,
    }
    vectors = b"".join([one.x for one in waiting.values()])
    arrays: dict[str, Array | FileArray] = {
        "header": _json_array(header),
        "users": _json_array(captured.users),
        "known_items": _json_array(captured.known_items),
        "listed_items": np.array(captured.listed_items, np.int64),
        "items": captured.items,
        "vectors": captured.vectors,
        "tags": _json_array(captured.tags),
        "outcomes": _json_array(captured.outcomes),
        "item_outcomes": captured.item_outcomes,
        "waiting": np.frombuffer(vectors).reshape(-1, captured.settings.dim),
    }
    policy = captured.arrays | captured.policy
    return arrays | {f"{POLICY}{name}": array for name, array in policy.items()}


def _fields_of(key: str, one: Waiting) -> dict[str, Any]:
    """Return a decision that waits, without its vectors, as JSON can have it."""
    instead = None if one.instead is None else [one.instead[0], one.instead[1].hex()]
    return {"key": key, **one._asdict(), "x": len(one.items), "instead": instead}


def _waiting_from(fields: dict[str, Any], vectors: Floats) -> Waiting:
    """Return a decision that waits from what `_fields_of` wrote, and its vectors: a list has several."""
    shown = fields["instead"]
    instead = None if shown is None else (shown[0], bytes.fromhex(shown[1]))
    parts = tuple((name, value) for name, value in fields["parts"])
    kept = {**fields, "items": tuple(fields["items"]), "x": vectors.tobytes(), "parts": parts}
    return Waiting(**{name: kept[name] for name in Waiting._fields} | {"instead": instead})


def _json_array(value: object) -> Array:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def load(store: EventStore, policy: str, manifest: bytes) -> PolicyState:
    """Return the state of a snapshot, bit for bit as it was; SnapshotError if it cannot be read."""
    try:
        source = ChunkedArrays(Manifest.decode(manifest), lambda digests: store.read_chunks(policy, digests))
        return _rebuild(source)
    except StoreError:
        raise  # the snapshot may be fine: the store cannot be read now
    except (CoterieError, *UNREADABLE) as error:
        raise SnapshotError(f"the snapshot cannot be read: {' '.join(str(error).split())}") from None


def _rebuild(source: ArraySource) -> PolicyState:
    header = json.loads(source.read("header").tobytes())
    policy = policy_snapshots.from_arrays(PrefixedArrays(source, POLICY))
    state = PolicyState(PolicySettings.from_json(header["settings"]), policy)
    state.users = Numbering(json.loads(source.read("users").tobytes()), UNKNOWN_USER)
    state.items = KnownItems(state.settings.dim, json.loads(source.read("known_items").tobytes()))
    state.items.listed = {one: place for place, one in enumerate(source.read("listed_items").tolist())}
    ids = state.items.known.named(source.read("items").tolist())
    state.items.put(ids, source.read("vectors"), json.loads(source.read("tags").tobytes()))
    start, vectors_of_all = 0, source.read("waiting")
    for fields in header["waiting"]:
        end = start + fields["x"]
        state.start_waiting(fields["key"], _waiting_from(fields, vectors_of_all[start:end]))
        start = end
    state.counts = Counter(header["counts"])
    outcomes = json.loads(source.read("outcomes").tobytes())
    state.outcomes = Outcomes.from_json(outcomes, source.read("item_outcomes"))
    state.seq, state.at = header["seq"], header["at"]
    return state


def unreferenced_chunks(store: EventStore, policy: str) -> list[list[bytes]]:
    """Return the chunks that no manifest lists, in groups that can be removed at once.

    A process that was killed leaves the chunks of a snapshot without its manifest, and each new snapshot
    leaves chunks that only an older one needed.
    """
    listed: set[bytes] = set()
    for _, manifest in store.manifests(policy):
        listed |= Manifest.decode(manifest).digests()
    gone = sorted(store.chunk_digests(policy) - listed)
    return [gone[start : start + CHUNKS_AT_ONCE] for start in range(0, len(gone), CHUNKS_AT_ONCE)]
