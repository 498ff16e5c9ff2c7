"""Who is in which cluster of AutoCLUB; see _autoclub_members.pyx."""

from libc.stdint cimport int64_t

from coterie.policies.autoclub.users cimport Histories
from coterie.policies.kernel.linked_lists cimport Linked


cdef enum:
    MOST_LISTED = 1024  # clusters that are looked at; if there are more, those that count most


cdef struct Ranked:
    # A cluster and what its members count for
    double count
    int64_t row


cdef class Memberships(Histories):
    cdef Linked members, unseen
    cdef int64_t *sizes
    cdef double *counts
    cdef int64_t *next_row
    cdef int64_t *spots
    cdef int64_t *listed
    cdef int64_t *gathered
    cdef Py_ssize_t rows_room, n_listed
    cdef public int64_t n_clusters, used_rows, free_row, list_due
    cdef public double bar

    cdef int64_t *list(self, str name) except NULL
    cdef void list_members(self) noexcept nogil
    cdef Py_ssize_t open_row(self) noexcept nogil
    cdef void close_row(self, Py_ssize_t row) noexcept nogil
    cdef void enter(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil
    cdef void leave(self, Py_ssize_t user) noexcept nogil
    cdef void awake(self, Py_ssize_t user) noexcept nogil
    cdef void unite(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil
    cdef double crowd_of(self, Py_ssize_t user) noexcept nogil
    cdef Py_ssize_t gather(self, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t nobody_taught(self, Py_ssize_t known) noexcept nogil
    cdef void place(self, Py_ssize_t row, Py_ssize_t spot) noexcept nogil
    cdef void enlist(self, Py_ssize_t row) noexcept nogil
    cdef void strike(self, Py_ssize_t row) noexcept nogil
    cdef void shorten(self) noexcept nogil
    cdef int relist(self) except -1
