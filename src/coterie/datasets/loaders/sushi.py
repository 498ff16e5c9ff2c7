"""Sushi: complete orders of ten kinds of sushi, in a file of PrefLib (Kamishima 2003)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coterie.datasets.dataset import Dataset
from coterie.datasets.event_table import Events, EventSource, events_of
from coterie.datasets.lines import LineBlock, read
from coterie.datasets.prepare import prepare_file
from coterie.datasets.request import Request, Source
from coterie.datasets.sources import About, digest, find_file, opened

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

ABOUT = About(
    name="sushi",
    summary="orders of 10 kinds of sushi by 5,000 people (PrefLib 00014: .soc, or .soi for 10 of 100 kinds)",
    feedback="1 if the sushi is in the better half of the person's order",
    files=("00014-00000001.soc", "00014-00000002.soi"),
    archive="00014 - sushi",
    url="https://github.com/PrefLib/PrefLib-Data",
    licence="research use, no redistribution, cite Kamishima (2003, KDD)",
)


def make(request: Request) -> Dataset:
    """Kinds of sushi as items, feedback 1 if it is in the better half of the person's order."""
    return prepare_file(ABOUT, request, lambda path: _liked(_rows(path)))


def events(place: Source) -> Events:
    """The place of every sushi in every order: 1 for the best, 0 for the worst; there are no times."""
    path = find_file(ABOUT, place)
    return events_of(EventSource(ABOUT.name, path.name, digest(path)), _rows(path), span=(0.0, 1.0))


def _rows(path: Path) -> pl.DataFrame:
    """A row for each person and sushi; persons are numbered from 0 in the order of the file."""
    with opened(ABOUT, path) as stream:
        orders = read(stream, _parse)
    first = orders["people"].cum_sum() - orders["people"]
    orders = orders.with_columns(first=first).explode("item", "value")
    repeated = np.repeat(np.arange(orders.height), orders["people"].to_numpy())
    rank = np.arange(len(repeated)) - np.searchsorted(repeated, repeated)
    everyone = orders[repeated]
    return everyone.select(user=everyone["first"] + rank, item="item", value="value")


def _parse(block: LineBlock) -> pl.DataFrame:
    """The orders of a block: how many people have each, its items and their values."""
    import polars as pl

    people, items, values = [], [], []
    for number, line in block.numbered():
        if line.startswith(b"#"):
            continue
        count, colon, order = line.decode("utf-8", errors="replace").partition(":")
        found = [item.strip() for item in order.split(",")]
        if not colon or not count.strip().isdecimal() or not all(item.isdecimal() for item in found):
            raise block.malformed(number, "expected a strict order such as '3: 7,4,5'")
        if len(found) < 2 or len(set(found)) != len(found):
            raise block.malformed(number, "an order must have two different items or more")
        people.append(int(count))
        items.append([int(item) for item in found])
        values.append([1.0 - place / (len(found) - 1) for place in range(len(found))])
    return pl.DataFrame(
        {"people": people, "item": items, "value": values},
        schema={"people": pl.Int64, "item": pl.List(pl.Int64), "value": pl.List(pl.Float64)},
    )


def _liked(rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return rows.select("user", "item", liked=pl.col("value") > 0.5)
