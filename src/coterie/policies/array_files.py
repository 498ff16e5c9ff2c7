"""Named arrays in a zip file, written and read a few megabytes at a time.

Each array is a member of its own, stored as it is, with a checksum that is compared when it has been read.
Nothing in a file is trusted: sizes are compared with that of the file before memory is allocated.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from io import BufferedIOBase
from math import prod
from tokenize import TokenError
from typing import IO, Any, NamedTuple, Protocol, TypeAlias, cast
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Arrays: TypeAlias = dict[str, Array]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
ByteProgress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes written or read so far, and those there are in all."""

AT_ONCE = 2**22
"""Bytes that are written or read at a time."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every member, so that the same state is the same file."""
UNREADABLE = (
    ValueError,
    OSError,
    EOFError,
    KeyError,
    RuntimeError,
    NotImplementedError,
    TypeError,
    AttributeError,
    MemoryError,
    SyntaxError,
    RecursionError,
    TokenError,
    BadZipFile,
    zlib.error,
)
"""What NumPy and zipfile raise for files that are not whole."""


class Meter:
    """Reports the progress of reading or writing in bytes.

    Parameters
    ----------
    total : int
        Bytes in all.
    progress : callable, optional
        Called as progress(done, total).
    """

    def __init__(self, total: int, progress: ByteProgress | None) -> None:
        """Start at 0."""
        self._done, self._total, self._progress = 0, total, progress

    def advance(self, count: int) -> None:
        """Count some more bytes."""
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)


class FileArray:
    """An array whose bytes are in a file, and read on demand.

    Parameters
    ----------
    file : binary file
        Open for reading; it holds the array and nothing else, rows first.
    shape : tuple of int
        Its shape.
    dtype : dtype
        Its type.
    """

    def __init__(self, file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Read nothing yet."""
        self._file, self.shape, self.dtype = file, shape, dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return prod(self.shape) * self.dtype.itemsize

    def pieces(self) -> Iterator[Bytes]:
        """The bytes in order, some megabytes at a time."""
        for start in range(0, self.nbytes, AT_ONCE):
            self._file.seek(start)
            yield np.frombuffer(self._file.read(AT_ONCE), np.uint8)


def write_arrays(
    file: Any, arrays: Mapping[str, Array | FileArray], progress: ByteProgress | None = None
) -> None:
    """Write arrays to a file straight from where they are; the caller keeps them from changing."""
    meter = Meter(sum(array.nbytes for array in arrays.values()), progress)
    with ZipFile(file, "w", ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(ZipInfo(f"{name}.npy", EPOCH), "w", force_zip64=True) as member:
                _write_header(member, array)
                for piece in pieces(array):
                    member.write(piece.data)
                    meter.advance(len(piece))


def _write_header(member: IO[bytes], array: Array | FileArray) -> None:
    """Write the header of a .npy file: type and shape."""
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    np.lib.format.write_array_header_1_0(member, header)


def pieces(array: Array | FileArray) -> Iterator[Bytes]:
    """The bytes of an array in order, some megabytes at a time; views where its rows follow each other."""
    if isinstance(array, FileArray):
        yield from array.pieces()
        return
    if array.flags.c_contiguous:
        content = array.reshape(-1).view(np.uint8)
        yield from (content[start : start + AT_ONCE] for start in range(0, len(content), AT_ONCE))
        return
    rows = max(1, AT_ONCE * len(array) // array.nbytes)
    for start in range(0, len(array), rows):
        yield np.ascontiguousarray(array[start : start + rows]).reshape(-1).view(np.uint8)


class Stored(NamedTuple):
    """An array in a file: its member, and the shape and type that it has room for."""

    entry: ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return prod(self.shape) * self.dtype.itemsize


class Described(Protocol):
    """What is known of an array before it is read."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its type."""

    @property
    def nbytes(self) -> int:
        """Its bytes."""


class ArraySource(Protocol):
    """Named arrays that can be read one by one."""

    @property
    def stored(self) -> Mapping[str, Described]:
        """Shape and type of every array."""

    def read(self, name: str) -> Array:
        """One array."""

    def fill(self, name: str, out: Array) -> Iterator[Array]:
        """Write an array into another of its shape and type; what was just written, piece by piece."""


class PrefixedArrays:
    """The arrays of a source whose names begin with a prefix, without it.

    Parameters
    ----------
    source : ArraySource
        Where they are read from.
    prefix : str
        What their names begin with.
    """

    def __init__(self, source: ArraySource, prefix: str) -> None:
        """Look at some of them."""
        self._source, self._prefix = source, prefix
        self.stored = {n.removeprefix(prefix): a for n, a in source.stored.items() if n.startswith(prefix)}

    def read(self, name: str) -> Array:
        """One array."""
        return self._source.read(f"{self._prefix}{name}")

    def fill(self, name: str, out: Array) -> Iterator[Array]:
        """Write an array into another."""
        return self._source.fill(f"{self._prefix}{name}", out)


class Archive:
    """The arrays of a file, together no larger than the file; they are read on demand.

    Parameters
    ----------
    file : binary file
        Open for reading, from its beginning.
    size : int
        Bytes of the file.
    """

    def __init__(self, file: BufferedIOBase, size: int) -> None:
        """Read the directory, and the header of every array."""
        self._file, self._zip = file, ZipFile(cast("IO[bytes]", file))
        entries = self._zip.infolist()
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        stored = all(e.compress_type == ZIP_STORED and e.compress_size == e.file_size for e in entries)
        if not stored or len(set(names)) != len(names) or sum(e.file_size for e in entries) > size:
            raise ValueError("not as `write_arrays` writes it")
        self.stored = {name: self._stored(entry) for name, entry in zip(names, entries, strict=True)}

    def _stored(self, entry: ZipInfo) -> Stored:
        """One array; its header must agree with its size."""
        with self._zip.open(entry) as member:
            found = Stored(entry, *_read_header(member))
            if found.dtype.hasobject or found.nbytes != entry.file_size - member.tell():
                raise ValueError("the size of an array differs from its header")
        return found

    def read(self, name: str) -> Array:
        """One array, in memory of its own."""
        stored = self.stored[name]
        made = np.empty(stored.shape, stored.dtype)
        for _ in self.fill(name, made):
            pass
        return made

    def fill(self, name: str, out: Array) -> Iterator[Array]:
        """Read an array into another of its shape and type; what was just read, piece by piece."""
        target = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        entry = self.stored[name].entry
        with self._zip.open(entry) as member:  # compares the two headers of the member
            _read_header(member)
            before = member.tell()
        self._file.seek(self._start(entry))
        checksum = zlib.crc32(self._file.read(before))
        for piece in pieces(target):
            if self._file.readinto(piece.data) != len(piece):
                raise EOFError("an array ends too early")
            checksum = zlib.crc32(piece.data, checksum)
            yield piece.view(out.dtype)
        if checksum != entry.CRC:
            raise BadZipFile(f"the checksum of {name!r} is another one")
        if target is not out:
            out[...] = target

    def _start(self, entry: ZipInfo) -> int:
        """Where the content of a member begins: after its header, its name and its extra field."""
        self._file.seek(entry.header_offset + 26)
        lengths = self._file.read(4)
        return (
            entry.header_offset
            + 30
            + int.from_bytes(lengths[:2], "little")
            + int.from_bytes(lengths[2:], "little")
        )


def _read_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(member)
    if fortran and len(shape) > 1:
        raise ValueError("columns first")
    return shape, dtype
