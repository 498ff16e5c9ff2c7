"""MovieTweetings: ratings of films that users posted on Twitter, with their times (Dooms et al. 2013)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coterie.datasets.dataset import Dataset, Ids
from coterie.datasets.event_table import Events, EventSource, events_of
from coterie.datasets.item_vectors import from_texts
from coterie.datasets.lines import Delimited, FieldFormat, LineBlock, blocks, read
from coterie.datasets.prepare import prepare_file
from coterie.datasets.request import Request, Source
from coterie.datasets.sources import About, beside, digest, find_file, opened
from coterie.errors import DataError
from coterie.types import Floats

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

SPAN = (0.0, 10.0)
FILMS = "movies.dat"
LIKED_ABOVE = 6.0
"""A rating above it is feedback 1: the same share of the scale as 3 of 5 stars."""

ABOUT = About(
    name="movietweetings",
    summary="ratings of films from 0 to 10 in the order of time (MovieTweetings, any snapshot)",
    feedback="1 if the rating is above 6",
    files=("ratings.dat",),
    archive="MovieTweetings",
    url="https://github.com/sidooms/MovieTweetings",
    licence="research use, cite Dooms, De Pessemier and Martens (2013, CrowdRec at RecSys)",
    first_line=r"\d+::\d{7,}::",
)

RATING_FIELDS = Delimited(
    "::",
    (
        FieldFormat("user_id"),
        FieldFormat("movie_id"),
        FieldFormat("rating", span=SPAN),
        FieldFormat("rating_timestamp"),
    ),
    has_header=False,
)


def make(request: Request) -> Dataset:
    """Films as items, feedback 1 if the rating is above 6."""
    return prepare_file(ABOUT, request, lambda path: _liked(_rows(path)))


def events(place: Source) -> Events:
    """Every rating with its time."""
    path = find_file(ABOUT, place)
    return events_of(EventSource(ABOUT.name, path.name, digest(path)), _rows(path), span=SPAN)


def text_vectors(place: Source, films: Ids, dim: int) -> tuple[Floats, str]:
    """Vectors of these films made of the words of titles and genres, and a hash of the file."""
    about, path = beside(ABOUT, find_file(ABOUT, place), FILMS)
    texts: dict[int, str] = {}
    with opened(about, path) as stream:
        for block in blocks(stream):
            for number, line in block.numbered():
                film, *words = line.decode("utf-8", errors="replace").split("::")
                if not film.isdecimal() or not words:
                    raise block.malformed(
                        number, "expected a film's number, '::', its title, '::', its genres"
                    )
                texts[int(film)] = " ".join(words)
    for one in films.tolist():
        if one not in texts:
            raise DataError(f"{FILMS} has no title of the film {one:07d}")
    return from_texts([texts[one] for one in films.tolist()], dim), digest(path)


def _rows(path: Path) -> pl.DataFrame:
    with opened(ABOUT, path) as stream:
        return read(stream, _parse)


def _parse(block: LineBlock) -> pl.DataFrame:
    return RATING_FIELDS.parse(block).select(
        user="user_id", item="movie_id", value="rating", time="rating_timestamp"
    )


def _liked(rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return rows.select("user", "item", liked=pl.col("value") > LIKED_ABOVE)
