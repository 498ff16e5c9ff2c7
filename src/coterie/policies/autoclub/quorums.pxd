"""What a quorum of users says of rewards and vectors; see quorums.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.kernel.arrays cimport NamedArrays


cdef enum:
    REWARDS = 0
    VECTORS = 1
    KINDS = 2


cdef Py_ssize_t quorum(double users) noexcept nogil


cdef class SizeLimits(NamedArrays):
    cdef public bint omitted  # for `benchmarks.ablation`
    cdef int64_t *exponents
    cdef int64_t *counts
    cdef int64_t users[KINDS]
    cdef double most[KINDS]
    cdef double *shortened

    cdef void reach(self, Py_ssize_t kind, Py_ssize_t user, double size) noexcept nogil
    cdef void find_limit(self, Py_ssize_t kind) noexcept nogil
    cdef double factor(self, Py_ssize_t user, const double *x, double reward) noexcept nogil
    cdef double cut(self, double reward) noexcept nogil
    cdef const double *shrunk(self, const double *x, double factor) noexcept nogil


cdef class SharedValues(NamedArrays):
    cdef public bint omitted  # for `benchmarks.ablation`
    cdef double *values
    cdef int64_t *givers
    cdef double *energies

    cdef bint give(self, Py_ssize_t user, double value, double users) noexcept nogil
    cdef void add(self, Py_ssize_t user, double deviation, bint shared) noexcept nogil
    cdef double own_share(self, Py_ssize_t user) noexcept nogil
