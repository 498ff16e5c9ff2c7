"""Items as people have them: mappings, data frames, arrays and files; checked once, sent in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError, CoterieError, DataError, MissingData
from coterie.extras import need
from coterie.service.core.ids import checked_id, listed
from coterie.types import Floats
from coterie.validation import as_array, counted, finite, shown

ROWS_AT_ONCE = 10_000
"""Items that are checked or sent at a time, at most."""
NUMBERS_AT_ONCE = 2**17
"""Numbers of their vectors, at most: 1 MB as the log keeps them."""
TAG_SEPARATOR = ";"
"""Separates tags in a text."""
FILES = (".npy", ".parquet", ".csv")

Ids: TypeAlias = Sequence[object] | np.ndarray[Any, Any]
"""Ids of rows: texts, or whole numbers."""
Progress: TypeAlias = Callable[[int, int], object]
"""Called with how many items were put, and how many there are."""


@runtime_checkable
class DataFrame(Protocol):
    """A table in memory, of pandas or polars."""

    columns: Any

    def __len__(self) -> int:
        """Return how many rows there are."""

    def __getitem__(self, name: str) -> Any:
        """Return a column."""


class ItemTable(NamedTuple):
    """Items with their vectors, a row each, and tags of some of them."""

    ids: Sequence[str]
    vectors: np.ndarray[Any, Any]
    tags: Mapping[str, Sequence[str]] | None

    def __len__(self) -> int:
        """Return how many items there are."""
        return len(self.ids)

    def batches(self, numbers: int = NUMBERS_AT_ONCE) -> Iterator[ItemTable]:
        """Yield the items in order, some at a time; one batch without items if there are none."""
        rows = min(ROWS_AT_ONCE, max(1, numbers // max(self.vectors.shape[-1], 1)))
        for start in range(0, max(len(self), 1), rows):
            ids = self.ids[start : start + rows]
            tags = None if self.tags is None else {one: self.tags[one] for one in ids if one in self.tags}
            yield ItemTable(ids, self.vectors[start : start + rows], tags or None)


ItemSource: TypeAlias = ItemTable | Mapping[str, ArrayLike] | DataFrame | ArrayLike


def item_table(
    items: ItemSource, *, ids: Ids | None = None, tags: Mapping[str, Sequence[str]] | None = None
) -> ItemTable:
    """Return items that were given in any form, checked as far as that needs no policy.

    Parameters
    ----------
    items : mapping, data frame, array_like or ItemTable
        A vector for each id; or a table of pandas or polars with a column `id`, the numbers of the vector in
        a column `x` of lists or in all other columns, and perhaps a column `tags`, of lists or of texts
        separated by ";"; or an array with a row for each item.
    ids : sequence, optional
        Ids of the rows of an array; their numbers by default. Whole numbers become text.
    tags : mapping, optional
        A list of tags for some of the ids.

    Returns
    -------
    ItemTable
        The items.

    Raises
    ------
    ArgumentError
        If an id occurs twice or cannot be one, vectors differ in length, or a number is not finite.
    """
    if isinstance(items, ItemTable):
        return items
    if isinstance(items, Mapping):
        if ids is not None:
            raise ArgumentError("ids are those of the mapping: leave ids out")
        named: list[object] = list(items)
        found = ItemTable([checked_id("an item's id", one) for one in named], _matrix(items.values()), tags)
    elif isinstance(items, DataFrame) and not isinstance(items, np.ndarray):
        if ids is not None or tags is not None:
            raise ArgumentError("ids and tags are columns of the data frame: leave ids and tags out")
        found = _from_frame(items)
    else:
        vectors = as_array("items", items, "an (n, dim) array")
        if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
            raise ArgumentError(
                f"items must be a mapping, a data frame or an (n, dim) array of real numbers, "
                f"got {vectors.dtype} of shape {vectors.shape}"
            )
        given = range(len(vectors)) if ids is None else ids
        if len(given) != len(vectors):
            raise ArgumentError(f"ids must be {len(vectors)}, one for each row, got {len(given)}")
        found = ItemTable(_texts(given), vectors, tags)
    _check(found)
    return found


def _matrix(rows: Iterable[ArrayLike]) -> np.ndarray[Any, Any]:
    vectors: Any = list(rows)
    return as_array("items", vectors, "vectors of one length") if vectors else np.empty((0, 0))


def _texts(ids: Iterable[object]) -> list[str]:
    """Return ids as text: whole numbers as their digits."""
    found = []
    for one in ids:
        plain = one.item() if isinstance(one, np.generic) else one
        whole = isinstance(plain, int) and not isinstance(plain, bool)
        found.append(checked_id("an item's id", str(plain) if whole else plain))
    return found


def named_arms(arms: Mapping[str, ArrayLike] | DataFrame | ArrayLike | None) -> Any:
    """Return arms as a mapping or an array: the rows of a data frame by their ids."""
    if not isinstance(arms, DataFrame) or isinstance(arms, np.ndarray):
        return arms
    table = item_table(arms)
    return dict(zip(table.ids, table.vectors, strict=True))


def log_rows(
    log: DataFrame | Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]],
) -> list[Mapping[str, Any]]:
    """Return the rows of a log that was given as a data frame, as columns, or row by row."""
    columns: Any = log
    if isinstance(log, Mapping):
        names = list(log)
    elif isinstance(log, DataFrame) and not isinstance(log, np.ndarray):
        names = [str(name) for name in columns.columns]
    else:
        return [*columns]
    lists = [_plain(columns[name]) for name in names]
    if len({len(one) for one in lists}) > 1:
        raise ArgumentError(f"columns of a log must have one length, got {[len(one) for one in lists]}")
    return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]


def _plain(column: Any) -> list[Any]:
    """Return the values of a column as those of Python."""
    return list(
        column.tolist() if hasattr(column, "tolist") else getattr(column, "to_list", lambda: column)()
    )


def _from_frame(frame: DataFrame) -> ItemTable:
    names = [str(name) for name in frame.columns]
    index: Any = getattr(frame, "index", None)
    if "id" not in names and getattr(index, "name", None) == "id":  # of pandas, after set_index("id")
        given: Any = frame
        frame, names = given.reset_index(), ["id", *names]
    if "id" not in names:
        raise ArgumentError(f"a table of items needs a column 'id', got {shown(names)}")
    features = [name for name in names if name not in ("id", "tags")]
    if not features:
        raise ArgumentError("a table of items needs a column 'x' of lists, or columns of numbers")
    ids = _texts(frame["id"].to_list())
    vectors = _matrix(frame["x"].to_list()) if features == ["x"] else _columns(frame, features)
    tags = None
    if "tags" in names:
        listed = map(_tags, frame["tags"].to_list())
        tags = dict(zip(ids, listed, strict=True))
    return ItemTable(ids, vectors, tags)


def _columns(frame: DataFrame, names: Sequence[str]) -> Floats:
    columns = []
    for name in names:
        values = np.asarray(frame[name].to_numpy())
        if values.dtype.kind not in "fiub" and len(values):
            wrong = next((one for one in values.tolist() if not isinstance(one, float | int)), values.dtype)
            raise ArgumentError(
                f"column {name!r} must hold numbers, got {shown(wrong)}; 'x' may be a column of lists"
            )
        columns.append(values.astype(np.float64))
    return np.column_stack(columns)


def _tags(given: object) -> list[str]:
    """Return the tags of a row: a list, or a text; none where it is empty."""
    if isinstance(given, str):
        return [tag for tag in (part.strip() for part in given.split(TAG_SEPARATOR)) if tag]
    # A missing value is None or NaN, as the library of the table has it.
    return [str(tag) for tag in given] if isinstance(given, Iterable) else []


def _check(table: ItemTable) -> None:
    """Refuse what no policy takes: ids that occur twice, other things than vectors of finite numbers."""
    seen: set[str] = set()
    for one in table.ids:
        if one in seen:
            raise ArgumentError(f"items must name each id once, got {shown(one)} twice")
        seen.add(one)
    if table.tags is not None:
        if not isinstance(table.tags, Mapping):
            raise ArgumentError(f"tags must be a list of tags for each item's id, got {shown(table.tags)}")
        for one, tags in table.tags.items():
            if one not in seen:
                raise ArgumentError(f"tags must be of items that are put, got {shown(one)}")
            listed(f"tags of {shown(one)}", tags, "tags")
    if len(table) and (table.vectors.ndim != 2 or table.vectors.dtype.kind not in "fiu"):
        wanted = "vectors of real numbers of one length"
        got = f"{table.vectors.dtype} of shape {table.vectors.shape}"
        raise ArgumentError(f"items must be {wanted}, got {got}")
    for batch in table.batches() if len(table) else ():
        finite("items", batch.vectors.astype(np.float64))


def read_items(path: str | PathLike[str], *, ids: str | PathLike[str] | None = None) -> ItemTable:
    """Read items from a file, as `item_table` takes them.

    Parameters
    ----------
    path : str or path
        A `.npy` array with a row for each item; or a `.parquet` or `.csv` table with a column `id`, a column
        `x` of lists or columns of numbers, and perhaps `tags`.
    ids : str or path, optional
        The ids of the rows of an array: a `.npy` file, or a text file with a line each. Row numbers by
        default.

    Returns
    -------
    ItemTable
        The items. The numbers of an array stay in its file until they are needed.
    """
    where = Path(path).expanduser()
    if not where.is_file():
        raise MissingData(f"no file at {str(path)!r}")
    kind = where.suffix.lower()
    if kind not in FILES:
        raise ArgumentError(f"a file of items is one of {', '.join(FILES)}, got {where.name!r}")
    if kind == ".npy":
        named = None if ids is None else _read_ids(Path(ids).expanduser())
        return item_table(_load(where, mapped=True), ids=named)
    if ids is not None:
        raise ArgumentError(f"{where.name} has a column of ids: leave the file of ids out")
    found = item_table(_read_table(where))
    if not len(found):
        raise DataError(f"{where.name} has no items")
    return found


def _read_ids(path: Path) -> list[object]:
    if not path.is_file():
        raise MissingData(f"no file at {str(path)!r}")
    if path.suffix.lower() == ".npy":
        found: list[object] = _load(path, mapped=False).ravel().tolist()
        return found
    return [*path.read_text(encoding="utf-8").splitlines()]


def _load(path: Path, *, mapped: bool) -> np.ndarray[Any, Any]:
    try:
        found: np.ndarray[Any, Any] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{path.name} cannot be read as an array: {error}") from None
    return found


def _read_table(path: Path) -> DataFrame:
    need("polars", "a table of items")
    import polars as pl

    try:
        if path.suffix.lower() == ".parquet":
            return pl.read_parquet(path)
        # As text, or 007 would lose its zeros; a column that is not there is refused later.
        return pl.read_csv(path, schema_overrides={"id": pl.String, "tags": pl.String})
    except (pl.exceptions.PolarsError, ValueError, OSError) as error:
        first = str(error).splitlines()[0]
        raise DataError(f"{path.name} cannot be read as a table: {first}") from None


@contextmanager
def saying_what_was_put(done: Callable[[], int]) -> Iterator[None]:
    """Let an error say how many items were put before it, if any were: a batch is put as a whole."""
    try:
        yield
    except CoterieError as error:
        if not done():
            raise
        before = f"{counted(done(), 'item')} before it {'was' if done() == 1 else 'were'} put"
        error.args = (f"{error}; {before}",)
        raise
