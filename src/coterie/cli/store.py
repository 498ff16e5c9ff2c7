"""`coterie store`: copies of a service's store, and maintenance while the service does not run."""

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
COPY = examples(
    ("a backup, while the service runs", "coterie store copy coterie.db backup.db"),
    ("restore it, after the service was stopped", "coterie store copy backup.db restored.db"),
    ("move to PostgreSQL", "coterie store copy coterie.db postgresql://user:password@host/database"),
    ("and back", "coterie store copy postgresql://user:password@host/database coterie.db"),
)
app = typer.Typer(
    cls=GroupWithExamples,
    invoke_without_command=True,
    help="The store of a service: copy it, compact its log.",
    epilog=examples(
        ("a backup, while the service runs", "coterie store copy coterie.db backup.db"),
        ("shorten what is older than 30 days", "coterie store compact"),
    ),
)


@app.callback()
def store(ctx: typer.Context) -> None:
    """The store of a service: copy it, compact its log."""
    show_help(ctx)


@app.command(cls=CommandWithExamples, epilog=COPY)
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The store to copy: a file or a URL.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="A new or an empty store: a file or a URL.")],
) -> None:
    """Copy a store, also from SQLite to PostgreSQL and back; a service may use it meanwhile.

    The copy has everything that was committed at one moment: policies, decisions that wait, keys and
    experiments. It is complete, or TO stays empty. What is acknowledged later is in FROM alone, so stop the
    service before you move.
    """
    from coterie.cli.progress_bars import event_progress
    from coterie.service.storage.location import open_store
    from coterie.service.storage.store_copy import copy_store, count_rows

    open_store(source).check_exists()
    open_store(target)  # a URL of another kind is refused before anything is opened
    with opened(source) as old, opened(target, lock=True) as new:
        with event_progress("copying", count_rows(old)) as advance:
            done = copy_store(old, new, advance=advance)
    print_note(f"copied {done.events:,} events and {done.chunks:,} chunks of snapshots")


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
