"""Logs that a service has exported: decisions name a version of the catalogue, whose items are a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.errors import ArgumentError, DataError
from coterie.evaluation.arms import ItemId, Offers
from coterie.types import Bools, Floats, Ints
from coterie.validation import shown

if TYPE_CHECKING:
    import polars as pl

DECISION_COLUMNS = ("user", "item", "x", "catalogue", "exclude", "only", "arms", "arm")
ITEM_COLUMNS = ("id", "since", "until", "x", "tags")
MOST_OFFERED = 2**26
"""Arms that the decisions of a log may have been offered in all: 8 bytes each, in a few arrays."""


class ReadOffers(NamedTuple):
    """The offers of those rows of an export that have one, which arm was shown, and which rows these are."""

    offers: Offers
    chosen: Ints
    rows: Ints


def is_service_export(columns: Iterable[str]) -> bool:
    """Tell whether a table is what a service exports as its decisions."""
    return set(DECISION_COLUMNS) <= set(columns)


def has_versions(columns: Iterable[str]) -> bool:
    """Tell whether a table is what a service exports as its items."""
    return set(ITEM_COLUMNS) <= set(columns)


class ItemVersions:
    """All versions of a catalogue, from the table of items that a service exports.

    Parameters
    ----------
    table : polars.DataFrame
        A row for each item and each vector that it has had: `id`, `x` and `tags`, which it had from version
        `since` of the catalogue to version `until`, without that one; null if it still has them.
    """

    def __init__(self, table: pl.DataFrame) -> None:
        """Read the table."""
        self.ids: list[str] = table["id"].to_list()
        lengths = table["x"].list.len().unique().to_list()
        if len(lengths) != 1 or not lengths[0]:
            raise DataError(f"items must have vectors of one length, got lengths {shown(sorted(lengths))}")
        self.vectors = table["x"].explode().to_numpy().astype(np.float64).reshape(-1, lengths[0])
        self._since = table["since"].to_numpy()
        self._until = table["until"].fill_null(2**62).to_numpy()
        self._tags = [frozenset(tags or ()) for tags in table["tags"].to_list()]
        self._rows: dict[str, list[int]] = {}
        for row, item in enumerate(self.ids):
            self._rows.setdefault(item, []).append(row)

    def row(self, item: str, version: int) -> int:
        """Return the row of an item at a version of the catalogue; −1 if it was not there."""
        rows = self._rows.get(item, ())
        return next((row for row in rows if self._since[row] <= version < self._until[row]), -1)

    def offered(self, version: int, row: dict[str, Any]) -> Ints:
        """Return the rows of the table that a decision was among."""
        there: Bools = (self._since <= version) & (version < self._until)
        if row.get("items") is not None:
            there &= self._of(row["items"])
        if row["exclude"] is not None:
            there &= ~self._of(row["exclude"])
        found = np.flatnonzero(there)
        if row["only"] is not None:
            wanted = frozenset(row["only"])
            found = np.array([one for one in found.tolist() if self._tags[one] & wanted], np.int64)
        return found

    def _of(self, items: Iterable[str]) -> Bools:
        found = np.zeros(len(self.ids), np.bool_)
        found[[row for item in items for row in self._rows.get(item, ())]] = True
        return found


def read_offers(decisions: pl.DataFrame, items: pl.DataFrame | None) -> ReadOffers:
    """Return what each decision of an export was among.

    Decisions among arms of which the log kept the chosen one alone are left out.

    Raises
    ------
    ArgumentError
        If the decisions name versions of a catalogue, and the table of its items is missing.
    DataError
        If a decision contradicts that table, or none can be used.
    """
    versions = None if items is None else ItemVersions(items)
    vectors: list[Floats] = [] if versions is None else [versions.vectors]
    ids: list[ItemId | None] = [] if versions is None else [*versions.ids]
    count, total = 0 if versions is None else len(versions.ids), 0
    offers: list[Ints] = []
    chosen: list[int] = []
    rows: list[int] = []
    for number, row in enumerate(decisions.iter_rows(named=True)):
        if row["arms"] is not None:
            matrix = np.array(row["arms"], np.float64)
            vectors.append(matrix)
            ids += row.get("ids") or [None] * len(matrix)
            offers.append(np.arange(count, count + len(matrix)))
            chosen.append(int(row["arm"]))
            count += len(matrix)
        elif row["catalogue"] is not None:
            if versions is None:
                raise ArgumentError(
                    "the log names versions of a catalogue: give the table of its items too (items=, --items)"
                )
            version = int(row["catalogue"])
            offers.append(versions.offered(version, row))
            shown_row = versions.row(row["item"], version)
            if shown_row not in offers[-1]:
                raise DataError(
                    f"event {number} (from 0): item {shown(row['item'])} was shown, and the table of items "
                    f"does not have it at version {version} of the catalogue"
                )
            chosen.append(int(np.searchsorted(offers[-1], shown_row)))
        else:
            continue
        rows.append(number)
        total += len(offers[-1])
        if total > MOST_OFFERED:
            raise DataError(
                f"decisions were among more than {MOST_OFFERED:,} arms in all; give fewer of them"
            )
    if not rows:
        raise DataError("the log has no decision with all that it was among; log_offers='all' keeps that")
    starts = np.concatenate([[0], np.cumsum([len(one) for one in offers])])
    found = Offers(np.concatenate(vectors), np.concatenate(offers), starts, ids)
    return ReadOffers(found, np.array(chosen, np.int64), np.array(rows, np.int64))
