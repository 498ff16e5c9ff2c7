"""A k-d tree of points that move, for families that look for what is near a point."""

from libc.stdint cimport int64_t

from coterie.policies.kernel.linalg cimport SKETCH


cdef struct Search:
    # points within `factor` times `reach` and their own of one; their rows are written to `out`
    double sketch[SKETCH]
    float rounded[SKETCH]
    double offsets[SKETCH]  # how far the node at hand is, number by number
    double reach
    double factor
    int64_t *out
    Py_ssize_t found


cdef class Tree:
    cdef dict _arrays
    cdef const double *points
    cdef Py_ssize_t dim
    cdef Py_ssize_t room  # points at most
    cdef Py_ssize_t leaves  # below node i are 2i and 2i + 1, the root is 1; nodes from this number on are leaves
    cdef Py_ssize_t planted  # points by which space was divided; 0 if it must be divided anew
    cdef readonly int64_t passed  # points that searches have looked at
    cdef int64_t passed_before  # of them, before space was divided
    cdef int64_t *order  # the coordinates, those that vary most first
    cdef double *spread  # of coordinates: how much
    cdef int64_t *axes  # of nodes: the number of a sketch by which it divides
    cdef double *cuts  # of nodes: points with less are below the first
    cdef double *widest  # of nodes: no point below has a greater reach
    cdef int64_t *first  # of leaves: their first seat; leaf 0 is for points whose own has no seat left
    cdef int64_t *seats  # of leaves: how many they have
    cdef int64_t *taken  # of leaves: how many are taken
    cdef int64_t *rows  # of seats: the point there
    cdef float *sketches  # of seats: its sketch and reach, by blocks of seats
    cdef int64_t *leaf  # of points: where it is; -1 if not in the tree
    cdef int64_t *seat  # of points: where in it
    cdef int64_t *found  # rows that a search has found

    cdef int hold(self, const double *points, Py_ssize_t room, Py_ssize_t dim) except -1
    cdef bint worn(self) noexcept nogil
    cdef void plant(self, const int64_t *rows, Py_ssize_t n) noexcept nogil
    cdef void rank_coordinates(self, const int64_t *rows, Py_ssize_t n) noexcept nogil
    cdef void sketch(self, Py_ssize_t row, double *out) noexcept nogil
    cdef int64_t divide(self, Py_ssize_t node, int64_t *picked, Py_ssize_t n, int64_t start) noexcept nogil
    cdef float *number(self, int64_t seat, Py_ssize_t k) noexcept nogil
    cdef void put(self, Py_ssize_t row, double reach) noexcept nogil
    cdef void drop(self, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t near(self, Py_ssize_t row, double reach, double factor) noexcept nogil
    cdef void gather(self, Search *search, Py_ssize_t node, double apart2) noexcept nogil
