"""Events: the rows (user, item, value, time) of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coterie.datasets.dataset import Ids, id_array
from coterie.errors import DataError
from coterie.types import Bools, Floats, Ints

if TYPE_CHECKING:
    import polars as pl


class EventSource(NamedTuple):
    """The source of events: the dataset's name, the file's name, and the hash of its content."""

    name: str
    file: str
    sha256: str


class Events(NamedTuple):
    """Rows of a table: users and items as places in their lists of ids, a value each, and perhaps a time.

    `span` is the range of possible values; None where it is only known from the table.
    """

    source: EventSource
    user_ids: Ids
    item_ids: Ids
    users: Ints
    items: Ints
    values: Floats | None
    times: Floats | None
    span: tuple[float, float] | None

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.item_ids)

    def where(self, chosen: Bools) -> Events:
        """Some of the rows; users and items keep their numbers."""
        values = None if self.values is None else self.values[chosen]
        times = None if self.times is None else self.times[chosen]
        return self._replace(users=self.users[chosen], items=self.items[chosen], values=values, times=times)

    def in_order(self) -> Events:
        """The rows by time, those of the same time as the table has them."""
        times = self.need_times()
        return self.where_order(np.argsort(times, kind="stable"))

    def where_order(self, order: Ints) -> Events:
        """The rows in another order."""
        values = None if self.values is None else self.values[order]
        times = None if self.times is None else self.times[order]
        return self._replace(users=self.users[order], items=self.items[order], values=values, times=times)

    def need_times(self) -> Floats:
        """The times, known to put the rows in some order."""
        if self.times is None:
            raise DataError(
                f"{self.source.name} has no timestamps: a stream needs a column of times, which "
                "columns= (--columns) names"
            )
        if len(self.times) > 1 and self.times.min() == self.times.max():
            raise DataError(
                f"all rows of {self.source.file} have the same time: a stream needs timestamps that "
                "order them; use the setting 'rated' instead"
            )
        return self.times

    def need_values(self) -> Floats:
        """The values, known to be there."""
        if self.values is None:
            raise DataError(
                f"{self.source.name} has no ratings: name a column of numbers by columns= (--columns), "
                "or use the setting 'stream'"
            )
        return self.values

    def last_of_each(self) -> Events:
        """One row a pair of user and item: its last one, by time where there is one."""
        ordered = self if self.times is None else self.where_order(np.argsort(self.times, kind="stable"))
        pairs = ordered.users * self.n_items + ordered.items
        newest = len(pairs) - 1 - np.unique(pairs[::-1], return_index=True)[1]
        return ordered.where_order(newest)


def events_of(source: EventSource, rows: pl.DataFrame, *, span: tuple[float, float] | None = None) -> Events:
    """The rows (user, item[, value][, time]) with users and items numbered by ascending id."""
    users, user_ids = _numbered(rows.get_column("user"))
    items, item_ids = _numbered(rows.get_column("item"))
    if len(item_ids) < 2:
        raise DataError(f"{source.file} has a single item: there is nothing to choose between")
    values, times = (
        rows.get_column(name).to_numpy().astype(np.float64) if name in rows.columns else None
        for name in ("value", "time")
    )
    return Events(source, user_ids, item_ids, users, items, values, times, span)


def _numbered(column: pl.Series) -> tuple[Ints, Ids]:
    """The place of each entry in the list of ids, and the list: whole numbers, or else text."""
    import polars as pl

    ids = column.unique().sort()
    places = pl.DataFrame({"id": ids}).with_row_index("place")
    found = column.alias("id").to_frame().join(places, on="id", how="left", maintain_order="left")
    return found.get_column("place").to_numpy().astype(np.int64), id_array(ids)
