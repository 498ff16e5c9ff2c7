"""Clusters by evidence; see clusters.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.cluster_sums cimport ClusterSums
from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.autoclub.partition cimport Partition
from coterie.policies.autoclub.prior cimport CommonPrior, Regression
from coterie.policies.autoclub.quorums cimport SharedValues
from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.learner cimport View


cdef struct Prediction:
    # The predictive density of a reward: its mean and variance
    double mean
    double variance


cdef class Clusters(NamedArrays):
    cdef readonly UserHistories users
    cdef readonly SharedValues values
    cdef readonly CommonPrior prior
    cdef readonly Partition partition
    cdef readonly ClusterSums sums
    cdef public bint omits_mixture, omits_merging, omits_raise  # for `benchmarks.ablation`
    cdef double *cluster_weights
    cdef double *single_weights
    cdef double *alternatives
    cdef int64_t *next_review
    # Scratch
    cdef double *acting
    cdef double *fits
    cdef double *around
    cdef double *centred
    cdef double *losses
    cdef int64_t *likely

    cdef int make_space(self, int64_t rounds) except -1 nogil
    cdef int init_users(self, Py_ssize_t known) except -1
    cdef void view(self, Py_ssize_t user, View *seen) noexcept nogil  # OUT: seen
    cdef const double *preference_of(self, Py_ssize_t user) noexcept nogil
    cdef void predict(self, Py_ssize_t user, const double *x, Prediction *out) noexcept nogil  # OUT: out
    cdef void absorb(self, Py_ssize_t user, const double *x, double reward, bint whole) noexcept nogil

    cdef bint is_due(self, Py_ssize_t user) noexcept nogil
    cdef void review(self, Py_ssize_t user) noexcept nogil
    cdef double regress(self, Py_ssize_t user, double *fit) noexcept nogil  # OUT: fit
    cdef bint judge_noise(self, Py_ssize_t user, Regression *found) noexcept nogil
    cdef double gain(self, Py_ssize_t user, Py_ssize_t row, double *fit) noexcept nogil  # OUT: fit
    cdef double log_new_cluster(self) noexcept nogil
    cdef void mix(self, Py_ssize_t user, const double *gains, Py_ssize_t n, Py_ssize_t chosen) noexcept nogil
    cdef bint merge(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil

    cdef Py_ssize_t choose_candidates(self, Py_ssize_t user, int64_t *rows) noexcept nogil  # OUT: rows
    cdef Py_ssize_t shortlist(self, Py_ssize_t user) noexcept nogil
    cdef void misfits(self, Py_ssize_t user, Py_ssize_t count) noexcept nogil
