"""The sums of AutoCLUB's clusters, and the ridge regressions that they make.

Two matrices belong to a cluster, its gram matrix and its inverse. A user alone with few rewards needs neither: it is learnt
in the coordinates of its vectors, and both are made when they are asked for.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from coterie.policies.autoclub.members cimport MOST_LISTED, Memberships
from coterie.policies.kernel.linalg cimport (
    add_scaled, apply, back_substitute, combine_upper, dot, eliminate, finish_inverse, quadratic
)
from coterie.policies.kernel.linked_lists cimport check_free_slots, release_slot, take_slot

from coterie.policies.autoclub.members import Memberships as Base
from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef enum:
    FEW = 8  # the sums of so many members are made anew rather than changed
    SPARE = 4  # matrices that a reward may take


cdef class ClusterSums(Memberships):
    """The sums of clusters, a row each, and θ̂.

    `weights` are the λ that each row was built with, `matrices` where its two matrices are, -1 if nowhere. `centres` are the
    estimates of the clusters on the list, side by side.
    """

    FIELDS = {
        "pools.moment": Field(("rows", "dim")),
        "pools.estimate": Field(("rows", "dim")),
        "pools.pulls": Field(("rows",), "int64"),
        "pool_totals": Field(("rows", "dim")),
        "weights": Field(("rows",)),
        "matrices": Field(("rows",), "int64"),
        "inverses": Field(("matrices", "dim", "dim")),
        "pool_grams": Field(("matrices", "dim", "dim")),
        "matrices.next": Field(("matrices",), "int64"),
        **Base.FIELDS,
    }
    NUMBERS = (*Base.NUMBERS, "used_matrices", "free_matrix")
    LENGTHS = {**Base.LENGTHS, "matrices": "used_matrices"}

    def __init__(self, n_users, dim, **others):
        self.free_matrix, self.lone = -1, -1
        Memberships.__init__(self, n_users, dim, **others)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {**Base.extents(n_users, dim), "matrices": 0}

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim
        self.pools.moment = <double *> self.pointer("pools.moment")
        self.pools.estimate = <double *> self.pointer("pools.estimate")
        self.pools.pulls = <int64_t *> self.pointer("pools.pulls")
        self.pool_totals, self.weights = <double *> self.pointer("pool_totals"), <double *> self.pointer("weights")
        self.inverses, self.pool_grams = <double *> self.pointer("inverses"), <double *> self.pointer("pool_grams")
        self.matrices, self.next_matrix = <int64_t *> self.pointer("matrices"), <int64_t *> self.pointer("matrices.next")
        self.matrices_room = len(self._arrays["matrices.next"])
        if "sums" not in self._scratch:
            self._scratch["sums"] = np.empty(4 * d * d + 2 * d)
            self._scratch["centres"] = np.empty((MOST_LISTED + 1, d))
        self.matrix = <double *> cnp.PyArray_DATA(self._scratch["sums"])
        self.factor, self.lone_gram, self.lone_inverse = self.matrix + d * d, self.matrix + 2 * d * d, self.matrix + 3 * d * d
        self.reduced, self.around = self.matrix + 4 * d * d, self.matrix + 4 * d * d + d
        self.centres = <double *> cnp.PyArray_DATA(self._scratch["centres"])
        return Memberships.bind(self)

    def refresh(self):
        Memberships.refresh(self)
        self.lone = -1
        rows = np.flatnonzero(self.array("sizes"))
        if not (self.array("weights")[rows] > 0).all():
            raise ValueError("has numbers in 'weights' that are not above 0")
        light = np.array([self.is_light(row) for row in rows.tolist()], bool)
        places = self.array("matrices")[rows]
        solid = places[~light]
        if (places[light] != -1).any() or (solid.size and not 0 <= solid.min() <= solid.max() < self.used_matrices):
            raise ValueError("has numbers in 'matrices' that are no places")
        taken = np.bincount(solid, minlength=self.used_matrices)
        cdef int64_t *counts = <int64_t *> cnp.PyArray_DATA(taken)
        if len(np.unique(solid)) != len(solid) or not check_free_slots(
            self.next_matrix, self.free_matrix, self.used_matrices, counts
        ):
            raise ValueError("has matrices that are not those of its clusters")

    cdef int make_space(self) except -1 nogil:
        if self.used_matrices + SPARE > self.matrices_room:
            with gil:
                self.extend("matrices", self.used_matrices + SPARE)
        return Memberships.make_space(self)

    cdef void place(self, Py_ssize_t row, Py_ssize_t spot) noexcept nogil:
        Memberships.place(self, row, spot)
        memcpy(self.centres + (spot - 1) * self.dim, self.pools.estimate + row * self.dim, self.dim * sizeof(double))

    # Matrices.

    cdef bint is_light(self, Py_ssize_t row) noexcept nogil:
        """Is this a user alone, of whom vectors are kept?"""
        cdef int64_t user = self.members.head[row]
        return self.sizes[row] == 1 and (user < 0 or self.pulls[user] < self.light)

    cdef void settle_storage(self, Py_ssize_t row) noexcept nogil:
        """Take matrices for a cluster that needs them, and give back those that it does not need."""
        cdef bint light = self.is_light(row)
        cdef Py_ssize_t square = self.dim * self.dim
        cdef const double *gram
        if light and self.matrices[row] >= 0:
            release_slot(self.next_matrix, &self.free_matrix, self.matrices[row])
            self.matrices[row] = -1
        elif not light and self.matrices[row] < 0:
            gram = self.pool_gram(row)
            self.matrices[row] = take_slot(self.next_matrix, &self.free_matrix, &self.used_matrices)
            memcpy(self.pool_grams + self.matrices[row] * square, gram, square * sizeof(double))

    cdef Py_ssize_t open_row(self) noexcept nogil:
        cdef Py_ssize_t row = Memberships.open_row(self)
        self.matrices[row] = -1
        return row

    cdef void close_row(self, Py_ssize_t row) noexcept nogil:
        if self.matrices[row] >= 0:
            release_slot(self.next_matrix, &self.free_matrix, self.matrices[row])
            self.matrices[row] = -1
        if self.lone == row:
            self.lone = -1
        Memberships.close_row(self, row)

    cdef const double *pool_gram(self, Py_ssize_t row) noexcept nogil:
        """The sum of ωS over the members of a cluster; of a user alone, until another's is asked for."""
        cdef Py_ssize_t i, square = self.dim * self.dim
        cdef int64_t user = self.members.head[row]
        if self.matrices[row] >= 0:
            return self.pool_grams + self.matrices[row] * square
        if user < 0:
            for i in range(square):
                self.lone_gram[i] = 0.0
            return self.lone_gram
        if self.expanded == user and self.precisions[user] == 1.0:
            return self.own
        if self.expanded == user:
            memcpy(self.lone_gram, self.own, square * sizeof(double))
        else:
            self.expand(user, self.lone_gram)
        if self.precisions[user] != 1.0:
            for i in range(square):
                self.lone_gram[i] *= self.precisions[user]
        return self.lone_gram

    cdef double *inverse_of(self, Py_ssize_t row) noexcept nogil:
        """M = (ΛI + S)⁻¹ of a cluster; of a user alone, until another's is asked for."""
        if self.matrices[row] >= 0:
            return self.inverses + self.matrices[row] * self.dim * self.dim
        if self.lone != row:
            self.invert_sums(row, self.lone_inverse)
            self.lone = row
        return self.lone_inverse

    cdef void invert_sums(self, Py_ssize_t row, double *out) noexcept nogil:
        """M from the sums of a cluster."""
        cdef Py_ssize_t d = self.dim
        cdef const double *gram = self.pool_gram(row)
        cdef double logdet, square
        memset(self.reduced, 0, d * sizeof(double))
        combine_upper(gram, gram, 0.0, self.weights[row], self.matrix, d)
        eliminate(self.matrix, self.reduced, d, 0.5 * self.weights[row], &logdet, &square)
        finish_inverse(self.matrix, self.factor, out, d)

    cdef double eliminate_lone(self, Py_ssize_t row) noexcept nogil:
        """Gauss elimination of ΛI + S of a user alone in the coordinates of its vectors; returns the square of `reduced` by M."""
        cdef double logdet, square, weight = self.precisions[self.members.head[row]] if self.folded > 0 else 1.0
        combine_upper(self.small, self.small, weight - 1.0, self.weights[row], self.matrix, self.folded)
        eliminate(self.matrix, self.reduced, self.folded, 0.5 * self.weights[row], &logdet, &square)
        return square

    cdef Py_ssize_t fold_lone(self, Py_ssize_t row) noexcept nogil:
        """Turn the space to the vectors of a user alone; returns how many they are."""
        if self.members.head[row] >= 0:
            return self.fold(self.members.head[row])
        self.folded = 0
        return 0

    cdef double width2(self, Py_ssize_t row, const double *x) noexcept nogil:
        """xᵀMx of a cluster."""
        cdef Py_ssize_t n, d = self.dim
        if self.matrices[row] >= 0:
            return max(quadratic(self.inverse_of(row), x, d), 0.0)
        memcpy(self.reduced, x, d * sizeof(double))
        n = self.fold_lone(row)
        self.turn(self.reduced)
        return dot(self.reduced + n, self.reduced + n, d - n) / self.weights[row] + self.eliminate_lone(row)

    # θ̂.

    cdef void solve(self, Py_ssize_t row) noexcept nogil:
        """θ̂ = M(b − ms + Λμ): the ridge regression of a cluster about the mean preference."""
        cdef Py_ssize_t i, d = self.dim
        cdef double *estimate = self.pools.estimate + row * d
        for i in range(d):
            self.reduced[i] = self.pools.moment[row * d + i] - self.offset * self.pool_totals[row * d + i]
        if self.matrices[row] >= 0:
            add_scaled(self.reduced, self.weights[row], self.mean, d)
            apply(self.inverse_of(row), self.reduced, estimate, d)
        else:
            self.solve_lone(row, estimate)
        if self.spots[row] > 0:
            self.place(row, self.spots[row])

    cdef void solve_lone(self, Py_ssize_t row, double *estimate) noexcept nogil:
        """θ̂ = μ + M(b − ms − Sμ) of a user alone, with b − ms in `reduced`."""
        cdef Py_ssize_t d = self.dim, n = self.fold_lone(row)
        memcpy(estimate, self.mean, d * sizeof(double))
        if n == 0:
            return
        memcpy(self.work, self.mean, d * sizeof(double))
        self.turn(self.work)
        self.turn(self.reduced)
        apply(self.small, self.work, self.around, n)
        add_scaled(self.reduced, -self.precisions[self.members.head[row]], self.around, n)
        self.eliminate_lone(row)
        back_substitute(self.matrix, self.reduced, self.around, n)
        self.unfold(self.around)
        add_scaled(estimate, 1.0, self.around, d)

    # The sums of a cluster: changed by what comes and goes, and made anew only where members are few.

    cdef void clear_sums(self, Py_ssize_t row) noexcept nogil:
        cdef Py_ssize_t i, d = self.dim
        if self.matrices[row] >= 0:
            for i in range(d * d):
                self.pool_grams[self.matrices[row] * d * d + i] = 0.0
        for i in range(d):
            self.pools.moment[row * d + i] = self.pool_totals[row * d + i] = 0.0
        self.pools.pulls[row], self.counts[row] = 0, 0.0

    cdef void add_sums(self, Py_ssize_t row, Py_ssize_t user, double weight) noexcept nogil:
        """Add so many times a user's S, b and s to a cluster's."""
        cdef Py_ssize_t d = self.dim
        if self.matrices[row] >= 0:
            add_scaled(self.pool_grams + self.matrices[row] * d * d, weight, self.gram_of(user), d * d)
        add_scaled(self.pools.moment + row * d, weight, self.moments + user * d, d)
        add_scaled(self.pool_totals + row * d, weight, self.totals + user * d, d)

    cdef bint few(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil:
        """Are sums better made anew than changed: few members, or a user who has most of the data, lest rounding shows?"""
        return self.sizes[row] <= FEW or 2 * self.pulls[user] > self.pools.pulls[row]

    cdef void sum_members(self, Py_ssize_t row) noexcept nogil:
        """A cluster's sums, from its members one by one."""
        cdef Py_ssize_t k, n = self.gather(row)
        cdef int64_t user
        self.clear_sums(row)
        self.counts[row] = (self.sizes[row] - n) / (1.0 + self.dim)
        for k in range(n):
            user = self.gathered[k]
            self.add_sums(row, user, self.precisions[user])
            self.pools.pulls[row] += self.pulls[user]
            self.counts[row] += self.crowd_of(user)

    cdef void join(self, Py_ssize_t row, Py_ssize_t user, int sign) noexcept nogil:
        """A user has come into a cluster, or left it: its sums, and the row that they make."""
        self.settle_storage(row)
        if self.few(row, user):
            self.sum_members(row)
        else:
            self.add_sums(row, user, sign * self.precisions[user])
            self.pools.pulls[row] += sign * self.pulls[user]
            self.counts[row] += sign * self.crowd_of(user)
        self.enlist(row)
        self.rebuild(row)

    cdef void rebuild(self, Py_ssize_t row) noexcept nogil:
        """A cluster's row from its sums, with today's Λ.

        Widths remembered of a row whose data and λ have only grown still bound those of today.
        """
        cdef double weight = self.acting_weight()
        if weight < self.weights[row]:
            self.epochs[row] += 1
        self.weights[row] = weight
        self.build(row)

    cdef void build(self, Py_ssize_t row) noexcept nogil:
        """A cluster's row from its sums."""
        if self.matrices[row] >= 0:
            self.invert_sums(row, self.inverses + self.matrices[row] * self.dim * self.dim)
        else:
            self.lone = -1
        self.solve(row)

    def cluster(self, Py_ssize_t row):
        """Copies of a cluster's gram matrix S and of M = (ΛI + S)⁻¹."""
        shape = (self.dim, self.dim)
        gram, inverse = np.empty(shape), np.empty(shape)
        memcpy(cnp.PyArray_DATA(gram), self.pool_gram(row), gram.nbytes)
        memcpy(cnp.PyArray_DATA(inverse), self.inverse_of(row), gram.nbytes)
        return gram, inverse
