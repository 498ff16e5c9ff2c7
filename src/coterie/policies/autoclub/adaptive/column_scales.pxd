"""The unit of each column of AutoCLUB's vectors; see column_scales.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.kernel.arrays cimport NamedArrays


cdef class ColumnScales(NamedArrays):
    cdef public int64_t votes, due
    cdef public bint omitted  # for `benchmarks.ablation`
    cdef bint level
    cdef int64_t *sizes
    cdef int64_t *exponents
    cdef double *factors
    cdef double *vector
    cdef double *preferences[2]
    cdef double *matrices[2]

    cdef bint count(self, const double *x, int64_t pulls) noexcept nogil
    cdef Py_ssize_t usual_size(self, Py_ssize_t column) noexcept nogil
    cdef const double *level_vector(self, const double *x) noexcept nogil
    cdef const double *raw_preference(self, const double *preference, Py_ssize_t first) noexcept nogil
    cdef const double *raw_matrix(self, const double *matrix, Py_ssize_t first) noexcept nogil
