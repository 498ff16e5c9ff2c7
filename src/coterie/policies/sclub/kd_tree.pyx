# optimize: 2
"""A k-d tree of moving points, each with a radius of its own: which of them may be within reach of another?   (Bentley 1975).

The tree stores an eight-number sketch of each point: the seven coordinates that vary most, and the length of the rest. The distance
between sketches never exceeds that between points, so a search misses none. It skips nodes by incremental distances
(Arya and Mount 1993), and compares the sketches of the other leaves, which are stored side by side.
"""

import numpy as np

cimport cython
cimport numpy as cnp
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t

from coterie.policies.kernel.linalg cimport BLOCK, SKETCH, sketches_within

cnp.import_array()


cdef double NODE_ROUNDING = 1e-9  # relative rounding error of the distance to a node, generously
cdef enum:
    LEAF_POINTS = 128  # points of a leaf at most, when the tree is built
    SPARE_SLOTS = 4  # slots of a leaf besides two for each of its points
    SAMPLE = 16  # points whose median is the cut of a node
    REBUILD = 512  # the tree is rebuilt when searches have visited so many points for each that it was built from


@cython.final
cdef class Tree:
    """Rows of an array of points, in leaves by position."""

    @property
    def nbytes(self):
        """Bytes of all arrays but the points."""
        return sum([array.nbytes for array in self._arrays.values()])

    cdef int attach(self, const double *points, Py_ssize_t room, Py_ssize_t dim) except -1:
        """Attach an array of at most `room` points; if its size is new, the tree must be built."""
        cdef Py_ssize_t nodes = 2, slots
        self.points = points
        if room == self.room:
            return 0
        while LEAF_POINTS * nodes < 2 * room:
            nodes *= 2
        slots = (3 * room + (SPARE_SLOTS + BLOCK) * (nodes + 1)) & -BLOCK
        self._arrays = {
            "bounds": np.empty((2, nodes)),
            "numbers": np.empty((4, nodes), np.int64),
            "places": np.full((3, room), -1),
            "rows": np.empty(slots, np.int64),
            "sketches": np.empty((slots, SKETCH + 1), np.float32),
            "order": np.empty(dim, np.int64),
            "spread": np.empty(dim),
        }
        self.cuts = <double *> cnp.PyArray_DATA(self._arrays["bounds"])
        self.axes = <int64_t *> cnp.PyArray_DATA(self._arrays["numbers"])
        self.leaf = <int64_t *> cnp.PyArray_DATA(self._arrays["places"])
        self.rows = <int64_t *> cnp.PyArray_DATA(self._arrays["rows"])
        self.sketches = <float *> cnp.PyArray_DATA(self._arrays["sketches"])
        self.order = <int64_t *> cnp.PyArray_DATA(self._arrays["order"])
        self.spread = <double *> cnp.PyArray_DATA(self._arrays["spread"])
        self.first, self.capacity, self.filled = self.axes + nodes, self.axes + 2 * nodes, self.axes + 3 * nodes
        self.widest, self.slot, self.found = self.cuts + nodes, self.leaf + room, self.leaf + 2 * room
        self.room, self.dim, self.built_from = room, dim, 0
        self.first[0], self.capacity[0] = (slots - room) & -BLOCK, room
        return 0

    cdef bint is_due(self) noexcept nogil:
        """Is the tree due for a rebuild? It is when searches have cost a multiple of what building it does."""
        return self.visited - self.visited_before >= REBUILD * self.built_from

    cdef void build(self, const int64_t *rows, Py_ssize_t n) noexcept nogil:
        """Choose the cuts by these points, so that leaves have about equally many; the tree is left empty."""
        cdef Py_ssize_t k, i
        cdef double sketch[SKETCH]
        cdef float *sketches = self.sketch_entry(self.first[0], 0)  # the slots of leaf 0 are free now
        self.leaves, self.built_from, self.visited_before = 1, n, self.visited
        while LEAF_POINTS * self.leaves < n:
            self.leaves *= 2
        for k in range(2 * self.leaves):
            self.filled[k], self.widest[k] = 0, -INFINITY
        for k in range(self.room):
            self.leaf[k] = -1
        self.rank_coordinates(rows, n)
        for k in range(n):
            self.found[k] = k
            self.sketch(rows[k], sketch)
            for i in range(SKETCH):
                sketches[k * SKETCH + i] = sketch[i]
        self.divide(1, self.found, n, 0)

    cdef void rank_coordinates(self, const int64_t *rows, Py_ssize_t n) noexcept nogil:
        """Order the coordinates by variance, as far as sketches need."""
        cdef Py_ssize_t i, k, best, size = min(n, SAMPLE * SAMPLE)
        cdef double mean, value
        for i in range(self.dim):
            self.order[i], mean, self.spread[i] = i, 0.0, 0.0
            for k in range(size):
                mean += self.points[rows[k * n // size] * self.dim + i] / size
            for k in range(size):
                value = self.points[rows[k * n // size] * self.dim + i] - mean
                self.spread[i] += value * value
        for k in range(min(SKETCH - 1, self.dim)):
            best = k
            for i in range(k + 1, self.dim):
                if self.spread[self.order[i]] > self.spread[self.order[best]]:
                    best = i
            self.order[k], self.order[best] = self.order[best], self.order[k]

    cdef void sketch(self, Py_ssize_t row, double *out) noexcept nogil:
        """Write the sketch of a point to `out`: itself if dim ≤ 8, or seven coordinates and the length of the rest."""
        cdef const double *point = self.points + row * self.dim
        cdef Py_ssize_t k
        cdef double rest2 = 0.0
        for k in range(SKETCH):
            out[k] = point[self.order[k]] if k < self.dim else 0.0
        if self.dim > SKETCH:
            for k in range(SKETCH - 1, self.dim):
                rest2 += point[self.order[k]] * point[self.order[k]]
            out[SKETCH - 1] = sqrt(rest2)

    cdef int64_t divide(self, Py_ssize_t node, int64_t *picked, Py_ssize_t n, int64_t start) noexcept nogil:
        """Cut a node at the median of its longest side, by n points; returns the first slot after its own."""
        cdef const float *sketches = self.sketch_entry(self.first[0], 0)
        cdef Py_ssize_t axis, k, size = min(n, SAMPLE), low = 0, high = n
        cdef double sample[SAMPLE]
        cdef double least, most, longest = -1.0
        if node >= self.leaves:
            self.first[node], self.capacity[node] = start, (2 * n + SPARE_SLOTS + BLOCK - 1) & -BLOCK
            return start + self.capacity[node]
        self.axes[node], self.cuts[node] = 0, 0.0
        for axis in range(SKETCH if n else 0):
            least, most = INFINITY, -INFINITY
            for k in range(size):
                sample[k] = sketches[picked[k * n // size] * SKETCH + axis]
                least, most = min(least, sample[k]), max(most, sample[k])
            if most - least > longest:
                longest, self.axes[node], self.cuts[node] = most - least, axis, median(sample, size)
        while low < high:
            if sketches[picked[low] * SKETCH + self.axes[node]] < self.cuts[node]:
                low += 1
            else:
                high -= 1
                picked[low], picked[high] = picked[high], picked[low]
        start = self.divide(2 * node, picked, low, start)
        return self.divide(2 * node + 1, picked + low, n - low, start)

    cdef float *sketch_entry(self, int64_t slot, Py_ssize_t k) noexcept nogil:
        """The address of number k of the sketch in a slot."""
        return self.sketches + (slot // BLOCK * (SKETCH + 1) + k) * BLOCK + slot % BLOCK

    cdef void insert(self, Py_ssize_t row, double reach) noexcept nogil:
        """Insert a point at its present position, with its present reach, or move it there."""
        cdef double sketch[SKETCH]
        cdef Py_ssize_t node = 1, k
        self.sketch(row, sketch)
        while node < self.leaves:
            self.widest[node] = max(self.widest[node], reach)
            node = 2 * node + (0 if sketch[self.axes[node]] < self.cuts[node] else 1)
        if self.leaf[row] != node and self.filled[node] == self.capacity[node]:
            node = 0
        self.widest[node] = max(self.widest[node], reach)
        if self.leaf[row] != node:
            self.remove(row)
            self.leaf[row], self.slot[row] = node, self.first[node] + self.filled[node]
            self.rows[self.slot[row]] = row
            self.filled[node] += 1
        for k in range(SKETCH):
            self.sketch_entry(self.slot[row], k)[0] = sketch[k]
        self.sketch_entry(self.slot[row], SKETCH)[0] = reach

    cdef void remove(self, Py_ssize_t row) noexcept nogil:
        """Remove a point, if it is in the tree; the last point of its leaf moves to its slot."""
        cdef int64_t node = self.leaf[row], slot = self.slot[row], last
        cdef Py_ssize_t k
        if node < 0:
            return
        self.filled[node] -= 1
        last = self.first[node] + self.filled[node]
        self.rows[slot] = self.rows[last]
        self.slot[self.rows[slot]] = slot
        for k in range(SKETCH + 1):
            self.sketch_entry(slot, k)[0] = self.sketch_entry(last, k)[0]
        self.leaf[row] = -1

    cdef Py_ssize_t find_near(self, Py_ssize_t row, double reach, double factor) noexcept nogil:
        """Write to `found` all rows p with ‖row − p‖ < factor·(reach + reach of p), and some others; returns how many."""
        cdef Search search
        cdef Py_ssize_t k
        self.sketch(row, search.sketch)
        for k in range(SKETCH):
            search.rounded[k], search.offsets[k] = search.sketch[k], 0.0
        search.reach, search.factor, search.out, search.found = reach, factor, self.found, 0
        self.search_node(&search, 0, 0.0)
        self.search_node(&search, 1, 0.0)
        return search.found

    cdef void search_node(self, Search *search, Py_ssize_t node, double apart2) noexcept nogil:
        """Search a node, which is `offsets` away in each number of the sketch, and √apart2 in all."""
        cdef double limit = search.factor * (search.reach + self.widest[node]), before
        cdef Py_ssize_t axis, own
        if limit < 0.0 or apart2 * (1.0 - NODE_ROUNDING) > limit * limit:
            return
        if node == 0 or node >= self.leaves:
            self.visited += self.filled[node]
            search.found += sketches_within(
                self.sketch_entry(self.first[node], 0), self.rows + self.first[node], self.filled[node],
                search.rounded, search.reach, search.factor, search.out + search.found,
            )
            return
        axis = self.axes[node]
        before = search.offsets[axis]
        own = 2 * node + (0 if search.sketch[axis] < self.cuts[node] else 1)
        self.search_node(search, own, apart2)
        search.offsets[axis] = search.sketch[axis] - self.cuts[node]
        self.search_node(search, own ^ 1, apart2 - before * before + search.offsets[axis] * search.offsets[axis])
        search.offsets[axis] = before


cdef double median(double *values, Py_ssize_t n) noexcept nogil:
    """The upper middle of a few numbers, which are left in order."""
    cdef Py_ssize_t k, j
    cdef double value
    for k in range(1, n):
        value, j = values[k], k
        while j and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    return values[n // 2]


def found_near(const double[:, ::1] built_from, const double[:, ::1] points, const double[::1] reaches, double factor):
    """The result of a search for each point, in a tree that was built from its earlier positions; for tests."""
    cdef Py_ssize_t n = points.shape[0], row
    cdef Tree tree = Tree()
    tree.attach(&built_from[0, 0], n, points.shape[1])
    rows = np.arange(n)
    tree.build(<int64_t *> cnp.PyArray_DATA(rows), n)
    tree.attach(&points[0, 0], n, points.shape[1])
    for row in range(n):
        tree.insert(row, reaches[row])
    return [[tree.found[k] for k in range(tree.find_near(row, reaches[row], factor))] for row in range(n)]
