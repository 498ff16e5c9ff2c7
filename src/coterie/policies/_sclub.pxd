"""SCLUB's sets that split and merge, for families that part or merge them by another rule."""

from libc.stdint cimport int64_t

from coterie.policies._kd_tree cimport Tree
from coterie.policies._sclub_sets cimport Sets


cdef class SplitMerge(Sets):
    cdef double closeness  # clusters merge at this share of the distance at which users part
    cdef readonly Tree tree  # of the clusters whose users are all checked, by θ̂

    cdef void pool(self, Py_ssize_t slot) noexcept nogil
    cdef void begin_phase(self) noexcept nogil
    cdef void touch(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t split(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil
    cdef bint close(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef void merge(self, bint every) noexcept nogil
    cdef (int64_t, int64_t) oldest_close(self) noexcept nogil
    cdef void place(self, Py_ssize_t slot) noexcept nogil
    cdef double span(self, Py_ssize_t slot) noexcept nogil
    cdef void join(self, Py_ssize_t older, Py_ssize_t younger) noexcept nogil
