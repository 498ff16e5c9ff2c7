"""The clusters of AutoCLUB: their sums, what a decision rests on, and how a row is built.

Two matrices belong to a cluster, its gram matrix and its inverse. A user alone with few rewards needs neither: both are
made from its vectors when they are asked for.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from coterie.policies._autoclub_members cimport MOST_LISTED, Memberships
from coterie.policies._linalg cimport (
    absorb, add_outer, add_scaled, apply, back_substitute, combine_upper, dot, eliminate, finish_inverse, quadratic
)
from coterie.policies._linked cimport are_free, give_back, take
from coterie.policies._offers cimport View

from coterie.policies._arrays import Field
from coterie.policies._autoclub_members import Memberships as Base
from coterie.policies._linalg import eliminated

cnp.import_array()

FIRST_REVIEW = 4
"""Pulls after which a user is first reviewed."""
cdef enum:
    FEW = 8  # the sums of so many members are made anew rather than changed
    SPARE = 4  # matrices that a reward may take


cdef class EvidenceRows(Memberships):
    """The sums of clusters, a row each, with room for a review.

    A user acts on its `share` of its cluster's estimate plus its `mixture` of the alternatives; `alone` is the weight of a
    preference of its own, wherever it is. `due` is the pulls at which it is next reviewed, `weights` the λ that each row was
    built with, `matrices` where its two matrices are, -1 if nowhere.
    """

    FIELDS = {
        "shares": Field(("users",)),
        "alone": Field(("users",)),
        "mixtures": Field(("users", "dim")),
        "due": Field(("users",), "int64"),
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

    def __init__(self, n_users, dim, *, ridge, schedule, generator):
        self.noise2, self.weight, self.free_matrix, self.lone = 1.0, ridge, -1, -1
        Memberships.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {**Base.extents(n_users, dim), "matrices": 0}

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim
        self.shares, self.mixtures = <double *> self.pointer("shares"), <double *> self.pointer("mixtures")
        self.alone, self.due = <double *> self.pointer("alone"), <int64_t *> self.pointer("due")
        self.pools.moment = <double *> self.pointer("pools.moment")
        self.pools.estimate = <double *> self.pointer("pools.estimate")
        self.pools.pulls = <int64_t *> self.pointer("pools.pulls")
        self.pool_totals, self.weights = <double *> self.pointer("pool_totals"), <double *> self.pointer("weights")
        self.inverses, self.pool_grams = <double *> self.pointer("inverses"), <double *> self.pointer("pool_grams")
        self.matrices, self.next_matrix = <int64_t *> self.pointer("matrices"), <int64_t *> self.pointer("matrices.next")
        self.matrices_room = len(self._arrays["matrices.next"])
        if "review" not in self._scratch:
            self._scratch["losses"] = np.empty((3, MOST_LISTED))
            self._scratch["likely"] = np.empty(MOST_LISTED, np.int64)
            self._scratch["review"] = np.empty(5 * d * d + (4 + MOST) * d)
        self.matrix = <double *> cnp.PyArray_DATA(self._scratch["review"])
        self.factor, self.inverse = self.matrix + d * d, self.matrix + 2 * d * d
        self.lone_gram, self.lone_inverse = self.matrix + 3 * d * d, self.matrix + 4 * d * d
        self.reduced = self.matrix + 5 * d * d
        self.centred, self.around, self.acting = self.reduced + d, self.reduced + 2 * d, self.reduced + 3 * d
        self.fits = self.reduced + 4 * d
        self.losses = <double *> cnp.PyArray_DATA(self._scratch["losses"])
        self.likely = self.list("likely")
        return Memberships.bind(self)

    cdef int welcome(self, Py_ssize_t known) except -1:
        """Newcomers start together about the mean preference, in a cluster that nobody has taught yet."""
        cdef Py_ssize_t row = self.nobody_taught(known), user
        self.make_space()
        if row < 0:
            row = self.open_row()
            self.weights[row] = self.acting_weight()
            self.clear_sums(row)
        for user in range(known, self.n_users):
            self.shares[user], self.due[user], self.precisions[user] = 1.0, FIRST_REVIEW, 1.0
            self.enter(row, user)
        self.counts[row] += (self.n_users - known) / (1.0 + self.dim)
        self.enlist(row)
        self.settle_storage(row)
        self.build(row)
        memcpy(self.pools.estimate + row * self.dim, self.mean, self.dim * sizeof(double))
        return 0

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
        if len(np.unique(solid)) != len(solid) or not are_free(
            self.next_matrix, self.free_matrix, self.used_matrices, counts
        ):
            raise ValueError("has matrices that are not those of its clusters")

    cdef int make_space(self) except -1 nogil:
        if self.used_matrices + SPARE > self.matrices_room:
            with gil:
                self.extend("matrices", self.used_matrices + SPARE)
        return Memberships.make_space(self)

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
            give_back(self.next_matrix, &self.free_matrix, self.matrices[row])
            self.matrices[row] = -1
        elif not light and self.matrices[row] < 0:
            gram = self.pool_gram(row)
            self.matrices[row] = take(self.next_matrix, &self.free_matrix, &self.used_matrices)
            memcpy(self.pool_grams + self.matrices[row] * square, gram, square * sizeof(double))

    cdef Py_ssize_t open_row(self) noexcept nogil:
        cdef Py_ssize_t row = Memberships.open_row(self)
        self.matrices[row] = -1
        return row

    cdef void close_row(self, Py_ssize_t row) noexcept nogil:
        if self.matrices[row] >= 0:
            give_back(self.next_matrix, &self.free_matrix, self.matrices[row])
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

    # Learning.

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The mixture as estimate, the width of the cluster, σ̂ as β; usual is d/N, a bound on the mean."""
        cdef Py_ssize_t row = self.row_of[user]
        cdef int64_t pulls = self.pools.pulls[row]
        seen.estimate, seen.inverse = self.mixture_of(user), self.inverse_of(row)
        seen.beta, seen.row, seen.ridge = sqrt(self.noise2), row, self.weights[row]
        seen.usual = <double> self.dim / pulls if pulls > 0 else INFINITY
        return 0

    cdef const double *mixture_of(self, Py_ssize_t user) noexcept nogil:
        """What a user acts on: its share of its cluster's estimate, and the alternatives."""
        cdef Py_ssize_t i, d = self.dim, row = self.row_of[user]
        for i in range(d):
            self.acting[i] = self.shares[user] * self.pools.estimate[row * d + i] + self.mixtures[user * d + i]
        return self.acting

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Update the user and its cluster."""
        self.make_space()
        self.raise_peak(user, fabs(reward - self.offset))
        reward = self.restrain(user, x, reward)
        if self.pulls[user] == 0:
            self.awake(user)
        self.learn_pooled(user, x, reward)
        return 0

    cdef void learn_pooled(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """Add a reward to the sums of the user and of its cluster, and to the cluster's row."""
        cdef Py_ssize_t i, row = self.row_of[user], d = self.dim
        cdef double weight = self.precisions[user], root = sqrt(weight)
        cdef double *moment = self.pools.moment + row * d
        self.learn_own(user, x, reward)
        add_scaled(self.pool_totals + row * d, weight, x, d)
        self.pools.pulls[row] += 1
        if self.matrices[row] >= 0:
            for i in range(d):
                self.around[i] = root * x[i]
            absorb(self.inverse_of(row), moment, self.pools.estimate + row * d, self.around, root * reward, self.work, d)
            add_outer(self.pool_grams + self.matrices[row] * d * d, self.around, d)
        else:
            add_scaled(moment, weight * reward, x, d)
            self.lone = -1
            self.settle_storage(row)
            if self.matrices[row] >= 0:
                self.invert_sums(row, self.inverse_of(row))
        if self.sums.pulls == 0.0:
            self.guess()
        self.solve(row)

    cdef void amend(self, double before, double after) noexcept nogil:
        cdef Py_ssize_t row = self.row_of[self.holder], d = self.dim
        Memberships.amend(self, before, after)
        add_scaled(self.pools.moment + row * d, self.precisions[self.holder] * (after - before), self.largest, d)
        self.solve(row)

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

    # What Python asks.

    def explained(self, Py_ssize_t user):
        """What is known of a user, by name."""
        return {
            "rewards": self.pulls[user],
            "known": self.terms[user].freedom / self.dim,
            "precision": self.precisions[user],
            "weight": self.shares[user],
            "alone": self.alone[user],
            "noise": sqrt(self.noise2),
            "offset": self.offset,
        }

    def estimates(self):
        """Each user's own ridge regression; what it acts on is in `scores`."""
        out, ridge = np.zeros((self.n_users, self.dim)), self.ridge * np.eye(self.dim)
        for user in np.flatnonzero(self.array("pulls")).tolist():
            moment = self.array("moments")[user].copy()
            out[user] = eliminated(self.gram(user) + ridge, moment, 0.5 * self.ridge)[2]
        return out

    def cluster(self, Py_ssize_t row):
        """Copies of a cluster's gram matrix S and of M = (ΛI + S)⁻¹."""
        shape = (self.dim, self.dim)
        gram, inverse = np.empty(shape), np.empty(shape)
        memcpy(cnp.PyArray_DATA(gram), self.pool_gram(row), gram.nbytes)
        memcpy(cnp.PyArray_DATA(inverse), self.inverse_of(row), gram.nbytes)
        return gram, inverse
