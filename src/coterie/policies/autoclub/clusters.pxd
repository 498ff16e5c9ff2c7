"""Clusters by evidence; see _autoclub.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.prior cimport Terms
from coterie.policies.autoclub.rows cimport EvidenceRows


cdef class ByEvidence(EvidenceRows):
    cdef double evidence(self, double logdet, double explained) noexcept nogil
    cdef double explain(
        self, const double *first, const double *second, double sign, const double *centred
    ) noexcept nogil
    cdef void centre(
        self, const double *gram, const double *moment, const double *total, double *out
    ) noexcept nogil
    cdef double tell(self, Py_ssize_t user, double *fit) noexcept nogil
    cdef void regress(
        self, Py_ssize_t user, double *fit, Terms *terms, double *logdet, double *explained
    ) noexcept nogil
    cdef bint reassess(self, Py_ssize_t user, Terms *terms) noexcept nogil
    cdef double weigh(self, Py_ssize_t user, Py_ssize_t row, double *fit) noexcept nogil
    cdef double crowd(self, Py_ssize_t row, Py_ssize_t but) noexcept nogil
    cdef double novelty(self) noexcept nogil
    cdef Py_ssize_t screen(self, Py_ssize_t user, int64_t *rows) noexcept nogil
    cdef Py_ssize_t shortlist(self, Py_ssize_t user) noexcept nogil
    cdef void centred_moment(self, Py_ssize_t user) noexcept nogil
    cdef void misfits(self, Py_ssize_t user, Py_ssize_t count) noexcept nogil
    cdef void mix(self, Py_ssize_t user, const double *gains, Py_ssize_t n, Py_ssize_t chosen) noexcept nogil
    cdef Py_ssize_t move(self, Py_ssize_t user, Py_ssize_t target) noexcept nogil
    cdef bint merge(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil
