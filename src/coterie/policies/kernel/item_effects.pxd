"""Effects of items beside a linear model; see item_effects.pyx."""

from libc.stdint cimport int64_t, uint64_t

from coterie.policies.kernel.arrays cimport NamedArrays


cdef int64_t key_of_vector(const double *x, Py_ssize_t d) noexcept nogil


cdef inline int64_t key_of_id(int64_t item) noexcept nogil:
    """The key of an id: above 0, while those of vectors are below."""
    return item + 1


cdef inline int64_t key_of_item(const int64_t *item, const double *x, Py_ssize_t d) noexcept nogil:
    """The key of the id that `item` points to; where it is NULL, that of the vector x."""
    return key_of_vector(x, d) if item == NULL else key_of_id(item[0])


cdef class ItemEffects(NamedArrays):
    cdef public int64_t slots
    cdef public int64_t used
    cdef public int64_t vectors
    cdef public double mean
    cdef public double weight
    cdef public double agreement
    cdef public double agreement2
    cdef public double pairs
    cdef public double squares
    cdef public double count
    cdef readonly double variance
    cdef readonly double shrinkage
    cdef int64_t most_vectors
    cdef int64_t *keys
    cdef double *weights
    cdef double *sums

    cdef int64_t slot_of(self, int64_t key) noexcept nogil
    cdef int add(self, int64_t key, double residual, double weight) except -1 nogil
    cdef void look(self, int64_t key, double *mean, double *width2) noexcept nogil
    cdef double clipped(self, double off) noexcept nogil
    cdef void compare(self, double off, double before, double weight, bint seen) noexcept nogil
    cdef void settle(self) noexcept nogil
    cdef int insert(self, int64_t key, double weight, double total) except -1
    cdef int resize(self, int64_t slots, double least) except -1
