"""The sums of each user's rewards; see histories.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.kernel.arrays cimport NamedArrays


cdef class UserHistories(NamedArrays):
    # One entry or row for each user
    cdef double *moments
    cdef double *vector_sums
    cdef double *reward_sums
    cdef double *reward_squares
    cdef int64_t *pulls
    cdef double *noise_weights
    # Where S is stored
    cdef int64_t *places
    cdef double *vectors
    cdef int64_t *next_vector
    cdef double *packed
    cdef public int64_t whole_rewards, used_vectors, free_vector, n_packed
    cdef Py_ssize_t packed_from, triangle, vectors_room, packed_room
    # Sums over all users
    cdef public double reward_sum, reward_square, square_norms, seen
    # S of the user who was asked for last, and the span of the vectors of one with few rewards
    cdef double *expanded_gram
    cdef Py_ssize_t expanded_user
    cdef double *reflectors
    cdef double *span_gram
    cdef double *diagonal
    cdef double *betas
    cdef Py_ssize_t span

    cdef int make_space(self) except -1 nogil
    cdef int init_users(self, Py_ssize_t known) except -1
    cdef void add(self, Py_ssize_t user, const double *x, double reward, bint whole) noexcept nogil
    cdef void set_noise_weight(self, Py_ssize_t user, double weight) noexcept nogil
    cdef double squares_about(self, Py_ssize_t user, double offset) noexcept nogil
    cdef bint keeps_vectors(self, Py_ssize_t user) noexcept nogil
    cdef const double *next_vector_of(self, int64_t *place) noexcept nogil  # OUT: place

    cdef const double *gram_of(self, Py_ssize_t user) noexcept nogil
    cdef void expand(self, Py_ssize_t user, double *out) noexcept nogil  # OUT: out
    cdef Py_ssize_t enter_span(self, Py_ssize_t user) noexcept nogil
    cdef void to_span(self, double *x) noexcept nogil  # OUT: x
    cdef void from_span(self, double *x) noexcept nogil  # OUT: x

    cdef void add_vector(self, Py_ssize_t user, const double *x) noexcept nogil
    cdef void pack(self, Py_ssize_t user) noexcept nogil
    cdef void add_packed(self, Py_ssize_t user, const double *x) noexcept nogil
    cdef bint rings_are_whole(self, int64_t *taken) noexcept nogil  # OUT: taken
