"""Vectors of your own items: a table with an id in its first column, or an array whose rows are items."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coterie.datasets.loaders.interactions import Table, flat, ids, numbers, opened_table, refuse_missing
from coterie.datasets.request import Frame
from coterie.datasets.sources import digest
from coterie.errors import ArgumentError, DataError, MissingData
from coterie.types import Floats
from coterie.validation import finite, reals

if TYPE_CHECKING:
    import polars as pl


class ItemFeatures(NamedTuple):
    """The vectors of items (N, dim), their ids (None for an array), and where they come from."""

    ids: pl.Series | None
    vectors: Floats
    file: str
    sha256: str


def read_item_features(items: str | PathLike[str] | Frame | ArrayLike) -> ItemFeatures:
    """Read the vectors of items.

    Parameters
    ----------
    items : path, data frame or array
        A table whose first column is the item and whose others are its vector: columns of numbers, or one
        column of lists. Or an array, also as a `.npy` file, with a row for each item.

    Returns
    -------
    ItemFeatures
        The vectors; `ids` is None for an array.

    Raises
    ------
    ArgumentError, DataError, MissingData
        If there is no such file, or it has no such vectors; the message names the file.
    """
    if isinstance(items, str | PathLike) and Path(items).suffix.lower() == ".npy":
        return _of_npy(Path(items).expanduser())
    if isinstance(items, str | PathLike | Frame):
        return _of_table(items)
    vectors = finite("items", reals("items", items, "an (n_items, dim) array"))
    if vectors.ndim != 2:
        raise ArgumentError(f"items must have shape (n_items, dim), got {vectors.shape}")
    return ItemFeatures(None, np.array(vectors), "items", "")


def _of_npy(path: Path) -> ItemFeatures:
    if not path.is_file():
        raise MissingData(f"no file at {str(path)!r}")
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path.name} cannot be read as an array: {error}") from None
    if found.ndim != 2 or found.dtype.kind not in "fiu" or not np.isfinite(found).all():
        got = f"{found.dtype} of shape {found.shape}"
        raise DataError(f"{path.name} must hold an (n_items, dim) array of finite numbers, got {got}")
    return ItemFeatures(None, found.astype(np.float64), path.name, digest(path))


def _of_table(items: str | PathLike[str] | Frame) -> ItemFeatures:
    with opened_table(items) as (table, source):
        first, *features = table.columns.get_columns()
        if not features:
            raise DataError(f"{source.file} needs a column for the item and further ones for its vector")
        for column in (first, *features):
            refuse_missing(table, column)
        if len(features) == 1 and features[0].dtype.is_nested():
            vectors = _of_lists(features[0], table)
        else:
            plain = flat(table.columns.select(one.name for one in features), source.file)
            vectors = np.column_stack([numbers(column, table).to_numpy() for column in plain])
        named = ids(flat(first.to_frame(), source.file).get_columns()[0], table)
    return ItemFeatures(named, np.ascontiguousarray(vectors, np.float64), source.file, source.sha256)


def _of_lists(column: pl.Series, table: Table) -> Floats:
    """The rows of a column of lists, known to be vectors of one length."""
    import polars as pl

    try:
        lists = column.cast(pl.List(pl.Float64))
    except pl.exceptions.PolarsError:
        wanted = "must hold lists of numbers"
        raise table.refuse(0, f"{column.name} {wanted}, got {column.dtype}") from None
    lengths = lists.list.len().to_numpy()
    values = lists.explode().to_numpy()
    bad = np.flatnonzero((lengths != lengths[0]) | (lengths == 0))
    if len(bad):
        raise table.refuse(
            int(bad[0]), f"{column.name} must hold vectors of length {lengths[0]}, got {lengths[bad[0]]}"
        )
    unknown = np.flatnonzero(~np.isfinite(values))
    if len(unknown):
        raise table.refuse(int(unknown[0] // lengths[0]), f"{column.name} must hold finite numbers")
    return values.reshape(len(lengths), int(lengths[0]))
