"""The sums of AutoCLUB's clusters; see _autoclub_sums.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.members cimport Memberships


cdef struct Pools:
    # b, θ̂ and T of many clusters
    double *moment
    double *estimate
    int64_t *pulls


cdef class ClusterSums(Memberships):
    cdef Pools pools
    cdef double *pool_totals
    cdef double *weights
    cdef int64_t *matrices
    cdef double *inverses
    cdef double *pool_grams
    cdef int64_t *next_matrix
    cdef Py_ssize_t matrices_room
    cdef double *matrix
    cdef double *factor
    cdef double *lone_gram
    cdef double *lone_inverse
    cdef Py_ssize_t lone
    cdef double *reduced
    cdef double *around
    cdef double *centres
    cdef public int64_t used_matrices, free_matrix

    cdef bint is_light(self, Py_ssize_t row) noexcept nogil
    cdef void settle_storage(self, Py_ssize_t row) noexcept nogil
    cdef const double *pool_gram(self, Py_ssize_t row) noexcept nogil
    cdef double *inverse_of(self, Py_ssize_t row) noexcept nogil
    cdef void invert_sums(self, Py_ssize_t row, double *out) noexcept nogil
    cdef double eliminate_lone(self, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t fold_lone(self, Py_ssize_t row) noexcept nogil
    cdef void solve_lone(self, Py_ssize_t row, double *estimate) noexcept nogil
    cdef double width2(self, Py_ssize_t row, const double *x) noexcept nogil
    cdef void clear_sums(self, Py_ssize_t row) noexcept nogil
    cdef void add_sums(self, Py_ssize_t row, Py_ssize_t user, double weight) noexcept nogil
    cdef bint few(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil
    cdef void sum_members(self, Py_ssize_t row) noexcept nogil
    cdef void join(self, Py_ssize_t row, Py_ssize_t user, int sign) noexcept nogil
    cdef void solve(self, Py_ssize_t row) noexcept nogil
    cdef void build(self, Py_ssize_t row) noexcept nogil
    cdef void rebuild(self, Py_ssize_t row) noexcept nogil
