"""Payoffs of real feedback, as a sparse table, with vectors of the items."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from coterie.datasets.dataset import Ids
from coterie.errors import ArgumentError
from coterie.types import Bools, Floats, Ints
from coterie.validation import finite, reals


class SparseTable:
    """The stored entries of a table, sorted by row and column, for many lookups at a time.

    Memory is 32 bytes an entry: its row, its column, its value and a key. Dense tables are never made.

    Parameters
    ----------
    rows, columns : array of int, shape (n,)
        Where the entries are.
    values : array, shape (n,)
        What they are; entries of the same place are added up.
    shape : (int, int)
        Rows and columns of the table.

    Examples
    --------
    >>> table = SparseTable([0, 0, 1], [2, 0, 1], [1.0, 0.5, 1.0], (2, 4))
    >>> table.values_at(np.array([0, 1]), np.array([[0, 1, 2], [0, 1, 2]]), -1.0).tolist()
    [[0.5, -1.0, 1.0], [-1.0, 1.0, -1.0]]
    """

    def __init__(self, rows: Ints, columns: Ints, values: Floats, shape: tuple[int, int]) -> None:
        """Sort the entries."""
        self.shape = int(shape[0]), int(shape[1])
        places = np.asarray(rows, np.int64) * self.shape[1] + np.asarray(columns, np.int64)
        self._keys, inverse = np.unique(places, return_inverse=True)
        self.values: Floats = np.bincount(inverse, weights=values, minlength=len(self._keys)).astype(
            np.float64
        )
        self.rows: Ints = self._keys // self.shape[1]
        self.columns: Ints = self._keys % self.shape[1]
        self.counts: Ints = np.bincount(self.rows, minlength=self.shape[0])
        self.starts: Ints = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    def __len__(self) -> int:
        """The number of stored entries."""
        return len(self._keys)

    @cached_property
    def _gaps(self) -> Ints:
        """A column less the number of stored ones before it, with the row as the leading digits."""
        before = np.arange(len(self)) - self.starts[self.rows]
        return np.asarray(self.rows * (self.shape[1] + 1) + self.columns - before)

    def select(self, rows: Ints) -> SparseTable:
        """These rows, in this order."""
        counts = self.counts[rows]
        first = np.repeat(self.starts[rows] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        entries = first + np.arange(int(counts.sum()))
        numbers = np.repeat(np.arange(len(rows)), counts)
        return SparseTable(numbers, self.columns[entries], self.values[entries], (len(rows), self.shape[1]))

    def where(self, chosen: Bools) -> SparseTable:
        """Some of the entries."""
        return SparseTable(self.rows[chosen], self.columns[chosen], self.values[chosen], self.shape)

    def dense(self) -> Floats:
        """The table with 0 where nothing is stored."""
        out = np.zeros(self.shape)
        out[self.rows, self.columns] = self.values
        return out

    def known(self, rows: Ints, ranks: Ints) -> Ints:
        """The stored columns of these ranks, from 0, in each of these rows: (n, K)."""
        return np.asarray(self.columns[self.starts[rows][:, None] + ranks])

    def others(self, rows: Ints, ranks: Ints) -> Ints:
        """The columns of these ranks among those that are not stored in each of these rows.

        Such a column is its rank plus the number of stored columns before it: those which, less the number of
        stored ones before them, are at most the rank.
        """
        wanted = rows[:, None] * (self.shape[1] + 1) + ranks
        passed = np.searchsorted(self._gaps, wanted, side="right") - self.starts[rows][:, None]
        return np.asarray(ranks + passed, np.int64)

    def values_at(self, rows: Ints, columns: Ints, default: float) -> Floats:
        """The entries at these columns of each row: (n, K); the default where nothing is stored."""
        if not len(self):
            return np.full(columns.shape, float(default))
        wanted = rows[:, None] * self.shape[1] + columns
        places = np.minimum(np.searchsorted(self._keys, wanted), len(self) - 1)
        return np.where(self._keys[places] == wanted, self.values[places], default)


Offers: TypeAlias = Literal["all", "known", "one-positive", "window"]
"""Which items are offered; see `coterie.environments.Payoffs`."""


@runtime_checkable
class Sparse(Protocol):
    """A sparse array or matrix of SciPy."""

    def tocoo(self) -> Any:
        """The stored entries with their rows and columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoffSource:
    """The provenance of payoffs, as plain values.

    Parameters
    ----------
    name : str
        Name of the dataset.
    setting : str
        What was made of it, such as "rated".
    file : str, optional
        Name of the file.
    sha256 : str, optional
        Hash of its content.
    left_out : tuple of str, default ()
        What could not be used, in words.

    Examples
    --------
    >>> payoff_table([[1, 0], [0, 1]], [[1, 0], [0, 1]]).provenance.setting
    'payoffs'
    """

    name: str
    setting: str
    file: str | None = None
    sha256: str | None = None
    left_out: tuple[str, ...] = ()


