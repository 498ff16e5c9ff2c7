"""`coterie data`: list datasets, describe one, prepare their vectors."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.exit_codes import MISSING
from coterie.cli.options import (
    CommandWithExamples,
    GroupWithExamples,
    Json,
    complete_dataset,
    complete_scale,
    examples,
    show_help,
    whole_number,
)
from coterie.cli.output import console, print_note, print_table, write_json
from coterie.errors import ArgumentError, MissingData

if TYPE_CHECKING:
    from coterie.datasets import About

Folder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="PATH",
        help="File, archive or folder of data files ($COTERIE_DATA).",
    ),
]
Name = Annotated[
    str, typer.Argument(help="A dataset, see `coterie data list`.", autocompletion=complete_dataset)
]
Dim = Annotated[int, typer.Option(parser=whole_number, metavar="N", help="Dimension of the vectors.")]
Users = Annotated[
    int,
    typer.Option(parser=whole_number, metavar="N", help="Keep this many users, those with the most rows."),
]
Items = Annotated[
    int,
    typer.Option(parser=whole_number, metavar="N", help="Keep this many items, those with the most rows."),
]
Scale = Annotated[
    str,
    typer.Option(
        help="Scaling of the vectors: unit (length 1), raw (as computed) or sqrt-s (times the roots of the "
        "singular values).",
        autocompletion=complete_scale,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="OURS=YOURS,...",
        help="Columns of your own table, if not called user and item; value=YOURS names a third.",
    ),
]
Missing = Annotated[
    str | None, typer.Option(help="Rows of your own table that lack a value: refuse or drop (refuse).")
]
Separator = Annotated[str | None, typer.Option(help="Separator of the columns of your own table (detected).")]
Encoding = Annotated[str | None, typer.Option(help="The encoding of your own table (utf-8).")]
Threshold = Annotated[
    float | None,
    typer.Option(help="Values of your own table above this are positive feedback (1), others 0."),
]

app = typer.Typer(
    cls=GroupWithExamples,
    invoke_without_command=True,
    rich_markup_mode=None,
    help="List, describe and prepare datasets.",
    epilog=examples(
        ("all datasets, and where their files are", "coterie data list"),
        ("one of them, and where to get it", "coterie data describe lastfm"),
    ),
)


@app.callback()
def root(ctx: typer.Context) -> None:
    """List, describe and prepare datasets."""
    show_help(ctx)


@app.command(
    "list",
    cls=CommandWithExamples,
    epilog=examples(
        ("all datasets", "coterie data list"),
        ("which of them are in a folder", "coterie data list --data ~/downloads"),
    ),
)
def list_all(data: Folder = None, as_json: Json = False) -> None:
    """List the datasets, and whether their files were found."""
    from coterie import datasets

    abouts = [datasets.about(name) for name in datasets.names()]
    states = [_state(about, data) for about in abouts]
    if as_json:
        pairs = zip(abouts, states, strict=True)
        write_json(
            [{**asdict(about), "ready": state.startswith("ready"), "state": state} for about, state in pairs]
        )
        return
    rows = [(f"[bold]{a.name}[/bold]", a.summary, state) for a, state in zip(abouts, states, strict=True)]
    print_table(("dataset", "what it is", "state"), rows, prose=("what it is", "state"))
    console().print("[dim]`coterie data describe NAME` shows where to download it, and its licence.[/dim]")


@app.command(
    cls=CommandWithExamples,
    epilog=examples(
        ("what it is and where to get it", "coterie data describe lastfm"),
        ("the vectors made from a file", "coterie data describe movielens --data ml-25m.zip"),
        (
            "your own table",
            "coterie data describe interactions --data clicks.csv --columns user=who,item=what",
        ),
    ),
)
def describe(
    name: Name,
    data: Folder = None,
    dim: Dim = 50,
    users: Users = 200,
    items: Items = 5000,
    scale: Scale = "unit",
    columns: Columns = None,
    threshold: Threshold = None,
    missing: Missing = None,
    separator: Separator = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Describe a dataset, and the vectors made from its file.

    Without a file, the description says where to download one.
    """
    from coterie import datasets

    about = datasets.about(name)
    found = data is not None or _state(about, None).startswith("ready")
    size: dict[str, Any] = {"dim": dim, "n_users": users, "n_items": items, "scale": scale}
    table = table_options(columns, threshold, missing, separator, encoding)
    dataset = datasets.load(name, data, **size, **table) if found else None
    if as_json:
        made = None if dataset is None else asdict(dataset.provenance)
        write_json({**asdict(about), "provenance": made})
        return
    for title, text in _facts(about):
        print(f"{title:<12}{text}")
    print()
    print(dataset.provenance.describe() if dataset is not None else _absent(about))


