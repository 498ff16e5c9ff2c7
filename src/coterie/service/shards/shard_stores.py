"""Where the stores of all shards are: files of a folder."""

from __future__ import annotations

from pathlib import Path

from coterie.errors import ArgumentError
from coterie.placement import Placement
from coterie.service.storage.location import SCHEME, open_store
from coterie.service.storage.shard_mark import read_mark

DEFAULT_FOLDER = "coterie-shards"


def shard_stores(where: str, shards: int) -> list[str]:
    """Return the store of each shard; the folder is made if it is not there.

    Raises
    ------
    ArgumentError
        If `where` is not a folder, or has the stores of another number of shards.
    """
    if SCHEME.match(where):
        raise ArgumentError(
            f"--shards needs a folder for the stores of the shards, got {where.partition(':')[0]}://…"
        )
    folder = Path(where)
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(
            f"--shards needs a folder for the stores of the shards, and {where} is a file; a service without "
            "shards can serve it"
        )
    for present in sorted(folder.glob("shard-*.db")):
        made_for = _mark_of(str(present))
        if made_for is not None and made_for.shards != shards:
            count = made_for.shards
            raise ArgumentError(
                f"{where} has the stores of {count} shards: say --shards {count}, or choose another folder"
            )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return [str(folder / f"shard-{shard}.db") for shard in range(shards)]


def _mark_of(path: str) -> Placement | None:
    """Return which shard a file holds; None if it has only keys yet."""
    store = open_store(path)
    store.open(lock=False)
    try:
        return read_mark(store)
    finally:
        store.close()