class PayoffTable(NamedTuple):
    """Payoffs of users and items with a vector for each item, as `load_payoffs` returns them.

    What is not stored is not known.

    Parameters
    ----------
    items : array of float, shape (n_items, dim)
        Vectors of the items.
    payoffs : SparseTable, shape (n_users, n_items)
        What each item is worth to each user, where it is known.
    user_ids, item_ids : array
        Names of rows and columns.
    provenance : PayoffSource
        Where the payoffs come from.
    offers : {"all", "known", "one-positive", "window"}, default "all"
        How arms are drawn unless the environment says otherwise, see `coterie.environments.Payoffs`.
    events : array of int, shape (n, 2), optional
        Users and items in the order of time.
    friends : SparseTable, shape (n_users, n_users), optional
        Graph of the users.
    groups : array of int, shape (n_users,), optional
        Group of each user, where the dataset has groups of users: the true clusters of the environment.
    user_features : array of float, shape (n_users, n_features), optional
        Features of the users, where the dataset has any.

    Examples
    --------
    >>> table = payoff_table([[1, 0, 0], [0, 0, 1]], [[1, 0], [0, 1], [1, 1]])
    >>> table.n_users, table.dim
    (2, 2)
    """

    items: Floats
    payoffs: SparseTable
    user_ids: Ids
    item_ids: Ids
    provenance: PayoffSource
    offers: Offers = "all"
    events: Ints | None = None
    friends: SparseTable | None = None
    groups: Ints | None = None
    user_features: Floats | None = None

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.payoffs.shape[0]

    @property
    def dim(self) -> int:
        """Length of an item's vector."""
        return int(self.items.shape[1])

    def __repr__(self) -> str:
        """The name and the sizes."""
        source = self.provenance
        sizes = f"{self.n_users:,} users, {len(self.items):,} items of {self.dim} dimensions"
        events = "" if self.events is None else f", {len(self.events):,} events"
        return (
            f"<PayoffTable {source.name}, {source.setting}: {sizes}, {len(self.payoffs):,} payoffs{events}>"
        )


def payoff_table(payoffs: ArrayLike | Sparse, items: ArrayLike) -> PayoffTable:
    """Make a table of your own arrays.

    Parameters
    ----------
    payoffs : array or sparse array of float, shape (n_users, n_items)
        What each item is worth to each user. Of a sparse array, entries that are not stored are unknown.
    items : array of float, shape (n_items, dim)
        Vectors of the items.

    Returns
    -------
    PayoffTable
        To be given to `coterie.environments.Payoffs`.

    Raises
    ------
    ArgumentError
        If shapes do not fit, if there are fewer than two items, or if a number is not finite.

    Examples
    --------
    >>> payoff_table([[1, 0, 0], [0, 0, 1]], [[1, 0], [0, 1], [1, 1]])
    <PayoffTable own, payoffs: 2 users, 3 items of 2 dimensions, 6 payoffs>
    """
    vectors = finite("items", reals("items", items, "an (n_items, dim) array"))
    if vectors.ndim != 2 or len(vectors) < 2 or vectors.shape[1] < 1:
        raise ArgumentError(f"items must be at least two vectors, a row each, got shape {vectors.shape}")
    known = _stored(payoffs) if isinstance(payoffs, Sparse) else _whole(payoffs)
    if known.shape[1] != len(vectors) or known.shape[0] < 1:
        raise ArgumentError(
            f"payoffs must have a row a user and a column for each of the {len(vectors)} items, "
            f"got shape {known.shape}"
        )
    finite("payoffs", known.values)
    users, columns = np.arange(known.shape[0]), np.arange(len(vectors))
    vectors = np.array(vectors)
    vectors.setflags(write=False)
    return PayoffTable(vectors, known, users, columns, PayoffSource(name="own", setting="payoffs"))


def _stored(payoffs: Sparse) -> SparseTable:
    """The stored entries of a sparse array of SciPy."""
    entries = payoffs.tocoo()
    return SparseTable(entries.row, entries.col, np.asarray(entries.data, np.float64), entries.shape)


def _whole(payoffs: ArrayLike) -> SparseTable:
    """A dense array with every entry stored, zeros too."""
    dense = reals("payoffs", payoffs, "a (n_users, n_items) array", kinds="fiub")
    if dense.ndim != 2:
        raise ArgumentError(f"payoffs must have a row a user and a column an item, got shape {dense.shape}")
    rows, columns = np.indices(dense.shape)
    return SparseTable(rows.ravel(), columns.ravel(), dense.ravel(), dense.shape)
