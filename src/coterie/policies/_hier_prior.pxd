"""What all users of a hierarchical model say of its prior; see _hier_prior.pyx."""

from coterie.policies._hier_rows cimport Fold, UserRows


cdef struct Directions:
    # RᵀHR = QᵀGQ, A = RRᵀ: the diagonal of G, QR⁻¹ and RQᵀ
    double *values
    double *inwards
    double *outwards


cdef class LearntPrior(UserRows):
    cdef bint noise_given
    cdef bint covariance_given
    cdef double *fixed
    cdef double *start
    cdef double *target
    cdef double *weights
    cdef double *factor
    cdef double *inverse_factor
    cdef double *vectors
    cdef double *told
    cdef double *candidate
    cdef Fold everybody
    cdef Directions all_known, half_known

    cdef bint is_sound(self) noexcept nogil
    cdef void start_over(self) noexcept nogil
    cdef void fit(self) noexcept nogil
    cdef double largest_part(self) noexcept nogil
    cdef void settle_noise(self) noexcept nogil
    cdef void settle_spread(self) noexcept nogil
    cdef void settle_covariance(self) noexcept nogil
    cdef void set_target(self) noexcept nogil
    cdef void examine(self, Fold *fold, Directions *known) noexcept nogil
    cdef void step(self, Fold *fold, Directions *known, double pseudo, double *out) noexcept nogil
    cdef void choose_shrinkage(self) noexcept nogil
    cdef double evidence(self, Py_ssize_t which, double *covariance) noexcept nogil
