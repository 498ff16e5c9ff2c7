# optimize: 2
"""A k-d tree of points that move: which of them can be within reach of another?   (Bentley 1975).

Every point has a reach of its own. The tree holds a sketch of each, of eight numbers: the seven coordinates that vary most, and the
length of the rest. Sketches are never farther apart than points are. A search passes over parts of space that are too far, by the
distance to each, number by number (Arya and Mount 1993), and compares sketches in the others, which lie side by side.
"""

import numpy as np

cimport cython
cimport numpy as cnp
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t

from coterie.policies.kernel.linalg cimport BLOCK, SKETCH, sketches_within

cnp.import_array()


cdef double ROUNDING = 1e-9  # what a bound on a distance may lose
cdef enum:
    CROWD = 128  # points of a leaf at most, when space is divided
    SPARE = 4  # seats of a leaf besides two for each of those
    SAMPLE = 16  # points that say where to divide
    WORN = 512  # looks at points, for each by which space was divided, until it is divided anew


@cython.final
cdef class Tree:
    """Rows of an array of points, by the part of space that each is in."""

    @property
    def nbytes(self):
        """Bytes of all arrays but the points."""
        return sum([array.nbytes for array in self._arrays.values()])

    cdef int hold(self, const double *points, Py_ssize_t room, Py_ssize_t dim) except -1:
        """From now on points are here, no more than so many; where that is new, the tree must be planted."""
        cdef Py_ssize_t nodes = 2, seats
        self.points = points
        if room == self.room:
            return 0
        while CROWD * nodes < 2 * room:
            nodes *= 2
        seats = (3 * room + (SPARE + BLOCK) * (nodes + 1)) & -BLOCK
        self._arrays = {
            "bounds": np.empty((2, nodes)),
            "numbers": np.empty((4, nodes), np.int64),
            "places": np.full((3, room), -1),
            "rows": np.empty(seats, np.int64),
            "sketches": np.empty((seats, SKETCH + 1), np.float32),
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
        self.first, self.seats, self.taken = self.axes + nodes, self.axes + 2 * nodes, self.axes + 3 * nodes
        self.widest, self.seat, self.found = self.cuts + nodes, self.leaf + room, self.leaf + 2 * room
        self.room, self.dim, self.planted = room, dim, 0
        self.first[0], self.seats[0] = (seats - room) & -BLOCK, room
        return 0

    cdef bint worn(self) noexcept nogil:
        """Is it time to plant the tree? It is when searches have cost some times as much as that."""
        return self.passed - self.passed_before >= WORN * self.planted

    cdef void plant(self, const int64_t *rows, Py_ssize_t n) noexcept nogil:
        """Divide space by these points, about as many to a leaf; the tree is empty then."""
        cdef Py_ssize_t k, i
        cdef double sketch[SKETCH]
        cdef float *sketches = self.number(self.first[0], 0)  # those seats are free
        self.leaves, self.planted, self.passed_before = 1, n, self.passed
        while CROWD * self.leaves < n:
            self.leaves *= 2
        for k in range(2 * self.leaves):
            self.taken[k], self.widest[k] = 0, -INFINITY
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
        """Put the coordinates that vary most first, as far as sketches need."""
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
        """The point itself if it has no more than eight coordinates, or seven of them and the length of the rest."""
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
        """Divide a node where its longest side is halved, by n points; returns the first seat behind its own."""
        cdef const float *sketches = self.number(self.first[0], 0)
        cdef Py_ssize_t axis, k, size = min(n, SAMPLE), low = 0, high = n
        cdef double sample[SAMPLE]
        cdef double least, most, longest = -1.0
        if node >= self.leaves:
            self.first[node], self.seats[node] = start, (2 * n + SPARE + BLOCK - 1) & -BLOCK
            return start + self.seats[node]
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

    cdef float *number(self, int64_t seat, Py_ssize_t k) noexcept nogil:
        """Where a number of the sketch at a seat is."""
        return self.sketches + (seat // BLOCK * (SKETCH + 1) + k) * BLOCK + seat % BLOCK

    cdef void put(self, Py_ssize_t row, double reach) noexcept nogil:
        """Put a point where it is now, with its reach as it is now."""
        cdef double sketch[SKETCH]
        cdef Py_ssize_t node = 1, k
        self.sketch(row, sketch)
        while node < self.leaves:
            self.widest[node] = max(self.widest[node], reach)
            node = 2 * node + (0 if sketch[self.axes[node]] < self.cuts[node] else 1)
        if self.leaf[row] != node and self.taken[node] == self.seats[node]:
            node = 0
        self.widest[node] = max(self.widest[node], reach)
        if self.leaf[row] != node:
            self.drop(row)
            self.leaf[row], self.seat[row] = node, self.first[node] + self.taken[node]
            self.rows[self.seat[row]] = row
            self.taken[node] += 1
        for k in range(SKETCH):
            self.number(self.seat[row], k)[0] = sketch[k]
        self.number(self.seat[row], SKETCH)[0] = reach

    cdef void drop(self, Py_ssize_t row) noexcept nogil:
        """Take a point out, if it is in the tree; the last of its leaf takes its seat."""
        cdef int64_t node = self.leaf[row], seat = self.seat[row], last
        cdef Py_ssize_t k
        if node < 0:
            return
        self.taken[node] -= 1
        last = self.first[node] + self.taken[node]
        self.rows[seat] = self.rows[last]
        self.seat[self.rows[seat]] = seat
        for k in range(SKETCH + 1):
            self.number(seat, k)[0] = self.number(last, k)[0]
        self.leaf[row] = -1

    cdef Py_ssize_t near(self, Py_ssize_t row, double reach, double factor) noexcept nogil:
        """Leave in `found` all rows p with ‖row − p‖ < factor·(reach + reach of p), and some others; returns how many."""
        cdef Search search
        cdef Py_ssize_t k
        self.sketch(row, search.sketch)
        for k in range(SKETCH):
            search.rounded[k], search.offsets[k] = search.sketch[k], 0.0
        search.reach, search.factor, search.out, search.found = reach, factor, self.found, 0
        self.gather(&search, 0, 0.0)
        self.gather(&search, 1, 0.0)
        return search.found

    cdef void gather(self, Search *search, Py_ssize_t node, double apart2) noexcept nogil:
        """Find what is below a node, which is `offsets` away in each number, and apart² in all."""
        cdef double limit = search.factor * (search.reach + self.widest[node]), before
        cdef Py_ssize_t axis, own
        if limit < 0.0 or apart2 * (1.0 - ROUNDING) > limit * limit:
            return
        if node == 0 or node >= self.leaves:
            self.passed += self.taken[node]
            search.found += sketches_within(
                self.number(self.first[node], 0), self.rows + self.first[node], self.taken[node],
                search.rounded, search.reach, search.factor, search.out + search.found,
            )
            return
        axis = self.axes[node]
        before = search.offsets[axis]
        own = 2 * node + (0 if search.sketch[axis] < self.cuts[node] else 1)
        self.gather(search, own, apart2)
        search.offsets[axis] = search.sketch[axis] - self.cuts[node]
        self.gather(search, own ^ 1, apart2 - before * before + search.offsets[axis] * search.offsets[axis])
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


def found_near(const double[:, ::1] planted, const double[:, ::1] points, const double[::1] reaches, double factor):
    """What a search finds for each point, in a tree that was planted where they were before: for tests."""
    cdef Py_ssize_t n = points.shape[0], row
    cdef Tree tree = Tree()
    tree.hold(&planted[0, 0], n, points.shape[1])
    rows = np.arange(n)
    tree.plant(<int64_t *> cnp.PyArray_DATA(rows), n)
    tree.hold(&points[0, 0], n, points.shape[1])
    for row in range(n):
        tree.put(row, reaches[row])
    return [[tree.found[k] for k in range(tree.near(row, reaches[row], factor))] for row in range(n)]