@app.command(
    cls=CommandWithExamples,
    epilog=examples(
        ("read the files once, so that later runs start quickly", "coterie data prepare movielens lastfm"),
        ("from a folder of downloads", "coterie data prepare movielens lastfm yelp --data ~/downloads"),
    ),
)
def prepare(
    names: Annotated[
        list[str],
        typer.Argument(help="One or more datasets.", metavar="NAME", autocompletion=complete_dataset),
    ],
    data: Folder = None,
    dim: Dim = 50,
    users: Users = 200,
    items: Items = 5000,
    scale: Scale = "unit",
    columns: Columns = None,
    threshold: Threshold = None,
    missing: Missing = None,
    separator: Separator = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Make the vectors of datasets and cache them.

    Later commands with the same parameters read them from the cache.
    """
    from coterie import datasets
    from coterie.datasets import cache

    for name in names:
        datasets.about(name)
    size: dict[str, Any] = {"dim": dim, "n_users": users, "n_items": items, "scale": scale}
    table = table_options(columns, threshold, missing, separator, encoding)
    made, absent = [], []
    for name in names:
        try:
            made.append(datasets.load(name, data, **size, **table))
        except MissingData as error:
            absent.append(name)
            print_note(f"coterie: {error}")
    if as_json:
        write_json({"made": [asdict(one.provenance) for one in made], "missing": absent})
    else:
        for one in made:
            print(one.provenance.describe())
        print(f"kept in {cache.folder()}" if made else "nothing was made")
    if absent:
        raise typer.Exit(MISSING)


def table_options(
    columns: str | None,
    threshold: float | None,
    missing: str | None,
    separator: str | None,
    encoding: str | None,
) -> dict[str, Any]:
    """The arguments of `coterie.datasets.load` for your own table, those that were given."""
    from coterie.cli.config import column_pairs, ordered_columns

    names = None if columns is None else ordered_columns(column_pairs(columns), None)
    given = {
        "columns": names,
        "threshold": threshold,
        "missing": missing,
        "separator": separator,
        "encoding": encoding,
    }
    return {name: value for name, value in given.items() if value is not None}


def _state(about: About, data: Path | None) -> str:
    """Ready, or what is missing."""
    from coterie.datasets import sources

    if about.name == "synthetic":
        return "ready: drawn at random"
    if not about.files:
        return "needs --data with your own table"
    try:
        return f"ready: {sources.find_file(about, data)}"
    except MissingData:
        return f"missing: {about.archive}"
    except ArgumentError as error:
        return str(error)


def _facts(about: About) -> list[tuple[str, Any]]:
    facts = [("what", about.summary), ("feedback", about.feedback)]
    if about.files:
        facts += [("files", about.wanted()), ("archive", about.archive), ("from", about.url)]
        facts += [("licence", about.licence)]
    return facts


def _absent(about: About) -> str:
    if about.files:
        return "No file was found: give one with --data, or name its folder in $COTERIE_DATA."
    return "Give your table with --data, its columns with --columns and perhaps --threshold."
