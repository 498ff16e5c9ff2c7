"""Rows of statistics that never change hands, for families that decide differently on them."""

from libc.stdint cimport int64_t

from coterie.policies._learner cimport Learner
from coterie.policies._linalg cimport Ridge


cdef class FixedRows(Learner):
    cdef Ridge pools
    cdef int64_t *pulls
    cdef double beta
    cdef Py_ssize_t opened
    cdef Py_ssize_t cleared  # rows below it hold statistics
    cdef object _rows
