"""What each user of AutoCLUB has told; see _autoclub_users.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.prior cimport Prior


cdef class Histories(Prior):
    cdef double *moments
    cdef double *totals
    cdef double *levels
    cdef double *squared
    cdef int64_t *pulls
    cdef double *precisions
    cdef int64_t *places
    cdef double *vectors
    cdef double *packed
    cdef int64_t *next_vector
    cdef public int64_t used_vectors, free_vector, n_packed
    cdef Py_ssize_t light, half, vectors_room, packed_room
    cdef double *own
    cdef double *turned
    cdef double *small
    cdef double *diagonal
    cdef double *betas
    cdef Py_ssize_t folded
    cdef double *largest
    cdef public int64_t holder
    cdef public double greatest, second
    cdef Py_ssize_t expanded

    cdef double restrain(self, Py_ssize_t user, const double *x, double reward) noexcept nogil
    cdef double counted(self) noexcept nogil
    cdef double within_reason(self, double reward) noexcept nogil
    cdef void believe(self, double second) noexcept nogil
    cdef void amend(self, double before, double after) noexcept nogil
    cdef int make_space(self) except -1 nogil
    cdef void learn_own(self, Py_ssize_t user, const double *x, double reward) noexcept nogil
    cdef double squared_about_offset(self, Py_ssize_t user) noexcept nogil
    cdef void record(self, Py_ssize_t user, const double *x) noexcept nogil
    cdef void pack(self, Py_ssize_t user) noexcept nogil
    cdef void add_packed(self, Py_ssize_t user, const double *x) noexcept nogil
    cdef void expand(self, Py_ssize_t user, double *out) noexcept nogil
    cdef Py_ssize_t fold(self, Py_ssize_t user) noexcept nogil
    cdef void turn(self, double *x) noexcept nogil
    cdef void unfold(self, double *x) noexcept nogil
    cdef const double *gram_of(self, Py_ssize_t user) noexcept nogil
    cdef bint histories_are_whole(self, int64_t *taken) noexcept nogil
