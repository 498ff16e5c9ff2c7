"""The arms of each event, as list columns of a table: vectors, or ids of items with known vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from coterie.errors import DataError
from coterie.policies.base import by_appearance
from coterie.types import Floats, Ints
from coterie.validation import shown

if TYPE_CHECKING:
    import polars as pl

VECTORS = "arms must be a list of vectors for each event"
ITEMS = "where it holds item ids, give their vectors too (items=, --items)"
JSON_LIST = r"^\s*\[\s*\["


ItemId: TypeAlias = int | str


class Offers(NamedTuple):
    """Vectors (N, dim), the rows of them that were offered, event after event, and where each begins.

    `ids` are the ids of the N vectors, None for one that has none; without any, it is empty.
    """

    items: Floats
    offers: Ints
    starts: Ints
    ids: Sequence[ItemId | None] = ()

    def id_lists(self) -> pl.Series:
        """The ids of the arms of each event."""
        import polars as pl

        return self._lists("ids", pl.Series("value", [self.ids[row] for row in self.offers]))

    def item_lists(self) -> pl.Series:
        """The numbers of the items of each event."""
        import polars as pl

        return self._lists("items", pl.Series("value", self.offers, pl.UInt32))

    def vector_rows(self) -> pl.Series:
        """The vectors of each event."""
        import polars as pl

        return self._lists("arms", pl.Series("value", self.items[self.offers]))

    def _lists(self, name: str, values: pl.Series) -> pl.Series:
        import polars as pl

        events = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        grouped = (
            pl.DataFrame({"event": events, name: values}).group_by("event", maintain_order=True).agg(name)
        )
        return grouped[name]

    def first_lists(self, name: str, values: Any) -> pl.Series:
        """A value for each item, in lists of those that appear for the first time in each event.

        Items are numbered as they appear.
        """
        import polars as pl

        _, first = np.unique(self.offers, return_index=True)
        events = np.searchsorted(self.starts, first, "right") - 1
        rows = pl.DataFrame({"event": events, name: pl.Series(values)})
        lists = rows.group_by("event", maintain_order=True).agg(name)
        every = pl.DataFrame({"event": np.arange(len(self.starts) - 1)})
        return every.join(lists, on="event", how="left", maintain_order="left")[name]


def numbered_ids(ids: Sequence[ItemId | None]) -> tuple[list[ItemId], Ints]:
    """Every id once, and for each of those given its position among them; −1 for None.

    >>> names, positions = numbered_ids(["tea", None, "coffee", "tea"])
    >>> names, positions.tolist()
    (['tea', 'coffee'], [0, -1, 1, 0])
    """
    numbers: dict[ItemId, int] = {}
    positions = [-1 if one is None else numbers.setdefault(one, len(numbers)) for one in ids]
    return list(numbers), np.array(positions, np.int64)


def renumbered(offers: Offers) -> Offers:
    """The same with items numbered as they appear; items that were never offered are left out."""
    _, first = np.unique(offers.offers, return_index=True)
    rows = offers.offers[np.sort(first)]
    ids = [offers.ids[row] for row in rows] if offers.ids else ()
    return Offers(offers.items[rows], by_appearance(offers.offers), offers.starts, ids)


def offers_of_vectors(column: pl.Series) -> Offers:
    """Offers from lists of vectors: nested lists, or JSON text."""
    import polars as pl

    nested = pl.List(pl.List(pl.Float64))
    lists = _decoded(column, nested) if column.dtype == pl.String else _cast(_nested(column), nested)
    vectors, starts = _flattened(lists)
    lengths = vectors.list.len().fill_null(0).to_numpy()
    wrong = np.flatnonzero((lengths != lengths[0]) | (lengths == 0))
    if len(wrong):
        event = int(np.searchsorted(starts, wrong[0], "right")) - 1
        raise DataError(
            f"event {event} (from 0): arms must be vectors of one length, got lengths {lengths[0]} and "
            f"{lengths[wrong[0]]}"
        )
    values = vectors.explode().to_numpy()  # what is missing becomes NaN, which the log refuses
    items = np.ascontiguousarray(values, np.float64).reshape(len(vectors), int(lengths[0]))
    return Offers(items, np.arange(len(vectors)), starts)


def with_ids(offers: Offers, column: pl.Series) -> Offers:
    """The same with an id for each arm: lists of whole numbers or of text, or JSON text of such lists."""
    lists = [json.loads(one) if _is_json(one) else one for one in column.to_list()]
    sizes = np.diff(offers.starts).tolist()
    for event, (ids, size) in enumerate(zip(lists, sizes, strict=True)):
        if not isinstance(ids, list) or len(ids) != size:
            raise DataError(
                f"event {event} (from 0): ids must be a list of {size}, one for each arm, got {shown(ids)}"
            )
    every = [one for ids in lists for one in ids]
    kinds = {type(one) for one in every} - {type(None)}
    if kinds not in ({int}, {str}, set()):
        raise DataError("ids must be whole numbers, or text, for all arms of the log")
    return Offers(offers.items[offers.offers], np.arange(len(every)), offers.starts, every)


def offers_of_items(ids: pl.Series, vectors: Floats) -> Callable[[pl.Series], Offers]:
    """A reader of lists of item ids, for items with these vectors."""
    import polars as pl

    if ids.is_duplicated().any():
        raise DataError(f"items must have different ids, got {ids.filter(ids.is_duplicated())[0]!r} twice")
    inner = pl.Int64() if ids.dtype.is_integer() else pl.String()
    table = pl.DataFrame({"id": ids.cast(inner)}).with_row_index("number")

    def read(column: pl.Series) -> Offers:
        kind = pl.List(inner)
        lists = _decoded(column, kind) if column.dtype == pl.String else _cast(column, kind)
        offered, starts = _flattened(lists)
        known = pl.DataFrame({"id": offered}).join(table, on="id", how="left", maintain_order="left")
        missing = known["number"].is_null()
        if missing.any():
            place = int(missing.arg_true()[0])
            event = int(np.searchsorted(starts, place, "right")) - 1
            raise DataError(f"event {event} (from 0): item {offered[place]!r} is offered but has no vector")
        return Offers(vectors, known["number"].to_numpy().astype(np.int64), starts, ids.to_list())

    return read


def _nested(column: pl.Series) -> pl.Series:
    """The column, if it holds lists of lists."""
    inner = getattr(column.dtype, "inner", None)
    if inner is None or not inner.is_nested():
        raise DataError(f"{VECTORS}, got {column.dtype}; {ITEMS}")
    return column


def _cast(column: pl.Series, kind: pl.List) -> pl.Series:
    import polars as pl

    try:
        return column.cast(kind)
    except pl.exceptions.PolarsError:
        raise DataError(f"arms must be lists of numbers or of item ids, got {column.dtype}") from None


def _decoded(column: pl.Series, kind: pl.List) -> pl.Series:
    """JSON text as lists; the first text that is none is named."""
    import polars as pl

    if kind.inner == pl.List(pl.Float64):  # polars would take [1, 2] for [[1], [2]]
        nested = column.str.contains(JSON_LIST).fill_null(False)
        _refuse_text(column, nested, f"such as [[0.1, 0.2], [0.3, 0.4]]; {ITEMS}")
    try:
        return column.str.json_decode(kind)
    except pl.exceptions.PolarsError:
        valid = pl.Series([_is_json(text) for text in column])
        _refuse_text(column, valid, "such as [[0.1, 0.2], [0.3, 0.4]], or [3, 7] for item ids")
        raise DataError(f"{VECTORS} as JSON, or a list of item ids") from None


def _refuse_text(column: pl.Series, valid: pl.Series, wanted: str) -> None:
    if not valid.all():
        event = int((~valid).arg_true()[0])
        raise DataError(f"event {event} (from 0): arms must be JSON {wanted}, got {shown(column[event])}")


def _is_json(text: object) -> bool:
    try:
        json.loads(text if isinstance(text, str) else "")
    except ValueError:
        return False
    return True


def _flattened(lists: pl.Series) -> tuple[pl.Series, Ints]:
    """All entries one after another, and where those of each event begin."""
    sizes = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    if not sizes.all():
        event = int(np.argmin(sizes != 0))
        raise DataError(f"event {event} (from 0): arms must hold at least one arm, got none")
    return lists.explode(), np.concatenate([[0], np.cumsum(sizes)])
