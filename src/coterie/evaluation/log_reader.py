"""Reading a log: a data frame, a CSV, Parquet or JSON lines file, or the format that `Log.save` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from coterie.datasets.csvtable import CsvTable, first_line
from coterie.datasets.item_features import read_item_features
from coterie.datasets.request import Frame
from coterie.errors import ArgumentError, DataError, MissingData, unknown
from coterie.evaluation.arms import numbered_ids, offers_of_items, offers_of_vectors, with_ids
from coterie.evaluation.decision_service_json import read_dsjson
from coterie.evaluation.log import FORMAT_KEY, FORMAT_VERSION, Log, refuse_first
from coterie.evaluation.open_bandit import is_open_bandit, item_vectors, plain_table
from coterie.evaluation.plain_log import Choices, drawn_offers, positions_of
from coterie.evaluation.propensity_model import estimate_propensities
from coterie.evaluation.service_export import ITEM_COLUMNS, has_versions, is_service_export, read_offers
from coterie.extras import need
from coterie.types import Floats, Ints

if TYPE_CHECKING:
    import polars as pl

Source: TypeAlias = str | PathLike[str] | Frame
COLUMNS = ("user", "arms", "ids", "arm", "item", "propensity", "reward", "time")
OPTIONAL = ("ids", "item", "propensity", "time")
PLAIN = ("user", "item", "reward")
"""Columns of a log that does not say what was offered."""
NONE = np.empty(0)


def read_log(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    items: Source | ArrayLike | None = None,
    uniform: bool = False,
    n_arms: int | None = None,
    seed: int = 0,
) -> Log:
    """Read a log from a data frame, a CSV, TSV, Parquet or JSON lines file, or our own format.

    Parameters
    ----------
    source : path or data frame
        A row for each event, with the columns `user` (whole numbers or text), `arms` (what was offered),
        `arm` (the position among them of what was played, from 0), `propensity` (the probability with which
        it was played), `reward`, and perhaps `time` (numbers or timestamps). Events are put in order of
        time; without times, rows are in order. `arms` is a list of vectors of one length, or with `items` a
        list of item ids; in a CSV file it is written as JSON, such as `[[0.1, 0.2], [0.3, 0.4]]`. Beside
        vectors, `ids` may be the list of the ids of these items, whole numbers or text. Where arms are ids,
        `item`, the id of what was played, does instead of `arm`. A plain log has `user`, `item` and `reward`
        alone: see Notes. Also a `.dsjson` file of Vowpal Wabbit or Azure Personalizer, whose features are
        hashed to 64 dimensions, or a file of the Open Bandit Dataset such as `men.csv`.
    columns : mapping, optional
        Names of the columns where they differ: `{"user": "customer", "reward": "click"}`. Of a `.dsjson`
        file: the feature that names the user, `{"user": "GUser.id"}`.
    items : path, data frame or array, optional
        The vector of each item: a table whose first column is the id and whose others are the features, or an
        array, also as a `.npy` file, whose row numbers are the ids. For a log that a service has
        exported: its table of items, which has all versions of the catalogue.
    uniform : bool, optional
        The arms were drawn uniformly: the propensity is 1/K. For logs without that column. Where arms are
        known and this is not said, propensities are estimated (`Log.estimated`).
    n_arms : int, optional
        Of a plain log: how many items a decision is taken to be among, 20 by default or all if there are
        fewer.
    seed : int, optional
        Seed of the items that are drawn for the decisions of a plain log.

    Returns
    -------
    Log
        The events, oldest first.

    Raises
    ------
    DataError
        If a value cannot be used: the sentence names the row and says what would do.
    ArgumentError, MissingData
        If a column is missing, or the file is not there.

    Notes
    -----
    A plain log does not say what else could have been played. A decision is then taken to be among the item
    that was played and `n_arms` − 1 others, drawn uniformly from `items`. If items were played uniformly at
    random, each of these arms is equally likely to be the one that was played, so that all estimators hold,
    for policies that choose among `n_arms` random items. If not, the propensities are unknown, and only a
    model can answer. With a column `propensity` the arms are all `items`. Without `items`, a log of at most
    64 items gets a feature for each.

    Examples
    --------
    >>> import polars as pl
    >>> arms = [[1.0, 0.0], [0.0, 1.0]]
    >>> rows = {"user": ["ann", "bob"], "arms": [arms, arms], "arm": [1, 0], "reward": [1.0, 0.0]}
    >>> read_log(pl.DataFrame(rows), uniform=True)
    <Log: 2 events of 2 users, 2 arms of dim 2 a round, propensities 0.5>
    """
    need("polars", "a log")
    name = "the data frame" if isinstance(source, Frame) else Path(source).name
    with _naming(name):
        if not isinstance(source, Frame) and _is_own(Path(source)):
            for option, value in (("columns", columns), ("items", items), ("uniform", uniform)):
                if value is not None and value is not False and value != {}:
                    raise ArgumentError(
                        f"{option} has no effect on a log that `Log.save` wrote: leave it out"
                    )
            return _read_own(Path(source))
        if not isinstance(source, Frame) and Path(source).suffix.lower() == ".dsjson":
            return _read_dsjson(Path(source), columns or {}, items is not None, uniform, n_arms)
        frame = _frame(source)
        if not columns and is_open_bandit(frame.columns):
            return _read_open_bandit(frame, items, uniform, n_arms)
        if not columns and is_service_export(frame.columns):
            return _read_export(frame, items, uniform)
    vectors = None if items is None else _read_items(items)
    with _naming(name):
        names = _names(frame.columns, columns or {}, uniform)
        if vectors is not None:
            if "ids" in (columns or {}):
                raise ArgumentError("where items are given, arms holds their ids: leave out the column ids")
            names.pop("ids", "")
        if not frame.height:
            raise DataError("the log has no events")
        if "arms" not in names:
            shown = _ids("item", frame[names["item"]])
            return _log(
                frame, names, drawn_offers(shown, vectors, n_arms, "propensity" in names, seed), uniform
            )
        if n_arms is not None:
            raise ArgumentError("n_arms is for a log without a column 'arms': leave it out")
        offers = (offers_of_vectors if vectors is None else offers_of_items(*vectors))(frame[names["arms"]])
        if "ids" in names:
            offers = with_ids(offers, frame[names["ids"]])
        if "arm" in names:
            chosen = _whole_numbers("arm", frame[names["arm"]])
        else:
            chosen = positions_of(_ids("item", frame[names["item"]]), offers)
        return _log(frame, names, Choices(offers, chosen), uniform)


@contextmanager
def _naming(table: str) -> Iterator[None]:
    """Let errors say which table they are about."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{table}: {error}") from None


