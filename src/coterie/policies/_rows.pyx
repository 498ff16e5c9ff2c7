"""Users pooled by labels that never change, a row of statistics each: LinUCB, and families that decide differently on them."""

import numpy as np

from libc.stdint cimport int64_t

from coterie.policies._learner cimport Learner
from coterie.policies._linalg cimport Ridge, absorb_row, clear_row
from coterie.policies._offers cimport View, show_row

from coterie.policies._arrays import Field, ridge_fields


cdef class FixedRows(Learner):
    """One row of statistics a label; rows are numbered in order of first appearance.

    Parameters
    ----------
    rows : array of int
        The row of each user.
    beta : float
        The factor of the width.
    """

    FITS = True
    FIELDS = {
        **ridge_fields("pools", "rows"),
        "labels": Field(("users",), "int64"),
        "pulls": Field(("users",), "int64"),
        "epochs": Field(("rows",), "int64"),
    }

    def __init__(self, n_users, dim, *, rows, double beta, ridge, schedule, generator):
        self.beta, self.opened, self._rows = beta, int(rows.max()) + 1, rows
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    @classmethod
    def extents(cls, n_users, dim, *, rows, **settings):
        return {"users": n_users, "rows": int(rows.max()) + 1, "dim": dim}

    def _extents(self):
        return {"users": self.n_users, "rows": self.opened, "dim": self.dim}

    def adjust(self, *, rows, beta):
        """The row of each user; a row number not seen before opens a row."""
        before = self._rows
        self._rows, self.opened = rows, int(rows.max()) + 1
        return {"rows": before, "beta": beta}

    cdef int bind(self) except -1:
        self.pools = self.ridge_rows("pools")
        self.pulls = <int64_t *> self.pointer("pulls")
        return Learner.bind(self)

    cdef int welcome(self, Py_ssize_t known) except -1:
        cdef Py_ssize_t row, before = 0
        if known:
            before = int(self.array("labels")[:known].max()) + 1
        for row in range(before, self.opened):
            clear_row(&self.pools, row, self.ridge, self.dim)
        self.array("labels")[known:] = self._rows[known:]
        return 0

    def refresh(self):
        rows = self.array("labels")
        if rows.min() < 0 or rows.max() >= self.opened:
            raise ValueError("has numbers in 'labels' that are no rows")

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        show_row(seen, &self.pools, self.row_of[user], self.beta, self.ridge, self.dim)
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        absorb_row(&self.pools, self.row_of[user], x, reward, self.work, self.dim)
        self.pulls[user] += 1
        return 0

    def estimates(self):
        """θ̂ of each user's row."""
        return self.array("pools.estimate")[self.array("labels")]

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return self.array("pulls").copy()
