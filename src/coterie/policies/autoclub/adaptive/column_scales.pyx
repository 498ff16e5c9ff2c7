"""The unit of each column of AutoCLUB's vectors, so that the prior fits preferences whatever the units are.

The prior gives all coordinates of a preference the same variance, which is right only if the columns of vectors have about
the same size. So inside the learner column j is divided by 2^e_j, which loses no digit. The exponents are revised as users
come, and all sums follow exactly. Users vote on the size of a column with their rewards 1, 2, 4, 8, …, and its usual size is
the upper quartile of the votes: neither one vector nor one busy user decides it. Entries of 0 are no votes, so that a column
that is rarely anything else is no small one.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport frexp
from libc.stdint cimport int64_t

from coterie.policies.kernel.arrays cimport NamedArrays

from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef enum:
    SIZES = 64  # sizes of entries are distinguished by their power of two, from 2^-40 to 2^23
    SMALLEST = -40
    LEAST_VOTES = 8  # on a column, before its size counts
    UNLIKE = 5  # columns have different units if one is about 2^5 times as large as another


cdef class ColumnScales(NamedArrays):
    """The votes on the size of each column, and its exponent e_j.

    `sizes` counts the votes by column and power of two; `votes` counts the vectors, and `due` is when exponents are revised.
    """

    FIELDS = {"sizes": Field(("dim", "sizes"), "int64"), "exponents": Field(("dim",), "int64")}
    NUMBERS = ("votes", "due")
    IN_PLACE = True

    def __init__(self, n_users, dim):
        self.due = LEAST_VOTES
        NamedArrays.__init__(self, n_users, dim)
        self.set_factors()

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"dim": dim, "sizes": SIZES}

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim
        self.sizes, self.exponents = <int64_t *> self.pointer("sizes"), <int64_t *> self.pointer("exponents")
        self.factors = self.workspace("scales", 4 * d + 1 + 2 * (d + 1) * (d + 1))
        self.vector = self.factors + d
        # Of both models: without and with an intercept
        self.preferences[0], self.preferences[1] = self.vector + d, self.vector + 2 * d
        self.matrices[0] = self.vector + 3 * d + 1
        self.matrices[1] = self.matrices[0] + (d + 1) * (d + 1)
        return NamedArrays.bind(self)

    def refresh(self):
        exponents = self.array("exponents")
        if self.array("sizes").min() < 0 or not 0 <= exponents.min() <= exponents.max() < SIZES:
            raise ValueError("has units of columns that cannot be")
        self.set_factors()

    def set_factors(self):
        """2^−e_j of each column, and whether all are 1."""
        exponents = self.array("exponents")
        self._scratch["scales"][: self.dim] = np.ldexp(1.0, -exponents)
        self.level = not exponents.any()

    # Votes.

    cdef bint count(self, const double *x, int64_t pulls) noexcept nogil:
        """Count a vector of a user with so many rewards before, if the user votes; returns whether a revision is due."""
        cdef Py_ssize_t j
        cdef int exponent
        if pulls & (pulls + 1):
            return False
        self.votes += 1
        for j in range(self.dim):
            if x[j] != 0.0:
                frexp(x[j], &exponent)
                self.sizes[j * SIZES + min(max(exponent - 1 - SMALLEST, 0), SIZES - 1)] += 1
        return self.votes >= self.due and not self.omitted

    cdef Py_ssize_t usual_size(self, Py_ssize_t column) noexcept nogil:
        """The upper quartile of the votes on a column; -1 if they are too few."""
        cdef Py_ssize_t k
        cdef int64_t total = 0, found = 0
        cdef const int64_t *sizes = self.sizes + column * SIZES
        for k in range(SIZES):
            total += sizes[k]
        if total < LEAST_VOTES:
            return -1
        for k in range(SIZES):
            found += sizes[k]
            if 4 * found >= 3 * total:
                return k
        return -1

    def revise(self):
        """Set the exponents by the votes; returns by what vectors are multiplied, None if nothing changes."""
        self.due = 2 * self.votes
        usual = np.array([self.usual_size(column) for column in range(self.dim)])
        known, before, after = usual >= 0, self.array("exponents").copy(), np.zeros(self.dim, np.int64)
        if known.any() and np.ptp(usual[known]) >= UNLIKE:
            after = np.where(known, usual - usual[known].min(), before)
        if np.array_equal(after, before):
            return None
        self.array("exponents")[...] = after
        self.set_factors()
        return np.ldexp(1.0, before - after)

    # From the units of the arms to those inside, and back.

    cdef const double *level_vector(self, const double *x) noexcept nogil:
        """A vector in the units inside, until the next call."""
        cdef Py_ssize_t j
        if self.level:
            return x
        for j in range(self.dim):
            self.vector[j] = self.factors[j] * x[j]
        return self.vector

    cdef const double *raw_preference(self, const double *preference, Py_ssize_t first) noexcept nogil:
        """A preference in the units of the arms, until the next call; with an intercept before the columns if `first` is 1."""
        cdef Py_ssize_t j
        cdef double *out = self.preferences[first]
        if self.level:
            return preference
        for j in range(first):
            out[j] = preference[j]
        for j in range(self.dim):
            out[first + j] = self.factors[j] * preference[first + j]
        return out

    cdef const double *raw_matrix(self, const double *matrix, Py_ssize_t first) noexcept nogil:
        """A covariance of preferences in the units of the arms, until the next call."""
        cdef Py_ssize_t i, j, p = self.dim + first
        cdef double factor
        cdef double *out = self.matrices[first]
        if self.level:
            return matrix
        for i in range(p):
            factor = 1.0 if i < first else self.factors[i - first]
            for j in range(p):
                out[i * p + j] = matrix[i * p + j] * factor * (1.0 if j < first else self.factors[j - first])
        return out

    # What Python calls.

    def raw_factors(self):
        """By what a preference inside is multiplied to be in the units of the arms."""
        return self._scratch["scales"][: self.dim].copy()

    def learn(self, double[::1] x, int64_t pulls):
        """Count a vector, and revise if that is due, as `revise` returns it: for whoever uses the scales alone."""
        return self.revise() if self.count(&x[0], pulls) else None
