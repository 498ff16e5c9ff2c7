"""Jester: ratings of jokes, and the jokes (Goldberg et al. 2001)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coterie.datasets.csvtable import text_columns
from coterie.datasets.dataset import Dataset, Ids
from coterie.datasets.event_table import Events, EventSource, events_of
from coterie.datasets.item_vectors import from_texts
from coterie.datasets.lines import Delimited, FieldFormat, LineBlock, read
from coterie.datasets.prepare import prepare_file
from coterie.datasets.request import Request, Source
from coterie.datasets.sources import About, beside, digest, find_file, opened
from coterie.errors import DataError
from coterie.types import Floats

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

SPAN = (-10.0, 10.0)
TEXTS = "jokes.csv"

ABOUT = About(
    name="jester",
    summary="ratings of 100 jokes from −10 to 10, and the jokes (Jester 5k)",
    feedback="1 if the rating is above 0",
    files=("ratings.csv",),
    archive="jester5k.zip",
    url="https://eigentaste.berkeley.edu/dataset/",
    licence="research use, cite Goldberg, Roeder, Gupta and Perkins (2001, doi 10.1023/A:1011419012209)",
    first_line="user,joke,rating",
)

RATING_FIELDS = Delimited(
    ",", (FieldFormat("user"), FieldFormat("joke"), FieldFormat("rating", span=SPAN)), has_header=True
)


def make(request: Request) -> Dataset:
    """Jokes as items, feedback 1 if the rating is above 0."""
    return prepare_file(ABOUT, request, lambda path: _liked(_rows(path)))


def events(place: Source) -> Events:
    """Every rating; there are no times."""
    path = find_file(ABOUT, place)
    return events_of(EventSource(ABOUT.name, path.name, digest(path)), _rows(path), span=SPAN)


def text_vectors(place: Source, jokes: Ids, dim: int) -> tuple[Floats, str]:
    """Vectors of these jokes made of their words, and a hash of the file of jokes."""
    about, path = beside(ABOUT, find_file(ABOUT, place), TEXTS)
    with opened(about, path) as stream:
        found = text_columns(stream, ("joke", "text"))
    texts = dict(zip(found["joke"], found["text"], strict=True))
    for joke in jokes.tolist():
        if str(joke) not in texts:
            raise DataError(f"{TEXTS} has no text of the joke {joke}")
    return from_texts([texts[str(joke)] for joke in jokes.tolist()], dim), digest(path)


def _rows(path: Path) -> pl.DataFrame:
    with opened(ABOUT, path) as stream:
        return read(stream, _parse)


def _parse(block: LineBlock) -> pl.DataFrame:
    return RATING_FIELDS.parse(block).select(user="user", item="joke", value="rating")


def _liked(rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return rows.select("user", "item", liked=pl.col("value") > 0)