def _names(available: list[str], given: Mapping[str, str], uniform: bool) -> dict[str, str]:
    """The name of each of our columns in the table; those that are not there are left out."""
    for ours in given:
        if ours not in COLUMNS:
            raise unknown("column of a log", ours, COLUMNS, f"The columns are {', '.join(COLUMNS)}")
    names = {ours: given.get(ours, ours) for ours in COLUMNS}
    needed = _needed(names, available, given)
    for ours, theirs in names.items():
        if theirs in available or ours not in needed:
            continue
        seen = ", ".join(available)
        plain = "; a log that does not say what was offered has a column 'item'" if ours == "arms" else ""
        raise ArgumentError(
            f"the log has no column {theirs!r}; it has {seen}; columns= (--columns) renames them{plain}"
        )
    if names["propensity"] in available and uniform:
        raise ArgumentError(
            f"uniform is for logs without propensities, and the log has a column {names['propensity']!r}"
        )
    return {ours: theirs for ours, theirs in names.items() if theirs in available}


def _needed(names: Mapping[str, str], available: list[str], given: Mapping[str, str]) -> set[str]:
    """The columns that this log must have: those that are named, and those of its form."""
    has = {ours for ours, theirs in names.items() if theirs in available}
    if {"item", "arm"} <= has and "item" in given:
        raise ArgumentError(
            f"item has no effect beside the column {names['arm']!r}, which says what was played: leave it out"
        )
    form: set[str] = set(COLUMNS) - set(OPTIONAL)
    if "item" in has:
        form = form - {"arm"} if "arms" in has else set(PLAIN)
    return form | set(given)


