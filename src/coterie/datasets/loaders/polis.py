"""Polis: votes on the comments of a conversation, and the opinion groups that Polis reported."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coterie.datasets.csvtable import opened_csv, text_columns
from coterie.datasets.dataset import Dataset, Ids
from coterie.datasets.event_table import Events, EventSource, events_of
from coterie.datasets.item_vectors import from_texts
from coterie.datasets.lines import WHOLE
from coterie.datasets.prepare import Material, prepare
from coterie.datasets.request import Request, Source
from coterie.datasets.sources import About, beside, digest, find_file, opened
from coterie.errors import DataError
from coterie.extras import need
from coterie.types import Floats, Ints

if TYPE_CHECKING:
    import polars as pl

VOTES, COMMENTS, PARTICIPANTS = "votes.csv", "comments.csv", "participants-votes.csv"
SPAN = (-1.0, 1.0)

ABOUT = About(
    name="polis",
    summary="votes of agreement on comments, one or more conversations (Polis open data)",
    feedback="1 if the participant agreed with the comment",
    files=(VOTES,),
    archive="openData",
    url="https://github.com/compdemocracy/openData",
    licence="CC BY 4.0, attribution to The Computational Democracy Project with links to the conversations",
    is_collection=True,
)


def make(request: Request) -> Dataset:
    """Comments as items, feedback 1 if the participant agreed in the last vote on it."""
    request.refuse_table_options(ABOUT.name)
    folders = conversations(request.path)
    material = Material(ABOUT.name, ABOUT.feedback, _title(folders), _digest(folders, VOTES))
    return prepare(material, request, lambda: _liked(folders))


def events(place: Source) -> Events:
    """Every vote with its time: 1 agrees, −1 disagrees, 0 passes."""
    folders = conversations(place)
    source = EventSource(ABOUT.name, _title(folders), _digest(folders, VOTES))
    return events_of(source, _rows(folders), span=SPAN)


def text_vectors(place: Source, comments: Ids, dim: int) -> tuple[Floats, str]:
    """Vectors of these comments made of their words, and a hash of the files of comments."""
    folders = conversations(place)
    texts = dict(_column(folders, COMMENTS, "comment-id", "comment-body"))
    for comment in comments.tolist():
        if comment not in texts:
            raise DataError(f"{COMMENTS} has no text of the comment {comment}")
    return from_texts([texts[comment] for comment in comments.tolist()], dim), _digest(folders, COMMENTS)


def groups(place: Source, participants: Ids) -> tuple[Ints, str]:
    """The opinion group of each participant, numbered over all conversations, and a hash of the files.

    It is −1 where Polis put a participant in no group: those who voted on too few comments.
    """
    folders = conversations(place)
    found = dict(_column(folders, PARTICIPANTS, "participant", "group-id"))
    names = {}
    for participant in participants.tolist():
        group = found.get(participant, "")
        if group and not WHOLE.fullmatch(group):
            raise DataError(f"{PARTICIPANTS}: group-id of participant {participant} is no number: {group!r}")
        names[participant] = (str(participant).rpartition("/")[0], int(group)) if group else None
    order = {name: k for k, name in enumerate(sorted({name for name in names.values() if name is not None}))}
    numbers = [-1 if name is None else order[name] for name in names.values()]
    return np.array(numbers, np.int64), _digest(folders, PARTICIPANTS)


def conversations(place: Source) -> list[Path]:
    """The folders with votes: this one, or those in it, or those one level below."""
    found = find_file(ABOUT, place)
    if found.is_file():
        return [found.parent]
    for pattern in (VOTES, f"*/{VOTES}", f"*/*/{VOTES}"):
        if folders := sorted(path.parent for path in found.glob(pattern)):
            return folders
    raise ABOUT.missing(f"in {str(found)!r}")


def find_conversation(place: Source, name: str) -> Path:
    """The folder of the conversation of this name."""
    folders = conversations(place)
    for folder in folders:
        if folder.name == name:
            return folder
    raise ABOUT.missing(f"of the conversation {name!r} beside {', '.join(one.name for one in folders)}")


def _title(folders: list[Path]) -> str:
    """What to call the files: by the conversation, or how many there are."""
    return f"{folders[0].name}/{VOTES}" if len(folders) == 1 else f"{VOTES} of {len(folders)} conversations"


def _digest(folders: list[Path], name: str) -> str:
    """The hash of this file of every conversation, in order."""
    hashes = [digest(beside(ABOUT, folder / VOTES, name)[1]) for folder in folders]
    return hashes[0] if len(hashes) == 1 else sha256(" ".join(hashes).encode()).hexdigest()


def _column(folders: list[Path], name: str, key: str, value: str) -> Iterator[tuple[int | str, str]]:
    """A column of this file of every conversation, by the id in another one."""
    for folder in folders:
        about, path = beside(ABOUT, folder / VOTES, name)
        with opened(about, path) as stream:
            found = text_columns(stream, (key, value))
        for one, text in zip(found[key], found[value], strict=True):
            if not WHOLE.fullmatch(one):
                raise DataError(f"{path.name} of {folder.name}: {key} {one!r} is not a whole number")
            yield (int(one) if len(folders) == 1 else f"{folder.name}/{int(one)}"), text


def _rows(folders: list[Path]) -> pl.DataFrame:
    """The votes of all conversations; with several, ids are those of the files after the folder's name."""
    need("polars", "reading a table")
    import polars as pl

    tables = [_votes(folder) for folder in folders]
    if len(folders) > 1:
        tables = [
            table.with_columns(
                *(pl.format(f"{folder.name}/{{}}", pl.col(name)).alias(name) for name in ("user", "item"))
            )
            for folder, table in zip(folders, tables, strict=True)
        ]
    return pl.concat(tables)


def _votes(folder: Path) -> pl.DataFrame:
    """The votes of a conversation as (user, item, value, time)."""
    import polars as pl

    names = {"voter-id": "user", "comment-id": "item", "vote": "value", "timestamp": "time"}
    with opened_csv(folder / VOTES, ",", "utf-8") as table:
        header = table.header()
        if lacking := [name for name in names if name not in header]:
            raise DataError(f"line 1 of {table.name} of {folder.name}: no column {lacking[0]!r}")
        votes = table.read(list(names))
        if not votes.height:
            raise DataError(f"{table.name} of {folder.name} has no rows")
        for name in names:
            column = votes.get_column(name)
            numbers = column.cast(pl.Int64, strict=False)
            wrong = numbers.is_null() | (numbers.abs() > 1 if name == "vote" else numbers < 0)
            if wrong.any():
                row = int(wrong.arg_true()[0])
                kind = "-1, 0 or 1" if name == "vote" else "a whole number of at least 0"
                raise table.refuse(row, f"{name} must be {kind}, got {column[row]!r}")
    return votes.select(
        *(pl.col(name).cast(pl.Int64).alias(names[name]) for name in ("voter-id", "comment-id")),
        *(pl.col(name).cast(pl.Float64).alias(names[name]) for name in ("vote", "timestamp")),
    )


def _liked(folders: list[Path]) -> pl.DataFrame:
    """The last vote of each participant on each comment, as (user, item, liked)."""
    import polars as pl

    ordered = _rows(folders).sort("time", maintain_order=True)
    last = ordered.unique(["user", "item"], keep="last", maintain_order=True)
    return last.select("user", "item", liked=pl.col("value") > 0)
