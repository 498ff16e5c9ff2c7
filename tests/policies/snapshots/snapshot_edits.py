"""Edit a snapshot of one example in every way, load it and play on; in a process of its own, lest it crashes.

`python -m policies.snapshots.snapshot_edits CLUB folder` prints a line an edit: its name and its outcome.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import coterie
from contracts.examples import grow, make, play
from coterie import SnapshotError

Array = np.ndarray[Any, Any]
Content = dict[str, Array]
NUMBERS: tuple[Any, ...] = (10**9, -1, 0, 1, 6, 7, 2**62, 2**63 - 1, 1e300, np.nan, np.inf, "six", None, [6])


def fillings(array: Array, n_users: int) -> Iterator[tuple[str, Array]]:
    """The same shape and type with other numbers, filled or in one place."""
    rng = np.random.default_rng(0)
    values: list[Any] = [-1, 2**62, n_users, 0, 1, n_users - 1]
    if array.dtype.kind == "f":
        values = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, -1e300, 1e-300]
    for value in values:
        filled = np.full(array.shape, value).astype(array.dtype)
        once = array.copy()
        once.flat[-1:] = filled.flat[-1:]
        yield f"filled with {value}", filled
        if array.dtype.kind != "f":
            yield f"at the end {value}", once
    bits = np.frombuffer(rng.bytes(array.nbytes), array.dtype).reshape(array.shape)
    yield "random bits", bits
    for k in range(4 if array.dtype.kind == "i" else 0):
        yield f"random users {k}", rng.integers(n_users, size=array.shape).astype(array.dtype)
    if array.dtype == np.uint64:
        yield "one bit more", array | (np.uint64(1) << rng.integers(64, size=array.shape).astype(np.uint64))
    yield "shuffled", rng.permutation(array.ravel()).reshape(array.shape)


def edits(content: Content, n_users: int) -> Iterator[tuple[str, Content]]:
    """Every edit of every array and number, with its name."""
    header = json.loads(content["header"].tobytes())
    for name, array in content.items():
        if name != "header":
            for how, edited in fillings(array, n_users):
                yield f"{name} {how}", {**content, name: edited}
            yield f"{name} missing", {other: kept for other, kept in content.items() if other != name}
            yield f"{name} longer", {**content, name: np.concatenate([array, array])}
            yield f"{name} as text", {**content, name: array.astype("S8")}
    yield "an array more", {**content, "state/extra": np.eye(3)}
    for number in header["numbers"]:
        for value in NUMBERS:
            numbers = {**header["numbers"], number: value}
            yield f"{number} = {value}", {**content, "header": written({**header, "numbers": numbers})}
        left = {other: kept for other, kept in header["numbers"].items() if other != number}
        yield f"{number} missing", {**content, "header": written({**header, "numbers": left})}


def written(header: dict[str, Any]) -> Array:
    """A header as bytes."""
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


def outcome(path: Path) -> str:
    """Refused, with the sentence, or played on and grown."""
    try:
        policy = coterie.load(path)
    except SnapshotError as error:
        return f"refused: {error}"
    play(policy, 40, seed=1)
    grow(policy, 2)
    play(policy, 20, seed=2)
    _ = policy.labels(), policy.cluster_of(0), policy.pulls
    return "played on"


def main(example: str, folder: str) -> None:
    path, policy = Path(folder, "policy"), make(example)
    play(policy, 60)
    policy.save(path)
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    for name, edited in edits(content, policy.n_users):
        print(f"{name}\t", end="", flush=True)
        with path.open("wb") as out:
            np.savez(out, allow_pickle=False, **edited)
        print(outcome(path).replace("\n", "\\n"), flush=True)


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        main(sys.argv[1], sys.argv[2])
