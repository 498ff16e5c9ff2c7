"""Estimates that all users share; see prior.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.autoclub.quorums cimport SizeLimits
from coterie.policies.kernel.arrays cimport NamedArrays


cdef struct Terms:
    # A user's contribution to the estimates: T, RSS and T − tr H times its share, tr H, λ‖δ‖², tr H², tr H² ln λ, κ = tr H²/tr H, and numerator and
    # denominator of the offset; H = S(λI + S)⁻¹
    double pulls
    double residual
    double left
    double freedom
    double penalty
    double information
    double log_precision
    double mean_weight
    double offset_sum
    double offset_weight


cdef struct Regression:
    # A user's own regression: its terms, RSS, fair share, ln|λI + S| and cᵀ(λI + S)⁻¹c
    Terms terms
    double residual
    double share
    double logdet
    double explained


cdef class CommonPrior(NamedArrays):
    cdef readonly UserHistories users
    cdef readonly SizeLimits limits
    cdef readonly double ridge
    cdef public bint omits_weights, omits_shares, omits_offset  # for `benchmarks.ablation`
    cdef public double noise2, precision, offset, fitted, vote_squares
    cdef Terms *terms
    cdef Terms *sums
    cdef double *mean
    cdef double *vote_sum
    cdef double *votes
    cdef int64_t *order
    cdef double *shares
    # Scratch; `centred` is left holding ωc of the user of the last regression, `matrix` and `reduced` the last elimination
    cdef double *matrix
    cdef double *factor
    cdef double *inverse
    cdef double *centred
    cdef double *reduced
    cdef double *around

    # Estimates
    cdef double shrunk_offset(self, double estimate, double variance) noexcept nogil
    cdef double usual_precision(self) noexcept nogil
    cdef bint is_fitted(self) noexcept nogil
    cdef void guess(self) noexcept nogil
    cdef void regress(self, Py_ssize_t user, double *fit, Regression *found) noexcept nogil  # OUT: fit, found
    cdef void update_user(self, Py_ssize_t user, Regression *found, double *fit) noexcept nogil  # OUT: fit
    cdef void update_prior(self) noexcept nogil
    cdef double fair_share(self, Py_ssize_t user, double left) noexcept nogil
    cdef double least_noise(self) noexcept nogil
    cdef bint is_known(self, Py_ssize_t user) noexcept nogil
    cdef double share_of(self, Py_ssize_t user) noexcept nogil
    cdef double noise_weight(self, Py_ssize_t user, Regression *found, double own_share) noexcept nogil
    cdef void predict(
        self, Py_ssize_t user, const double *x, double *mean, double *variance
    ) noexcept nogil  # OUT: mean, variance
    cdef double effective_size(self, Py_ssize_t user) noexcept nogil
    cdef double total_size(self) noexcept nogil

    # Evidence
    cdef double evidence(self, double logdet, double explained) noexcept nogil
    cdef double evidence_of(
        self, const double *first, const double *second, double sign, const double *centred
    ) noexcept nogil
    cdef void centre(
        self, const double *gram, const double *moment, const double *vector_sum, double *out
    ) noexcept nogil  # OUT: out
    cdef void solve_last(self, double *out) noexcept nogil  # OUT: out

    cdef void replace_terms(self, Py_ssize_t user, Terms *fresh, const double *vote) noexcept nogil
    cdef void add_terms(self, Terms *terms, double sign) noexcept nogil
    cdef void sum_terms(self) noexcept nogil
    cdef void update_noise(self) noexcept nogil
