"""Last.fm, as released for HetRec 2011."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coterie.datasets.dataset import Dataset
from coterie.datasets.delimited import Delimited, FieldFormat
from coterie.datasets.description import About
from coterie.datasets.events import Events, EventSource, events_of
from coterie.datasets.lines import LineBlock, read
from coterie.datasets.prepare import prepare_file
from coterie.datasets.request import Request, Source
from coterie.datasets.sources import digest, find_file, opened
from coterie.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

ABOUT = About(
    name="lastfm",
    summary="tags that listeners gave to artists (HetRec 2011, Last.fm)",
    feedback="1 if the user tagged the artist",
    files=("user_taggedartists.dat",),
    archive="hetrec2011-lastfm-2k.zip",
    url="https://grouplens.org/datasets/hetrec-2011/",
    licence="non-commercial use only, cite the Last.fm website and the HetRec 2011 workshop",
)

FORMAT = Delimited(
    "\t",
    tuple(FieldFormat(name) for name in ("userID", "artistID", "tagID", "day", "month", "year")),
    has_header=True,
)


def make(request: Request) -> Dataset:
    """Artists as items, feedback 1 if the user assigns a tag to the artist   (Sec. 6.2)."""
    return prepare_file(ABOUT, request, _rows)


def events(place: Source) -> Events:
    """Every day on which a user tagged an artist, however many tags were given."""
    import polars as pl

    path = find_file(ABOUT, place)
    with opened(ABOUT, path) as stream:
        tagged = read(stream, FORMAT.parse)
    days = tagged.select(
        pl.col("userID").alias("user"),
        pl.col("artistID").alias("item"),
        pl.date("year", "month", "day").dt.epoch("d").cast(pl.Float64).alias("time"),
    )
    if days.get_column("time").has_nulls():
        raise DataError(f"{path.name} has a row whose day, month and year are no date")
    return events_of(EventSource(ABOUT.name, path.name, digest(path)), days.unique(maintain_order=True))


def _rows(path: Path) -> pl.DataFrame:
    with opened(ABOUT, path) as stream:
        return read(stream, _parse)


def _parse(block: LineBlock) -> pl.DataFrame:
    import polars as pl

    return FORMAT.parse(block).select(user="userID", item="artistID", liked=pl.lit(True))
