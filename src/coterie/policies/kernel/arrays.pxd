"""Named arrays that grow with the number of users; see arrays.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.kernel.ridge cimport Ridge


cdef class NamedArrays:
    cdef readonly Py_ssize_t n_users
    cdef readonly Py_ssize_t dim
    cdef public int64_t rounds
    cdef dict _arrays
    cdef dict _scratch
    cdef int64_t *epochs
    cdef int64_t *row_of

    cdef int bind(self) except -1
    cdef int make_room(self, Py_ssize_t n_users) except -1
    cdef int set_users(self, Py_ssize_t n_users) except -1
    cdef double *workspace(self, str name, Py_ssize_t length) except NULL
    cdef void *pointer(self, str name) except NULL
    cdef Ridge ridge_rows(self, str prefix) except *
