"""Your own table of (user, item[, value][, time]): a data frame, a CSV or a Parquet file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from coterie.datasets.csvtable import SUFFIXES, first_line, opened_csv
from coterie.datasets.dataset import Dataset
from coterie.datasets.event_table import Events, EventSource, events_of
from coterie.datasets.prepare import Material, prepare
from coterie.datasets.request import Frame, Request, Source
from coterie.datasets.sources import About, digest
from coterie.errors import ArgumentError, DataError, MissingData
from coterie.extras import install_command, need

if TYPE_CHECKING:
    import polars as pl

ABOUT = About(
    name="interactions",
    summary="any table of (user, item[, value]): a data frame, a CSV or a Parquet file",
    feedback="1 for every row, or 1 if the value is above the threshold",
)


class Table(NamedTuple):
    """The columns in use, and a way to say where a bad row is."""

    columns: pl.DataFrame
    refuse: Callable[[int, str], DataError]


def make(request: Request) -> Dataset:
    """Feedback 1 if the value is above the threshold; without a threshold, 1 for every row."""
    if isinstance(request.path, Frame):
        need("polars", "reading a table")
        table = _of_frame(request.path, request)
        material = Material(ABOUT.name, _feedback(request), "data frame", _digest(table.columns))
        return prepare(material, request, lambda: _rows(table, request))
    if request.path is None:
        raise ArgumentError("path must be your own table, a CSV or Parquet file or a data frame, got nothing")
    path = Path(request.path).expanduser()
    if not path.is_file():
        raise MissingData(
            f"no file at {str(path)!r}; 'interactions' reads a data frame, a CSV or a Parquet file"
        )
    material = Material(ABOUT.name, _feedback(request), path.name, digest(path))
    return prepare(material, request, lambda: _of_file(path, request))


def _feedback(request: Request) -> str:
    named = f" of {', '.join(request.columns)}" if request.columns else ""
    if request.threshold is None:
        return f"1 for every row{named}, whatever its value"
    return f"1 if the value{named} is above {request.threshold:g}"


def pick(available: list[str], request: Request) -> list[str]:
    """The columns to use: those named, or else the first two, and the third where a threshold is given."""
    wanted = 2 if request.threshold is None else 3
    names = list(request.columns or available[:wanted])
    if len(names) < 2 or not set(names) <= set(available):
        raise ArgumentError(f"columns must name two or three of {', '.join(available)}, got {names!r}")
    if len(names) < wanted:
        raise ArgumentError(f"a threshold needs a value column, and there are only {', '.join(names)}")
    if len(names) > wanted:
        raise ArgumentError(
            f"the value column {names[2]!r} needs a threshold, above which feedback is 1 (--threshold); "
            "the setting 'rated' takes values as rewards"
        )
    return names


def frame_columns(frame: Frame) -> pl.DataFrame:
    """The columns of a data frame, without its index."""
    import polars as pl

    try:
        whole = pl.DataFrame(frame)
    except ImportError:
        raise ArgumentError(
            f"this data frame is read through pyarrow, which is not installed: {install_command('pyarrow')}"
        ) from None
    except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
        raise ArgumentError(f"the data frame cannot be read: {first_line(error)}") from error
    return whole.select(name for name in whole.columns if not name.startswith("__index_level_"))


def _of_frame(frame: Frame, request: Request) -> Table:
    _refuse_csv_options(request, "a data frame")
    whole = frame_columns(frame)
    columns = flat(whole.select(pick(whole.columns, request)), "the data frame")
    return Table(columns, lambda row, fault: DataError(f"row {row} of the data frame (from 0): {fault}"))


def _of_file(path: Path, request: Request) -> pl.DataFrame:
    """The rows of a file as (user, item, liked)."""
    if path.suffix.lower() in (".parquet", ".pq"):
        _refuse_csv_options(request, path.name)
        columns = flat(_of_parquet(path, request), path.name)
        table = Table(columns, lambda row, fault: DataError(f"row {row} of {path.name} (from 0): {fault}"))
        return _rows(table, request)
    check_suffix(path)
    with opened_csv(path, request.separator, request.encoding or "utf-8") as csv:
        return _rows(Table(csv.read(pick(csv.header(), request)), csv.refuse), request)


def check_suffix(path: Path) -> None:
    """Refuse a file that is neither CSV nor Parquet by its name."""
    if not path.name.lower().endswith(SUFFIXES):
        known = ", ".join(SUFFIXES)
        raise ArgumentError(f"a table is a file that ends in {known} or .parquet, got {path.name!r}")


def _refuse_csv_options(request: Request, what: str) -> None:
    if request.separator is not None or request.encoding is not None:
        raise ArgumentError(f"separator and encoding are for CSV files, got them with {what}")


def _of_parquet(path: Path, request: Request) -> pl.DataFrame:
    import polars as pl

    try:
        names = pick(pl.scan_parquet(path).collect_schema().names(), request)
        return pl.read_parquet(path, columns=names).select(names)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path.name} cannot be read as Parquet: {first_line(error)}") from error


def flat(columns: pl.DataFrame, name: str) -> pl.DataFrame:
    """The columns, if each holds one number or text a row; an error gives the name of the table."""
    import polars as pl

    for column in columns.get_columns():
        if column.dtype.is_nested() or column.dtype == pl.Binary:
            raise ArgumentError(
                f"{name} must hold numbers or text, and its column {column.name!r} holds {column.dtype}"
            )
    return columns


def _rows(table: Table, request: Request) -> pl.DataFrame:
    """The rows as (user, item, liked); null where a value is missing and such rows are to be dropped."""
    import polars as pl

    if not table.columns.height:
        raise DataError("the table has no rows")
    columns = [column.fill_nan(None) if column.dtype.is_float() else column for column in table.columns]
    if request.missing == "refuse":
        for column in columns:
            refuse_missing(table, column, "; leave out such rows with missing='drop' (--missing drop)")
    user, item, *value = columns
    liked = pl.Series("liked", [True]).new_from_index(0, user.len())
    if request.threshold is not None:
        liked = numbers(value[0], table, drop=request.missing == "drop") > request.threshold
    return pl.DataFrame(
        [ids(user, table).alias("user"), ids(item, table).alias("item"), liked.alias("liked")]
    )


def ids(column: pl.Series, table: Table) -> pl.Series:
    """Whole numbers stay numbers, everything else becomes text."""
    import polars as pl

    if column.dtype.is_float():  # pandas makes floats of whole numbers with gaps
        whole = column.cast(pl.Int64, strict=False)
        wrong = (whole.cast(pl.Float64) != column).fill_null(True) & column.is_not_null()
        refuse_first(table, column, wrong, "must be a whole number")
        return whole
    return column if column.dtype.is_integer() else column.cast(pl.String)


def numbers(column: pl.Series, table: Table, *, drop: bool = False) -> pl.Series:
    """The column as numbers; "nan" is a missing value where such rows are dropped."""
    import polars as pl

    values = column.cast(pl.Float64, strict=False)
    wrong = ~values.is_finite().fill_null(False) & column.is_not_null()
    if drop:
        wrong &= ~values.is_nan().fill_null(False)
    refuse_first(table, column, wrong, "must be a finite number")
    return values.fill_nan(None)


def refuse_missing(table: Table, column: pl.Series, hint: str = "") -> None:
    """Refuse the first row that lacks a value, if there is one."""
    if column.null_count():
        row = int(column.is_null().arg_true()[0])
        raise table.refuse(row, f"{column.name} is missing{hint}")


def refuse_first(table: Table, column: pl.Series, bad: pl.Series, wanted: str) -> None:
    """Refuse the first row that is bad, if there is one."""
    if bad.any():
        row = int(bad.arg_true()[0])
        raise table.refuse(row, f"{column.name} {wanted}, got {column[row]!r}")


def _digest(columns: pl.DataFrame) -> str:
    """The sha256 of a table in memory: that of the same table written as CSV."""
    hasher = sha256()
    hasher.update(columns.clear().write_csv().encode())
    for part in columns.iter_slices(1 << 20):
        hasher.update(part.write_csv(include_header=False).encode())
    return hasher.hexdigest()


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
        named = pick_roles(table.columns.columns, columns, timed)
        read = {"user": ids, "item": ids, "value": numbers, "time": _times}
        used = flat(table.columns.select(named.values()), source.file)
        for column in used:
            refuse_missing(table, column)
        found = [read[role](used.get_column(name), table).alias(role) for role, name in named.items()]
    return events_of(source, pl.DataFrame(found))


def pick_roles(available: Sequence[str], columns: Sequence[str] | None, timed: bool) -> dict[str, str]:
    """Which column is the user, the item, the value and the time.

    >>> pick_roles(["user", "film", "stars", "time"], None, timed=True)
    {'user': 'user', 'item': 'film', 'value': 'stars', 'time': 'time'}
    """
    if columns is None:
        plain = [name for name in available if name.lower() not in TIMES]
        times = [name for name in available if name.lower() in TIMES]
        roles = dict(zip(("user", "item", "value"), plain, strict=False))
        roles.update({"time": times[0]} if times else {})
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
            f"the table has no timestamps, its columns are {', '.join(available)}: a stream needs a "
            "column of times, which columns= (--columns) names"
        )
    return roles


@contextmanager
def opened_table(place: Source) -> Iterator[tuple[Table, EventSource]]:
    """All columns of a table that has rows, and where they come from."""
    with _open_table(place) as (table, source):
        if not table.columns.height:
            raise DataError("the table has no rows")
        yield table, source


@contextmanager
def _open_table(place: Source) -> Iterator[tuple[Table, EventSource]]:
    import polars as pl

    if isinstance(place, Frame):
        whole = frame_columns(place)
        hashed = sha256(whole.write_csv().encode()).hexdigest()
        yield Table(whole, _refusing("the data frame")), EventSource("interactions", "data frame", hashed)
        return
    if place is None:
        raise ArgumentError("path must be your own table, a CSV or Parquet file or a data frame, got nothing")
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
