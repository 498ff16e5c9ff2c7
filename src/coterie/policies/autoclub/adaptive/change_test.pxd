"""Has a user changed? See change_test.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.clusters cimport Prediction
from coterie.policies.kernel.arrays cimport NamedArrays


cdef class ChangeTest(NamedArrays):
    cdef public int64_t alarms
    cdef public bint omitted  # for `benchmarks.ablation`
    cdef double *evidence
    cdef double *errors

    cdef void add(
        self, Py_ssize_t user, double reward, Prediction *known, Prediction *prior, int64_t pulls
    ) noexcept nogil
    cdef bint has_changed(self, Py_ssize_t user, int64_t pulls) noexcept nogil
