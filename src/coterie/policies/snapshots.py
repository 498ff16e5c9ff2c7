"""Snapshots: named arrays in a zip file with a format, a version and the generator's state. No pickle."""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np

from coterie.errors import CoterieError, SnapshotError
from coterie.policies.base import MAKERS, Policy
from coterie.policies.confidence import KINDS
from coterie.policies.partition import arrays

FORMAT = "coterie-policy"
VERSION = 1
UNREADABLE = (
    ValueError,
    OSError,
    EOFError,
    KeyError,
    RuntimeError,
    TypeError,
    AttributeError,
    BadZipFile,
    zlib.error,
)
"""What NumPy and zipfile raise for files that are not whole."""
INDICES = ("labels", "room", "order")
"""Arrays that kernels use as row numbers without looking twice."""


class Header(NamedTuple):
    """What a snapshot says of itself before its arrays."""

    format: str
    version: int
    policy: str
    arguments: dict[str, Any]
    generator: dict[str, Any]


def save(policy: Policy, path: str | PathLike[str]) -> None:
    """Write all of a policy's state; the file is whole or absent."""
    content = {f"state/{name}": array for name, array in arrays(policy.partition.state)}
    arguments: dict[str, Any] = {}
    for name, value in policy.arguments.items():
        if name in ("labels", "graph"):
            content[f"argument/{name}"] = value
        elif name == "confidence":
            arguments[name] = _confidence_fields(value)
        else:
            arguments[name] = value
    header = Header(FORMAT, VERSION, policy.name, arguments, dict(policy.generator.bit_generator.state))
    content["header"] = np.frombuffer(
        json.dumps(header._asdict(), default=lambda value: value.item()).encode(), np.uint8
    )
    write_whole(Path(path), content)


def _confidence_fields(confidence: object) -> dict[str, Any]:
    kind = type(confidence)
    if KINDS.get(kind.__name__) is not kind or not is_dataclass(confidence) or isinstance(confidence, type):
        raise SnapshotError(f"only {', '.join(KINDS)} can be saved, not a confidence of kind {kind.__name__}")
    return {"kind": kind.__name__, **asdict(confidence)}


def write_whole(path: Path, content: dict[str, np.ndarray[Any, Any]]) -> None:
    """Write to a temporary file beside the target, make it durable, then rename."""
    if not path.parent.is_dir():
        raise SnapshotError(f"there is no folder {os.fspath(path.parent)!r} to save into")
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with open(temporary, "xb") as file:
            np.savez(file, allow_pickle=False, **content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def load(path: str | PathLike[str]) -> Policy:
    """The policy of a snapshot: it goes on as if it had never stopped."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise SnapshotError(f"there is no snapshot at {os.fspath(path)!r}") from None
    except UNREADABLE:
        raise SnapshotError(f"{os.fspath(path)!r} is not a whole Coterie snapshot") from None
    try:
        return _rebuilt(_header(content), content)
    except SnapshotError as error:
        raise SnapshotError(f"{os.fspath(path)!r} {error}") from None


def _header(content: dict[str, Any]) -> Header:
    try:
        fields = json.loads(content["header"].tobytes())
        stated, version = fields["format"], fields["version"]
    except (KeyError, ValueError, TypeError, AttributeError):
        raise SnapshotError("is not a Coterie snapshot") from None
    if stated != FORMAT:
        raise SnapshotError(f"holds {stated!r}, not {FORMAT!r}")
    if version != VERSION:
        raise SnapshotError(f"is of format version {version}; this Coterie reads version {VERSION}")
    try:
        header = Header(**fields)
    except TypeError:
        raise SnapshotError("has a header that cannot be read") from None
    if header.policy not in MAKERS:
        raise SnapshotError(f"holds a policy {header.policy!r} that this Coterie does not know")
    return header


def _rebuilt(header: Header, content: dict[str, Any]) -> Policy:
    try:
        arguments = dict(header.arguments)
        if "confidence" in arguments:
            fields = dict(arguments["confidence"])
            arguments["confidence"] = KINDS[fields.pop("kind")](**fields)
        for name, array in content.items():
            if name.startswith("argument/"):
                arguments[name.removeprefix("argument/")] = array
        policy = Policy(header.policy, arguments)
        policy.generator.bit_generator.state = header.generator
    except (CoterieError, KeyError, TypeError, ValueError) as error:
        raise SnapshotError(f"cannot be read: {error}") from None
    for name, array in arrays(policy.partition.state):
        stored = content.get(f"state/{name}")
        if stored is None or stored.shape != array.shape or stored.dtype != array.dtype:
            raise SnapshotError(f"has no array {name!r} of shape {array.shape}; is it of another version?")
        if name in INDICES and not (stored.min() >= -1 and stored.max() < policy.n_users):
            raise SnapshotError(f"has numbers in {name!r} that are no rows")
        array[...] = stored
    return policy
