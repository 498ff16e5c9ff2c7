"""Increments: what has changed of named arrays since a base, in chunks of a few kilobytes.

A chunk belongs to an increment if its checksum is not that of the same chunk of the base. An increment knows
its base by number and checksum, and is of no use without it. Nothing in it is believed: sizes and places are
checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from math import prod
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import SnapshotError
from coterie.policies.archives import Array, Arrays
from coterie.types import Ints

FORMAT = "coterie-increment"
VERSION = 1
CHUNK = 4096
"""Bytes of a chunk."""
SHARE = 0.5
"""An increment is written if it has at most this share of the bytes of a whole snapshot."""


class Base(NamedTuple):
    """A whole snapshot that increments can build on: its number, its checksum, and those of its chunks."""

    seq: int
    digest: str
    chunk: int
    checksums: dict[str, Array]


def base_of(seq: int, digest: str, arrays: Mapping[str, Array]) -> Base:
    """The base that a whole snapshot of these arrays is."""
    return Base(seq, digest, CHUNK, {name: checksums(array, CHUNK) for name, array in arrays.items()})


def checksums(array: Array, chunk: int) -> Array:
    """A checksum of 16 bytes for each chunk of an array, one a row."""
    content = _bytes(array).data
    found = [blake2b(content[k : k + chunk], digest_size=16).digest() for k in range(0, len(content), chunk)]
    return np.frombuffer(b"".join(found), np.uint8).reshape(-1, 16)


def increment(arrays: Mapping[str, Array], base: Base) -> Arrays | None:
    """What has changed of arrays since a base; None if that is nearly everything."""
    changed = {name: _changed(array, base, name) for name, array in arrays.items()}
    total = sum(array.nbytes for array in arrays.values())
    if sum(map(len, changed.values())) * base.chunk > SHARE * total:
        return None
    header = {
        "format": FORMAT,
        "version": VERSION,
        "base": base.seq,
        "digest": base.digest,
        "chunk": base.chunk,
        "arrays": {name: [array.dtype.str, array.shape] for name, array in arrays.items()},
    }
    made: Arrays = {"increment": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    for name, places in changed.items():
        content = _bytes(arrays[name])
        pieces = [content[k * base.chunk : (k + 1) * base.chunk] for k in places.tolist()]
        made[f"chunks/{name}"] = places
        made[f"bytes/{name}"] = np.concatenate([np.empty(0, np.uint8), *pieces])
    return made


def _changed(array: Array, base: Base, name: str) -> Ints:
    """The chunks of an array that the base does not have as they are."""
    now, before = checksums(array, base.chunk), base.checksums.get(name, np.empty((0, 16), np.uint8))
    both = min(len(now), len(before))
    differ = np.append((now[:both] != before[:both]).any(axis=1), np.ones(len(now) - both, np.bool_))
    return np.flatnonzero(differ)


def base_digest(made: Mapping[str, Array]) -> str | None:
    """The checksum of the base of an increment; None for arrays that are whole by themselves."""
    return str(_header(made)["digest"]) if "increment" in made else None


def applied(made: Mapping[str, Array], base: Mapping[str, Array]) -> Arrays:
    """The arrays of a base with what has changed since."""
    header = _header(made)
    chunk, known = header["chunk"], sum(array.nbytes for array in base.values())
    room = known + sum(array.nbytes for array in made.values())
    told = {name: (np.dtype(kind), tuple(shape)) for name, (kind, shape) in header["arrays"].items()}
    sizes = [prod(shape) * kind.itemsize for kind, shape in told.values()]
    wrong = any(kind.hasobject or min(shape, default=0) < 0 for kind, shape in told.values())
    if wrong or sum(sizes) > room or not isinstance(chunk, int) or chunk < 1:
        raise SnapshotError("an increment of sizes that cannot be")
    found = Arrays()
    for (name, (kind, shape)), size in zip(told.items(), sizes, strict=True):
        old = _bytes(base[name]) if name in base else np.empty(0, np.uint8)
        found[name] = _patched(old, size, made, name, chunk).view(kind).reshape(shape)
    return found


def _patched(old: Array, size: int, made: Mapping[str, Array], name: str, chunk: int) -> Array:
    """The bytes of one array: those of the base, and the chunks that have changed."""
    places, pieces = made[f"chunks/{name}"], made[f"bytes/{name}"]
    ends = np.minimum((places + 1) * chunk, size)
    starts = places * chunk
    if places.dtype != np.int64 or pieces.dtype != np.uint8 or places.ndim != 1 or pieces.ndim != 1:
        raise SnapshotError(f"an increment of {name!r} of another kind")
    if (np.diff(places) < 1).any() or (starts < 0).any() or (starts >= size).any():
        raise SnapshotError(f"an increment of {name!r} with chunks that are not there")
    if (ends - starts).sum() != len(pieces) or not _covers(places, len(old), size, chunk):
        raise SnapshotError(f"an increment of {name!r} that is not whole")
    content = np.empty(size, np.uint8)
    content[: len(old)] = old[:size]
    at = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        content[start:end] = pieces[at : at + end - start]
        at += end - start
    return content


def _covers(places: Ints, known: int, size: int, chunk: int) -> bool:
    """Are all chunks there that the base does not have whole?"""
    first = known // chunk if size > known else -(-size // chunk)
    return int((places >= first).sum()) == max(-(-size // chunk) - first, 0)


def _header(made: Mapping[str, Array]) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(made["increment"].tobytes())
    if (header["format"], header["version"]) != (FORMAT, VERSION):
        raise SnapshotError(f"an increment of version {header['version']} cannot be read by this Coterie")
    return header


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
