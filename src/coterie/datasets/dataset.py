"""Datasets: vectors of users and items, and their provenance."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.errors import ArgumentError
from coterie.types import Floats
from coterie.validation import as_array, counted, finite, reals

if TYPE_CHECKING:
    import polars as pl

Ids: TypeAlias = NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Everything that decided the vectors of a dataset, as plain values that can be compared.

    Parameters
    ----------
    name : str
        Name of the dataset.
    feedback : str
        When feedback is 1, in words.
    file : str or None
        Name of the file; None if there is none.
    sha256 : str or None
        Hash of the file's content.
    rows : int
        Number of rows of the file.
    users_found, items_found : int
        Number of users and items in the file.
    n_users, n_items : int
        Number of users and items requested.
    tied_users, tied_items : int
        Number of users or items with as many rows as the last one kept, if some of them had to stay out.
    dropped_users, dropped_items : int
        Number of users and items dropped because their vector was zero.
    density : float
        Share of ones in the feedback matrix.
    singular_values : tuple of float
        Singular values of the feedback matrix, largest first.
    dim : int
        Dimension of the vectors.
    scale : str
        "unit", "raw" or "sqrt-s".
    seed : int or None
        Seed of synthetic vectors.
    notes : tuple of str
        Remarks, such as fewer users than requested.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=3, n_users=2, n_items=4)
    >>> print(data.provenance.describe().splitlines()[1].strip())
    vectors   2 users and 4 items of 3 dimensions
    """

    name: str
    feedback: str
    file: str | None
    sha256: str | None
    rows: int
    users_found: int
    items_found: int
    n_users: int
    n_items: int
    tied_users: int
    tied_items: int
    dropped_users: int
    dropped_items: int
    density: float
    singular_values: tuple[float, ...]
    dim: int
    scale: str
    seed: int | None
    notes: tuple[str, ...]

    @property
    def users_kept(self) -> int:
        """Number of users with a vector."""
        return min(self.n_users, self.users_found) - self.dropped_users

    @property
    def items_kept(self) -> int:
        """Number of items with a vector."""
        return min(self.n_items, self.items_found) - self.dropped_items

    def describe(self) -> str:
        """Describe the provenance, one fact a line.

        Returns
        -------
        str
            Several lines, the first of which is the name.
        """
        vectors = f"{_both(self.users_kept, self.items_kept)} of {counted(self.dim, 'dimension')}"
        facts = [("vectors", vectors), ("scale", self.scale), ("feedback", self.feedback)]
        facts += self._of_a_file() if self.file is not None else self._without_a_file()
        facts += [("note", note) for note in self.notes]
        return "\n".join([self.name, *(f"  {title:<10}{text}" for title, text in facts)])

    def _without_a_file(self) -> list[tuple[str, str]]:
        """The seed of vectors that were drawn; the hash and what was dropped of vectors that were given."""
        if self.seed is not None:
            return [("seed", str(self.seed))]
        dropped = f"{_both(self.dropped_users, self.dropped_items)} with a zero vector"
        return [("sha256", str(self.sha256)), ("dropped", dropped)]

    def _of_a_file(self) -> list[tuple[str, str]]:
        """List the facts that only a dataset read from a table has."""
        ends = [k for k in (1, 2, 10, self.dim, len(self.singular_values)) if k <= len(self.singular_values)]
        singular = ", ".join(f"no. {k}: {self.singular_values[k - 1]:.4g}" for k in sorted(set(ends)))
        found = _both(self.users_found, self.items_found)
        return [
            ("file", str(self.file)),
            ("sha256", str(self.sha256)),
            ("rows", f"{self.rows:,} by {found}"),
            ("requested", f"the {_both(self.n_users, self.n_items)} with the most rows"),
            ("ties", f"{_both(self.tied_users, self.tied_items)} at the cut, lower ids first"),
            ("dropped", f"{_both(self.dropped_users, self.dropped_items)} with a zero vector"),
            ("density", f"{self.density:.4f} of the feedback matrix is 1"),
            ("singular", singular),
        ]


