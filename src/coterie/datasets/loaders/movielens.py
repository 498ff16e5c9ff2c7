"""Any release of MovieLens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING

from coterie.datasets.dataset import Dataset
from coterie.datasets.event_table import Events, EventSource, events_of
from coterie.datasets.lines import MOST_STARS, Delimited, FieldFormat, LineBlock, read
from coterie.datasets.prepare import liked_rows, prepare_file
from coterie.datasets.request import Request, Source
from coterie.datasets.sources import About, digest, find_file, opened
from coterie.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

SPAN = (0.5, 5.0)

ABOUT = About(
    name="movielens",
    summary="ratings of films, any release: 25M, latest, latest-small, 20M, 10M, 1M, 100K",
    feedback="1 if the rating is above 3",
    files=("ratings.csv", "ratings.dat", "u.data"),
    archive="ml-25m.zip",
    url="https://grouplens.org/datasets/movielens/25m/",
    licence=(
        "research use only, cite Harper and Konstan (2015, doi 10.1145/2827872), no commercial use and no "
        "redistribution without permission from GroupLens, no claim of their endorsement"
    ),
    first_line=r"userId,movieId,|\d+::\d{1,6}::|\d+\t",
)

_NAMES = (
    FieldFormat("userId"),
    FieldFormat("movieId"),
    FieldFormat("rating", span=(0.0, MOST_STARS)),
    FieldFormat("timestamp"),
)
RELEASE_FIELDS: Mapping[str, Delimited] = MappingProxyType(
    {
        ".csv": Delimited(",", _NAMES, has_header=True),  # 20M, 25M, 32M, latest, latest-small
        ".dat": Delimited("::", _NAMES, has_header=False),  # 1M, 10M
        ".data": Delimited("\t", _NAMES, has_header=False),  # 100K
    }
)


def make(request: Request) -> Dataset:
    """Films as items, feedback 1 if the rating is above 3   (Sec. 6.2)."""
    return prepare_file(ABOUT, request, lambda path: liked_rows(_rows(path)))


def events(place: Source) -> Events:
    """Every rating with its time."""
    path = find_file(ABOUT, place)
    return events_of(EventSource(ABOUT.name, path.name, digest(path)), _rows(path), span=SPAN)


def _rows(path: Path) -> pl.DataFrame:
    with opened(ABOUT, path) as stream:
        layout = RELEASE_FIELDS.get(PurePath(stream.name).suffix.lower())
        if layout is None:
            raise ArgumentError(f"'movielens' reads {ABOUT.wanted()} or the original zip, got {path.name!r}")
        return read(stream, lambda block: _parse(layout, block))


def _parse(layout: Delimited, block: LineBlock) -> pl.DataFrame:
    return layout.parse(block).select(user="userId", item="movieId", value="rating", time="timestamp")
