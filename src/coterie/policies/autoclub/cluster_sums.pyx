"""The sums of AutoCLUB's clusters, and the ridge regressions that they make.

Two matrices belong to a cluster, its gram matrix and its inverse. A single user with few rewards needs neither: it is learnt
in the span of its vectors, and both are made when they are asked for.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.autoclub.partition cimport Partition
from coterie.policies.autoclub.prior cimport CommonPrior
from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.linalg cimport (
    absorb, add_outer, add_scaled, apply, back_substitute, combine_upper, dot, eliminate, finish_inverse, natural_log, quadratic
)
from coterie.policies.kernel.linked_lists cimport check_free_slots, release_slot, take_slot

from coterie.policies.autoclub.prior import FREEDOM
from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef double STALE = 0.1  # a cluster is rebuilt when ln Λ has moved by more than this since it was built
cdef enum:
    FEW = 8  # the sums of so many members are made anew rather than changed
    SPARE = 4  # rows and matrices that a reward may take


cdef class ClusterSums(NamedArrays):
    """Σω(S, b, s) and T over the members of each cluster, a row each, and θ̂ = (ΛI + S)⁻¹(b − ms + Λμ).

    `precisions` are the Λ that each row was built with, `places` where its two matrices are, -1 if nowhere.

    Parameters
    ----------
    users, prior, partition
        The members' rewards, the prior that regressions shrink to, and who is in which cluster. Rows of clusters are opened and
        closed here, so that the sums change with the partition.
    """

    FIELDS = {
        "moments": Field(("rows", "dim")),
        "vector_sums": Field(("rows", "dim")),
        "estimates": Field(("rows", "dim")),
        "pulls": Field(("rows",), "int64"),
        "precisions": Field(("rows",)),
        "places": Field(("rows",), "int64"),
        "grams": Field(("matrices", "dim", "dim")),
        "inverses": Field(("matrices", "dim", "dim")),
        "next_place": Field(("matrices",), "int64"),
    }
    NUMBERS = ("used_rows", "used_places", "free_place")
    LENGTHS = {"rows": "used_rows", "matrices": "used_places"}
    IN_PLACE = True

    def __init__(self, UserHistories users, CommonPrior prior, Partition partition):
        self.users, self.prior, self.partition = users, prior, partition
        self.free_place = self.single_row = -1
        NamedArrays.__init__(self, users.n_users, users.dim)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "rows": 0, "matrices": 0, "dim": dim}

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim
        self.moments, self.estimates = <double *> self.pointer("moments"), <double *> self.pointer("estimates")
        self.vector_sums, self.precisions = <double *> self.pointer("vector_sums"), <double *> self.pointer("precisions")
        self.grams, self.inverses = <double *> self.pointer("grams"), <double *> self.pointer("inverses")
        self.pulls, self.places = <int64_t *> self.pointer("pulls"), <int64_t *> self.pointer("places")
        self.next_place = <int64_t *> self.pointer("next_place")
        self.rows_room, self.places_room = len(self._arrays["moments"]), len(self._arrays["next_place"])
        self.matrix = self.workspace("sums", 6 * d * d + 6 * d)
        self.factor, self.single_gram, self.single_inverse = self.matrix + d * d, self.matrix + 2 * d * d, self.matrix + 3 * d * d
        self.reduced, self.around = self.matrix + 4 * d * d, self.matrix + 4 * d * d + d
        self.work = self.around + d
        return NamedArrays.bind(self)

    def refresh(self):
        self.single_row = -1
        rows = np.flatnonzero(self.partition.array("sizes"))
        if self.used_rows != self.partition.used_rows:
            raise ValueError("has sums of other clusters than it has")
        if not (self.array("precisions")[rows] > 0).all():
            raise ValueError("has numbers in 'precisions' that are not above 0")
        single = np.array([self.is_single(row) for row in rows.tolist()], bool)
        places = self.array("places")[rows]
        taken = places[~single]
        if (places[single] != -1).any() or (taken.size and not 0 <= taken.min() <= taken.max() < self.used_places):
            raise ValueError("has numbers in 'places' of clusters that are none")
        counts = np.bincount(taken, minlength=self.used_places)
        cdef int64_t *found = <int64_t *> cnp.PyArray_DATA(counts)
        if len(np.unique(taken)) != len(taken) or not check_free_slots(
            self.next_place, self.free_place, self.used_places, found
        ):
            raise ValueError("has matrices that are not those of its clusters")
        seen = self.users.array("pulls") > 0
        known = (1.0 + self.prior.array("terms")[seen, FREEDOM]) / (1.0 + self.dim)
        sizes = np.bincount(self.partition.array("labels")[seen], known, minlength=self.used_rows)
        if not np.allclose(self.partition.array("effective_sizes")[rows], sizes[rows], rtol=1e-6):
            raise ValueError("has clusters that do not count as their members do")

    cdef int make_space(self, int64_t rounds) except -1 nogil:
        """Room for the clusters and matrices that a reward may take."""
        self.partition.make_space(rounds)
        if self.used_rows + SPARE > self.rows_room:
            with gil:
                self.extend("rows", self.used_rows + SPARE)
        if self.used_places + SPARE > self.places_room:
            with gil:
                self.extend("matrices", self.used_places + SPARE)
        return 0

    # Matrices.

    cdef bint is_single(self, Py_ssize_t row) noexcept nogil:
        """Is this a single user of whom vectors are kept, or nobody yet?"""
        cdef int64_t user = self.partition.members.head[row]
        return self.partition.sizes[row] <= 1 and (user < 0 or self.users.keeps_vectors(user))

    cdef void settle_storage(self, Py_ssize_t row) noexcept nogil:
        """Take matrices for a cluster that needs them, and give back those that it does not need."""
        cdef bint single = self.is_single(row)
        cdef Py_ssize_t square = self.dim * self.dim
        cdef const double *gram
        if single and self.places[row] >= 0:
            release_slot(self.next_place, &self.free_place, self.places[row])
            self.places[row] = -1
        elif not single and self.places[row] < 0:
            gram = self.gram_of(row)
            self.places[row] = take_slot(self.next_place, &self.free_place, &self.used_places)
            memcpy(self.grams + self.places[row] * square, gram, square * sizeof(double))

    cdef const double *gram_of(self, Py_ssize_t row) noexcept nogil:
        """The sum of ωS over the members of a cluster; of a single user, until another's is asked for."""
        cdef Py_ssize_t i, square = self.dim * self.dim
        cdef int64_t user = self.partition.members.head[row]
        cdef double weight
        if self.places[row] >= 0:
            return self.grams + self.places[row] * square
        if user < 0:
            memset(self.single_gram, 0, square * sizeof(double))
            return self.single_gram
        weight = self.users.noise_weights[user]
        if self.users.expanded_user == user and weight == 1.0:
            return self.users.expanded_gram
        if self.users.expanded_user == user:
            memcpy(self.single_gram, self.users.expanded_gram, square * sizeof(double))
        else:
            self.users.expand(user, self.single_gram)
        if weight != 1.0:
            for i in range(square):
                self.single_gram[i] *= weight
        return self.single_gram

    cdef double *inverse_of(self, Py_ssize_t row) noexcept nogil:
        """M = (ΛI + S)⁻¹ of a cluster; of a single user, until another's is asked for."""
        if self.places[row] >= 0:
            return self.inverses + self.places[row] * self.dim * self.dim
        if self.single_row != row:
            self.invert_sums(row, self.single_inverse)
            self.single_row = row
        return self.single_inverse

    cdef void invert_sums(self, Py_ssize_t row, double *out) noexcept nogil:
        """Write M, from the sums of a cluster, to `out`."""
        cdef Py_ssize_t d = self.dim
        cdef const double *gram = self.gram_of(row)
        cdef double logdet, square
        memset(self.reduced, 0, d * sizeof(double))
        combine_upper(gram, gram, 0.0, self.precisions[row], self.matrix, d)
        eliminate(self.matrix, self.reduced, d, 0.5 * self.precisions[row], &logdet, &square)
        finish_inverse(self.matrix, self.factor, out, d)

    cdef double eliminate_single(self, Py_ssize_t row) noexcept nogil:
        """Gauss elimination of ΛI + S of a single user in the span of its vectors; returns the square of `reduced` by M."""
        cdef double logdet, square, weight = 1.0
        cdef Py_ssize_t n = self.users.span
        if n > 0:
            weight = self.users.noise_weights[self.partition.members.head[row]]
        combine_upper(self.users.span_gram, self.users.span_gram, weight - 1.0, self.precisions[row], self.matrix, n)
        eliminate(self.matrix, self.reduced, n, 0.5 * self.precisions[row], &logdet, &square)
        return square

    cdef double width2(self, Py_ssize_t row, const double *x) noexcept nogil:
        """xᵀMx of a cluster."""
        cdef Py_ssize_t n, d = self.dim
        if self.places[row] >= 0:
            return max(quadratic(self.inverse_of(row), x, d), 0.0)
        memcpy(self.reduced, x, d * sizeof(double))
        n = self.users.enter_span(self.partition.members.head[row])
        self.users.to_span(self.reduced)
        return dot(self.reduced + n, self.reduced + n, d - n) / self.precisions[row] + self.eliminate_single(row)

    # θ̂.

    cdef void solve(self, Py_ssize_t row) noexcept nogil:
        """θ̂ = M(b − ms + Λμ): the ridge regression of a cluster about the mean preference."""
        cdef Py_ssize_t i, d = self.dim
        cdef double *estimate = self.estimates + row * d
        for i in range(d):
            self.reduced[i] = self.moments[row * d + i] - self.prior.offset * self.vector_sums[row * d + i]
        if self.places[row] >= 0:
            add_scaled(self.reduced, self.precisions[row], self.prior.mean, d)
            apply(self.inverse_of(row), self.reduced, estimate, d)
        else:
            self.solve_single(row, estimate)

    cdef void solve_single(self, Py_ssize_t row, double *estimate) noexcept nogil:
        """Write θ̂ = μ + M(b − ms − Sμ) of a single user, with b − ms in `reduced`, to `estimate`."""
        cdef Py_ssize_t d = self.dim, n = self.users.enter_span(self.partition.members.head[row])
        memcpy(estimate, self.prior.mean, d * sizeof(double))
        if n == 0:
            return
        memcpy(self.work, self.prior.mean, d * sizeof(double))
        self.users.to_span(self.work)
        self.users.to_span(self.reduced)
        apply(self.users.span_gram, self.work, self.around, n)
        add_scaled(self.reduced, -self.users.noise_weights[self.partition.members.head[row]], self.around, n)
        self.eliminate_single(row)
        back_substitute(self.matrix, self.reduced, self.around, n)
        self.users.from_span(self.around)
        add_scaled(estimate, 1.0, self.around, d)

    cdef void rebuild(self, Py_ssize_t row) noexcept nogil:
        """A cluster's row from its sums, with today's Λ.

        Widths cached of a row whose data and Λ have only grown still bound those of today.
        """
        cdef double precision = self.prior.precision
        if precision < self.precisions[row]:
            self.partition.invalidate_widths(row)
        self.precisions[row] = precision
        self.build(row)

    cdef void build(self, Py_ssize_t row) noexcept nogil:
        """A cluster's row from its sums."""
        if self.places[row] >= 0:
            self.invert_sums(row, self.inverses + self.places[row] * self.dim * self.dim)
        else:
            self.single_row = -1
        self.solve(row)

    # Rewards.

    cdef void add(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """Add a reward, which the user's history has already, to its cluster; θ̂ is left to `solve`."""
        cdef Py_ssize_t i, row = self.partition.row_of[user], d = self.dim
        cdef double weight = self.users.noise_weights[user], root = sqrt(weight)
        cdef double *moment = self.moments + row * d
        add_scaled(self.vector_sums + row * d, weight, x, d)
        self.pulls[row] += 1
        if self.places[row] >= 0:
            for i in range(d):
                self.around[i] = root * x[i]
            absorb(self.inverse_of(row), moment, self.estimates + row * d, self.around, root * reward, self.work, d)
            add_outer(self.grams + self.places[row] * d * d, self.around, d)
            return
        add_scaled(moment, weight * reward, x, d)
        self.single_row = -1
        self.settle_storage(row)
        if self.places[row] >= 0:
            self.invert_sums(row, self.inverse_of(row))

    cdef void reweigh(self, Py_ssize_t user, double weight) noexcept nogil:
        """Change ω of a user, in its history and in the sums of its cluster."""
        cdef Py_ssize_t row = self.partition.row_of[user]
        cdef bint small = self.is_small(row, user)
        if not small:
            self.add_sums(row, user, weight - self.users.noise_weights[user])
        self.users.set_noise_weight(user, weight)
        if small:
            self.sum_members(row)
        self.partition.invalidate_widths(row)
        self.rebuild(row)

    # Members: sums are changed by what comes and goes, and made anew only where members are few.

    cdef void open_first(self) noexcept nogil:
        """The cluster that all users act in before the first reward."""
        cdef Py_ssize_t row = self.open_row()
        self.precisions[row] = self.prior.precision
        self.clear_sums(row)
        self.partition.update_candidate(row)
        self.build(row)

    cdef void admit(self, Py_ssize_t user) noexcept nogil:
        """A user who gives its first reward enters the cluster that it acts in."""
        cdef Py_ssize_t row = self.partition.row_of[user]
        cdef int64_t place = self.places[row]
        self.partition.enter(row, user)
        self.partition.change_size(row, self.prior.effective_size(user))
        self.settle_storage(row)
        if self.places[row] != place:
            self.sum_members(row)
            self.invert_sums(row, self.inverse_of(row))
        self.partition.update_candidate(row)

    cdef Py_ssize_t open_row(self) noexcept nogil:
        """A row for a new cluster."""
        cdef Py_ssize_t row = self.partition.open_row()
        self.used_rows = self.partition.used_rows
        self.places[row] = -1
        return row

    cdef void close_row(self, Py_ssize_t row) noexcept nogil:
        """A cluster without members is none."""
        if self.places[row] >= 0:
            release_slot(self.next_place, &self.free_place, self.places[row])
            self.places[row] = -1
        if self.single_row == row:
            self.single_row = -1
        self.partition.close_row(row)

    cdef Py_ssize_t move(self, Py_ssize_t user, Py_ssize_t target) noexcept nogil:
        """Take the user out of its cluster and into another, or a new one if target is -1; returns its row."""
        cdef Py_ssize_t source = self.partition.row_of[user]
        if target < 0:
            target = source if self.partition.sizes[source] == 1 else self.open_row()
        if target == source:
            if fabs(natural_log(self.precisions[source] / self.prior.precision)) > STALE:
                self.rebuild(source)
            return source
        self.partition.leave(user)
        self.partition.enter(target, user)
        if self.partition.sizes[source] > 0:
            self.partition.invalidate_widths(source)
            self.follow_move(source, user, -1)
        else:
            self.close_row(source)
        self.follow_move(target, user, 1)
        return target

    cdef void follow_move(self, Py_ssize_t row, Py_ssize_t user, int sign) noexcept nogil:
        """A user has come into a cluster, or left it: its sums, and the row that they make."""
        self.settle_storage(row)
        if self.is_small(row, user):
            self.sum_members(row)
        else:
            self.add_sums(row, user, sign * self.users.noise_weights[user])
            self.pulls[row] += sign * self.users.pulls[user]
            self.partition.change_size(row, sign * self.prior.effective_size(user))
        self.partition.update_candidate(row)
        self.rebuild(row)

    cdef void merge(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil:
        """Join another cluster to one that has several members."""
        cdef Py_ssize_t d = self.dim
        cdef const double *gram = self.gram_of(other)
        self.partition.merge_rows(row, other)
        self.close_row(other)  # what it held stays where it is until the row is opened again
        add_scaled(self.grams + self.places[row] * d * d, 1.0, gram, d * d)
        add_scaled(self.moments + row * d, 1.0, self.moments + other * d, d)
        add_scaled(self.vector_sums + row * d, 1.0, self.vector_sums + other * d, d)
        self.pulls[row] += self.pulls[other]
        self.partition.change_size(row, self.partition.effective_sizes[other])
        self.partition.update_candidate(row)
        self.rebuild(row)

    cdef double size_without(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil:
        """The effective size of a cluster without one user."""
        cdef Py_ssize_t k, n
        cdef double size
        if self.partition.row_of[user] != row:
            return self.partition.effective_sizes[row]
        if not self.is_small(row, user):
            return self.partition.effective_sizes[row] - self.prior.effective_size(user)
        n, size = self.partition.collect_members(row), 0.0
        for k in range(n):
            size += self.prior.effective_size(self.partition.collected[k]) if self.partition.collected[k] != user else 0.0
        return size

    cdef bint is_small(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil:
        """Are sums better made anew than changed: few members, or a user who has most of the data, lest rounding shows?"""
        return self.partition.sizes[row] <= FEW or 2 * self.users.pulls[user] > self.pulls[row]

    cdef void clear_sums(self, Py_ssize_t row) noexcept nogil:
        cdef Py_ssize_t d = self.dim
        if self.places[row] >= 0:
            memset(self.grams + self.places[row] * d * d, 0, d * d * sizeof(double))
        memset(self.moments + row * d, 0, d * sizeof(double))
        memset(self.vector_sums + row * d, 0, d * sizeof(double))
        self.pulls[row] = 0
        self.partition.set_size(row, 0.0)

    cdef void add_sums(self, Py_ssize_t row, Py_ssize_t user, double weight) noexcept nogil:
        """Add so many times a user's S, b and s to a cluster's."""
        cdef Py_ssize_t d = self.dim
        if self.places[row] >= 0:
            add_scaled(self.grams + self.places[row] * d * d, weight, self.users.gram_of(user), d * d)
        add_scaled(self.moments + row * d, weight, self.users.moments + user * d, d)
        add_scaled(self.vector_sums + row * d, weight, self.users.vector_sums + user * d, d)

    cdef void sum_members(self, Py_ssize_t row) noexcept nogil:
        """A cluster's sums, from its members one by one."""
        cdef Py_ssize_t k, n = self.partition.collect_members(row)
        cdef double size = 0.0
        cdef int64_t user
        self.clear_sums(row)
        for k in range(n):
            user = self.partition.collected[k]
            self.add_sums(row, user, self.users.noise_weights[user])
            self.pulls[row] += self.users.pulls[user]
            size += self.prior.effective_size(user)
        self.partition.set_size(row, size)

    # Units of columns.

    def rescale(self, times):
        """All vectors are multiplied by `times`, powers of two; the regressions of clusters are made anew, with today's Λ."""
        cdef Py_ssize_t row
        self.array("moments")[...] *= times
        self.array("vector_sums")[...] *= times
        self.array("grams")[...] *= np.outer(times, times)
        self.single_row = -1
        for row in np.flatnonzero(self.partition.array("sizes")).tolist():
            self.partition.invalidate_widths(row)
            self.rebuild(row)

    # What Python calls.

    def cluster(self, Py_ssize_t row):
        """Copies of a cluster's gram matrix S and of M = (ΛI + S)⁻¹."""
        shape = (self.dim, self.dim)
        gram, inverse = np.empty(shape), np.empty(shape)
        memcpy(cnp.PyArray_DATA(gram), self.gram_of(row), gram.nbytes)
        memcpy(cnp.PyArray_DATA(inverse), self.inverse_of(row), gram.nbytes)
        return gram, inverse
