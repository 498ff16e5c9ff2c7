"""Users pooled by labels that never change, a row of statistics each: LinUCB, and Thompson sampling on the same rows."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t

from coterie.policies.kernel.learner cimport Learner, WidthCache, Offer, ScoreModel, View, draw_sample, largest, show_row
from coterie.policies.kernel.linalg cimport means
from coterie.policies.kernel.ridge cimport Ridge, absorb_row, clear_row

from coterie.policies.kernel.arrays import Field, ridge_fields

cnp.import_array()


class OneRow:
    """The rows of users who all share one; an array with a number for each user would waste memory."""

    def __init__(self, n_users):
        self.n_users = n_users

    def __getitem__(self, part):
        return np.zeros(len(range(self.n_users)[part]), np.int64)


def count_rows(rows):
    """The number of rows; every number below it occurs."""
    if isinstance(rows, range):
        return len(rows)
    return 1 if isinstance(rows, OneRow) else int(rows.max()) + 1


cdef class FixedRows(Learner):
    """One row of statistics a label; rows are numbered in order of first appearance.

    Parameters
    ----------
    rows : array of int, range or OneRow
        The row of each user; a range gives each its own.
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

    cdef Ridge pools
    cdef int64_t *pulls
    cdef double beta
    cdef Py_ssize_t opened
    cdef Py_ssize_t cleared  # rows below it hold statistics
    cdef object _rows

    def __init__(self, n_users, dim, *, rows, double beta, ridge, schedule, generator):
        self.beta, self.opened, self._rows = beta, count_rows(rows), rows
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    @classmethod
    def extents(cls, n_users, dim, *, rows, **settings):
        return {"users": n_users, "rows": count_rows(rows), "dim": dim}

    def _extents(self):
        return {"users": self.n_users, "rows": self.opened, "dim": self.dim}

    def adjust(self, *, rows, beta):
        """The row of each user; a row number not seen before opens a row."""
        before = self._rows
        self._rows, self.opened = rows, count_rows(rows)
        return {"rows": before, "beta": beta}

    cdef int bind(self) except -1:
        self.pools = self.ridge_rows("pools")
        self.pulls = <int64_t *> self.pointer("pulls")
        return Learner.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        cdef Py_ssize_t row
        for row in range(self.cleared, self.opened):
            clear_row(&self.pools, row, self.ridge, self.dim)
        self.cleared = self.opened
        rows = self._rows[known:]
        self.array("labels")[known:] = np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows
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


cdef class SampledRows(FixedRows):
    """θ̃ ~ N(θ̂, β²M⁻¹) is drawn for each decision; the arm of largest xᵀθ̃ is played."""

    cdef double *factor
    cdef double *sample

    cdef int bind(self) except -1:
        room = np.zeros(self.dim * self.dim + 2 * self.dim)
        self._scratch["sample"] = room
        self.factor = <double *> cnp.PyArray_DATA(room)
        self.sample = self.factor + self.dim * self.dim
        return FixedRows.bind(self)

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        return False  # scores are drawn

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil:
        """The first arm of largest xᵀθ̃; -1 if an arm is too long."""
        cdef int64_t arm
        if self.too_long(offer):
            return -1
        self.rank(user, offer, 1, &arm)
        return arm

    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil:
        """The k arms of largest xᵀθ̃ of one sample, with a sample of each arm's effect where items have effects."""
        cdef View seen
        self.view(user, &seen)
        draw_sample(&seen, self.bitgen, self.factor, self.work, self.sample, self.dim)
        means(self.sample, offer.items, offer.picks, offer.n, self.dim, self.upper)
        self.sample_effects(seen.beta, offer.n, self.upper)
        largest(self.upper, offer.n, k, out)
        return 0
