"""Snapshots: named arrays in a zip file with a format, a version and the generator's state. No pickle.

Nothing in a file is believed: sizes are checked before memory is taken for them, and every number that
compiled code uses as an index is checked before it is used.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, is_dataclass
from io import BytesIO
from math import prod
from os import PathLike
from pathlib import Path
from tokenize import TokenError
from typing import Any, NamedTuple
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from coterie.errors import CoterieError, MissingSnapshot, SnapshotError
from coterie.policies.base import LinearBandit
from coterie.policies.confidence import KINDS
from coterie.policies.plans import PLANS, checked
from coterie.storage import atomic_write
from coterie.validation import shown

FORMAT = "coterie-policy"
VERSION = 2
ARRAY = {"array": True}
"""What a header holds of an argument that is an array of the file."""
MOST_HEADER = 2**20
"""Bytes that a header may have."""
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

Arrays = dict[str, np.ndarray[Any, Any]]


class State(NamedTuple):
    """All of a policy: what it was made with, its random numbers, its arrays and its single numbers."""

    name: str
    arguments: dict[str, Any]
    generator: dict[str, Any]
    arrays: Arrays
    numbers: dict[str, float]


def captured(policy: LinearBandit) -> State:
    """A copy of all of a policy's state."""
    with policy.lock:
        learner = policy.learner
        generator = dict(policy.generator.bit_generator.state)
        return State(policy.name, policy.arguments, generator, learner.arrays(), learner.numbers())


def revived(state: State) -> LinearBandit:
    """A policy of its own that goes on from a state."""
    policy = LinearBandit(state.name, state.arguments)
    policy.generator.bit_generator.state = state.generator
    if policy.generator.bit_generator.state != state.generator:
        raise ValueError("has a generator in a state that cannot be")
    policy.learner.restore(state.arrays, state.numbers)
    return policy


def save(policy: LinearBandit, path: str | PathLike[str]) -> None:
    """Write all of a policy's state; the file is whole or absent."""
    target, content = Path(path), _content(captured(policy))
    if target.exists() and not target.is_file():
        kind = "a folder" if target.is_dir() else "no file"
        raise SnapshotError(f"{os.fspath(path)!r} is {kind}; name a file to save into")
    if not target.parent.is_dir():
        raise SnapshotError(f"there is no folder {os.fspath(target.parent)!r} to save into")
    atomic_write(target, lambda file: np.savez(file, allow_pickle=False, **content))


def dumps(state: State) -> bytes:
    """What `save` writes, as bytes."""
    file = BytesIO()
    np.savez(file, allow_pickle=False, **_content(state))
    return file.getvalue()


def loads(content: bytes) -> LinearBandit:
    """The policy of a snapshot in memory."""
    try:
        with ZipFile(BytesIO(content)) as archive:
            arrays = _read(archive, len(content))
    except UNREADABLE:
        raise SnapshotError("these bytes are not a whole Coterie snapshot") from None
    return _rebuilt(_header(arrays), arrays)


def _content(state: State) -> Arrays:
    """The arrays of a snapshot, one of which is its header."""
    content: Arrays = {f"state/{name}": array for name, array in state.arrays.items()}
    arguments: dict[str, Any] = {}
    for name, value in state.arguments.items():
        if isinstance(value, np.ndarray):
            content[f"argument/{name}"] = value
            arguments[name] = ARRAY
        else:
            arguments[name] = _confidence_fields(value) if name == "confidence" else value
    header = {
        "format": FORMAT,
        "version": VERSION,
        "policy": state.name,
        "arguments": arguments,
        "generator": state.generator,
        "numbers": state.numbers,
    }
    text = json.dumps(header, default=lambda value: value.item())
    content["header"] = np.frombuffer(text.encode(), np.uint8)
    return content


def _confidence_fields(confidence: object) -> dict[str, Any]:
    kind = type(confidence)
    if KINDS.get(kind.__name__) is not kind or not is_dataclass(confidence) or isinstance(confidence, type):
        raise SnapshotError(f"only {', '.join(KINDS)} can be saved, not a confidence of kind {kind.__name__}")
    return {"kind": kind.__name__, **asdict(confidence)}


