"""The graph that loses edges and its components; other families subclass them to learn differently from a reward."""

from libc.stdint cimport int64_t, uint64_t

from coterie.policies.kernel.learner cimport Learner
from coterie.policies.kernel.ridge cimport Radius, Ridge


cdef class CuttingGraph(Learner):
    cdef Ridge users
    cdef Ridge pools
    cdef double *grams
    cdef uint64_t *edges
    cdef double *radii
    cdef Radius shape
    cdef object _shape
    cdef bint reshaped
    cdef double beta
    cdef Py_ssize_t stride
    cdef Py_ssize_t words
    cdef double *slack
    cdef double *least_slack
    cdef uint64_t *reached
    cdef uint64_t *frontier
    cdef uint64_t *targets
    cdef int64_t *found

    cdef bint is_symmetric(self) noexcept nogil
    cdef uint64_t *neighbours(self, Py_ssize_t user) noexcept nogil
    cdef void update_slack(self, Py_ssize_t user) noexcept nogil
    cdef void absorb_user(self, Py_ssize_t user, const double *x, double reward) noexcept nogil
    cdef Py_ssize_t find_dissimilar(self, Py_ssize_t user) noexcept nogil
    cdef bint reach(self, Py_ssize_t user, const uint64_t *targets) noexcept nogil
    cdef Py_ssize_t next_target(self, const uint64_t *targets, Py_ssize_t start) noexcept nogil
    cdef Py_ssize_t components(self, int64_t *labels) noexcept nogil


cdef class Components(CuttingGraph):
    cdef public int64_t n_components

    cdef void split_component(self, Py_ssize_t user, Py_ssize_t count) noexcept nogil
    cdef Py_ssize_t fewest_neighbours(self) noexcept nogil
    cdef void relabel(self, Py_ssize_t row, Py_ssize_t parts) noexcept nogil
    cdef void pool_parts(self, Py_ssize_t row, Py_ssize_t first) noexcept nogil
