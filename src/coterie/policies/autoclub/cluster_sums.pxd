"""The pooled regressions of clusters; see cluster_sums.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.autoclub.partition cimport Partition
from coterie.policies.autoclub.prior cimport CommonPrior
from coterie.policies.kernel.arrays cimport NamedArrays


cdef class ClusterSums(NamedArrays):
    cdef readonly UserHistories users
    cdef readonly CommonPrior prior
    cdef readonly Partition partition
    # One entry or row for each cluster
    cdef double *moments
    cdef double *vector_sums
    cdef double *estimates
    cdef int64_t *pulls
    cdef double *precisions
    # The two matrices of a cluster, where it has any
    cdef int64_t *places
    cdef double *grams
    cdef double *inverses
    cdef int64_t *next_place
    cdef public int64_t used_rows, used_places, free_place
    cdef Py_ssize_t rows_room, places_room
    # Matrices of the single user that was asked for last
    cdef double *single_gram
    cdef double *single_inverse
    cdef Py_ssize_t single_row
    # Scratch
    cdef double *matrix
    cdef double *factor
    cdef double *reduced
    cdef double *around
    cdef double *work

    cdef int make_space(self, int64_t rounds) except -1 nogil
    cdef const double *gram_of(self, Py_ssize_t row) noexcept nogil
    cdef double *inverse_of(self, Py_ssize_t row) noexcept nogil
    cdef double width2(self, Py_ssize_t row, const double *x) noexcept nogil

    cdef void add(self, Py_ssize_t user, const double *x, double reward) noexcept nogil
    cdef void reweigh(self, Py_ssize_t user, double weight) noexcept nogil
    cdef Py_ssize_t open_row(self) noexcept nogil
    cdef void close_row(self, Py_ssize_t row) noexcept nogil
    cdef void open_first(self) noexcept nogil
    cdef void admit(self, Py_ssize_t user) noexcept nogil
    cdef Py_ssize_t move(self, Py_ssize_t user, Py_ssize_t target) noexcept nogil
    cdef void merge(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil
    cdef double size_without(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil
    cdef void solve(self, Py_ssize_t row) noexcept nogil
    cdef void build(self, Py_ssize_t row) noexcept nogil
    cdef void rebuild(self, Py_ssize_t row) noexcept nogil
    cdef bint is_small(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil

    cdef bint is_single(self, Py_ssize_t row) noexcept nogil
    cdef void settle_storage(self, Py_ssize_t row) noexcept nogil
    cdef void invert_sums(self, Py_ssize_t row, double *out) noexcept nogil  # OUT: out
    cdef double eliminate_single(self, Py_ssize_t row) noexcept nogil
    cdef void solve_single(self, Py_ssize_t row, double *estimate) noexcept nogil  # OUT: estimate
    cdef void clear_sums(self, Py_ssize_t row) noexcept nogil
    cdef void add_sums(self, Py_ssize_t row, Py_ssize_t user, double weight) noexcept nogil
    cdef void sum_members(self, Py_ssize_t row) noexcept nogil
    cdef void follow_move(self, Py_ssize_t row, Py_ssize_t user, int sign) noexcept nogil
