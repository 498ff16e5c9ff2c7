"""How large rewards are; see reward_sizes.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.kernel.arrays cimport NamedArrays


cdef struct Correction:
    # A reward that was learnt as `before` counts as `after` from now on; its vector is `RewardSizes.greatest_vector`
    Py_ssize_t user
    double before
    double after


cdef class RewardSizes(NamedArrays):
    cdef double *peaks
    cdef double *greatest_vector
    cdef public int64_t holder
    cdef public double greatest, second
    cdef int64_t *users_of_size

    cdef void raise_peak(self, Py_ssize_t user, double size) noexcept nogil
    cdef double least_noise(self) noexcept nogil
    cdef bint revise(self, double reward, Correction *correction) noexcept nogil  # OUT: correction
    cdef double limit(self, Py_ssize_t user, const double *x, double reward) noexcept nogil
    cdef double limited_greatest(self) noexcept nogil
