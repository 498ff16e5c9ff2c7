"""Finished datasets, kept under the user's cache folder: whole or absent, and never trusted blindly."""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import numpy as np

from coterie.datasets.dataset import Dataset, Provenance, sealed
from coterie.datasets.request import Request
from coterie.storage import atomic_write

FORMAT = 1  # to be raised whenever the same file and parameters would give other vectors

log = logging.getLogger("coterie.datasets")


def folder() -> Path:
    """$COTERIE_CACHE, else $XDG_CACHE_HOME/coterie, else where the platform keeps caches."""
    if own := os.environ.get("COTERIE_CACHE"):
        return Path(own).expanduser()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared).expanduser() / "coterie"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local"))) / "coterie"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "coterie"
    return Path.home() / ".cache" / "coterie"


def key(name: str, digest: str, request: Request) -> str:
    """A name for the result, made of the file's hash and of every parameter that changes the vectors."""
    parts = [FORMAT, name, digest, request.dim, request.n_users, request.n_items, request.scale]
    text = json.dumps([*parts, request.threshold, request.columns])
    return f"{name}-{sha256(text.encode()).hexdigest()[:32]}"


def fetch(key: str) -> Dataset | None:
    """The dataset kept under a key; None if there is none, or if it cannot be read."""
    path = _place(key)
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
    """The dataset, if its arrays have the shapes its provenance tells."""
    provenance = dataset.provenance
    shapes = (provenance.users_kept, provenance.dim), (provenance.items_kept, provenance.dim)
    counts = (len(dataset.user_ids), len(dataset.item_ids))
    if (dataset.users.shape, dataset.items.shape) != shapes or counts != (shapes[0][0], shapes[1][0]):
        raise ValueError("the arrays do not have the shapes that the provenance tells")
    return dataset


def store(key: str, dataset: Dataset) -> None:
    """Keep a dataset; a folder that cannot be written is a warning, no error."""

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
        atomic_write(_place(key), write)
    except OSError as error:
        log.warning("%s could not be cached: %s", dataset.name, error)


def _place(key: str) -> Path:
    return folder() / "datasets" / f"{key}.npz"
