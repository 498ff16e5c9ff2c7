"""A lasting catalogue of items: vectors, ids and tags, among which policies choose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.policies.catalogue.compressed_rows import CompressedRows
from coterie.policies.catalogue.row_table import RowTable
from coterie.policies.catalogue.shared_lock import SharedLock
from coterie.policies.catalogue.tag_sets import NO_TAGS, Tags, TagSets
from coterie.types import Bools, Floats, Ints
from coterie.validation import MOST_ITEMS, as_array, finite, item_id, item_ids, reals, shown, whole

A = TypeVar("A", bound=np.ndarray[Any, Any])

MOST_NUMBERS = 2**20
"""Length of the longest vector."""
SPARE_SETS = 1_000
"""Sets of tags that no item may have any more, besides one for each item and the one that it has."""
Only: TypeAlias = str | Iterable[str] | ArrayLike
"""Which items are eligible: those with a tag, with any of several tags, or with these ids."""


class CatalogueArms(NamedTuple):
    """Items of a catalogue as arms, for policies of your own.

    Parameters
    ----------
    ids : array of int, shape (n,)
        Ids of the items.
    vectors : array of float, shape (n, dim)
        Their vectors, one per row, read-only.

    Examples
    --------
    >>> import coterie
    >>> ids, vectors = coterie.Catalogue([[1.0, 0.0], [0.0, 1.0]]).arms(exclude=[0])
    >>> ids.tolist(), vectors.tolist()
    ([1], [[0.0, 1.0]])
    """

    ids: Ints
    vectors: Floats


class Catalogue:
    """Items that stay from decision to decision, among all of which `policy.recommend` can choose.

    Items come, change and go while policies run. Several policies and threads may use one catalogue at a
    time. A catalogue is no part of a policy: snapshots of a policy do not contain it.

    Parameters
    ----------
    vectors : array_like of shape (n, dim), optional
        Vectors of the items, one per row; they are copied.
    dim : int, optional
        Length of a vector; needed only if there are no vectors yet.
    ids : array_like of int, shape (n,), optional
        Ids of the items: whole numbers from 0 on, each once. By default the row numbers.
    tags : sequence, optional
        Tags of each item: a string or several.

    Raises
    ------
    ArgumentError
        By every method: if an id is unknown or occurs twice, a vector has another length, or a number is not
        finite. If it is raised, the catalogue is unchanged.

    Notes
    -----
    Rows are in the order in which items came, but the last rows take the places of removed ones, so that a
    change costs nothing for the other items. Policies break ties by this order.

    Examples
    --------
    >>> import coterie
    >>> catalogue = coterie.Catalogue([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], ids=[10, 20, 30])
    >>> policy = coterie.LinUCBInd(n_users=3, dim=2, beta=0.5)
    >>> policy.update(0, catalogue, 1.0, item=20)
    >>> policy.recommend(0, catalogue), policy.recommend(0, catalogue, k=2, exclude=[20]).tolist()
    (20, [30, 10])
    """

    def __init__(
        self,
        vectors: ArrayLike | None = None,
        *,
        dim: int | None = None,
        ids: ArrayLike | None = None,
        tags: Tags | None = None,
    ) -> None:
        """Make a catalogue of these items."""
        if vectors is None and dim is None:
            raise ArgumentError("dim must be given if there are no vectors yet")
        if vectors is None:
            first: Floats = np.empty((0, whole("dim", dim or 0, 1, MOST_NUMBERS)))
        else:
            first = reals("vectors", vectors, "a matrix")
            if first.ndim != 2 or not 1 <= first.shape[1] <= MOST_NUMBERS:
                raise ArgumentError(f"vectors must have shape (n, dim), got {first.shape}")
            if dim is not None and dim != first.shape[1]:
                raise ArgumentError(
                    f"dim must be the length {first.shape[1]} of the vectors, got {shown(dim)}"
                )
        self._dim: int = first.shape[1]
        self._n = 0
        self._version = 0
        self._vectors = np.empty((0, self._dim))
        self._ids = np.empty(0, np.int64)
        self._set_of = np.empty(0, np.int32)
        self._row_of = RowTable()
        self._compressed = CompressedRows(self._dim)
        self._tag_sets = TagSets()
        self._lock = SharedLock()
        self.put(np.arange(len(first)) if ids is None else ids, first, tags)
        self._version = 0

    # What is there.

    def __len__(self) -> int:
        """Return the number of items."""
        return self._n

    def __contains__(self, item: object) -> bool:
        """Tell whether there is an item with this id."""
        return isinstance(item, Integral) and 0 <= int(item) < MOST_ITEMS and self._row(int(item)) >= 0

    def __repr__(self) -> str:
        """Show the size."""
        return f"<Catalogue: {self._n:,} items, dim {self._dim}>"

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    @property
    def version(self) -> int:
        """Number of changes since the catalogue was made."""
        return self._version

    @property
    def ids(self) -> Ints:
        """Ids of the items by row, read-only; a view, which later changes may overwrite."""
        return read_only(self._ids[: self._n])

    @property
    def vectors(self) -> Floats:
        """Vectors of the items, one per row, read-only; a view, which later changes may overwrite."""
        return read_only(self._vectors[: self._n])

    @property
    def memory(self) -> int:
        """Bytes that the catalogue holds, room for further items included; tags are not counted."""
        arrays = self._vectors.nbytes + self._ids.nbytes + self._set_of.nbytes
        return arrays + self._row_of.nbytes + self._compressed.nbytes

    def row_of(self, item: int) -> int:
        """Return the row of an item; it may change when items are removed.

        Parameters
        ----------
        item : int
            Id of the item.

        Returns
        -------
        int
            Row number.
        """
        row = self._row(item_id(item))
        if row < 0:
            raise ArgumentError(f"no item {item} in the catalogue")
        return row

    def rows_of(self, items: ArrayLike) -> Ints:
        """Return the rows of items; they may change when items are removed.

        Parameters
        ----------
        items : array_like of int
            Ids of items.

        Returns
        -------
        array of int
            Row numbers, −1 where the catalogue does not have an item.
        """
        known = isinstance(items, np.ndarray) and items.dtype == np.int64  # checked before, by the service
        return self._row_of.rows(self._ids, np.asarray(items) if known else some_ids("items", items))

    def vector(self, item: int) -> Floats:
        """Return a copy of the vector of an item.

        Parameters
        ----------
        item : int
            Id of the item.

        Returns
        -------
        array of float, shape (dim,)
            The vector.
        """
        with self._lock.reading():
            return np.array(self._vectors[self.row_of(item)])

    def tags_of(self, item: int) -> frozenset[str]:
        """Return the tags of an item.

        Parameters
        ----------
        item : int
            Id of the item.

        Returns
        -------
        frozenset of str
            The tags.
        """
        with self._lock.reading():
            return self._tag_sets[int(self._set_of[self.row_of(item)])]

    # Changes.

    def put(self, ids: ArrayLike, vectors: ArrayLike, tags: Tags | None = None) -> None:
        """Add items, or change those that are there.

        Parameters
        ----------
        ids : array_like of int, shape (m,)
            Ids of the items, each once.
        vectors : array_like of shape (m, dim)
            Their vectors.
        tags : sequence of length m, optional
            Tags of each item: a string or several. Without it, items keep their tags, and new ones have none.
        """
        rows = finite("vectors", reals("vectors", vectors, f"an (m, {self._dim}) array"))
        if rows.ndim != 2 or rows.shape[1] != self._dim:
            raise ArgumentError(f"vectors must have shape (m, {self._dim}), got {rows.shape}")
        numbers = item_ids(ids, (len(rows),), name="ids")
        with self._lock.writing():
            sets = None if tags is None else self._tag_sets.numbers(tags, len(rows))
            places = self._row_of.rows(self._ids, numbers)
            added = np.flatnonzero(places < 0)
            places[added] = np.arange(self._n, self._n + len(added))
            self._reserve(self._n + len(added))
            self._vectors[places] = rows
            self._ids[places] = numbers
            self._set_of[places[added]] = NO_TAGS
            if sets is not None:
                self._set_of[places] = sets
            self._compressed.put(places, rows)
            self._row_of.add(self._ids, places[added])
            self._n += len(added)
            self._version += 1
            if len(self._tag_sets) > 2 * self._n + SPARE_SETS:  # most are those that items had before
                held = self._set_of[: self._n]
                self._set_of[: self._n] = self._tag_sets.keep(np.unique(held))[held]

    def remove(self, ids: ArrayLike) -> None:
        """Remove items; the last rows take their places.

        Parameters
        ----------
        ids : array_like of int, shape (m,)
            Ids of the items, each once.
        """
        numbers = some_ids("ids", ids, distinct=True)
        with self._lock.writing():
            gone = self._rows(numbers)
            left = self._n - len(gone)
            holes = np.sort(gone[gone < left])
            moved = np.setdiff1d(np.arange(left, self._n), gone)
            self._row_of.discard(self._ids, np.concatenate([gone, moved]))
            for array in (self._vectors, self._ids, self._set_of):
                array[holes] = array[moved]
            self._compressed.move(holes, moved)
            self._row_of.add(self._ids, holes)
            self._n = left
            self._version += 1

    def _reserve(self, n: int) -> None:
        """Make room for n items; it doubles, so that adding items one by one costs O(1) each."""
        room = len(self._ids)
        if n <= room:
            return
        more = max(n, 2 * room) - room if room else n
        self._vectors = np.concatenate([self._vectors, np.empty((more, self._dim))])
        self._ids = np.concatenate([self._ids, np.empty(more, np.int64)])
        self._set_of = np.concatenate([self._set_of, np.empty(more, np.int32)])
        self._compressed.reserve(room + more)

    # What policies choose from.

    def arms(self, *, exclude: ArrayLike | None = None, only: Only | None = None) -> CatalogueArms:
        """Return eligible items as arms, for policies that know nothing of catalogues.

        Parameters
        ----------
        exclude : array_like of int, optional
            Ids of items to leave out, such as those the user has seen. Ids that are not there are ignored:
            items may have been removed since.
        only : str, iterable of str or array_like of int, optional
            A tag, several tags of which an item must have any, or ids of items.

        Returns
        -------
        CatalogueArms
            `ids` and `vectors` in the order of rows: a copy of the vectors, or a view if all are eligible.
        """
        with self._lock.reading():
            rows = self.eligible(exclude, only)
            if rows is None:
                return CatalogueArms(self.ids, self.vectors)
            return CatalogueArms(self._ids[rows], read_only(self._vectors[rows]))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep all rows as they are while a decision reads them."""
        with self._lock.reading():
            yield

    @property
    def compressed(self) -> CompressedRows:
        """The compressed copy of the vectors, for the search. To be used within `reading`."""
        return self._compressed

    def eligible(self, exclude: ArrayLike | None, only: Only | None) -> Ints | None:
        """Return the rows that may be chosen, ascending; None for all. To be called within `reading`.

        Parameters
        ----------
        exclude, only
            As for `arms`.

        Returns
        -------
        array of int or None
            Row numbers.
        """
        if exclude is None and only is None:
            rows = None
        else:
            chosen = np.ones(self._n, np.bool_) if only is None else self._chosen(only)
            if exclude is not None:
                chosen[self._rows(some_ids("exclude", exclude), known=False)] = False
            rows = np.flatnonzero(chosen)
        if (self._n if rows is None else len(rows)) == 0:
            raise ArgumentError("no item of the catalogue is left to choose from")
        return rows

    def _chosen(self, only: Only) -> Bools:
        """Tell of each row whether `only` names it."""
        some: Any = only
        if isinstance(some, str):
            some = [some]
        elif isinstance(some, Iterable) and not isinstance(some, np.ndarray):  # sets, too
            some = list(some)
        array = as_array("only", some, "tags or ids of items")
        if array.dtype.kind == "U":
            if not all(isinstance(one, str) for one in some):  # NumPy would make texts of ids
                raise ArgumentError(f"only must be tags, or ids of items, not both, got {shown(only)}")
            return self._tag_sets.having(array.ravel().tolist())[self._set_of[: self._n]]
        chosen = np.zeros(self._n, np.bool_)
        chosen[self._rows(some_ids("only", some))] = True
        return chosen

    def _row(self, item: int) -> int:
        """Return the row of an id, -1 if it is not there."""
        return self._row_of.row(self._ids, item)

    def _rows(self, ids: Ints, *, known: bool = True) -> Ints:
        """Return the rows of ids; unless `known`, those that are not there are left out."""
        rows = self._row_of.rows(self._ids, ids)
        if known and len(rows) and rows.min() < 0:
            raise ArgumentError(f"no item {ids[rows < 0][0]} in the catalogue")
        return rows[rows >= 0]


def some_ids(name: str, ids: ArrayLike, *, distinct: bool = False) -> Ints:
    """Return any number of ids; unless `distinct`, some may occur twice."""
    n = as_array(name, ids, "ids of items").size
    return item_ids(ids, (n,), distinct=distinct, name=name)


def read_only(array: A) -> A:
    """Return a view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
