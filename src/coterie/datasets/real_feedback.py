"""Payoffs of real feedback, by the name of a dataset and of a setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coterie.datasets.dataset import Ids
from coterie.datasets.event_table import Events
from coterie.datasets.item_vectors import from_events, from_ratings
from coterie.datasets.loaders import interactions, lastfm, movielens, yelp
from coterie.datasets.loaders.interactions import flat, ids, numbers, refuse_missing
from coterie.datasets.payoff_table import PayoffSource, PayoffTable, SparseTable
from coterie.datasets.request import Frame, Source
from coterie.errors import ArgumentError, DataError, unknown
from coterie.extras import need
from coterie.seeding import stream
from coterie.types import Bools, Floats, Ints
from coterie.validation import finite, number, reals, whole

SETTINGS = ("lastfm-2014", "rated", "stream", "payoffs")
"""Settings of real feedback."""

EVENTS: Mapping[str, Callable[[Source], Events]] = MappingProxyType(
    {"movielens": movielens.events, "lastfm": lastfm.events, "yelp": yelp.events}
)
"""Datasets with rows of their own format."""


def load_payoffs(
    name: str,
    path: Source = None,
    *,
    setting: str = "rated",
    dim: int = 25,
    n_items: int = 5000,
    threshold: float | None = None,
    columns: Sequence[str] | None = None,
    items: Source | ArrayLike = None,
    unit: bool = False,
    seed: int = 0,
) -> PayoffTable:
    """Load payoffs of real feedback, with vectors of the items.

    Parameters
    ----------
    name : {"movielens", "yelp", "lastfm", "interactions"}
        Name of the dataset; "interactions" for a table of your own.
    path : path or data frame, optional
        File, archive or folder; by default the folder `$COTERIE_DATA` is searched.
    setting : {"rated", "stream", "lastfm-2014", "payoffs"}, default "rated"
        What is made of it:

        - ``rated``: payoffs are ratings scaled to [0, 1], or with `threshold` 1 above it and 0 elsewhere;
          arms are items that the user really rated.
        - ``stream``: events in the order of their times, each with the item that was met.
        - ``lastfm-2014``: the protocol of Gentile et al. (2014) on Last.fm.
        - ``payoffs``: a table of your own (user, item, payoff) with your own `items`.
    dim : int, default 25
        Length of the vectors; ``rated`` and ``stream`` make them from half of the users, never served.
    n_items : int, default 5000
        Of ``rated`` and ``stream``: at most so many items, those that occur most often among these users.
    threshold : float, optional
        Ratings above it are clicks (``rated``), or events (``stream``).
    columns : sequence of str, optional
        Of 'interactions': the columns of users, items, values and times; for ``stream`` the last is the time.
    items : path, data frame or array, optional
        Of ``payoffs``: a table whose first column is the item and whose others are its vector, or an array
        with a row for each item, in ascending order of their ids.
    unit : bool, default False
        Of ``lastfm-2014``: whether to make the vectors 1 long.
    seed : int, default 0
        Seed of the half of the users that makes the vectors, at least 0.

    Returns
    -------
    PayoffTable
        To be given to `coterie.environments.Payoffs`, or for ``stream`` to `coterie.environments.Stream`.

    Raises
    ------
    MissingData
        If a file is not there.
    DataError
        If a table cannot be used: no timestamps, one rating a user, a single item, not a number.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"who": [1, 1, 2], "what": ["a", "b", "a"], "worth": [1.0, 0.5, 0.0]})
    >>> load_payoffs("interactions", table, setting="payoffs", items=[[1, 0], [0, 1]])
    <PayoffTable interactions, payoffs: 2 users, 2 items of 2 dimensions, 3 payoffs>
    """
    if setting not in SETTINGS:
        raise unknown("setting of real feedback", setting, SETTINGS, f"They are {', '.join(SETTINGS)}")
    if name not in (*EVENTS, "interactions"):
        raise ArgumentError(
            f"{setting!r} needs real feedback: movielens, yelp, lastfm or interactions, got {name!r}"
        )
    if threshold is not None:
        number("threshold", threshold)
    if setting == "lastfm-2014":
        if name != "lastfm":
            raise ArgumentError(f"'lastfm-2014' is a protocol on the dataset 'lastfm', got {name!r}")
        return lastfm.listens(path, dim=whole("dim", dim, 1), unit=unit)
    need("polars", "reading a table")
    events = _events(name, path, columns, timed=setting == "stream")
    if setting == "payoffs":
        return _own(events, items)
    sizes = whole("dim", dim, 2), whole("n_items", n_items, 2)
    make = _rated if setting == "rated" else _stream
    return make(events, *sizes, threshold, seed)


def _events(name: str, path: Source, columns: Sequence[str] | None, *, timed: bool) -> Events:
    if name == "interactions":
        return interactions.events(path, columns, timed=timed)
    if columns is not None:
        raise ArgumentError(f"columns are for 'interactions', not for {name!r}")
    return EVENTS[name](path)


class _Halves:
    """Users whose ratings make the item vectors, users who are served, and the items of both."""

    def __init__(self, events: Events, n_items: int, seed: int) -> None:
        order = stream(seed, "datasets", "held out").permutation(events.n_users)
        self.served: Bools = np.zeros(events.n_users, np.bool_)
        self.served[order[events.n_users // 2 :]] = True
        own = self.served[events.users]
        counts = np.bincount(events.items[~own], minlength=events.n_items)
        found = int((counts > 0).sum())
        if found < 2:
            raise DataError("item vectors are made from half of the users, who have fewer than two items")
        ranked = np.lexsort((np.arange(events.n_items), -counts))[: min(n_items, found)]
        self.kept: Ints = np.sort(ranked)
        places = np.full(events.n_items, -1)
        places[self.kept] = np.arange(len(self.kept))
        usable = events.where(places[events.items] >= 0)
        usable = usable._replace(items=places[usable.items], item_ids=events.item_ids[self.kept])
        own = self.served[usable.users]
        self.history, self.rows = usable.where(~own), usable.where(own)


def _rated(events: Events, dim: int, n_items: int, threshold: float | None, seed: int) -> PayoffTable:
    """Ratings scaled to [0, 1], or clicks; vectors from the half of the users that is never served."""
    events.need_values()
    events = events.last_of_each()
    halves = _Halves(events, n_items, seed)
    scale = _scale(halves.history, threshold)
    history, rows = halves.history, halves.rows
    vectors = from_ratings(history, scale(history.need_values()), len(halves.kept), dim)
    return _table("rated", events, halves, vectors, scale(rows.need_values()), _counts(events, rows))


def _scale(history: Events, threshold: float | None) -> Callable[[Floats], Floats]:
    """From values to [0, 1]; an unknown span is that of the users whose ratings make the vectors."""
    if threshold is not None:
        return lambda values: (values > threshold).astype(np.float64)
    values = history.need_values()
    low, high = history.span or (float(values.min()), float(values.max()))
    if low == high:
        raise DataError(f"all ratings are {low:g}: there is nothing to learn from them")
    return lambda values: np.clip((values - low) / (high - low), 0.0, 1.0)


def _stream(events: Events, dim: int, n_items: int, threshold: float | None, seed: int) -> PayoffTable:
    """Events in order of time; vectors from the half of the users that is never served."""
    everything = events.in_order()
    if threshold is not None:
        everything = everything.where(everything.need_values() > threshold)
    halves = _Halves(everything, n_items, seed)
    if not len(halves.rows.users):
        raise DataError("no event is left: none of the users who are served met an item that others met")
    vectors = from_events(halves.history, len(halves.kept), dim)
    rows = halves.rows
    table = _table("stream", everything, halves, vectors, np.ones(len(rows.users)), _counts(everything, rows))
    table.payoffs.values[:] = 1.0
    return table._replace(events=_by_appearance(rows, halves.served))


def _by_appearance(rows: Events, served: Bools) -> Ints:
    """The events with users as rows of the table."""
    return np.column_stack([(np.cumsum(served) - 1)[rows.users], rows.items]).astype(np.int64)


def _counts(events: Events, rows: Events) -> tuple[str, ...]:
    """Sentences on what was left out."""
    return (
        f"{events.n_users // 2:,} of {events.n_users:,} users, whose feedback makes the item vectors",
        f"{events.n_items - rows.n_items:,} of {events.n_items:,} items, with too little of that feedback",
    )


def _table(
    setting: str, events: Events, halves: _Halves, vectors: Floats, values: Floats, left_out: tuple[str, ...]
) -> PayoffTable:
    rows, served = halves.rows, np.flatnonzero(halves.served)
    users = np.searchsorted(served, rows.users)
    payoffs = SparseTable(users, rows.items, values, (len(served), len(halves.kept)))
    vectors.setflags(write=False)
    source = events.source
    return PayoffTable(
        items=vectors,
        payoffs=payoffs,
        user_ids=events.user_ids[served],
        item_ids=events.item_ids[halves.kept],
        provenance=PayoffSource(
            name=source.name, setting=setting, file=source.file, sha256=source.sha256, left_out=left_out
        ),
        offers="known" if setting == "rated" else "one-positive",
    )


def _own(events: Events, items: Source | ArrayLike) -> PayoffTable:
    """Payoffs and item vectors of your own tables."""
    events.need_values()
    vectors, hashed = _item_table(items, events.item_ids)
    last = events.last_of_each()
    shape = (events.n_users, events.n_items)
    payoffs = SparseTable(last.users, last.items, last.need_values(), shape)
    source = PayoffSource(
        name=events.source.name,
        setting="payoffs",
        file=events.source.file,
        sha256=f"{events.source.sha256}{hashed}",
    )
    return PayoffTable(vectors, payoffs, events.user_ids, events.item_ids, source)


def _item_table(items: Any, wanted: Ids) -> tuple[Floats, str]:
    """The vectors of these items in order, from a table or an array, and a hash of the table."""
    if items is None:
        raise ArgumentError(
            "'payoffs' needs vectors of the items: items=FILE, whose first column is the item and the others "
            "its vector; the setting 'rated' makes vectors from other users"
        )
    if not isinstance(items, str | Path | Frame):
        vectors = finite("items", reals("items", items, "an (n_items, dim) array"))
        if vectors.ndim != 2 or len(vectors) != len(wanted):
            raise ArgumentError(
                f"items must have a row for each of the {len(wanted)} items of the table, got {vectors.shape}"
            )
        return np.array(vectors), ""
    with interactions.opened_table(items) as (table, source):
        first, *others = flat(table.columns).get_columns()
        if not others:
            raise DataError(f"{source.file} needs a column for the item and further ones for its vector")
        for column in (first, *others):
            refuse_missing(table, column)
        matrix = np.column_stack([numbers(column, table).to_numpy() for column in others])
        places = {str(one): k for k, one in enumerate(ids(first, table).to_list())}
    for one in wanted.tolist():
        if str(one) not in places:
            raise DataError(f"{source.file} has no vector of the item {one!r}")
    return np.ascontiguousarray(matrix[[places[str(one)] for one in wanted.tolist()]]), source.sha256
