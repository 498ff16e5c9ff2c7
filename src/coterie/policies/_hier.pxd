"""Decisions in a hierarchical model; see _hier.pyx."""

from coterie.policies._hier_prior cimport LearntPrior
from coterie.policies._offers cimport Offer


cdef class UpperBounds(LearntPrior):
    cdef double *longer_arms
    cdef double *deviates

    cdef Offer lengthened(self, Offer *offer) noexcept nogil
    cdef const double *covariance_of(self, Py_ssize_t user) noexcept nogil
    cdef const double *mean_of(self, Py_ssize_t user) noexcept nogil
