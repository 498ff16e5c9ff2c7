"""Datasets, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.types import Floats

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
        Number of users and items that were asked for.
    tied_users, tied_items : int
        Number of users or items with as many rows as the last one kept, if some of them had to stay out.
    dropped_users, dropped_items : int
        Number of users and items dropped because their vector was zero.
    density : float
        Share of ones in the feedback matrix.
    singular_values : tuple of float
        Singular values of the feedback matrix, largest first.
    dim : int
        Length of the vectors.
    scale : str
        "unit", "raw" or "sqrt-s".
    seed : int or None
        Seed of synthetic vectors.
    notes : tuple of str
        What a reader should know, such as fewer users than asked for.

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
        vectors = f"{self.users_kept:,} users and {self.items_kept:,} items of {self.dim} dimensions"
        facts = [("vectors", vectors), ("scale", self.scale), ("feedback", self.feedback)]
        facts += self._of_a_file() if self.file is not None else [("seed", str(self.seed))]
        facts += [("note", note) for note in self.notes]
        return "\n".join([self.name, *(f"  {title:<10}{text}" for title, text in facts)])

    def _of_a_file(self) -> list[tuple[str, str]]:
        """List the facts that only a dataset read from a table has."""
        ends = [k for k in (1, 2, 10, self.dim, len(self.singular_values)) if k <= len(self.singular_values)]
        singular = ", ".join(f"no. {k}: {self.singular_values[k - 1]:.4g}" for k in sorted(set(ends)))
        found = f"{self.users_found:,} users and {self.items_found:,} items"
        return [
            ("file", str(self.file)),
            ("sha256", str(self.sha256)),
            ("rows", f"{self.rows:,} by {found}"),
            ("asked", f"the {self.n_users:,} users and {self.n_items:,} items with the most rows"),
            ("ties", f"{self.tied_users:,} users and {self.tied_items:,} items at the cut, lower ids first"),
            ("dropped", f"{self.dropped_users:,} users and {self.dropped_items:,} items with a zero vector"),
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

    def __repr__(self) -> str:
        """Show the name and the sizes."""
        sizes = f"{len(self.users):,} users and {len(self.items):,} items"
        return f"<Dataset {self.name}: {sizes} of {self.items.shape[1]} dimensions>"


def sealed(users: Floats, items: Floats, *, user_ids: Ids, item_ids: Ids, provenance: Provenance) -> Dataset:
    """Make a dataset whose arrays are contiguous and read-only."""
    users, items = np.ascontiguousarray(users), np.ascontiguousarray(items)
    for array in (users, items, user_ids, item_ids):
        array.setflags(write=False)
    return Dataset(provenance.name, users, items, user_ids, item_ids, provenance)
