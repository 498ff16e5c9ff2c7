"""A k-d tree of moving points; see kd_tree.pyx."""

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
    cdef Py_ssize_t built_from  # points that it was built from; 0 if it must be rebuilt
    cdef readonly int64_t visited  # points that searches have compared
    cdef int64_t visited_before  # of them, before the tree was built
    cdef int64_t *order  # the coordinates, those that vary most first
    cdef double *spread  # of coordinates: how much
    cdef int64_t *axes  # of nodes: the number of a sketch by which it divides
    cdef double *cuts  # of nodes: points with less are below the first
    cdef double *widest  # of nodes: no point below has a greater reach
    cdef int64_t *first  # of leaves: their first slot; leaf 0 takes the points whose own leaf is full
    cdef int64_t *capacity  # of leaves: number of slots
    cdef int64_t *filled  # of leaves: how many of their slots are in use
    cdef int64_t *rows  # of slots: the point in it
    cdef float *sketches  # of slots: sketch and reach of the point, by blocks of slots
    cdef int64_t *leaf  # of points: leaf; -1 if not in the tree
    cdef int64_t *slot  # of points: slot
    cdef int64_t *found  # rows that a search has found

    cdef int attach(self, const double *points, Py_ssize_t room, Py_ssize_t dim) except -1
    cdef bint is_due(self) noexcept nogil
    cdef void build(self, const int64_t *rows, Py_ssize_t n) noexcept nogil
    cdef void rank_coordinates(self, const int64_t *rows, Py_ssize_t n) noexcept nogil
    cdef void sketch(self, Py_ssize_t row, double *out) noexcept nogil
    cdef int64_t divide(self, Py_ssize_t node, int64_t *picked, Py_ssize_t n, int64_t start) noexcept nogil
    cdef float *sketch_entry(self, int64_t slot, Py_ssize_t k) noexcept nogil
    cdef void insert(self, Py_ssize_t row, double reach) noexcept nogil
    cdef void remove(self, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t find_near(self, Py_ssize_t row, double reach, double factor) noexcept nogil
    cdef void search_node(self, Search *search, Py_ssize_t node, double apart2) noexcept nogil
