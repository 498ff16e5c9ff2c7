"""Numbers of users in the order of their first rewards; see arrivals.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.kernel.arrays cimport NamedArrays


cdef class Arrivals(NamedArrays):
    cdef int64_t *numbers
    cdef int64_t *users
    cdef public int64_t count, past

    cdef Py_ssize_t number_of(self, Py_ssize_t user) noexcept nogil
    cdef Py_ssize_t admit(self, Py_ssize_t user) noexcept nogil
    cdef bint is_past(self, Py_ssize_t number) noexcept nogil
