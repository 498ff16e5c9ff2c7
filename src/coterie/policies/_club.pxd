"""CLUB's components, for families that learn differently from a reward."""

from libc.stdint cimport int64_t

from coterie.policies._graph cimport CuttingGraph


cdef class Components(CuttingGraph):
    cdef public int64_t n_components

    cdef void divide(self, Py_ssize_t user, Py_ssize_t count) noexcept nogil
    cdef Py_ssize_t loneliest(self) noexcept nogil
    cdef void relabel(self, Py_ssize_t row, Py_ssize_t parts) noexcept nogil
    cdef void gather(self, Py_ssize_t row, Py_ssize_t first) noexcept nogil
