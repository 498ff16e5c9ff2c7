"""One's own table with values and times: a data frame, a CSV or a Parquet file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from coterie.datasets.csvtable import first_line, opened_csv
from coterie.datasets.events import Events, EventSource, events_of
from coterie.datasets.interactions import (
    Table,
    check_suffix,
    flat,
    frame_columns,
    ids,
    numbers,
    refuse_first,
    refuse_missing,
)
from coterie.datasets.request import Frame, Source
from coterie.datasets.sources import digest
from coterie.errors import ArgumentError, DataError, MissingData
from coterie.extras import need

if TYPE_CHECKING:
    import polars as pl

TIMES = ("time", "timestamp", "date", "datetime")
"""Names of columns that are taken for times where none is named."""


def events(place: Source, columns: Sequence[str] | None = None, *, timed: bool = False) -> Events:
    """The rows (user, item[, value][, time]) of a table.

    Parameters
    ----------
    place : path or data frame
        A CSV, TSV or Parquet file, or a table in memory.
    columns : sequence of str, optional
        The columns of users, items, values and times; with `timed` the last one is the time. By default the
        first two, the third if it is not a time, and for times whatever is called one.
    timed : bool
        Are times needed?
    """
    need("polars", "reading a table")
    import polars as pl

    with opened_table(place) as (table, source):
        named = pick(table.columns.columns, columns, timed)
        read = {"user": ids, "item": ids, "value": numbers, "time": _times}
        used = flat(table.columns.select(named.values()))
        for column in used:
            refuse_missing(table, column)
        found = [read[role](used.get_column(name), table).alias(role) for role, name in named.items()]
    return events_of(source, pl.DataFrame(found))


def pick(available: Sequence[str], columns: Sequence[str] | None, timed: bool) -> dict[str, str]:
    """Which column is the user, the item, the value and the time.

    >>> pick(["user", "film", "stars", "time"], None, timed=True)
    {'user': 'user', 'item': 'film', 'value': 'stars', 'time': 'time'}
    """
    if columns is None:
        plain = [name for name in available if name.lower() not in TIMES]
        whens = [name for name in available if name.lower() in TIMES]
        roles = dict(zip(("user", "item", "value"), plain, strict=False))
        roles.update({"time": whens[0]} if whens else {})
    else:
        rest = list(columns)
        when = [rest.pop()] if timed and len(rest) > 2 else rest[3:4]
        roles = dict(zip(("user", "item", "value"), rest, strict=False))
        roles.update({"time": when[0]} if when else {})
    if len(set(roles.values())) != len(roles) or not {"user", "item"} <= set(roles):
        raise ArgumentError(f"columns must name a user, an item, perhaps a value and a time, got {columns!r}")
    if wrong := [name for name in roles.values() if name not in available]:
        raise ArgumentError(f"columns must be among {', '.join(available)}, got {wrong[0]!r}")
    if timed and "time" not in roles:
        raise DataError(
            f"the table has no timestamps, its columns are {', '.join(available)}: a stream needs one, "
            "named last in columns=(user, item, time)"
        )
    return roles


@contextmanager
def opened_table(place: Source) -> Iterator[tuple[Table, EventSource]]:
    """All columns of a table that has rows, and where they come from."""
    with _opened(place) as (table, source):
        if not table.columns.height:
            raise DataError("the table has no rows")
        yield table, source


@contextmanager
def _opened(place: Source) -> Iterator[tuple[Table, EventSource]]:
    import polars as pl

    if isinstance(place, Frame):
        whole = frame_columns(place)
        hashed = sha256(whole.write_csv().encode()).hexdigest()
        yield Table(whole, _refusing("the data frame")), EventSource("interactions", "data frame", hashed)
        return
    if place is None:
        raise ArgumentError("'interactions' needs a data frame, a CSV or a Parquet file as its path")
    path = Path(place).expanduser()
    if not path.is_file():
        raise MissingData(
            f"no file at {str(path)!r}; 'interactions' reads a data frame, a CSV or a Parquet file"
        )
    source = EventSource("interactions", path.name, digest(path))
    if path.suffix.lower() in (".parquet", ".pq"):
        try:
            whole = pl.read_parquet(path)
        except pl.exceptions.PolarsError as error:
            raise DataError(f"{path.name} cannot be read as Parquet: {first_line(error)}") from error
        yield Table(whole, _refusing(path.name)), source
        return
    check_suffix(path)
    with opened_csv(path, None, "utf-8") as csv:
        yield Table(csv.read(csv.header()), csv.refuse), source


def _refusing(what: str) -> Callable[[int, str], DataError]:
    """The error for a row of a table without lines."""
    return lambda row, fault: DataError(f"row {row} of {what} (from 0): {fault}")


def _times(column: pl.Series, table: Table) -> pl.Series:
    """Times as numbers: numbers as they are, dates and their text as seconds."""
    import polars as pl

    times = column
    if column.dtype == pl.String:
        plain = column.cast(pl.Float64, strict=False)
        times = plain if not plain.has_nulls() else _dates(column)
    if times.dtype.is_temporal():
        times = times.cast(pl.Datetime("us")).dt.epoch("us") / 1e6
    times = times.cast(pl.Float64, strict=False)
    refuse_first(table, column, ~times.is_finite().fill_null(False), "must be a time: a number or a date")
    return times


def _dates(column: pl.Series) -> pl.Series:
    """Text as dates, as ISO 8601 writes them; what is none is null."""
    import polars as pl

    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"):
        short = column.str.slice(0, 19).str.to_datetime(form, strict=False)
        if not short.has_nulls():
            return short
    return pl.Series(column.name, [None] * column.len(), dtype=pl.Datetime)
