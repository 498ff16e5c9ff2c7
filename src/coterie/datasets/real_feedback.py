"""Payoffs of real feedback, by the name of a dataset and of a setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from coterie.datasets.dataset import Ids
from coterie.datasets.event_table import Events
from coterie.datasets.item_features import read_item_features
from coterie.datasets.item_vectors import from_events, from_ratings
from coterie.datasets.loaders import (
    coat,
    interactions,
    jester,
    lastfm,
    movielens,
    movietweetings,
    polis,
    sushi,
    yelp,
)
from coterie.datasets.payoff_table import PayoffSource, PayoffTable, SparseTable
from coterie.datasets.request import Source
from coterie.errors import ArgumentError, DataError, unknown
from coterie.extras import need
from coterie.seeding import stream
from coterie.types import Bools, Floats, Ints
from coterie.validation import number, whole

SETTINGS = ("lastfm-2014", "rated", "complete", "stream", "payoffs")
"""Settings of real feedback."""

EVENTS: Mapping[str, Callable[[Source], Events]] = MappingProxyType(
    {
        "movielens": movielens.events,
        "lastfm": lastfm.events,
        "yelp": yelp.events,
        "jester": jester.events,
        "polis": polis.events,
        "coat": coat.events,
        "movietweetings": movietweetings.events,
        "sushi": sushi.events,
    }
)
"""Datasets with rows of their own format."""

DESCRIPTIONS: Mapping[tuple[str, str], Callable[[Source, Ids, int], tuple[Floats, str]]] = MappingProxyType(
    {
        ("jester", "text"): jester.text_vectors,
        ("polis", "text"): polis.text_vectors,
        ("coat", "features"): coat.feature_vectors,
        ("movietweetings", "text"): movietweetings.text_vectors,
    }
)
"""Vectors of items that need no rating, by dataset and kind, with a hash of the file they are made of."""

GROUPS: Mapping[str, Callable[[Source, Ids], tuple[Ints, str]]] = MappingProxyType({"polis": polis.groups})
"""Groups of users that are known, −1 for none, by dataset, with a hash of the file that tells them."""

USER_FEATURES: Mapping[str, Callable[[Source, Ids], tuple[Floats, str]]] = MappingProxyType(
    {"coat": coat.user_features}
)
"""Features of users, by dataset, with a hash of the file they are in."""

VECTORS = ("users", *sorted({kind for _, kind in DESCRIPTIONS}))
"""What the vectors of items may be made of."""


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
    vectors: str = "users",
    conversation: str = "",
    seed: int = 0,
) -> PayoffTable:
    """Load payoffs of real feedback, with vectors of the items.

    Parameters
    ----------
    name : str
        Name of the dataset: "movielens", "yelp", "lastfm", "jester", "polis", "coat", "movietweetings",
        "sushi", or "interactions" for a table of your own.
    path : path or data frame, optional
        File, archive or folder; by default the folder `$COTERIE_DATA` is searched.
    setting : {"rated", "complete", "stream", "lastfm-2014", "payoffs"}, default "rated"
        What is made of it:

        - ``rated``: payoffs are ratings scaled to [0, 1], or with `threshold` 1 above it and 0 elsewhere;
          arms are items that the user really rated.
        - ``complete``: the same for the users who rated every item; the ratings of the others make the
          vectors.
        - ``stream``: events in the order of their times, each with the item that was met.
        - ``lastfm-2014``: the protocol of Gentile et al. (2014) on Last.fm.
        - ``payoffs``: a table of your own (user, item, payoff) with your own `items`.
    dim : int, default 25
        Dimension of the vectors.
    n_items : int, default 5000
        Of ``rated`` and ``stream``: at most so many items, those that occur most often among the users who
        make the vectors.
    threshold : float, optional
        Ratings above it are clicks (``rated``), or events (``stream``, where it is needed if values may be 0
        or less: a row without a click is not what the user chose).
    columns : sequence of str, optional
        Of 'interactions': the columns of users, items, values and times; for ``stream`` the last is the time.
    items : path, data frame or array, optional
        Of ``payoffs``: a table whose first column is the item and whose others are its vector (numbers, or
        one column of lists), or an array, also as a `.npy` file, with a row for each item, in ascending order
        of their ids.
    unit : bool, default False
        Of ``lastfm-2014``: whether to make the vectors 1 long.
    vectors : {"users", "text", "features"}, default "users"
        Of ``rated``, ``complete`` and ``stream``: what the vectors of items are made of. Nothing that a
        served user did is ever among it.

        - ``users``: the ratings or events of other users, who are never served: of a random half, or with
          ``complete`` of all who did not rate everything.
        - ``text``: the words of the items ('jester', 'polis', 'movietweetings'). All users can be served.
        - ``features``: features that the dataset has of items ('coat'). All users can be served.
    conversation : str, default ""
        Of 'polis': the name of a folder, for one conversation instead of all.
    seed : int, default 0
        Seed of the half of the users that makes the vectors, at least 0.

    Returns
    -------
    PayoffTable
        To be given to `coterie.environments.Payoffs`, or for ``stream`` to `coterie.environments.Stream`. Of
        'polis' it has the participants whose opinion group is known, with their groups; of 'coat', the
        ratings of coats that were drawn at random, and the features of users.

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
        known = ", ".join(EVENTS)
        raise ArgumentError(f"{setting!r} needs real feedback: {known} or interactions, got {name!r}")
    if threshold is not None:
        number("threshold", threshold)
    describe = _description(name, setting, vectors)
    if conversation and name != "polis":
        raise ArgumentError(f"conversation is for 'polis', not for {name!r}")
    if conversation:
        path = polis.find_conversation(path, conversation)
    if setting == "lastfm-2014":
        if name != "lastfm":
            raise ArgumentError(f"'lastfm-2014' is a protocol on the dataset 'lastfm', got {name!r}")
        return lastfm.listens(path, dim=whole("dim", dim, 1), unit=unit)
    need("polars", "reading a table")
    if items is not None and setting != "payoffs":
        raise ArgumentError(
            f"items are for the setting 'payoffs': {setting!r} makes vectors from other users' feedback"
        )
    events = _events(name, path, columns, timed=setting == "stream")
    if setting == "payoffs":
        if threshold is not None:
            raise ArgumentError("threshold has no effect on the setting 'payoffs', whose values are rewards")
        return _own(events, items)
    size, most = whole("dim", dim, 2), whole("n_items", n_items, 2)
    if setting == "stream":
        has_values = name == "interactions" and events.values is not None
        if threshold is None and has_values and (events.need_values() <= 0).any():
            raise ArgumentError(
                "threshold must be given where values of a stream may be 0 or less, such as 0 for clicks: "
                "rows above it are what the user chose; to take every row, name no value column"
            )
        events = _in_time(events, threshold)
    else:
        events.need_values()
        events = events.last_of_each()
    hold_out = describe is None
    split = _Split(events, _served(events, setting, hold_out, seed), most, hold_out=hold_out)
    if setting == "stream":
        table = _stream(events, split, size)
    else:
        table = _rated(events, split, size, threshold, setting)
    if describe is not None:
        table = _described(table, describe(path, table.item_ids, size))
    if name in GROUPS and setting != "stream":
        table = _grouped(table, GROUPS[name](path, table.user_ids))
    if name in USER_FEATURES:
        features, hashed = USER_FEATURES[name](path, table.user_ids)
        features.setflags(write=False)
        table = table._replace(user_features=features, provenance=_joint(table.provenance, hashed))
    return table


