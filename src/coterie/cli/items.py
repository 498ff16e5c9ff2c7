"""`coterie items`: the catalogue of a running service."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.exit_codes import saying_what_is_kept
from coterie.cli.options import CommandWithExamples, GroupWithExamples, Json, examples, show_help
from coterie.cli.output import print_note, write_json

if TYPE_CHECKING:
    from coterie.service.client import Client

URL = "http://127.0.0.1:8000"
UrlOption = Annotated[
    str | None, typer.Option("--url", metavar="URL", help=f"Where the service is ($COTERIE_URL, {URL}).")
]
PolicyOption = Annotated[str, typer.Option("--policy", metavar="NAME", help="The policy.")]
KeyOption = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="A key with the role writer ($COTERIE_KEY).")
]
PUT_ITEMS = examples(
    ("a table with columns id and x, or id and numbers", "coterie items put items.parquet"),
    ("an array, with the id of each row in a file", "coterie items put vectors.npy --ids ids.txt"),
    ("the whole catalogue anew", "coterie items put items.csv --replace --policy shop"),
)
LIST_ITEMS = examples(("how many items there are, and the first of them", "coterie items list --limit 20"))
REMOVE_ITEMS = examples(("two items", "coterie items remove tea coffee"))
app = typer.Typer(
    cls=GroupWithExamples,
    invoke_without_command=True,
    help="Items of a running service: put, list, remove.",
    epilog=examples(
        ("put a file of any size", "coterie items put items.parquet"),
        ("remove an item", "coterie items remove tea"),
    ),
)


@app.callback()
def items(ctx: typer.Context) -> None:
    """Items of a running service: put, list, remove."""
    show_help(ctx)


@contextmanager
def connected(url: str | None, policy: str, key: str | None) -> Iterator[Client]:
    """Talk to a service."""
    from coterie.extras import need

    need("starlette", "the service")
    from coterie.service.client import Client

    where = url or os.environ.get("COTERIE_URL") or URL
    with Client(where, policy, key=key or os.environ.get("COTERIE_KEY"), timeout=60.0) as client:
        yield client


@app.command(cls=CommandWithExamples, epilog=PUT_ITEMS)
def put(
    file: Annotated[
        Path,
        typer.Argument(help="A .parquet or .csv table (id, x or numbers, perhaps tags), or a .npy array."),
    ],
    ids: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ids of the rows of an array: .npy, or a text with a line each."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Remove all other items at the end.")] = False,
    policy: PolicyOption = "default",
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Put items of a file into the catalogue, or change those that are there.

    The file is checked as a whole before anything is sent. Items are put in batches, in the order of the
    file; Ctrl-C leaves those of the batches before, and putting the same file again is safe.
    """
    from coterie.cli.progress_bars import event_progress
    from coterie.service.item_tables import read_items
    from coterie.validation import counted

    table = read_items(file, ids=ids)
    done = 0

    def kept() -> str:
        return f"{done:,} of {counted(len(table), 'item')} of {file.name} were put, the first ones"

    with connected(url, policy, key) as client, event_progress("putting items", len(table)) as advance:

        def progress(put: int, _: int) -> None:
            nonlocal done
            advance(put - done)
            done = put

        with saying_what_is_kept(kept):
            count = client.put_items(table, replace_all=replace, progress=progress)
    print_note(f"{counted(len(table), 'item')} of {file.name} put; the catalogue has {count:,}")


@app.command("list", cls=CommandWithExamples, epilog=LIST_ITEMS)
def list_(
    limit: Annotated[int, typer.Option(metavar="N", help="How many ids to print.", min=0)] = 1_000,
    policy: PolicyOption = "default",
    url: UrlOption = None,
    key: KeyOption = None,
    as_json: Json = False,
) -> None:
    """Print ids of the catalogue, one a line."""
    with connected(url, policy, key) as client:
        found = client.list_items()
    if as_json:
        write_json({"count": len(found), "ids": found[:limit]})
        return
    for one in found[:limit]:
        print(one)
    if len(found) > limit:
        print_note(f"{len(found) - limit:,} more; --limit prints more")


@app.command(cls=CommandWithExamples, epilog=REMOVE_ITEMS)
def remove(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the catalogue.")],
    policy: PolicyOption = "default",
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Remove items from the catalogue; decisions that chose them still take their rewards."""
    with connected(url, policy, key) as client:
        count = client.remove_items(ids)
    print_note(f"removed; the catalogue has {count:,}")
