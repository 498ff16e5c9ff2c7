"""The catalogue of datasets, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from coterie.datasets.dataset import Dataset
from coterie.datasets.loaders import (
    coat,
    interactions,
    jester,
    lastfm,
    movielens,
    movietweetings,
    polis,
    sushi,
    synthetic,
    yelp,
)
from coterie.datasets.request import Request, Source
from coterie.datasets.sources import About
from coterie.errors import unknown


class DatasetEntry(NamedTuple):
    """A dataset in words, and the function that makes it."""

    about: About
    make: Callable[[Request], Dataset]


CATALOGUE: Mapping[str, DatasetEntry] = MappingProxyType(
    {
        module.ABOUT.name: DatasetEntry(module.ABOUT, module.make)
        for module in (
            synthetic,
            movielens,
            lastfm,
            yelp,
            jester,
            polis,
            coat,
            movietweetings,
            sushi,
            interactions,
        )
    }
)


def names() -> tuple[str, ...]:
    """List the names that `load` knows.

    Returns
    -------
    tuple of str
        Names of the datasets.

    Examples
    --------
    >>> names()[:4]
    ('synthetic', 'movielens', 'lastfm', 'yelp')
    """
    return tuple(CATALOGUE)


def about(name: str) -> About:
    """Describe a dataset: its content, where to download it, and its licence.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    About
        The description.

    Raises
    ------
    UnknownName
        If there is no such dataset; the message suggests the nearest name.

    Examples
    --------
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
    """Load a dataset as vectors of users and items   (Sec. 6.2).

    Parameters
    ----------
    name : str
        One of `names()`; "interactions" for a table of your own.
    path : path or data frame, optional
        File, archive or folder; for 'interactions' also a data frame of pandas, polars or pyarrow. By default
        the folder `$COTERIE_DATA` is searched. 'synthetic' takes none.
    dim : int, default 50
        Dimension of the vectors, at least 1.
    n_users : int, default 200
        Number of users to keep, at least 1: those with the most rows. Fewer are kept if the data has fewer.
    n_items : int, default 5000
        Number of items to keep, at least 1: those with the most rows.
    scale : {"unit", "raw", "sqrt-s"}, default "unit"
        Scaling of the vectors: to length 1, as the decomposition gives them, or multiplied by the roots of
        the singular values. The constants of policies are meant for "unit".
    seed : int, default 0
        Seed of 'synthetic', at least 0; other datasets do not depend on it.
    threshold : float, optional
        For 'interactions': feedback is 1 above this value, such as 3 for stars from 1 to 5. By default every
        row is feedback 1.
    columns : sequence of str, optional
        For 'interactions': names of the columns of users, items and, with a threshold, values. By default the
        first ones.
    missing : {"refuse", "drop"}, default "refuse"
        For 'interactions': what becomes of rows that lack a user, an item or a value.
    separator : str, optional
        For a CSV file of 'interactions': what separates columns. By default it is found from the header.
    encoding : str, optional
        For a CSV file of 'interactions': its encoding; by default UTF-8.

    Returns
    -------
    Dataset
        Vectors of users and items, with their ids and their provenance.

    Raises
    ------
    UnknownName
        If there is no such dataset.
    ArgumentError
        If a value is outside its range, or an argument is not for this dataset.
    MissingData
        If a file is not there; the message says where to get it.
    DataError
        If a file is malformed; the message names the line.

    Notes
    -----
    Real data becomes a matrix R of zeros and ones, users by items; the vectors are the first `dim` left and
    right singular vectors of R (Sec. 6.2). Synthetic vectors have coordinates from U(−1, 1). The result is
    cached.

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
    """Find the entry of a dataset."""
    if name not in CATALOGUE:
        raise unknown("dataset", name, CATALOGUE, f"The datasets are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]