def _description(
    name: str, setting: str, vectors: str
) -> Callable[[Source, Ids, int], tuple[Floats, str]] | None:
    """What makes the vectors of items without any ratings; None for vectors from other users."""
    if vectors not in VECTORS:
        raise unknown("kind of vectors", vectors, VECTORS, f"They are {', '.join(VECTORS)}")
    if vectors == "users":
        return None
    if setting not in ("rated", "complete", "stream"):
        raise ArgumentError(f"the setting {setting!r} has vectors of its own: vectors must be 'users'")
    if (name, vectors) not in DESCRIPTIONS:
        able = [one for one, kind in DESCRIPTIONS if kind == vectors]
        raise ArgumentError(f"vectors={vectors!r} is for {', '.join(able)}, not for {name!r}")
    return DESCRIPTIONS[name, vectors]


def _events(name: str, path: Source, columns: Sequence[str] | None, *, timed: bool) -> Events:
    if name == "interactions":
        return interactions.events(path, columns, timed=timed)
    if columns is not None:
        raise ArgumentError(f"columns are for 'interactions', not for {name!r}")
    return EVENTS[name](path)


def _served(events: Events, setting: str, hold_out: bool, seed: int) -> Bools:
    """Users that may be served: those who rated all items, or a random half; all users without `hold_out`."""
    if setting == "complete":
        served: Bools = np.bincount(events.users, minlength=events.n_users) == events.n_items
        if not served.any():
            raise DataError(f"no user of {events.source.file} rated all {events.n_items:,} items")
        if hold_out and served.all():
            raise DataError(
                "all users rated all items, so that no user is left whose ratings make the item vectors"
            )
        return served
    if not hold_out:
        return np.ones(events.n_users, np.bool_)
    order = stream(seed, "datasets", "held out").permutation(events.n_users)
    served = np.zeros(events.n_users, np.bool_)
    served[order[events.n_users // 2 :]] = True
    return served


class _Split:
    """Users whose ratings make the item vectors, users who are served, and the items of both.

    Without `hold_out` no vectors are made from ratings, and the items are those that occur most often.
    """

    def __init__(self, events: Events, served: Bools, n_items: int, *, hold_out: bool) -> None:
        self.served, self.hold_out = served, hold_out
        own = served[events.users] & hold_out
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
        own = served[usable.users]
        self.history, self.rows = usable.where(~own), usable.where(own)


def _rated(events: Events, split: _Split, dim: int, threshold: float | None, setting: str) -> PayoffTable:
    """Ratings scaled to [0, 1], or clicks; vectors of `dim` dimensions from users who are never served."""
    history, rows = split.history, split.rows
    scale = _scale(history if split.hold_out else rows, threshold)
    vectors = None
    if split.hold_out:
        vectors = from_ratings(history, scale(history.need_values()), len(split.kept), dim)
    return _table(setting, events, split, vectors, scale(rows.need_values()))


def _scale(history: Events, threshold: float | None) -> Callable[[Floats], Floats]:
    """From values to [0, 1]; an unknown span is that of the users whose ratings make the vectors."""
    if threshold is not None:
        return lambda values: (values > threshold).astype(np.float64)
    values = history.need_values()
    low, high = history.span or (float(values.min()), float(values.max()))
    if low == high:
        raise DataError(f"all ratings are {low:g}: there is nothing to learn from them")
    return lambda values: np.clip((values - low) / (high - low), 0.0, 1.0)


def _in_time(events: Events, threshold: float | None) -> Events:
    """The events in the order of their times; with a threshold, those whose value is above it."""
    ordered = events.in_order()
    return ordered if threshold is None else ordered.where(ordered.need_values() > threshold)


def _stream(events: Events, split: _Split, dim: int) -> PayoffTable:
    """Events in order of time; vectors of `dim` dimensions from users who are never served."""
    rows = split.rows
    if not len(rows.users):
        raise DataError("no event is left: none of the users who are served met an item that others met")
    vectors = from_events(split.history, len(split.kept), dim) if split.hold_out else None
    table = _table("stream", events, split, vectors, np.ones(len(rows.users)))
    table.payoffs.values[:] = 1.0
    return table._replace(events=_by_appearance(rows, split.served))


def _described(table: PayoffTable, found: tuple[Floats, str]) -> PayoffTable:
    """The table with vectors that need no ratings; its hash is that of both files."""
    vectors, hashed = found
    vectors.setflags(write=False)
    return table._replace(items=vectors, provenance=_joint(table.provenance, hashed))


def _grouped(table: PayoffTable, found: tuple[Ints, str]) -> PayoffTable:
    """The table of the users whose group is known, with their groups."""
    groups, hashed = found
    kept = np.flatnonzero(groups >= 0)
    if not len(kept):
        raise DataError(f"no user of {table.provenance.file} is in a group")
    source = _joint(table.provenance, hashed)
    if len(kept) < len(groups):
        few = f"{len(groups) - len(kept):,} of {len(groups):,} users, who are in no group"
        source = replace(source, left_out=(*source.left_out, few))
    return table._replace(
        payoffs=table.payoffs.select(kept),
        user_ids=table.user_ids[kept],
        groups=groups[kept],
        provenance=source,
    )


def _joint(source: PayoffSource, hashed: str) -> PayoffSource:
    """The source with the hash of one more file."""
    return replace(source, sha256=sha256(f"{source.sha256} {hashed}".encode()).hexdigest())


def _by_appearance(rows: Events, served: Bools) -> Ints:
    """The events with users as rows of the table."""
    return np.column_stack([(np.cumsum(served) - 1)[rows.users], rows.items]).astype(np.int64)


def _counts(events: Events, split: _Split) -> tuple[str, ...]:
    """Sentences on what was left out."""
    served, n_users = int(split.served.sum()), events.n_users
    items = f"{events.n_items - split.rows.n_items:,} of {events.n_items:,} items"
    if split.hold_out:
        return (
            f"{n_users - served:,} of {n_users:,} users, whose feedback makes the item vectors",
            f"{items}, with too little of that feedback",
        )
    left_out = []
    if served < n_users:
        left_out.append(f"{n_users - served:,} of {n_users:,} users, who did not rate every item")
    if split.rows.n_items < events.n_items:
        left_out.append(f"{items}, those with the fewest rows")
    return tuple(left_out)


def _table(
    setting: str, events: Events, split: _Split, vectors: Floats | None, values: Floats
) -> PayoffTable:
    """The payoffs of those who are served; vectors that are not made yet are zero."""
    rows, served = split.rows, np.flatnonzero(split.served)
    users = np.searchsorted(served, rows.users)
    payoffs = SparseTable(users, rows.items, values, (len(served), len(split.kept)))
    vectors = np.zeros((len(split.kept), 1)) if vectors is None else vectors
    vectors.setflags(write=False)
    source = events.source
    return PayoffTable(
        items=vectors,
        payoffs=payoffs,
        user_ids=events.user_ids[served],
        item_ids=events.item_ids[split.kept],
        provenance=PayoffSource(
            name=source.name,
            setting=setting,
            file=source.file,
            sha256=source.sha256,
            left_out=_counts(events, split),
        ),
        offers="one-positive" if setting == "stream" else "known",
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


def _item_table(items: Source | ArrayLike, wanted: Ids) -> tuple[Floats, str]:
    """The vectors of these items in order, from a table or an array, and a hash of the table."""
    if items is None:
        raise ArgumentError(
            "'payoffs' needs vectors of the items: items=FILE, whose first column is the item and the others "
            "its vector; the setting 'rated' makes vectors from other users"
        )
    found = read_item_features(items)
    if found.ids is None:
        if len(found.vectors) != len(wanted):
            raise ArgumentError(
                f"items must have a row for each of the {len(wanted)} items of the table, in ascending order "
                f"of their ids, got {found.vectors.shape}"
            )
        return found.vectors, found.sha256
    places = {str(one): k for k, one in enumerate(found.ids.to_list())}
    for one in wanted.tolist():
        if str(one) not in places:
            raise DataError(f"{found.file} has no vector of the item {one!r}")
    rows = [places[str(one)] for one in wanted.tolist()]
    return np.ascontiguousarray(found.vectors[rows]), found.sha256
