"""The statistics of AutoCLUB; see _autoclub_rows.pyx."""

from libc.stdint cimport int64_t

from coterie.policies._autoclub_prior cimport Prior
from coterie.policies._linalg cimport Ridge
from coterie.policies._members cimport Members

cdef enum:
    OTHERS = 2  # at most this many clusters besides its own are weighed in a review
    MOST = 4  # alternatives: its own cluster, the others, and a preference of its own


cdef class EvidenceRows(Prior):
    cdef Ridge pools
    cdef Members members
    cdef double *grams
    cdef double *moments
    cdef double *totals
    cdef double *levels
    cdef double *squared
    cdef int64_t *pulls
    cdef double *precisions
    cdef double *shares
    cdef double *alone
    cdef double *mixtures
    cdef int64_t *due
    cdef double *pool_grams
    cdef double *pool_totals
    cdef double *weights
    cdef int64_t *sizes
    cdef double *counts
    cdef int64_t *used
    cdef double *losses
    cdef double *matrix
    cdef double *factor
    cdef double *inverse
    cdef double *reduced
    cdef double *centred
    cdef double *around
    cdef double *acting
    cdef double *fits
    cdef double *largest
    cdef public int64_t n_clusters, holder
    cdef public double greatest, second

    cdef double restrain(self, Py_ssize_t user, const double *x, double reward) noexcept nogil
    cdef double counted(self) noexcept nogil
    cdef double within_reason(self, double reward) noexcept nogil
    cdef void believe(self, double second) noexcept nogil

    cdef Py_ssize_t open_row(self) noexcept nogil
    cdef void close_row(self, Py_ssize_t row) noexcept nogil
    cdef double crowd_of(self, Py_ssize_t user) noexcept nogil
    cdef void clear_sums(self, Py_ssize_t row) noexcept nogil
    cdef void add_sums(self, Py_ssize_t row, Py_ssize_t user, double weight) noexcept nogil
    cdef bint few(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil
    cdef void sum_members(self, Py_ssize_t row) noexcept nogil
    cdef void join(self, Py_ssize_t row, Py_ssize_t user, int sign) noexcept nogil
    cdef void solve(self, Py_ssize_t row) noexcept nogil
    cdef void rebuild(self, Py_ssize_t row) noexcept nogil
    cdef void combine(self, const double *first, const double *second, double sign, double weight) noexcept nogil
