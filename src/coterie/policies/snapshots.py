"""Snapshots: named arrays in a zip file with a format, a version and the generator's state. No pickle."""

from __future__ import annotations

import json
import os
import zipfile
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from os import PathLike
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import CoterieError, SnapshotError
from coterie.policies.base import MAKERS, Policy
from coterie.policies.confidence import KINDS
from coterie.policies.partition import arrays

FORMAT = "coterie-policy"
VERSION = 1


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
    content["header"] = np.frombuffer(json.dumps(header._asdict(), default=float).encode(), np.uint8)
    write_whole(Path(path), content)


def _confidence_fields(confidence: object) -> dict[str, Any]:
    kind = type(confidence)
    if KINDS.get(kind.__name__) is not kind or not is_dataclass(confidence) or isinstance(confidence, type):
        raise SnapshotError(f"only {', '.join(KINDS)} can be saved, not a confidence of kind {kind.__name__}")
    return {"kind": kind.__name__, **asdict(confidence)}


def write_whole(path: Path, content: dict[str, np.ndarray[Any, Any]]) -> None:
    """Write to a temporary file beside the target, make it durable, then rename."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            np.savez(file, allow_pickle=False, **content)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, path)
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def load(path: str | PathLike[str]) -> Policy:
    """The policy of a snapshot: it goes on as if it had never stopped."""
    try:
        with np.load(path, allow_pickle=False) as file:
            content = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise SnapshotError(f"there is no snapshot at {os.fspath(path)!r}") from None
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, AttributeError, TypeError):
        raise SnapshotError(f"{os.fspath(path)!r} is not a whole Coterie snapshot") from None
    try:
        header = _header(content)
        policy = _rebuilt(header, content)
    except SnapshotError as error:
        raise SnapshotError(f"{os.fspath(path)!r} {error}") from None
    return policy


def _header(content: dict[str, Any]) -> Header:
    try:
        header = Header(**json.loads(content["header"].tobytes()))
    except (KeyError, ValueError, TypeError, AttributeError):
        raise SnapshotError("is not a Coterie snapshot") from None
    if header.format != FORMAT:
        raise SnapshotError(f"holds {header.format!r}, not {FORMAT!r}")
    if header.version != VERSION:
        raise SnapshotError(f"is of format version {header.version}; this Coterie reads version {VERSION}")
    if header.policy not in MAKERS:
        raise SnapshotError(f"holds a policy {header.policy!r} that this Coterie does not know")
    return header


def _rebuilt(header: Header, content: dict[str, Any]) -> Policy:
    arguments = dict(header.arguments)
    try:
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
            raise SnapshotError(f"has no array {name!r} of shape {array.shape}")
        array[...] = stored
    return policy
