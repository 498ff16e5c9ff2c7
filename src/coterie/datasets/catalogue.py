"""All datasets by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from coterie.datasets import interactions, lastfm, movielens, synthetic, yelp
from coterie.datasets.dataset import Dataset
from coterie.datasets.description import About
from coterie.datasets.request import Request, Source
from coterie.errors import unknown


class DatasetEntry(NamedTuple):
    """A dataset in words, and the function that makes it."""

    about: About
    make: Callable[[Request], Dataset]


CATALOGUE: Mapping[str, DatasetEntry] = MappingProxyType(
    {
        module.ABOUT.name: DatasetEntry(module.ABOUT, module.make)
        for module in (synthetic, movielens, lastfm, yelp, interactions)
    }
)


def names() -> tuple[str, ...]:
    """The names that `load` knows.

    >>> names()
    ('synthetic', 'movielens', 'lastfm', 'yelp', 'interactions')
    """
    return tuple(CATALOGUE)


def about(name: str) -> About:
    """What a dataset is, where to download it and what its licence asks.

    >>> about("lastfm").files
    ('user_taggedartists.dat',)
    """
    return _entry(name).about


def load(
    name: str,
    path: Source = None,
    *,
    dim: int = 50,
    n_users: int = 200,
    n_items: int = 5000,
    scale: str = "unit",
    seed: int = 0,
    threshold: float | None = None,
    columns: Sequence[str] | None = None,
    missing: str = "refuse",
    separator: str | None = None,
    encoding: str | None = None,
) -> Dataset:
    """Vectors of users and items, made as the paper makes them   (Sec. 6.2).

    Parameters
    ----------
    name : str
        One of `names()`.
    path : path or data frame, optional
        A file, an archive or a folder, or for 'interactions' a data frame; without one the folder
        $COTERIE_DATA is searched.
    dim : int, default 50
        Length of the vectors.
    n_users, n_items : int, default 200 and 5000
        How many are kept: those with the most rows.
    scale : {"unit", "raw", "sqrt-s"}
        Length of the vectors.
    seed : int, default 0
        Matters to 'synthetic' only.
    threshold : float, optional
        For 'interactions': feedback is 1 above this value. Without it every row is feedback 1.
    columns : sequence of str, optional
        For 'interactions': the columns of users, items and, with a threshold, values. The first ones unless
        given.
    missing : {"refuse", "drop"}
        For 'interactions': what becomes of rows that lack a user, an item or a value.
    separator : str, optional
        For a CSV file of 'interactions': what separates columns. Found from the header unless given.
    encoding : str, optional
        For a CSV file of 'interactions'; UTF-8 unless given.

    Returns
    -------
    Dataset
        Vectors of users and items, with their ids and their provenance.

    Raises
    ------
    ArgumentError, UnknownName
        If an argument cannot be used.
    DataError, MissingData
        If a file is malformed, or not there.

    Examples
    --------
    >>> data = load("synthetic", dim=3, n_users=2, n_items=4, seed=7)
    >>> data.users.shape, data.items.shape
    ((2, 3), (4, 3))
    """
    entry = _entry(name)
    request = Request(
        path=path,
        dim=dim,
        n_users=n_users,
        n_items=n_items,
        scale=scale,
        seed=seed,
        threshold=threshold,
        columns=columns,
        missing=missing,
        separator=separator,
        encoding=encoding,
    )
    return entry.make(request)


def _entry(name: str) -> DatasetEntry:
    if name not in CATALOGUE:
        raise unknown("dataset", name, CATALOGUE, f"The datasets are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]
