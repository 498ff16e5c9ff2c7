"""A hierarchical model of users; see hierarchy.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.hier.arrivals cimport Arrivals
from coterie.policies.kernel.learner cimport Learner, Offer


cdef struct Fold:
    # What half of the users say of the prior: how many they are, Σ C and Σ (m − μ)(m − μ)ᵀ
    double users
    double *inverses
    double *scatter


cdef class UserRows(Learner):
    cdef readonly Arrivals arrivals
    cdef readonly bint intercept
    cdef bint mean_given
    cdef bint doubtful
    cdef public double noise2, spread2, shrinkage, due
    cdef readonly object noise
    cdef readonly object mean
    cdef readonly object covariance
    cdef Py_ssize_t size
    cdef double *grams
    cdef double *moments
    cdef double *squared
    cdef int64_t *pulls
    cdef double *covariances
    cdef double *means
    cdef double *centre
    cdef double *relative
    cdef double *new_user
    cdef Fold folds[2]
    cdef double residual, freedom, level, reach, square, rewards
    cdef double *precision
    cdef double *mean_covariance
    cdef double *root
    cdef double *matrix
    cdef double *product
    cdef double *scratch
    cdef double *total
    cdef double *lift
    cdef double *reduced
    cdef double *extended

    cdef const double *with_intercept(self, const double *x, double times) noexcept nogil
    cdef void absorb_weighted(self, Py_ssize_t user, const double *x, double reward, double weight) noexcept nogil
    cdef void copy_from(self, Py_ssize_t user, UserRows others, Py_ssize_t other) noexcept nogil
    cdef void reweigh(self, Py_ssize_t user, double times) noexcept nogil
    cdef void start_covariance(self, Py_ssize_t user) noexcept nogil
    cdef void add_vector(self, Py_ssize_t user, const double *x) noexcept nogil
    cdef void start_posterior(self, Py_ssize_t user) noexcept nogil
    cdef void find_mean(self, Py_ssize_t user) noexcept nogil
    cdef void condition(self) noexcept nogil
    cdef void condition_users(self) noexcept nogil
    cdef void condition_group(self, const Py_ssize_t *group, Py_ssize_t count, double floor) noexcept nogil
    cdef void condition_mean(self) noexcept nogil
    cdef void combine(self) noexcept nogil
    cdef void count(self, Py_ssize_t user, Fold *fold) noexcept nogil
    cdef void information(self, double users, const double *inverses, double *out) noexcept nogil



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
    cdef double *information_matrix
    cdef double *candidate
    cdef Fold all_users
    cdef Directions all_known, half_known

    cdef bint is_finite(self) noexcept nogil
    cdef void reset_prior(self) noexcept nogil
    cdef void fit(self) noexcept nogil
    cdef double largest_variance(self) noexcept nogil
    cdef void update_noise(self) noexcept nogil
    cdef void update_spread(self) noexcept nogil
    cdef void update_covariance(self) noexcept nogil
    cdef void set_target(self) noexcept nogil
    cdef void find_directions(self, Fold *fold, Directions *known) noexcept nogil
    cdef void step(self, Fold *fold, Directions *known, double pseudo, double *out) noexcept nogil
    cdef void choose_shrinkage(self) noexcept nogil
    cdef double evidence(self, Py_ssize_t which, double *covariance) noexcept nogil


cdef class UpperBounds(LearntPrior):
    cdef double *extended_arms
    cdef double *deviates

    cdef int reserve_extended(self, Py_ssize_t n_arms) except -1
    cdef Offer arms_with_intercept(self, Offer *offer) noexcept nogil
    cdef const double *covariance_of(self, Py_ssize_t user) noexcept nogil
    cdef const double *mean_of(self, Py_ssize_t user) noexcept nogil
