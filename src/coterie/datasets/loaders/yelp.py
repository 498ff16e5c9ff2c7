"""The reviews of the Yelp Open Dataset."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from coterie.datasets.dataset import Dataset
from coterie.datasets.event_table import Events, EventSource, events_of
from coterie.datasets.lines import MOST_STARS, LineBlock, read
from coterie.datasets.prepare import liked_rows, prepare_file
from coterie.datasets.request import Request, Source
from coterie.datasets.sources import About, digest, find_file, opened
from coterie.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

ABOUT = About(
    name="yelp",
    summary="stars that reviewers gave to businesses (Yelp Open Dataset)",
    feedback="1 if the review has more than 3 stars",
    files=("yelp_academic_dataset_review.json",),
    archive="yelp_dataset.tar",
    url="https://business.yelp.com/data/resources/open-dataset/",
    licence=(
        "academic or other non-commercial use only, under Yelp's dataset terms, which are to be accepted "
        "on that page; no redistribution"
    ),
)


def make(request: Request) -> Dataset:
    """Businesses as items, feedback 1 if the stars are above 3   (Sec. 6.2)."""
    return prepare_file(ABOUT, request, lambda path: liked_rows(_rows(path)))


def events(place: Source) -> Events:
    """The stars of every review with its date."""
    path = find_file(ABOUT, place)
    source, rows = EventSource(ABOUT.name, path.name, digest(path)), _rows(path)
    return events_of(source, rows.with_columns(time=_times(rows)), span=(1.0, MOST_STARS))


def _times(rows: pl.DataFrame) -> pl.Series:
    """The dates as seconds; a review without one is refused."""
    import polars as pl

    dates = rows.get_column("date").str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
    if dates.has_nulls():
        wrong = rows.get_column("date")[int(dates.is_null().arg_true()[0])]
        raise DataError(f"a review has the date {wrong!r}, expected one such as '2018-07-07 22:09:11'")
    return dates.dt.epoch("s").cast(pl.Float64)


def _rows(path: Path) -> pl.DataFrame:
    with opened(ABOUT, path) as stream:
        return read(stream, _parse)


def _parse(block: LineBlock) -> pl.DataFrame:
    """Ids, stars and date of each review; the text, nine tenths of the file, is dropped at once."""
    import polars as pl

    users, items, stars, dates = [], [], [], []
    for number, line in block.numbered():
        try:
            review = json.loads(line)
            user, item, given = review["user_id"], review["business_id"], review["stars"]
            right = isinstance(user, str) and isinstance(item, str) and 0.0 <= given <= MOST_STARS
        except (ValueError, KeyError, TypeError, RecursionError):
            right = False
        if not right:
            raise block.malformed(number, _fault(line))
        users.append(user)
        items.append(item)
        stars.append(float(given))
        dates.append(str(review.get("date")))
    return pl.DataFrame(
        {"user": users, "item": items, "value": stars, "date": dates},
        schema={"user": pl.String, "item": pl.String, "value": pl.Float64, "date": pl.String},
    )


def _fault(line: bytes) -> str:
    """The fault of a line that is not a review."""
    try:
        review = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not a JSON object ({error})"
    if not isinstance(review, dict):
        return f"expected a JSON object, got {type(review).__name__}"
    for name in ("user_id", "business_id"):
        if not isinstance(review.get(name), str):
            return f"{name} must be a string, got {review.get(name)!r}"
    return f"stars must be a number from 0 to 5, got {review.get('stars')!r}"
