"""What a snapshot of a policy holds, and how it is written: named arrays in a zip file, no pickle.

One array is the header: format, version, class, arguments and the generator's state as JSON. Arrays are
written straight from the policy's memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, is_dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from coterie.atomic_files import atomic_write
from coterie.errors import SnapshotError
from coterie.policies.array_files import Array, Arrays, ByteProgress, write_arrays
from coterie.policies.confidence import KINDS
from coterie.policies.kernel.learner import Learner

FORMAT = "coterie-policy"
VERSION = 2
OURS = "coterie.policies."
"""The package of the classes that a snapshot may name."""
ARRAY = {"array": True}
"""What a header holds of an argument that is an array of the file."""

Fill: TypeAlias = Callable[[str, Array], None]
"""Writes the array of a name into the memory that the policy has for it."""


class Saved(Protocol):
    """What is read of a policy to save it, and written to restore it."""

    @property
    def name(self) -> str:
        """Name of its class."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that it was made with."""

    @property
    def generator(self) -> np.random.Generator:
        """Generator of random decisions."""

    @property
    def learner(self) -> Learner:
        """Compiled state."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Lock held by whoever reads or changes the state."""


P = TypeVar("P", bound=Saved)


class State(NamedTuple):
    """All of a policy: what it was made with, its random numbers, its arrays and its single numbers."""

    name: str
    arguments: dict[str, Any]
    generator: dict[str, Any]
    arrays: Arrays
    numbers: dict[str, float]


def captured(policy: Saved) -> State:
    """A copy of all of a policy's state."""
    with policy.lock:
        state = shared(policy)
        return state._replace(arrays={name: array.copy() for name, array in state.arrays.items()})


def shared(policy: Saved) -> State:
    """A policy's state in its own memory; the caller holds the lock as long as it is used."""
    learner = policy.learner
    arrays = {name: learner.array(name) for name in learner.names()}
    generator = dict(policy.generator.bit_generator.state)
    return State(policy.name, policy.arguments, generator, arrays, learner.numbers())


def revived(kind: Callable[..., P], state: State) -> P:
    """A policy of this class, with memory of its own, that continues from a state."""

    def fill(name: str, out: Array) -> None:
        out[...] = state.arrays[name]

    return restored(kind, state, fill)


def restored(kind: Callable[..., P], state: State, fill: Fill) -> P:
    """A policy of this class whose arrays are filled by a function."""
    policy = kind(**state.arguments)
    policy.generator.bit_generator.state = state.generator
    if policy.generator.bit_generator.state != state.generator:
        raise ValueError("has a generator in a state that cannot be")
    policy.learner.restore(fill, state.numbers)
    return policy


def save(policy: Saved, path: str | PathLike[str], *, progress: ByteProgress | None = None) -> None:
    """Write all of a policy's state; the file is whole or absent."""
    if not type(policy).__module__.startswith(OURS):
        raise SnapshotError(f"{policy.name} is a class of your own and cannot be saved: pickle it instead")
    target = Path(path)
    if target.exists() and not target.is_file():
        kind = "a folder" if target.is_dir() else "no file"
        raise SnapshotError(f"{os.fspath(path)!r} is {kind}; name a file to save into")
    if not target.parent.is_dir():
        raise SnapshotError(f"there is no folder {os.fspath(target.parent)!r} to save into")
    with policy.lock:  # nothing is copied, so nothing may change
        content = content_of(shared(policy))
        atomic_write(target, lambda file: write_arrays(file, content, progress))


def dumps(state: State) -> bytes:
    """What `save` writes, as bytes."""
    file = BytesIO()
    write_arrays(file, content_of(state))
    return file.getvalue()


def content_of(state: State) -> Arrays:
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
