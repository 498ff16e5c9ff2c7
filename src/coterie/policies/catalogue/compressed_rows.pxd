"""The compressed copy of a catalogue's vectors; see compressed_rows.pyx."""

from libc.stdint cimport int8_t


cdef class CompressedRows:
    cdef readonly Py_ssize_t dim
    cdef readonly Py_ssize_t stride
    cdef readonly double most_norm
    cdef object _arrays
    cdef int8_t *codes
    cdef float *steps
    cdef float *errors
    cdef float *norms
    cdef double *squares

    cdef int bind(self) except -1
