"""All datasets by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from coterie.datasets import interactions, lastfm, movielens, synthetic, yelp
from coterie.datasets.dataset import Dataset
from coterie.datasets.description import About
from coterie.datasets.request import Place, Request
from coterie.errors import unknown


class Entry(NamedTuple):
    """A dataset in words, and the function that makes it."""

    about: About
    make: Callable[[Request], Dataset]


CATALOGUE: Mapping[str, Entry] = MappingProxyType(
    {
        module.ABOUT.name: Entry(module.ABOUT, module.make)
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
    path: Place = None,
    *,
    dim: int = 50,
    n_users: int = 200,
    n_items: int = 5000,
    scale: str = "unit",
    seed: int = 0,
    threshold: float | None = None,
    columns: Sequence[str] | None = None,
) -> Dataset:
    """Vectors of users and items, made as the paper makes them   (Sec. 6.2).

    `path` is a file, an archive, a folder, or for 'interactions' a data frame; without one the folder
    $COTERIE_DATA is searched. `seed` matters to 'synthetic' only. `threshold` and `columns` (user, item
    and perhaps value) are for 'interactions'.

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
    )
    return entry.make(request)


def _entry(name: str) -> Entry:
    if name not in CATALOGUE:
        raise unknown("dataset", name, CATALOGUE, f"The datasets are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]
