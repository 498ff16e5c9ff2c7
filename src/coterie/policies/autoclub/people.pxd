"""Clusters and people beside each other; see _autoclub_people.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.clusters cimport ByEvidence
from coterie.policies.hier.hierarchy cimport UpperBounds


cdef inline bint misled(double precision, double before) noexcept nogil:
    """Has a user turned out to count for less than a quarter of what it did?"""
    return precision < 0.25 * before


cdef struct Foretold:
    # What a model says of a reward before it is known
    double mean
    double variance


cdef class ClustersAndPeople(ByEvidence):
    cdef readonly UpperBounds people, guest
    cdef public double odds, cluster_errors, people_errors
    cdef Py_ssize_t most_seats, guest_of
    cdef int64_t *holders

    cdef Py_ssize_t seat_of(self, Py_ssize_t user) noexcept nogil
    cdef bint sits(self, Py_ssize_t user) noexcept nogil
    cdef void look_up(self, Py_ssize_t user, const double **mean, const double **covariance) noexcept nogil
    cdef void fill_seat(self, UpperBounds people, Py_ssize_t seat, Py_ssize_t user) noexcept nogil
    cdef void retell(self, UpperBounds people, Py_ssize_t seat, Py_ssize_t user) noexcept nogil
    cdef double update_slack(self) noexcept nogil
    cdef void foretell(self, Py_ssize_t user, const double *x, Foretold *clusters, Foretold *people) noexcept nogil
    cdef void compare_models(self, double reward, Foretold *clusters, Foretold *people) noexcept nogil
    cdef void average_preference(self, Py_ssize_t user, double *out) noexcept nogil  # OUT: out