class Dataset(NamedTuple):
    """Vectors of users and items, read-only, with their ids and their provenance.

    Parameters
    ----------
    name : str
        Name of the dataset.
    users : array of float, shape (n, dim)
        Vectors of the users.
    items : array of float, shape (m, dim)
        Vectors of the items.
    user_ids : array of int or str, shape (n,)
        Ids of the users, as the file has them.
    item_ids : array of int or str, shape (m,)
        Ids of the items, as the file has them.
    provenance : Provenance
        Where the vectors come from.

    Examples
    --------
    >>> import coterie
    >>> coterie.datasets.load("synthetic", dim=3, n_users=2, n_items=4)
    <Dataset synthetic: 2 users and 4 items of 3 dimensions>
    """

    name: str
    users: Floats
    items: Floats
    user_ids: Ids
    item_ids: Ids
    provenance: Provenance

    @classmethod
    def from_vectors(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        *,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
        name: str = "vectors",
        scale: Literal["unit", "raw"] = "unit",
    ) -> Dataset:
        """A dataset of vectors that you have, such as embeddings of texts or images.

        Parameters
        ----------
        users : array_like of shape (n, dim)
            A vector for each user, such as the mean of the items that the user liked.
        items : array_like of shape (m, dim)
            A vector for each item.
        user_ids, item_ids : array_like, optional
            Whole numbers or strings, one per row; row numbers unless given.
        name : str, default "vectors"
            What the dataset is called in tables and figures.
        scale : {"unit", "raw"}
            "unit" divides each vector by its length, as `load` does; "raw" keeps them as they are.

        Returns
        -------
        Dataset
            The vectors that are not zero; `provenance` counts the others.

        Raises
        ------
        ArgumentError
            If the arrays are no matrices of finite numbers with equally many columns, or ids do not fit.

        Examples
        --------
        >>> data = Dataset.from_vectors([[3.0, 4.0], [0.0, 2.0]], [[1.0, 0.0]], user_ids=["ann", "bob"])
        >>> data
        <Dataset vectors: 2 users and 1 item of 2 dimensions>
        >>> data.users.tolist()
        [[0.6, 0.8], [0.0, 1.0]]
        """
        if scale not in ("unit", "raw"):
            raise ArgumentError(f"scale must be 'unit' or 'raw', got {scale!r}")
        own, other = _rows("user", users, user_ids, scale), _rows("item", items, item_ids, scale)
        if own.vectors.shape[1] != other.vectors.shape[1]:
            widths = f"{own.vectors.shape[1]} and {other.vectors.shape[1]}"
            raise ArgumentError(f"users and items must have equally many columns, got {widths}")
        return sealed(
            own.vectors,
            other.vectors,
            user_ids=own.ids,
            item_ids=other.ids,
            provenance=_of_vectors(name, scale, own, other),
        )

    def __repr__(self) -> str:
        """Show the name and the sizes."""
        sizes = _both(len(self.users), len(self.items))
        return f"<Dataset {self.name}: {sizes} of {counted(int(self.items.shape[1]), 'dimension')}>"


def sealed(users: Floats, items: Floats, *, user_ids: Ids, item_ids: Ids, provenance: Provenance) -> Dataset:
    """Make a dataset whose arrays are contiguous and read-only."""
    users, items = np.ascontiguousarray(users), np.ascontiguousarray(items)
    for array in (users, items, user_ids, item_ids):
        array.setflags(write=False)
    return Dataset(provenance.name, users, items, user_ids, item_ids, provenance)


def id_array(ids: pl.Series) -> Ids:
    """Ids as numpy has them: whole numbers, or else strings."""
    import polars as pl

    if ids.dtype == pl.String:
        return np.array(ids.to_list(), dtype=np.str_)
    if ids.dtype == pl.UInt64:
        return ids.to_numpy().astype(np.uint64)
    return ids.to_numpy().astype(np.int64)


def _both(users: int, items: int) -> str:
    return f"{counted(users, 'user')} and {counted(items, 'item')}"


class _Rows(NamedTuple):
    """Users or items that have a vector, and how many there were."""

    vectors: Floats
    ids: Ids
    found: int


def _rows(kind: str, values: ArrayLike, ids: ArrayLike | None, scale: str) -> _Rows:
    """Vectors that were given, scaled, without those that are zero."""
    name = f"{kind}s"
    matrix = finite(name, reals(name, values, "an (n, dim) array"))
    if matrix.ndim != 2 or not matrix.any():
        raise ArgumentError(
            f"{name} must be a matrix with a row each that is not all zero, got shape {matrix.shape}"
        )
    lengths = np.linalg.norm(matrix, axis=1)
    kept = lengths > 0
    vectors = matrix[kept] / lengths[kept, None] if scale == "unit" else matrix[kept]
    return _Rows(vectors, _checked_ids(f"{kind}_ids", ids, len(matrix))[kept], len(matrix))


def _checked_ids(name: str, ids: ArrayLike | None, count: int) -> Ids:
    """Whole numbers or strings, one for each row, all distinct; row numbers unless given."""
    if ids is None:
        return np.arange(count)
    array = as_array(name, ids, "whole numbers or strings")
    if array.shape != (count,) or array.dtype.kind not in "iuU":
        raise ArgumentError(
            f"{name} must be {count} whole numbers or strings, got {array.dtype} of shape {array.shape}"
        )
    if len(np.unique(array)) != count:
        raise ArgumentError(f"{name} must differ from each other, got one of them twice")
    return array.astype({"i": np.int64, "u": np.uint64, "U": np.str_}[array.dtype.kind])


def _of_vectors(name: str, scale: str, users: _Rows, items: _Rows) -> Provenance:
    """The provenance of given vectors; the hash distinguishes them."""
    digest = sha256()
    for vectors in (users.vectors, items.vectors):
        digest.update(np.ascontiguousarray(vectors).tobytes())
    return Provenance(
        name=name,
        feedback="none: the vectors were given",
        file=None,
        sha256=digest.hexdigest(),
        rows=0,
        users_found=users.found,
        items_found=items.found,
        n_users=users.found,
        n_items=items.found,
        tied_users=0,
        tied_items=0,
        dropped_users=users.found - len(users.vectors),
        dropped_items=items.found - len(items.vectors),
        density=0.0,
        singular_values=(),
        dim=int(users.vectors.shape[1]),
        scale=scale,
        seed=None,
        notes=(),
    )
