"""A sparse table of users × items: what users know, what they do not, and what it is worth."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from coterie.types import Bools, Floats, Ints


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
        """How many entries are stored."""
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
        asked = rows[:, None] * (self.shape[1] + 1) + ranks
        passed = np.searchsorted(self._gaps, asked, side="right") - self.starts[rows][:, None]
        return np.asarray(ranks + passed, np.int64)

    def values_at(self, rows: Ints, columns: Ints, default: float) -> Floats:
        """The entries at these columns of each row: (n, K); the default where nothing is stored."""
        if not len(self):
            return np.full(columns.shape, float(default))
        asked = rows[:, None] * self.shape[1] + columns
        places = np.minimum(np.searchsorted(self._keys, asked), len(self) - 1)
        return np.where(self._keys[places] == asked, self.values[places], default)
