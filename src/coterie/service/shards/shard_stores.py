"""Where the stores of all shards are: files of a folder."""

from __future__ import annotations

from pathlib import Path

from coterie.errors import ArgumentError
from coterie.service.storage.location import SCHEME

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
    present = sorted(folder.glob("shard-*.db"))
    if present and len(present) != shards:
        raise ArgumentError(
            f"{where} has the stores of {len(present)} shards: say --shards {len(present)}, or choose "
            "another folder"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return [str(folder / f"shard-{shard}.db") for shard in range(shards)]