def _read_dsjson(
    path: Path, columns: Mapping[str, str], with_items: bool, uniform: bool, n_arms: int | None
) -> Log:
    """A log of Vowpal Wabbit or Personalizer; `columns` may say where the context names the user."""
    given = {"items": with_items, "uniform": uniform, "n_arms": n_arms is not None}
    given |= {f"the column {name!r}": True for name in columns if name != "user"}
    for name in (name for name, is_given in given.items() if is_given):
        raise ArgumentError(f"{name} has no effect on a log in dsjson: leave it out")
    return read_dsjson(_existing(path), user=columns.get("user"))


def _read_open_bandit(
    frame: pl.DataFrame, items: Source | ArrayLike | None, uniform: bool, n_arms: int | None
) -> Log:
    """A file of the Open Bandit Dataset, whose items may be described by another."""
    if uniform:
        raise ArgumentError("uniform is for logs without propensities, and this log has them: leave it out")
    if items is not None and not isinstance(items, Frame | str | PathLike):
        raise ArgumentError("items must be the file item_context.csv, got an array")
    table = plain_table(frame)
    vectors = None if items is None else item_vectors(_frame(items))
    names = {name: name for name in table.columns}
    every_item = drawn_offers(table["item"], vectors, n_arms, has_propensities=True, seed=0)
    return _log(table, names, every_item._replace(catalogue_size=0), False)  # all were really on offer


def _read_export(frame: pl.DataFrame, items: Source | ArrayLike | None, uniform: bool) -> Log:
    """The log that a service has exported, with its table of items."""
    table = None
    if uniform:
        raise ArgumentError("uniform is for logs without propensities, and an export of a service has them")
    if items is not None:
        if not isinstance(items, Frame | str | PathLike):
            raise ArgumentError(
                "items must be the table that the service exports (table=items), got an array"
            )
        table = _frame(items)
        if not has_versions(table.columns):
            wanted = ", ".join(ITEM_COLUMNS)
            raise ArgumentError(f"items must be the table that the service exports, with columns {wanted}")
    found = read_offers(frame, table)
    names = {name: name for name in COLUMNS if name not in ("ids", "item")}
    return _log(frame[found.rows], names, Choices(found.offers, found.chosen), uniform)


def _log(frame: pl.DataFrame, names: Mapping[str, str], choices: Choices, uniform: bool) -> Log:
    """The log of a table, its events by time; propensities are estimated where arms are known."""
    import polars as pl

    offers = choices.offers
    item_ids, item_of = numbered_ids(offers.ids)
    ids = _ids("user", frame[names["user"]])
    unique = ids.unique(maintain_order=True)
    numbers = pl.DataFrame({"id": unique}).with_row_index("number")
    users = pl.DataFrame({"id": ids}).join(numbers, on="id", how="left", maintain_order="left")["number"]
    if uniform:
        propensities = 1.0 / np.maximum(np.diff(offers.starts), 1)
    else:
        propensities = _numbers("propensity", frame[names["propensity"]]) if "propensity" in names else NONE
    log = Log(
        user_ids=unique.to_list(),
        users=users.to_numpy(),
        items=offers.items,
        offers=offers.offers,
        starts=offers.starts,
        item_ids=item_ids,
        item_of=item_of,
        chosen=choices.chosen,
        propensities=propensities,
        rewards=_numbers("reward", frame[names["reward"]]),
        times=_times(frame[names["time"]]) if "time" in names else np.arange(frame.height, dtype=np.float64),
        catalogue_size=choices.catalogue_size,
    ).ordered()
    if log.has_propensities or log.catalogue_size:
        return log
    return replace(log, propensities=estimate_propensities(log), estimated=True)


def _frame(source: Source) -> pl.DataFrame:
    """The table as polars has it; a CSV file has whole numbers and text only."""
    import polars as pl

    try:
        if isinstance(source, Frame):
            return pl.DataFrame(source)
        path = _existing(Path(source))
        if path.suffix.lower() in (".parquet", ".pq"):
            return pl.read_parquet(path)
        if path.suffix.lower() in (".jsonl", ".ndjson"):
            return pl.read_ndjson(path, infer_schema_length=None)
    except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
        hint = "; arms must be lists of lists (array.tolist())" if "1-dimensional" in str(error) else ""
        raise DataError(f"it cannot be read as a table: {first_line(error)}{hint}") from error
    if path.suffix.lower() not in (".csv", ".tsv"):
        raise ArgumentError(
            f"a log is a data frame, a .csv, .tsv, .parquet, .jsonl or .dsjson file, got {path.name!r}"
        )
    csv = CsvTable(path, "\t" if path.suffix.lower() == ".tsv" else ",", path.name)
    return csv.read(csv.header())


