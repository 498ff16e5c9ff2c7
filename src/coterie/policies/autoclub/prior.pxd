"""What all users of AutoCLUB together say; see _autoclub_prior.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.kernel.learner cimport Learner


cdef struct Terms:
    # A user's contribution to the estimates: T, ωΣr², RSS, tr H, λ‖δ‖², tr H², tr H² ln λ and κ = tr H²/tr H, H = S(λI + S)⁻¹
    double pulls
    double square
    double residual
    double freedom
    double penalty
    double information
    double level
    double say
    double shift
    double ground


cdef class Prior(Learner):
    cdef public int64_t skipped
    cdef public double noise2, weight, offset, level, squares, reach, seen, fitted, length2
    cdef Terms *terms
    cdef Terms *sums
    cdef double *mean
    cdef double *total
    cdef double *votes
    cdef double *peaks
    cdef int64_t *order
    cdef int64_t *users_of_size

    cdef int64_t learnt(self) noexcept nogil
    cdef double acting_weight(self) noexcept nogil
    cdef double usual_weight(self) noexcept nogil
    cdef void replace_terms(self, Py_ssize_t user, Terms *fresh, const double *vote) noexcept nogil
    cdef void add_terms(self, Terms *terms, double sign) noexcept nogil
    cdef void sum_terms(self) noexcept nogil
    cdef void guess(self) noexcept nogil
    cdef void update_noise(self) noexcept nogil
    cdef double precision_of(self, Py_ssize_t user, Terms *fresh, double precision) noexcept nogil
    cdef void raise_peak(self, Py_ssize_t user, double size) noexcept nogil
    cdef double least_noise(self) noexcept nogil
    cdef void settle_prior(self) noexcept nogil
