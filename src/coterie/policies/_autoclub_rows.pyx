"""The statistics of AutoCLUB: users and clusters, what a decision rests on, and how a row is built."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t

from coterie.policies._autoclub_prior cimport Prior
from coterie.policies._linalg cimport (
    Ridge, absorb_row, add_outer, add_scaled, apply, clear_row, dot, eliminate, finish_inverse
)
from coterie.policies._members cimport append_members, list_members
from coterie.policies._offers cimport View

from coterie.policies._arrays import Field, ridge_fields
from coterie.policies._autoclub_prior import Prior as Base
from coterie.policies._linalg import eliminated

cnp.import_array()

FIRST_REVIEW = 4
"""Pulls after which a user is first reviewed."""
FREEDOM = 3
"""The place of tr H among the terms of a user."""
cdef enum:
    FEW = 8  # the sums of so many members are made anew rather than changed
cdef double BELIEVED = 2.0  # the greatest reward counts for at most so many times the size of the second greatest


cdef class EvidenceRows(Prior):
    """Statistics of users and of clusters, a row each, with room for a review.

    A user acts on its `share` of its cluster's estimate plus its `mixture` of the alternatives; `alone` is the weight of a
    preference of its own, wherever it is. `due` is the pulls at which it
    is next reviewed, `precisions` what its rewards count for beside others', `weights` the λ that each cluster's row was built
    with. `greatest` is the reward of largest size so far, `holder` who gave it and `greatest.x` for what; it counts for
    at most twice `second`, the second largest size.
    """

    FIELDS = {
        "grams": Field(("users", "dim", "dim")),
        "moments": Field(("users", "dim")),
        "totals": Field(("users", "dim")),
        "levels": Field(("users",)),
        "squares": Field(("users",)),
        "pulls": Field(("users",), "int64"),
        "labels": Field(("users",), "int64"),
        "precisions": Field(("users",)),
        "shares": Field(("users",)),
        "alone": Field(("users",)),
        "mixtures": Field(("users", "dim")),
        "due": Field(("users",), "int64"),
        **ridge_fields("pools", "rows"),
        "pool_grams": Field(("rows", "dim", "dim")),
        "pool_totals": Field(("rows", "dim")),
        "weights": Field(("rows",)),
        "sizes": Field(("rows",), "int64"),
        "counts": Field(("rows",)),
        "epochs": Field(("rows",), "int64"),
        "greatest.x": Field(("dim",)),
        **Base.FIELDS,
    }
    NUMBERS = (*Base.NUMBERS, "n_clusters", "holder", "greatest", "second")

    def __init__(self, n_users, dim, *, ridge, schedule, generator):
        self.noise2, self.weight = 1.0, ridge
        Prior.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim, room = len(self._arrays["labels"])
        self.pools = self.ridge_rows("pools")
        self.grams, self.moments = <double *> self.pointer("grams"), <double *> self.pointer("moments")
        self.squared, self.pulls = <double *> self.pointer("squares"), <int64_t *> self.pointer("pulls")
        self.due, self.largest = <int64_t *> self.pointer("due"), <double *> self.pointer("greatest.x")
        self.precisions, self.totals = <double *> self.pointer("precisions"), <double *> self.pointer("totals")
        self.levels, self.pool_totals = <double *> self.pointer("levels"), <double *> self.pointer("pool_totals")
        self.shares, self.mixtures = <double *> self.pointer("shares"), <double *> self.pointer("mixtures")
        self.alone = <double *> self.pointer("alone")
        self.pool_grams, self.weights = <double *> self.pointer("pool_grams"), <double *> self.pointer("weights")
        self.sizes = <int64_t *> self.pointer("sizes")
        if room > self._scratch.get("lists", np.empty((1, 0))).shape[1]:
            lists = np.full((2, room), -1, np.int64)
            if "lists" in self._scratch:
                lists[:, : self._scratch["lists"].shape[1]] = self._scratch["lists"]
            used = np.zeros(room, np.int64)
            used[: self.n_clusters] = self._scratch.get("used", used)[: self.n_clusters]
            self._scratch.update(lists=lists, used=used, losses=np.zeros((2, room)))
        self.members.head = <int64_t *> cnp.PyArray_DATA(self._scratch["lists"])
        self.members.next = self.members.head + room
        self.used = <int64_t *> cnp.PyArray_DATA(self._scratch["used"])
        self.losses = <double *> cnp.PyArray_DATA(self._scratch["losses"])
        self.counts = <double *> self.pointer("counts")
        if "review" not in self._scratch:
            self._scratch["review"] = np.empty(3 * d * d + (4 + MOST) * d)
        self.matrix = <double *> cnp.PyArray_DATA(self._scratch["review"])
        self.factor, self.inverse = self.matrix + d * d, self.matrix + 2 * d * d
        self.reduced = self.matrix + 3 * d * d
        self.centred, self.around, self.acting = self.reduced + d, self.reduced + 2 * d, self.reduced + 3 * d
        self.fits = self.reduced + 4 * d
        return Prior.bind(self)

    cdef int welcome(self, Py_ssize_t known) except -1:
        """Newcomers start together about the mean preference, in a cluster that nobody has taught yet."""
        cdef Py_ssize_t row = 0, user, i
        while row < known and not (self.sizes[row] > 0 and self.pools.pulls[row] == 0):
            row += 1
        if row >= known:
            row = self.open_row()
            clear_row(&self.pools, row, self.acting_weight(), self.dim)
            self.weights[row] = self.acting_weight()
            self.clear_sums(row)
        for i in range(self.dim):
            self.pools.estimate[row * self.dim + i] = self.mean[i]
        self.sizes[row] += self.n_users - known
        self.counts[row] += (self.n_users - known) / (1.0 + self.dim)
        append_members(&self.members, row, self.row_of, known, self.n_users)
        for user in range(known, self.n_users):
            self.row_of[user], self.shares[user], self.due[user] = row, 1.0, FIRST_REVIEW
            self.precisions[user] = 1.0
        return 0

    def refresh(self):
        Prior.refresh(self)
        rows, sizes = self.array("labels"), self.array("sizes")
        if rows.min() < 0 or rows.max() >= self.n_users:
            raise ValueError("has numbers in 'labels' that are no rows")
        if not np.array_equal(np.bincount(rows, minlength=self.n_users), sizes):
            raise ValueError("has sizes of clusters that are not those of its labels")
        if np.count_nonzero(sizes) != self.n_clusters:
            raise ValueError(f"has {np.count_nonzero(sizes)} clusters, not {self.n_clusters}")
        if not (self.array("weights")[sizes > 0] > 0).all():
            raise ValueError("has numbers in 'weights' that are not above 0")
        if self.array("precisions").min() <= 0 or self.array("precisions").max() > 1:
            raise ValueError("has numbers in 'precisions' that are not above 0 and at most 1")
        if not (0 <= self.holder < self.n_users and 0 <= self.second <= abs(self.greatest)):
            raise ValueError("has a greatest reward that cannot be")
        known = self.array("prior.terms")[:, FREEDOM]
        counts = np.bincount(rows, (1.0 + known) / (1.0 + self.dim), minlength=self.n_users)
        if known.min() < 0 or not np.allclose(self.array("counts")[sizes > 0], counts[sizes > 0], rtol=1e-6):
            raise ValueError("has clusters that do not count as their members do")
        list_members(&self.members, self.row_of, self.n_users, self.n_users)
        self._scratch["used"][: self.n_clusters] = np.flatnonzero(sizes)

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The mixture as estimate, the width of the cluster, σ̂ as β; usual is d/N, a bound on the mean."""
        cdef Py_ssize_t row = self.row_of[user], i
        cdef int64_t pulls = self.pools.pulls[row]
        for i in range(self.dim):
            self.acting[i] = self.shares[user] * self.pools.estimate[row * self.dim + i] + self.mixtures[user * self.dim + i]
        seen.estimate, seen.inverse = self.acting, self.pools.inverse + row * self.dim * self.dim
        seen.beta, seen.row, seen.ridge = sqrt(self.noise2), row, self.weights[row]
        seen.usual = <double> self.dim / pulls if pulls > 0 else INFINITY
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Update the user and its cluster."""
        cdef Py_ssize_t i, row = self.row_of[user], d = self.dim
        cdef double root = sqrt(self.precisions[user])
        self.raise_peak(user, fabs(reward - self.offset))
        reward = self.restrain(user, x, reward)
        if self.pulls[user] == 0:
            self.seen += 1.0
        add_outer(self.grams + user * d * d, x, d)
        self.squared[user] += reward * reward
        self.pulls[user] += 1
        self.levels[user] += reward
        self.level += reward
        add_scaled(self.moments + user * d, reward, x, d)
        add_scaled(self.totals + user * d, 1.0, x, d)
        add_scaled(self.pool_totals + row * d, self.precisions[user], x, d)
        for i in range(d):
            self.around[i] = root * x[i]
        add_outer(self.pool_grams + row * d * d, self.around, d)
        absorb_row(&self.pools, row, self.around, root * reward, self.work, d)
        self.squares += reward * reward
        self.reach += dot(x, x, d)
        if self.sums.pulls == 0.0:
            self.guess()
        self.solve(row)
        return 0

    cdef double restrain(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """What a reward counts for now; and what the greatest so far counts for, given this one."""
        cdef Py_ssize_t i
        cdef double size = fabs(reward)
        if size <= self.second:
            return reward
        if size <= fabs(self.greatest):
            self.believe(size)
            return reward
        self.believe(fabs(self.greatest))
        self.greatest, self.holder = reward, user
        for i in range(self.dim):
            self.largest[i] = x[i]
        return self.counted()

    cdef double counted(self) noexcept nogil:
        """What the greatest reward counts for: at most twice the second greatest in size."""
        return self.within_reason(self.greatest)

    cdef double within_reason(self, double reward) noexcept nogil:
        """A reward of at most twice the second greatest in size."""
        return min(max(reward, -BELIEVED * self.second), BELIEVED * self.second)

    cdef void believe(self, double second) noexcept nogil:
        """Take note of a new second greatest size: the greatest reward may count for more now."""
        cdef Py_ssize_t row, user = self.holder, d = self.dim
        cdef double before = self.counted(), more, square
        self.second = second
        more, square = self.counted() - before, self.counted() * self.counted() - before * before
        if more == 0.0:
            return
        row = self.row_of[user]
        add_scaled(self.moments + user * d, more, self.largest, d)
        add_scaled(self.pools.moment + row * d, self.precisions[user] * more, self.largest, d)
        self.solve(row)
        self.levels[user] += more
        self.level += more
        self.squared[user] += square
        self.squares += square

    cdef Py_ssize_t open_row(self) noexcept nogil:
        """The lowest row that no cluster uses."""
        cdef Py_ssize_t row = 0, k
        while row < self.n_clusters and self.used[row] == row:
            row += 1
        for k in range(self.n_clusters, row, -1):
            self.used[k] = self.used[k - 1]
        self.used[row] = row
        self.members.head[row] = -1
        self.epochs[row] += 1
        self.n_clusters += 1
        return row

    cdef void close_row(self, Py_ssize_t row) noexcept nogil:
        """No cluster uses this row any more."""
        cdef Py_ssize_t k = 0
        while self.used[k] != row:
            k += 1
        self.n_clusters -= 1
        for k in range(k, self.n_clusters):
            self.used[k] = self.used[k + 1]

    cdef void solve(self, Py_ssize_t row) noexcept nogil:
        """θ̂ = M(b − ms + Λμ): the ridge regression of a cluster about the mean preference."""
        cdef Py_ssize_t i, d = self.dim
        for i in range(d):
            self.work[i] = self.pools.moment[row * d + i] - self.offset * self.pool_totals[row * d + i]
            self.work[i] += self.weights[row] * self.mean[i]
        apply(self.pools.inverse + row * d * d, self.work, self.pools.estimate + row * d, d)

    # The sums of a cluster: changed by what comes and goes, and made anew only where members are few.

    cdef double crowd_of(self, Py_ssize_t user) noexcept nogil:
        """What a user counts for among the members of its cluster: (1 + tr H) / (1 + d), as far as it is known."""
        return (1.0 + self.terms[user].freedom) / (1.0 + self.dim)

    cdef void clear_sums(self, Py_ssize_t row) noexcept nogil:
        cdef Py_ssize_t i, d = self.dim
        for i in range(d * d):
            self.pool_grams[row * d * d + i] = 0.0
        for i in range(d):
            self.pools.moment[row * d + i] = self.pool_totals[row * d + i] = 0.0
        self.pools.pulls[row], self.counts[row] = 0, 0.0

    cdef void add_sums(self, Py_ssize_t row, Py_ssize_t user, double weight) noexcept nogil:
        """Add so many times a user's S, b and s to a cluster's."""
        cdef Py_ssize_t d = self.dim
        add_scaled(self.pool_grams + row * d * d, weight, self.grams + user * d * d, d * d)
        add_scaled(self.pools.moment + row * d, weight, self.moments + user * d, d)
        add_scaled(self.pool_totals + row * d, weight, self.totals + user * d, d)

    cdef bint few(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil:
        """Are sums better made anew than changed: few members, or a user who has most of the data, lest rounding shows?"""
        return self.sizes[row] <= FEW or 2 * self.pulls[user] > self.pools.pulls[row]

    cdef void sum_members(self, Py_ssize_t row) noexcept nogil:
        """A cluster's sums, from its members one by one."""
        cdef int64_t user = self.members.head[row]
        self.clear_sums(row)
        while user >= 0:
            self.add_sums(row, user, self.precisions[user])
            self.pools.pulls[row] += self.pulls[user]
            self.counts[row] += self.crowd_of(user)
            user = self.members.next[user]

    cdef void join(self, Py_ssize_t row, Py_ssize_t user, int sign) noexcept nogil:
        """A user has come into a cluster, or left it: its sums, and the row that they make."""
        if self.few(row, user):
            self.sum_members(row)
        else:
            self.add_sums(row, user, sign * self.precisions[user])
            self.pools.pulls[row] += sign * self.pulls[user]
            self.counts[row] += sign * self.crowd_of(user)
        self.rebuild(row)

    cdef void rebuild(self, Py_ssize_t row) noexcept nogil:
        """A cluster's row from its sums, with today's Λ.

        Widths remembered of a row whose data and λ have only grown still bound those of today.
        """
        cdef Py_ssize_t i, d = self.dim
        cdef const double *gram = self.pool_grams + row * d * d
        cdef double weight = self.acting_weight(), logdet, explained
        if weight < self.weights[row]:
            self.epochs[row] += 1
        self.weights[row] = weight
        self.combine(gram, gram, 0.0, weight)
        for i in range(d):
            self.reduced[i] = self.pools.moment[row * d + i]
        eliminate(self.matrix, self.reduced, d, 0.5 * weight, &logdet, &explained)
        finish_inverse(self.matrix, self.factor, self.pools.inverse + row * d * d, d)
        self.solve(row)

    cdef void combine(self, const double *first, const double *second, double sign, double weight) noexcept nogil:
        """The upper half of λI + S₁ ± S₂."""
        cdef Py_ssize_t k, i, d = self.dim
        for k in range(d):
            for i in range(k * d + k, k * d + d):
                self.matrix[i] = first[i] + sign * second[i]
            self.matrix[k * d + k] += weight

    def scores(self, Py_ssize_t user, arms):
        """Expected reward, m + xᵀθ̂, and bonus of every arm."""
        mean, width = Prior.scores(self, user, arms)
        return mean + self.offset, width

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
        own, moments = self.array("grams") + self.ridge * np.eye(self.dim), self.array("moments").copy()
        return np.array([eliminated(gram, moment, 0.5 * self.ridge)[2] for gram, moment in zip(own, moments)])

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return self.array("pulls").copy()
