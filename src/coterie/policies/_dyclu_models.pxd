"""Models of users for DyClu: least squares without a ridge, and the test of whether two have the same preference."""

from libc.stdint cimport int64_t, uint64_t

from coterie.policies._changes cimport Detector
from coterie.policies._learner cimport Learner


cdef struct Model:
    # S, b, a solution of Sθ = b, bᵀS⁺b, the number of rewards and the rank of S
    const double *gram
    const double *moment
    const double *fit
    double explained
    int64_t count
    int64_t rank


cdef class LeastSquares(Learner):
    cdef double *grams
    cdef double *moments
    cdef double *fits
    cdef double *squared
    cdef double *explained
    cdef int64_t *counts
    cdef int64_t *ranks
    cdef int64_t *pulls
    cdef uint64_t *outcomes
    cdef int64_t *watched
    cdef Detector detector
    cdef public double noise2
    cdef public double freedom
    cdef bint estimated
    cdef object _critical
    cdef double *critical
    cdef double sharp
    cdef double *matrix
    cdef double *reduced
    cdef double *apart
    cdef double *growth
    cdef bint fresh

    cdef Model model_of(self, Py_ssize_t user) noexcept nogil
    cdef bint knows_noise(self) noexcept nogil
    cdef void settle_noise(self) noexcept nogil
    cdef bint surprising(self, Py_ssize_t user, const double *x, double reward) noexcept nogil
    cdef void refit(self, Py_ssize_t user) noexcept nogil
    cdef Py_ssize_t solve(self, double *explained) noexcept nogil
    cdef double within(self, Model *a, Model *b) noexcept nogil
    cdef double excess(self, Model *a, Model *b, Py_ssize_t *freedom) noexcept nogil
