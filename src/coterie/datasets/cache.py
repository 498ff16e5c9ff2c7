"""The cache of finished datasets in the user's cache folder; entries are checked when they are read."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import numpy as np

from coterie.atomic_files import atomic_write
from coterie.datasets.dataset import Dataset, Provenance, sealed
from coterie.datasets.request import Request

CACHE_FORMAT = 1  # to be raised whenever the same file and parameters would give other vectors

log = logging.getLogger("coterie.datasets")


def folder() -> Path:
    """$COTERIE_CACHE, else where the platform keeps caches ($XDG_CACHE_HOME/coterie on Linux)."""
    if own := os.environ.get("COTERIE_CACHE"):
        return Path(own).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("coterie", appauthor=False)


def key(name: str, digest: str, request: Request) -> str:
    """A name for the result, made of the file's hash and of every parameter that changes the vectors."""
    parts = [CACHE_FORMAT, name, digest, request.dim, request.n_users, request.n_items, request.scale]
    parts += [request.threshold, request.columns, request.missing, request.separator, request.encoding]
    text = json.dumps(parts)
    return f"{name}-{sha256(text.encode()).hexdigest()[:32]}"


def fetch(key: str) -> Dataset | None:
    """The dataset kept under a key; None if there is none, or if it cannot be read."""
    path = _path(key)
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as entry:
            fields = json.loads(str(entry["provenance"]))
            fields["singular_values"] = tuple(fields["singular_values"])
            fields["notes"] = tuple(fields["notes"])
            return _checked(
                sealed(
                    entry["users"],
                    entry["items"],
                    user_ids=entry["user_ids"],
                    item_ids=entry["item_ids"],
                    provenance=Provenance(**fields),
                )
            )
    except Exception as error:  # whatever is wrong with it, it can be made again
        log.info("cache entry %s is made again, it cannot be read: %s", path, error)
        return None


def _checked(dataset: Dataset) -> Dataset:
    """Return the dataset; raise ValueError unless its arrays have the shapes stated in its provenance."""
    provenance = dataset.provenance
    shapes = (provenance.users_kept, provenance.dim), (provenance.items_kept, provenance.dim)
    counts = (len(dataset.user_ids), len(dataset.item_ids))
    if (dataset.users.shape, dataset.items.shape) != shapes or counts != (shapes[0][0], shapes[1][0]):
        raise ValueError("the arrays do not have the shapes of the provenance")
    return dataset


def store(key: str, dataset: Dataset) -> None:
    """Keep a dataset; a folder that cannot be written causes a warning, not an error."""

    def write(file: BinaryIO) -> None:
        np.savez(
            file,
            users=dataset.users,
            items=dataset.items,
            user_ids=dataset.user_ids,
            item_ids=dataset.item_ids,
            provenance=np.array(json.dumps(asdict(dataset.provenance))),
        )

    try:
        atomic_write(_path(key), write)
    except OSError as error:
        log.warning("%s could not be cached: %s", dataset.name, error)


@contextmanager
def locked(key: str) -> Iterator[None]:
    """Hold a lock, so that only one process at a time prepares this dataset.

    If the folder is read-only, continue without a lock.
    """
    from filelock import FileLock

    path = folder() / "locks" / f"{key}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        log.info("the cache is used without a lock: %s", error)
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _path(key: str) -> Path:
    return folder() / "datasets" / f"{key}.npz"
