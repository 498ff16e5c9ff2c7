"""Policies read from snapshots.

Nothing in a file is trusted: sizes are checked before memory is taken for them, and every number that
compiled code uses as an index is checked before it is used. Arrays are read straight into the policy's
memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader, BytesIO
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import CoterieError, MissingSnapshot, SnapshotError
from coterie.policies.array_files import (
    UNREADABLE,
    Archive,
    Array,
    ArraySource,
    ByteProgress,
    Described,
    Meter,
)
from coterie.policies.base import LinearBandit, checked
from coterie.policies.confidence import KINDS
from coterie.policies.registry import REGISTRY
from coterie.policies.snapshot_format import ARRAY, FORMAT, VERSION, State, restored
from coterie.validation import shown

MOST_HEADER = 2**20
"""Bytes that a header may have."""


def loads(content: bytes) -> LinearBandit:
    """The policy of a snapshot in memory."""
    try:
        return _read(BytesIO(content), len(content))
    except SnapshotError:
        raise
    except UNREADABLE:
        raise SnapshotError("these bytes are not a whole Coterie snapshot") from None


def load(path: str | PathLike[str], *, progress: ByteProgress | None = None) -> LinearBandit:
    """Read a policy from a snapshot; it continues as if it had never stopped.

    Parameters
    ----------
    path : str or path
        File that `LinearBandit.save` wrote.
    progress : callable, optional
        Called as progress(done, total) with the bytes read so far and those there are in all.

    Returns
    -------
    LinearBandit
        The policy, with the very same next decision.

    Raises
    ------
    MissingSnapshot
        If there is no such file.
    SnapshotError
        If the file is not whole, or contradicts itself.

    Notes
    -----
    A snapshot is a zip file of named arrays without pickle: loading one runs no code, and every size and
    index is checked before it is used. Arrays are read a few megabytes at a time into the policy's memory:
    loading needs no second copy. Each array has a checksum, which is compared.

    Examples
    --------
    >>> import tempfile, coterie
    >>> policy = coterie.AutoCLUB(n_users=3, dim=2)
    >>> policy.update(0, [1.0, 0.0], 0.8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     policy.save(f"{folder}/policy.coterie")
    ...     coterie.load(f"{folder}/policy.coterie").rounds
    1
    """
    try:
        with open(path, "rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size, progress)
    except FileNotFoundError:
        raise MissingSnapshot(f"there is no snapshot at {os.fspath(path)!r}") from None
    except IsADirectoryError:
        raise SnapshotError(f"{os.fspath(path)!r} is a folder, not a snapshot") from None
    except SnapshotError as error:
        raise SnapshotError(f"{os.fspath(path)!r} {error}") from None
    except UNREADABLE:
        raise SnapshotError(f"{os.fspath(path)!r} is not a whole Coterie snapshot") from None


def _read(file: BufferedReader | BytesIO, size: int, progress: ByteProgress | None = None) -> LinearBandit:
    """The policy of a file; whatever zipfile and NumPy raise if it is not whole."""
    return from_arrays(Archive(file, size), progress)


def from_arrays(source: ArraySource, progress: ByteProgress | None = None) -> LinearBandit:
    """The policy whose snapshot these arrays are."""
    if "header" not in source.stored or source.stored["header"].nbytes > MOST_HEADER:
        raise SnapshotError("is not a Coterie snapshot")
    header = _header(source.read("header"))
    return _rebuilt(header, source, Meter(_room(source), progress))


def _room(source: ArraySource) -> int:
    """Bytes of all arrays."""
    return sum(stored.nbytes for stored in source.stored.values())


class Header(NamedTuple):
    """What a snapshot says of itself before its arrays."""

    policy: str
    arguments: dict[str, Any]
    generator: dict[str, Any]
    numbers: dict[str, float]


def _header(content: Array) -> Header:
    try:
        fields = json.loads(content.tobytes())
        stated, version = fields["format"], fields["version"]
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError):
        raise SnapshotError("is not a Coterie snapshot") from None
    if stated != FORMAT:
        raise SnapshotError(f"holds {shown(stated)}, not {FORMAT!r}")
    if version != VERSION:
        raise SnapshotError(f"is of format version {shown(version)}; this Coterie reads version {VERSION}")
    numbers = fields.get("numbers", {})
    header = Header(fields.get("policy"), fields.get("arguments"), fields.get("generator"), numbers)
    kinds = zip(header, Header.__annotations__, (str, dict, dict, dict), strict=True)
    for value, name, kind in kinds:
        if not isinstance(value, kind):
            raise SnapshotError(f"has a header whose {name!r} is of the wrong kind")
    if header.policy not in REGISTRY:
        raise SnapshotError(f"holds a policy {shown(header.policy)} that this Coterie does not know")
    return header


def _rebuilt(header: Header, archive: ArraySource, meter: Meter) -> LinearBandit:
    with _explained():
        arguments = _arguments(header, archive)
        kind = REGISTRY[header.policy].make
        plan = kind.plan_for(arguments)
        stored = {n.removeprefix("state/"): a for n, a in archive.stored.items() if n.startswith("state/")}
        numbers = header.numbers
        if set(numbers) != plan.number_names() or not all(np.isfinite(list(numbers.values()))):
            raise SnapshotError("has other numbers in its header than this policy")
        shapes = plan.shapes(arguments["n_users"], arguments["dim"], numbers)
        _check_shapes(shapes, stored)

        def fill(name: str, out: Array) -> None:
            for piece in archive.fill(f"state/{name}", out):
                check_values(name, piece)
                meter.advance(piece.nbytes)

        return restored(kind, State(header.policy, arguments, header.generator, {}, numbers), fill)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what a file that contradicts itself raises into one sentence."""
    try:
        yield
    except SnapshotError:
        raise
    except (
        CoterieError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        AttributeError,
        MemoryError,
    ) as error:
        raise SnapshotError(f"cannot be read: {' '.join(str(error).split())}") from None


def _arguments(header: Header, archive: ArraySource) -> dict[str, Any]:
    """What the policy was made with; sizes that the file has no room for are refused."""
    arguments = dict(header.arguments)
    if "confidence" in arguments:
        fields = dict(arguments["confidence"])
        kind = fields.pop("kind")
        arguments["confidence"] = KINDS[kind](**fields)
    for name in archive.stored:
        if name.startswith("argument/"):
            arguments[name.removeprefix("argument/")] = archive.read(name)
    if gone := sorted(
        name for name, value in arguments.items() if isinstance(value, dict) and value == ARRAY
    ):
        raise SnapshotError(f"has no array 'argument/{gone[0]}'")
    for name in ("n_users", "dim"):
        if not isinstance(arguments[name], int) or 8 * arguments[name] > _room(archive):
            raise SnapshotError(f"is too small for {name} = {shown(arguments[name])}")
    return checked(arguments)


def _check_shapes(
    shapes: dict[str, tuple[tuple[int, ...], np.dtype[Any]]], arrays: Mapping[str, Described]
) -> None:
    """Every array that the policy has, and no other, of its shape and type."""
    if more := sorted(set(arrays) - set(shapes)):
        raise SnapshotError(f"has an array {shown(more[0])} that this policy does not have")
    for name, (shape, dtype) in shapes.items():
        stored = arrays.get(name)
        if stored is None or stored.shape != shape or stored.dtype != dtype:
            raise SnapshotError(f"has no array {name!r} of shape {shape}; is it of another version?")


def check_values(name: str, values: Array) -> None:
    """Refuse numbers that are not finite, and bytes that are neither true nor false."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise SnapshotError(f"has numbers in {name!r} that are not finite")
    if values.dtype.kind == "b" and values.view(np.uint8).max(initial=0) > 1:
        raise SnapshotError(f"has bytes in {name!r} that are neither true nor false")
