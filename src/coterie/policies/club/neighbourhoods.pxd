"""PhaseUniCLUB's neighbourhoods, for families that decide differently on them."""

from libc.stdint cimport int64_t, uint64_t

from coterie.policies.club.components cimport CuttingGraph
from coterie.policies.kernel.linked_lists cimport Linked
from coterie.policies.kernel.ridge cimport Ridge


cdef class Neighbourhoods(CuttingGraph):
    cdef int64_t *sharers
    cdef uint64_t *members
    cdef int64_t first_cut
    cdef Ridge temporary
    cdef uint64_t *neighbourhood
    cdef int64_t *updated  # the round in which a row last absorbed a reward, in this process
    cdef Linked by_checksum  # rows in use, by a checksum of their members
    cdef int64_t *bucket_of  # in which list a row is
    cdef Py_ssize_t room
    cdef uint64_t *vacant
    cdef public int64_t n_neighbourhoods

    cdef void load_neighbourhood(self, Py_ssize_t user) noexcept nogil
    cdef void pool(self, Ridge *pools, Py_ssize_t row) noexcept nogil
    cdef void release_row(self, Py_ssize_t user) noexcept nogil
    cdef void assign_row(self, Py_ssize_t user) noexcept nogil
    cdef void list_rows(self) noexcept nogil
    cdef Py_ssize_t new_row(self) noexcept nogil