def _existing(path: Path) -> Path:
    found = path.expanduser()
    if not found.is_file():
        raise MissingData(f"no file at {str(path)!r}; `coterie run --log FILE` writes a log to try")
    return found


def _ids(name: str, column: pl.Series) -> pl.Series:
    """Whole numbers stay numbers, everything else becomes text; an id must not be missing."""
    import polars as pl

    if column.dtype.is_float():  # pandas makes floats of whole numbers with gaps
        column = column.cast(pl.Int64, strict=False)
    elif not column.dtype.is_integer():
        column = column.cast(pl.String, strict=False)
    refuse_first(column.is_null().to_numpy(), lambda t: f"{name} must be a whole number or text, got nothing")
    return column


def _numbers(name: str, column: pl.Series) -> Floats:
    """Numbers, also where they are written as text; what is none is refused."""
    import polars as pl

    if column.dtype == pl.String or column.dtype.is_numeric() or column.dtype == pl.Boolean:
        values = column.cast(pl.Float64, strict=False)
        refuse_first(
            values.is_null().to_numpy(), lambda t: f"{name} must be a finite number, got {column[t]!r}"
        )
        return values.to_numpy()
    raise DataError(f"{name} must hold numbers, got {column.dtype}")


def _whole_numbers(name: str, column: pl.Series) -> Ints:
    values = _numbers(name, column)
    wrong = ~(np.abs(values) < 2**53) | (values != np.floor(values))
    refuse_first(wrong, lambda t: f"{name} must be a whole number, got {values[t]:g}")
    return values.astype(np.int64)


def _times(column: pl.Series) -> Floats:
    """Numbers as they are, dates and timestamps as seconds since 1970."""
    import polars as pl

    if column.dtype == pl.String:
        numbers = column.cast(pl.Float64, strict=False)
        if numbers.is_null().any():
            column = _timestamps(column)
    if column.dtype.is_temporal() and column.dtype != pl.Duration:
        column = column.cast(pl.Datetime("us")).dt.epoch("us") / 1e6
    return _numbers("time", column)


def _timestamps(column: pl.Series) -> pl.Series:
    import polars as pl

    try:
        return column.str.to_datetime(time_unit="us", strict=False)
    except pl.exceptions.PolarsError:
        raise DataError(
            f"time must hold numbers or timestamps such as 2024-05-01 12:00:00, got {column[0]!r}"
        ) from None


def _read_items(items: Source | ArrayLike) -> tuple[pl.Series, Floats]:
    """The id and the vector of each item; rows of an array are numbered."""
    import polars as pl

    found = read_item_features(items)
    numbers = pl.Series("item", np.arange(len(found.vectors)))
    return numbers if found.ids is None else found.ids, found.vectors


def _is_own(path: Path) -> bool:
    """Whether this is a file that `Log.save` wrote."""
    import polars as pl

    found = _existing(path)
    if found.suffix.lower() not in (".parquet", ".pq"):
        return False
    try:
        version = pl.read_parquet_metadata(found).get(FORMAT_KEY)
    except (ValueError, OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"it cannot be read as Parquet: {first_line(error)}") from None
    if version not in (None, FORMAT_VERSION):
        raise DataError(f"its format has version {version}, this release reads {FORMAT_VERSION}")
    return version == FORMAT_VERSION


def _read_own(path: Path) -> Log:
    """A log that `Log.save` wrote."""
    frame = _frame(path)
    names = {name: name for name in COLUMNS if name not in ("arms", "ids", "item")} | {"arms": "items"}
    if missing := [name for name in (*names.values(), "vectors") if name not in frame.columns]:
        raise DataError(f"it lacks the column {missing[0]!r} of a log")
    vectors = frame["vectors"].drop_nulls()
    if not len(vectors):
        raise DataError("it has no vectors")
    items = offers_of_vectors(vectors).items
    ids = frame["ids"].drop_nulls().explode().to_list() if "ids" in frame.columns else ()
    offers = offers_of_items(*_read_items(items))(frame["items"])._replace(ids=ids)
    return _log(frame, names, Choices(offers, _whole_numbers("arm", frame["arm"])), uniform=False)
