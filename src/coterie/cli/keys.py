"""`coterie keys`: who may use a service, and for what."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import CommandWithExamples, GroupWithExamples, Json, examples, show_help
from coterie.cli.output import print_note, print_table, write_json
from coterie.errors import ArgumentError

if TYPE_CHECKING:
    from coterie.service.storage.event_store import EventStore

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="FILE|URL", help="The store of the service ($COTERIE_STORE, coterie.db)."
    ),
]
CREATE = examples(
    ("a key for a product, which decides and gives rewards", "coterie keys create writer --label shop"),
    ("a key for everything with one policy", "coterie keys create admin --policy default"),
)
LIST = examples(("all keys, without their secrets", "coterie keys list"))
REVOKE = examples(("revoke a key", "coterie keys revoke 1f2e3d4c"))
app = typer.Typer(
    cls=GroupWithExamples,
    invoke_without_command=True,
    help="Keys of a service: make, list, revoke.",
    epilog=examples(("a first key", "coterie keys create admin"), ("all keys", "coterie keys list")),
)


@app.callback()
def keys(ctx: typer.Context) -> None:
    """Keys of a service: make, list, revoke."""
    show_help(ctx)


@contextmanager
def opened(store: str | None, *, lock: bool = False) -> Iterator[EventStore]:
    """Open the store of a service, which may be running unless `lock` is set.

    Of the stores of several shards, in a folder, it is the first: the other shards take keys from there.
    """
    from coterie.service.storage.location import open_store

    where = store or os.environ.get("COTERIE_STORE") or "coterie.db"
    if Path(where).is_dir():
        if lock:
            raise ArgumentError(f"{where} is a folder: name the file of one shard in it, and then the others")
        where = str(Path(where, "shard-0.db"))
    found = open_store(where)
    found.open(lock=lock)
    try:
        yield found
    finally:
        found.close()


@app.command(cls=CommandWithExamples, epilog=CREATE)
def create(
    role: Annotated[str, typer.Argument(help="reader: read; writer: decide and reward; admin: everything.")],
    policy: Annotated[str | None, typer.Option(help="Only for this policy.")] = None,
    label: Annotated[str, typer.Option(help="What the key is for.")] = "",
    store: StoreOption = None,
) -> None:
    """Make a key and print it, once: only a digest is stored."""
    from coterie.service.http.api_keys import create_key

    with opened(store) as found:
        print(create_key(found, role, policy=policy, label=label))
    print_note("this is the only time that the key is shown")


@app.command("list", cls=CommandWithExamples, epilog=LIST)
def list_(store: StoreOption = None, as_json: Json = False) -> None:
    """List keys: their ids, roles, policies and labels."""
    from coterie.service.http.api_keys import list_keys

    with opened(store) as found:
        listed = list_keys(found)
    if as_json:
        write_json(
            [{name: value for name, value in key._asdict().items() if name != "digest"} for key in listed]
        )
        return
    rows = [
        (
            key.id,
            key.role,
            key.policy or "all",
            key.label,
            f"{datetime.fromtimestamp(key.created, UTC):%Y-%m-%d}",
        )
        for key in listed
    ]
    print_table(("id", "role", "policy", "label", "made"), rows, left=("role", "policy", "label", "made"))


@app.command(cls=CommandWithExamples, epilog=REVOKE)
def revoke(
    key_id: Annotated[str, typer.Argument(help="The id, as `coterie keys list` shows it.")],
    store: StoreOption = None,
) -> None:
    """Revoke a key; a running service notices within two seconds."""
    from coterie.service.http.api_keys import list_keys, revoke_key

    with opened(store) as found:
        revoke_key(found, key_id)
        left = len(list_keys(found))
    print_note(f"key {key_id} is revoked")
    if not left:
        print_note("it was the last one: without --insecure, every request is refused until you make another")
