"""From rows (user, item, liked) to the feedback matrix of the users and items with the most rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coterie.datasets.dataset import Ids
from coterie.types import Floats

if TYPE_CHECKING:
    import polars as pl


class Busiest(NamedTuple):
    """The ids with the most rows, most first, ties by ascending id.

    `tied` counts those with as many rows as the last one kept, if any of them had to stay out.
    """

    ids: pl.DataFrame
    found: int
    tied: int

    def as_array(self) -> Ids:
        """The ids as numpy has them."""
        return id_array(self.ids.get_column("id"))


def id_array(ids: pl.Series) -> Ids:
    """Ids as numpy has them: whole numbers, or else strings."""
    import polars as pl

    if ids.dtype == pl.String:
        return np.array(ids.to_list(), dtype=np.str_)
    if ids.dtype == pl.UInt64:
        return ids.to_numpy().astype(np.uint64)
    return ids.to_numpy().astype(np.int64)


class Feedback(NamedTuple):
    """R, one row a user and one column an item, and how it came about."""

    matrix: Floats
    users: Busiest
    items: Busiest
    rows: int


def gather(rows: pl.DataFrame, n_users: int, n_items: int) -> Feedback:
    """R of the `n_users` users and `n_items` items with the most rows   (Sec. 6.2).

    Both are counted over all rows of the file, so that neither choice depends on the other; a pair
    that occurs several times counts each time, and is 1 in R if any of its rows is.
    """
    users, items = busiest(rows, "user", n_users), busiest(rows, "item", n_items)
    liked = (
        rows.lazy()
        .filter("liked")
        .join(users.ids.lazy(), left_on="user", right_on="id", how="inner")
        .join(items.ids.lazy(), left_on="item", right_on="id", how="inner", suffix="_item")
        .select("place", "place_item")
        .collect()
    )
    matrix = np.zeros((users.ids.height, items.ids.height))
    matrix[liked.get_column("place").to_numpy(), liked.get_column("place_item").to_numpy()] = 1.0
    return Feedback(matrix, users, items, rows.height)


def busiest(rows: pl.DataFrame, column: str, count: int) -> Busiest:
    """The `count` ids of a column with the most rows; numbers are compared as numbers."""
    import polars as pl

    counts = rows.get_column(column).alias("id").to_frame().group_by("id").len()
    ranked = counts.sort(["len", "id"], descending=[True, False])
    kept = ranked.head(count)
    at_the_cut = pl.col("len") == kept.get_column("len").min()
    left_out = ranked.slice(count).filter(at_the_cut).height
    tied = left_out + kept.filter(at_the_cut).height if left_out else 0
    return Busiest(kept.select("id").with_row_index("place"), ranked.height, tied)
