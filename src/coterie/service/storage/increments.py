"""Increments: what has changed of named arrays since a base, in chunks of a few kilobytes.

A chunk belongs to an increment if its checksum is not that of the same chunk of the base. An increment knows
its base by number and checksum, and is of no use without it. Nothing in it is believed: sizes and places are
checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from io import BytesIO
from math import prod
from typing import IO, Any, NamedTuple

import numpy as np

from coterie.errors import SnapshotError
from coterie.policies.array_files import Array, ArraySource, Bytes, FileArray, pieces
from coterie.types import Ints

FORMAT = "coterie-increment"
VERSION = 1
CHUNK = 4096
"""Bytes of a chunk."""
MOST_CHUNK = 2**24
"""Bytes that a chunk may have in an increment that is read."""
SHARE = 0.5
"""An increment is written if it has at most this share of the bytes of a whole snapshot."""


class Base(NamedTuple):
    """A whole snapshot that increments can build on: its number, its checksum, and those of its chunks."""

    seq: int
    digest: str
    chunk: int
    checksums: dict[str, Array]


def base_of(seq: int, digest: str, arrays: Mapping[str, Array | FileArray]) -> Base:
    """The base that a whole snapshot of these arrays is."""
    return Base(seq, digest, CHUNK, {name: checksums(array, CHUNK) for name, array in arrays.items()})


def checksums(array: Array | FileArray, chunk: int) -> Array:
    """A checksum of 16 bytes for each chunk of an array, one a row."""
    return np.concatenate([np.empty((0, 16), np.uint8), *(found for _, found in _examined(array, chunk))])


def _examined(array: Array | FileArray, chunk: int) -> Iterator[tuple[Bytes, Bytes]]:
    """The bytes of an array piece by piece, each with the checksums of its chunks."""
    whole = np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array
    for piece in pieces(whole):
        view = piece.data
        sums = [blake2b(view[k : k + chunk], digest_size=16).digest() for k in range(0, len(view), chunk)]
        yield piece, np.frombuffer(b"".join(sums), np.uint8).reshape(-1, 16)


def increment(
    arrays: Mapping[str, Array | FileArray], base: Base, new_file: Callable[[], IO[bytes]] = BytesIO
) -> dict[str, Array | FileArray] | None:
    """What has changed of arrays since a base, its bytes in new files; None if that is nearly everything."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "base": base.seq,
        "digest": base.digest,
        "chunk": base.chunk,
        "arrays": {name: [array.dtype.str, array.shape] for name, array in arrays.items()},
    }
    made: dict[str, Array | FileArray] = {"increment": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    room = SHARE * sum(array.nbytes for array in arrays.values())
    for name, array in arrays.items():
        file = new_file()
        places = _write_changed(array, base, name, file)
        room -= len(places) * base.chunk
        if room < 0:
            return None
        made[f"chunks/{name}"] = places
        made[f"bytes/{name}"] = FileArray(file, (file.tell(),), np.dtype(np.uint8))
    return made


def _write_changed(array: Array | FileArray, base: Base, name: str, file: IO[bytes]) -> Ints:
    """Write the chunks of an array that the base does not have as they are; their numbers."""
    before, start = base.checksums.get(name, np.empty((0, 16), np.uint8)), 0
    changed = [np.empty(0, np.int64)]
    for piece, now in _examined(array, base.chunk):
        known = before[start : start + len(now)]
        differ = np.ones(len(now), np.bool_)
        differ[: len(known)] = (now[: len(known)] != known).any(axis=1)
        for k in np.flatnonzero(differ).tolist():
            file.write(piece[k * base.chunk : (k + 1) * base.chunk].data)
        changed.append(start + np.flatnonzero(differ))
        start += len(now)
    return np.concatenate(changed)


class Told(NamedTuple):
    """What an increment tells of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return prod(self.shape) * self.dtype.itemsize


class PatchedArrays:
    """The arrays of a base with what has changed since; they are read when they are asked for.

    Parameters
    ----------
    made : ArraySource
        An increment.
    base : ArraySource
        What it builds on.
    """

    def __init__(self, made: ArraySource, base: ArraySource) -> None:
        """Read what the increment tells of itself."""
        self._made, self._base = made, base
        header = _header(made)
        self._chunk = header["chunk"]
        room = sum(array.nbytes for source in (made, base) for array in source.stored.values())
        arrays = header["arrays"].items()
        self.stored = {name: Told(tuple(shape), np.dtype(kind)) for name, (kind, shape) in arrays}
        wrong = any(one.dtype.hasobject or min(one.shape, default=0) < 0 for one in self.stored.values())
        size = sum(one.nbytes for one in self.stored.values())
        if wrong or size > room or not isinstance(self._chunk, int) or not 1 <= self._chunk <= MOST_CHUNK:
            raise SnapshotError("an increment of sizes that cannot be")

    def read(self, name: str) -> Array:
        """One array, in memory of its own."""
        made = np.empty(self.stored[name].shape, self.stored[name].dtype)
        for _ in self.fill(name, made):
            pass
        return made

    def fill(self, name: str, out: Array) -> Iterator[Array]:
        """Write an array into another of its shape and type: the base, then the chunks that have changed."""
        target = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        content = target.reshape(-1).view(np.uint8)
        known = self._fill_base(name, content)
        places, changed = self._made.read(f"chunks/{name}"), self._made.read(f"bytes/{name}")
        _patch(content, known, places, changed, name, self._chunk)
        if target is not out:
            out[...] = target
        yield from (piece.view(out.dtype) for piece in pieces(target))

    def _fill_base(self, name: str, content: Bytes) -> int:
        """Write what the base has of an array; the bytes of all that it has."""
        if name not in self._base.stored:
            return 0
        stored = self._base.stored[name]
        if stored.nbytes > len(content):
            content[:] = self._base.read(name).reshape(-1).view(np.uint8)[: len(content)]
        else:
            out = content[: stored.nbytes].view(stored.dtype).reshape(stored.shape)
            for _ in self._base.fill(name, out):
                pass
        return stored.nbytes


def base_digest(made: ArraySource) -> str:
    """The checksum of the base of an increment."""
    return str(_header(made)["digest"])


def _patch(content: Bytes, known: int, places: Ints, changed: Bytes, name: str, chunk: int) -> None:
    """Write the chunks that have changed; `known` bytes are those of the base."""
    size = len(content)
    if places.dtype != np.int64 or changed.dtype != np.uint8 or places.ndim != 1 or changed.ndim != 1:
        raise SnapshotError(f"an increment of {name!r} of another kind")
    starts, ends = places * chunk, np.minimum((places + 1) * chunk, size)
    if (np.diff(places) < 1).any() or (starts < 0).any() or (starts >= size).any():
        raise SnapshotError(f"an increment of {name!r} with chunks that are not there")
    if (ends - starts).sum() != len(changed) or not _covers(places, known, size, chunk):
        raise SnapshotError(f"an increment of {name!r} that is not whole")
    at = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        content[start:end] = changed[at : at + end - start]
        at += end - start


def _covers(places: Ints, known: int, size: int, chunk: int) -> bool:
    """Are all chunks there that the base does not have whole?"""
    first = known // chunk if size > known else -(-size // chunk)
    return int((places >= first).sum()) == max(-(-size // chunk) - first, 0)


def _header(made: ArraySource) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(made.read("increment").tobytes())
    if (header["format"], header["version"]) != (FORMAT, VERSION):
        raise SnapshotError(f"an increment of version {header['version']} cannot be read by this Coterie")
    return header
