"""`coterie store`: maintenance of the store of a service that does not run."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from coterie.cli.keys import StoreOption, opened
from coterie.cli.options import CommandWithExamples, GroupWithExamples, examples, show_help
from coterie.cli.output import print_note

COMPACT = examples(
    ("shorten what is older than 30 days", "coterie store compact"),
    ("shorten all decisions that have their reward", "coterie store compact --older-than 0"),
)
app = typer.Typer(
    cls=GroupWithExamples,
    invoke_without_command=True,
    help="The store of a service: compact its log.",
    epilog=COMPACT,
)


@app.callback()
def store(ctx: typer.Context) -> None:
    """The store of a service: compact its log."""
    show_help(ctx)


@app.command(cls=CommandWithExamples, epilog=COMPACT)
def compact(
    older_than: Annotated[
        float, typer.Option(min=0, help="Shorten decisions older than this many days.")
    ] = 30.0,
    store: StoreOption = None,
) -> None:
    """Shorten old decisions that have their reward; stop the service first.

    Decisions, rewards and removals of users go on exactly as before. Shortened decisions are not exported.
    """
    from coterie.service.storage.compaction import compact as compact_store

    with opened(store, lock=True) as found:
        done = compact_store(found, time.time() - older_than * 86_400)
    print_note(f"shortened {done.decisions:,} decisions, by {done.saved / 2**20:,.1f} MB in all")