def load(path: str | PathLike[str]) -> LinearBandit:
    """Read a policy from a snapshot; it goes on as if it had never stopped.

    Parameters
    ----------
    path : str or path
        File that `LinearBandit.save` wrote, with this version of Coterie or an earlier one.

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
    index is checked before it is used.

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
        with open(path, "rb") as file, ZipFile(file) as archive:
            content = _read(archive, os.fstat(file.fileno()).st_size)
    except FileNotFoundError:
        raise MissingSnapshot(f"there is no snapshot at {os.fspath(path)!r}") from None
    except IsADirectoryError:
        raise SnapshotError(f"{os.fspath(path)!r} is a folder, not a snapshot") from None
    except UNREADABLE:
        raise SnapshotError(f"{os.fspath(path)!r} is not a whole Coterie snapshot") from None
    try:
        return _rebuilt(_header(content), content)
    except SnapshotError as error:
        raise SnapshotError(f"{os.fspath(path)!r} {error}") from None


def _read(archive: ZipFile, size: int) -> Arrays:
    """The arrays of a file, which together cannot be larger than the file itself."""
    entries = archive.infolist()
    names = [entry.filename.removesuffix(".npy") for entry in entries]
    stored = all(e.compress_type == ZIP_STORED and e.compress_size == e.file_size for e in entries)
    if not stored or len(set(names)) != len(names) or sum(e.file_size for e in entries) > size:
        raise ValueError("not as `save` writes it")
    return {name: _array(archive, entry) for name, entry in zip(names, entries, strict=True)}


def _array(archive: ZipFile, entry: ZipInfo) -> np.ndarray[Any, Any]:
    """One array, whose header must tell the size that it has."""
    with archive.open(entry) as file:
        shape, dtype = _shape(file)
        left = entry.file_size - file.tell()
        if dtype.hasobject or prod(shape) * dtype.itemsize != left:
            raise ValueError("an array of another size than its header tells")
        content = file.read(left)
    return np.frombuffer(content, dtype).reshape(shape)


def _shape(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if fortran and len(shape) > 1:
        raise ValueError("columns first")
    return shape, dtype


class Header(NamedTuple):
    """What a snapshot says of itself before its arrays."""

    version: int
    policy: str
    arguments: dict[str, Any]
    generator: dict[str, Any]
    numbers: dict[str, float]


def _header(content: Arrays) -> Header:
    try:
        fields = json.loads(content["header"][:MOST_HEADER].tobytes())
        stated, version = fields["format"], fields["version"]
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError):
        raise SnapshotError("is not a Coterie snapshot") from None
    if stated != FORMAT:
        raise SnapshotError(f"holds {shown(stated)}, not {FORMAT!r}")
    if version not in (1, VERSION):
        raise SnapshotError(
            f"is of format version {shown(version)}; this Coterie reads versions 1 to {VERSION}"
        )
    numbers = fields.get("numbers", {})
    header = Header(version, fields.get("policy"), fields.get("arguments"), fields.get("generator"), numbers)
    kinds = zip(header, Header.__annotations__, (int, str, dict, dict, dict), strict=True)
    for value, name, kind in kinds:
        if not isinstance(value, kind):
            raise SnapshotError(f"has a header whose {name!r} is of the wrong kind")
    if header.policy not in PLANS:
        raise SnapshotError(f"holds a policy {shown(header.policy)} that this Coterie does not know")
    return header


def _rebuilt(header: Header, content: Arrays) -> LinearBandit:
    try:
        arguments = _arguments(header, content)
        arrays = {n.removeprefix("state/"): a for n, a in content.items() if n.startswith("state/")}
        numbers = header.numbers
        plan = PLANS[header.policy](**arguments)
        if header.version == 1:
            from coterie.policies.snapshots_v1 import upgraded

            arrays, numbers = upgraded(plan.learner, arrays)
        if set(numbers) != set(plan.learner.NUMBERS) or not all(np.isfinite(list(numbers.values()))):
            raise SnapshotError("has other numbers in its header than this policy")
        size = (arguments["n_users"], arguments["dim"])
        _check_arrays(plan.learner.shapes(*size, numbers, **plan.settings), arrays)
        return revived(State(header.policy, arguments, header.generator, arrays, numbers))
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


def _arguments(header: Header, content: Arrays) -> dict[str, Any]:
    """What the policy was made with; sizes that the file has no room for are refused."""
    arguments = dict(header.arguments)
    if "confidence" in arguments:
        fields = dict(arguments["confidence"])
        kind = fields.pop("kind")
        arguments["confidence"] = KINDS["SmoothedTheory" if kind == "Smoothed" else kind](**fields)
    for name, array in content.items():
        if name.startswith("argument/"):
            arguments[name.removeprefix("argument/")] = array
    if gone := sorted(
        name for name, value in arguments.items() if isinstance(value, dict) and value == ARRAY
    ):
        raise SnapshotError(f"has no array 'argument/{gone[0]}'")
    room = sum(array.nbytes for array in content.values())
    for name in ("n_users", "dim"):
        if not isinstance(arguments[name], int) or 8 * arguments[name] > room:
            raise SnapshotError(f"is too small for {name} = {shown(arguments[name])}")
    return checked(arguments)


def _check_arrays(shapes: dict[str, tuple[tuple[int, ...], np.dtype[Any]]], arrays: Arrays) -> None:
    """Every array that the policy has, and no other, of its shape and type, with finite numbers."""
    if more := sorted(set(arrays) - set(shapes)):
        raise SnapshotError(f"has an array {shown(more[0])} that this policy does not have")
    for name, (shape, dtype) in shapes.items():
        stored = arrays.get(name)
        if stored is None or stored.shape != shape or stored.dtype != dtype:
            raise SnapshotError(f"has no array {name!r} of shape {shape}; is it of another version?")
        if dtype.kind == "f" and not np.isfinite(stored).all():
            raise SnapshotError(f"has numbers in {name!r} that are not finite")
        if dtype.kind == "b" and stored.view(np.uint8).max() > 1:
            raise SnapshotError(f"has bytes in {name!r} that are neither true nor false")
