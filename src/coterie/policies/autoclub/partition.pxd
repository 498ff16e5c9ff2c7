"""Which user is in which cluster; see partition.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.linked_lists cimport Linked


cdef enum:
    MOST_CANDIDATES = 1024  # clusters that a review considers; if there are more, those of largest effective size


cdef class Partition(NamedArrays):
    cdef readonly UserHistories users
    cdef Linked members
    cdef int64_t *sizes
    cdef double *effective_sizes
    cdef int64_t *next_row
    cdef int64_t *positions
    cdef int64_t *candidates
    cdef int64_t *collected
    cdef Py_ssize_t rows_room, n_candidates
    cdef public int64_t n_clusters, used_rows, free_row, candidates_due
    cdef public double least_size

    cdef int make_space(self, int64_t rounds) except -1 nogil

    cdef Py_ssize_t open_row(self) noexcept nogil
    cdef void close_row(self, Py_ssize_t row) noexcept nogil
    cdef void enter(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil
    cdef void leave(self, Py_ssize_t user) noexcept nogil
    cdef void merge_rows(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil
    cdef Py_ssize_t collect_members(self, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t largest_row(self) noexcept nogil
    cdef void place_newcomer(self, Py_ssize_t user) noexcept nogil
    cdef void invalidate_widths(self, Py_ssize_t row) noexcept nogil

    cdef void set_size(self, Py_ssize_t row, double size) noexcept nogil
    cdef void change_size(self, Py_ssize_t row, double by) noexcept nogil
    cdef void update_candidate(self, Py_ssize_t row) noexcept nogil
    cdef void set_candidate(self, Py_ssize_t row, Py_ssize_t position) noexcept nogil
    cdef void remove_candidate(self, Py_ssize_t row) noexcept nogil
    cdef void trim_candidates(self) noexcept nogil
    cdef int rebuild_candidates(self, int64_t rounds) except -1

    cdef int64_t *indices(self, str name) except NULL
    cdef void link_members(self) noexcept nogil
