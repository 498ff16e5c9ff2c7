"""What users of AutoCLUB act on; see _autoclub_rows.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.sums cimport ClusterSums


cdef enum:
    OTHERS = 2  # at most this many clusters besides its own are weighed in a review
    MOST = 4  # alternatives: its own cluster, the others, and a preference of its own


cdef class EvidenceRows(ClusterSums):
    cdef double *shares
    cdef double *alone
    cdef double *mixtures
    cdef int64_t *due
    cdef double *inverse
    cdef double *centred
    cdef double *acting
    cdef double *fits
    cdef double *losses
    cdef int64_t *likely

    cdef const double *mixture_of(self, Py_ssize_t user) noexcept nogil
    cdef void learn_pooled(self, Py_ssize_t user, const double *x, double reward) noexcept nogil
