"""Decisions of every compiled policy; see _choice.pyx."""

from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

from coterie.policies._arrays cimport NamedArrays
from coterie.policies._offers cimport Memory, Offer, View


cdef class ArmChoice(NamedArrays):
    cdef readonly double ridge
    cdef readonly bint explored
    cdef public bint grows
    cdef public double limit
    cdef readonly object schedule
    cdef readonly object generator
    cdef object _scratch
    cdef bitgen_t *bitgen
    cdef int64_t first
    cdef double phase
    cdef double growth
    cdef double longest2
    cdef double *work
    cdef Py_ssize_t n_arms
    cdef double *bounds
    cdef double *upper
    cdef double *widths
    cdef int64_t *waiting

    cdef int follow(self, schedule) except -1
    cdef int reserve(self, Py_ssize_t n_arms) except -1
    cdef bint explores(self) noexcept nogil

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil
    cdef int look(self, Py_ssize_t user, View *seen) except -1 nogil
    cdef double time_factor(self) noexcept nogil

    cdef int choose(
        self, Py_ssize_t user, Offer *offer, Memory *memory, Py_ssize_t k, int64_t *out
    ) except -1 nogil
    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, Memory *memory) except -2 nogil
    cdef bint bound_widths(self, View *seen, Offer *offer, Memory *memory) noexcept nogil
    cdef void remember_widths(self, View *seen, Offer *offer, Memory *memory) noexcept nogil
    cdef bint too_long(self, Offer *offer) noexcept nogil
    cdef Py_ssize_t best(self, View *seen, Offer *offer) noexcept nogil
    cdef void compare(
        self, View *seen, Offer *offer, const double *mean, Py_ssize_t count, Py_ssize_t *best, double *score
    ) noexcept nogil
    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil
    cdef int judge(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil
