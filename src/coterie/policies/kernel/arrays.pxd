"""Named arrays that grow with the number of users; see _arrays.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.kernel.ridge cimport Ridge


cdef class NamedArrays:
    cdef readonly Py_ssize_t n_users
    cdef readonly Py_ssize_t dim
    cdef public int64_t rounds
    cdef dict _arrays
    cdef int64_t *epochs
    cdef int64_t *row_of

    cdef int bind(self) except -1
    cdef int make_room(self, Py_ssize_t n_users) except -1
    cdef void *pointer(self, str name) except NULL
    cdef Ridge ridge_rows(self, str prefix) except *
