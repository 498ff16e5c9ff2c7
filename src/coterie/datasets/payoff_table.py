"""What items are worth to users, as they said themselves: payoffs and item vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from coterie.datasets.dataset import Ids
from coterie.datasets.sparse_table import SparseTable
from coterie.errors import ArgumentError
from coterie.types import Floats, Ints
from coterie.validation import finite, reals

Offers: TypeAlias = Literal["all", "known", "one-positive", "window"]
"""Which items are offered; see `coterie.environments.Payoffs`."""


@runtime_checkable
class Sparse(Protocol):
    """A sparse array or matrix of SciPy."""

    def tocoo(self) -> Any:
        """The stored entries with their rows and columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoffSource:
    """Where payoffs come from, as plain values.

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
    """What a sparse array of SciPy stores."""
    entries = payoffs.tocoo()
    return SparseTable(entries.row, entries.col, np.asarray(entries.data, np.float64), entries.shape)


def _whole(payoffs: ArrayLike) -> SparseTable:
    """A dense array with every entry stored, zeros too."""
    dense = reals("payoffs", payoffs, "a (n_users, n_items) array", kinds="fiub")
    if dense.ndim != 2:
        raise ArgumentError(f"payoffs must have a row a user and a column an item, got shape {dense.shape}")
    rows, columns = np.indices(dense.shape)
    return SparseTable(rows.ravel(), columns.ravel(), dense.ravel(), dense.shape)
