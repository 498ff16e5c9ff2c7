"""Logs that say what was played and not what was offered: which arms a decision is taken to be among."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coterie.errors import ArgumentError, DataError
from coterie.evaluation.arms import Offers
from coterie.evaluation.service_export import MOST_OFFERED
from coterie.seeding import check_seed, stream
from coterie.types import Floats, Ints
from coterie.validation import shown, whole

if TYPE_CHECKING:
    import polars as pl

USUAL_ARMS = 20
"""Items that a decision is taken to be among."""

MOST_ONE_HOT = 64
"""Without vectors, at most so many items get a feature each."""


class Choices(NamedTuple):
    """What each decision was among, and which of it was played.

    `catalogue_size` is the number of items that offers were drawn from, 0 where they were logged.
    """

    offers: Offers
    chosen: Ints
    catalogue_size: int = 0


def drawn_offers(
    played: pl.Series,
    vectors: tuple[pl.Series, Floats] | None,
    n_arms: int | None,
    has_propensities: bool,
    seed: int,
) -> Choices:
    """Return offers for the items that were played: each with others drawn uniformly from the catalogue.

    Where the propensity among all items is known, all of them are offered.
    """
    ids, features = _one_hot(played) if vectors is None else vectors
    rows = _rows(played, ids)
    n, size = len(rows), len(ids)
    if has_propensities and n_arms is not None:
        raise ArgumentError(
            "n_arms has no effect beside propensities, which are among all items: leave it out"
        )
    if has_propensities:
        k = size
    else:
        k = min(USUAL_ARMS, size) if n_arms is None else whole("n_arms", n_arms, 2, max(size, 2))
    if n * k > MOST_OFFERED:
        raise DataError(f"decisions were among more than {MOST_OFFERED:,} arms in all; give fewer of them")
    rng = stream(check_seed(seed), "offers")
    drawn = _others(rows, size, k, rng)
    # At a random place, because ties go to the first arm.
    chosen = rng.integers(0, k, n)
    order = np.arange(n)
    drawn[order, 0], drawn[order, chosen] = drawn[order, chosen], drawn[order, 0]
    offers = Offers(features, drawn.reshape(-1), np.arange(n + 1) * k, ids.to_list())
    return Choices(offers, chosen, size)


def positions_of(played: pl.Series, offers: Offers) -> Ints:
    """Return the position of the item that was played among those that each event offered."""
    if not offers.ids:
        raise ArgumentError("item names what was played, but arms are vectors without ids: give arm or ids")
    found = np.empty(len(played), np.int64)
    for event, item in enumerate(played.to_list()):
        offered = [offers.ids[row] for row in offers.offers[offers.starts[event] : offers.starts[event + 1]]]
        if item not in offered:
            raise DataError(f"event {event} (from 0): item {shown(item)} is not among the arms on offer")
        found[event] = offered.index(item)
    return found


def _rows(played: pl.Series, ids: pl.Series) -> Ints:
    """The row of each item that was played."""
    import polars as pl

    if ids.is_duplicated().any():
        raise DataError(f"items must have different ids, got {ids.filter(ids.is_duplicated())[0]!r} twice")
    kind = pl.Int64() if ids.dtype.is_integer() and played.dtype.is_integer() else pl.String()
    table = pl.DataFrame({"id": ids.cast(kind)}).with_row_index("row")
    joined = pl.DataFrame({"id": played.cast(kind)}).join(table, on="id", how="left", maintain_order="left")
    missing = joined["row"].is_null()
    if missing.any():
        event = int(missing.arg_true()[0])
        raise DataError(f"event {event} (from 0): item {played[event]!r} has no vector in the table of items")
    return joined["row"].to_numpy().astype(np.int64)


def _one_hot(played: pl.Series) -> tuple[pl.Series, Floats]:
    """A feature for each item of a log, if there are few."""
    ids = played.unique(maintain_order=True)
    if len(ids) > MOST_ONE_HOT:
        raise ArgumentError(
            f"the log has {len(ids):,} items and no vectors of them: give a table of item id and features "
            "(items=, --items)"
        )
    return ids, np.eye(len(ids))


def _others(rows: Ints, size: int, k: int, rng: np.random.Generator) -> Ints:
    """The played row of each event, then k − 1 different others (Floyd's sampling, all events at once)."""
    n = len(rows)
    found = np.empty((n, k), np.int64)
    found[:, 0] = rows
    for place, last in enumerate(range(size - k, size - 1), start=1):
        drawn = rng.integers(0, last + 1, n)
        seen = np.any(found[:, 1:place] == drawn[:, None], axis=1)
        found[:, place] = np.where(seen, last, drawn)
    found[:, 1:] += found[:, 1:] >= rows[:, None]  # numbers among the others become rows
    return found
