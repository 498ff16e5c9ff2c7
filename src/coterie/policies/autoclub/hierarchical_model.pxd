"""The hierarchical model beside AutoCLUB's clusters; see hierarchical_model.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.clusters cimport Prediction
from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.hier.hierarchy cimport UpperBounds
from coterie.policies.kernel.arrays cimport NamedArrays


cdef class PosteriorCache(NamedArrays):
    cdef readonly UserHistories users
    cdef readonly UpperBounds model
    cdef UpperBounds uncached
    cdef Py_ssize_t most_slots, uncached_user
    cdef int64_t *cached_users

    cdef int init_users(self, Py_ssize_t known) except -1
    cdef bint holds(self, Py_ssize_t user) noexcept nogil
    cdef Py_ssize_t slot_of(self, Py_ssize_t user) noexcept nogil
    cdef void look_up(self, Py_ssize_t user, const double **mean, const double **covariance) noexcept nogil  # OUT: mean, covariance
    cdef void forget_uncached(self) noexcept nogil
    cdef void predict(self, Py_ssize_t user, const double *x, Prediction *out) noexcept nogil  # OUT: out
    cdef void absorb(self, Py_ssize_t user, const double *x, double reward) noexcept nogil
    cdef void reweigh(self, Py_ssize_t user, double times) noexcept nogil
    cdef int review(self, Py_ssize_t user) except -1 nogil
    cdef void fill_slot(self, UpperBounds model, Py_ssize_t slot, Py_ssize_t user) noexcept nogil  # OUT: model
    cdef void replay_vectors(self, UpperBounds model, Py_ssize_t slot, Py_ssize_t user) noexcept nogil  # OUT: model


cdef class ModelWeights(NamedArrays):
    cdef public bint omits_hierarchy, omits_clusters, omits_limit  # for `benchmarks.ablation`
    cdef public double log_odds

    cdef double hierarchy_weight(self) noexcept nogil
    cdef void compare(
        self, double reward, Prediction *clusters, Prediction *hierarchy, int64_t rewards, double share
    ) noexcept nogil
    cdef void reject_hierarchy(self) noexcept nogil
