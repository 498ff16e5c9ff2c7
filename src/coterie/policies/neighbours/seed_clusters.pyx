# optimize: 2
"""LOCB: clusters around seeds, which may overlap; the cluster with the largest score decides   (Ban and He 2021)."""

import numpy as np

cimport numpy as cnp
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from coterie.policies.kernel.bits cimport drop, has, put, put_range
from coterie.policies.kernel.learner cimport Learner, WidthCache, Offer, ScoreModel, View, bonus, show_row
from coterie.policies.kernel.linalg cimport add_outer, add_scaled, distance2, means, quadratics
from coterie.policies.kernel.ridge cimport Radius, Ridge, absorb_row, clear_row, pool_from_gram, radius, radius_of

from coterie.policies.kernel.arrays import Field, ridge_fields

cnp.import_array()


cdef class SeedClusters(Learner):
    """Statistics of users, and of the cluster around each seed; members of a cluster are a row of bits.

    Parameters
    ----------
    seeds : array of int
        The user at the centre of each cluster, -1 if there are more places than users.
    beta : float
        The factor of the width.
    shape : Radius
        The radius f.
    settled : float
        A seed's cluster is final when f(T) of the seed is at most this.
    """

    FIELDS = {
        **ridge_fields("users", "users"),
        "grams": Field(("users", "dim", "dim")),
        **ridge_fields("pools", "rows"),
        "pools.gram": Field(("rows", "dim", "dim")),
        "members": Field(("rows", "words"), "uint64"),
        "seeds": Field(("rows",), "int64"),
        "finished": Field(("rows",), "bool"),
        "epochs": Field(("rows",), "int64"),
    }

    cdef Ridge users
    cdef Ridge pools
    cdef double *grams
    cdef double *pool_grams
    cdef uint64_t *members
    cdef int64_t *seeds
    cdef char *finished
    cdef Radius shape
    cdef object _shape
    cdef object _seeds
    cdef double beta
    cdef double final_radius
    cdef Py_ssize_t n_seeds
    cdef Py_ssize_t stride
    cdef Py_ssize_t active
    cdef double *own_means
    cdef double *own_widths

    def __init__(self, n_users, dim, *, seeds, double beta, shape, double settled, ridge, schedule, generator):
        self._seeds, self.n_seeds, self.beta, self.final_radius = seeds, len(seeds), beta, settled
        self._shape, self.shape = shape, radius_of(shape)
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    @classmethod
    def extents(cls, n_users, dim, *, seeds, **settings):
        return {"users": n_users, "rows": len(seeds), "dim": dim, "words": (n_users + 63) // 64}

    def _extents(self):
        return {"users": self.n_users, "rows": self.n_seeds, "dim": self.dim, "words": (self.n_users + 63) // 64}

    def adjust(self, *, seeds, beta, shape, **others):
        before = {"seeds": self._seeds, "beta": self.beta, "shape": self._shape, **others}
        self._seeds, self.beta = seeds, beta
        self._shape, self.shape = shape, radius_of(shape)
        return before

    cdef int bind(self) except -1:
        self.users, self.pools = self.ridge_rows("users"), self.ridge_rows("pools")
        self.grams, self.pool_grams = <double *> self.pointer("grams"), <double *> self.pointer("pools.gram")
        self.members, self.seeds = <uint64_t *> self.pointer("members"), <int64_t *> self.pointer("seeds")
        self.finished = <char *> self.pointer("finished")
        self.stride = self._arrays["members"].shape[1]
        return Learner.bind(self)

    cdef int reserve(self, Py_ssize_t n_arms) except -1:
        """Room for the scores of so many arms in one cluster."""
        if n_arms > self.n_arms:
            self._scratch["own"] = np.empty((2, n_arms))
            self.own_means = <double *> cnp.PyArray_DATA(self._scratch["own"])
            self.own_widths = self.own_means + n_arms
        return Learner.reserve(self, n_arms)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """New users are in every cluster; seeds are drawn from the users present before the first reward."""
        cdef Py_ssize_t row
        if self.rounds == 0:
            self.array("seeds")[:] = self._seeds
        for row in range(self.n_seeds):
            if known == 0:
                clear_row(&self.pools, row, self.ridge, self.dim)
            put_range(self.members + row * self.stride, known, self.n_users)
        return 0

    def refresh(self):
        seeds = self.array("seeds")
        if seeds.min() < -1 or seeds.max() >= self.n_users:
            raise ValueError("has numbers in 'seeds' that are no users")
        bits = np.unpackbits(self.array("members").astype("<u8").view(np.uint8), axis=1, bitorder="little")
        if bits[:, self.n_users :].any():
            raise ValueError("has a member in 'members' who is no user")

    cdef bint holds(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil:
        """Is the user in the cluster of this row?"""
        return self.seeds[row] >= 0 and has(self.members + row * self.stride, user)

    # Decisions.

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The active cluster, or the user alone if that is -1."""
        if self.active >= 0:
            show_row(seen, &self.pools, self.active, self.beta, self.ridge, self.dim)
        else:
            show_row(seen, &self.users, user, self.beta, self.ridge, self.dim)
            seen.row = -1
        return 0

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil:
        """The best arm of each cluster of the user, exactly; then the best of those, the lowest arm on ties."""
        cdef Py_ssize_t arm, chosen = -1
        cdef double score, most = 0.0, beta = self.beta * self.time_factor()
        for self.active in range(self.n_seeds):
            if self.holds(self.active, user):
                arm = Learner.decide(self, user, offer, cache)
                if arm < 0:
                    return -1
                score = self.widths[arm] + beta * sqrt(self.bounds[arm])  # `best` leaves the means in `widths`
                if chosen < 0 or score > most or (score == most and arm < chosen):
                    chosen, most = arm, score
        if chosen < 0:
            self.active = -1
            chosen = Learner.decide(self, user, offer, cache)
        return chosen

    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        """Mean and bonus of every arm, in the cluster where they are largest together, the first on ties."""
        cdef bint alone = True
        for self.active in range(self.n_seeds):
            if self.holds(self.active, user):
                self.take_larger_scores(user, offer, alone, mean, width)
                alone = False
        if alone:
            self.active = -1
            self.take_larger_scores(user, offer, True, mean, width)
        return 0

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        return False  # a score is the largest of several

    cdef void take_larger_scores(self, Py_ssize_t user, Offer *offer, bint first, double *mean, double *width) noexcept nogil:
        """Take the scores of the active cluster where they are larger."""
        cdef View seen
        cdef Py_ssize_t k
        self.scaled_view(user, &seen)
        means(seen.estimate, offer.items, offer.picks, offer.n, self.dim, self.own_means)
        quadratics(seen.inverse, offer.items, offer.picks, offer.n, self.dim, self.own_widths)
        for k in range(offer.n):
            self.own_widths[k] = bonus(&seen, max(self.own_widths[k], 0.0))
            if first or self.own_means[k] + self.own_widths[k] > mean[k] + width[k]:
                mean[k], width[k] = self.own_means[k], self.own_widths[k]

    # Learning.

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Add to the user, and to every cluster that it is in."""
        cdef Py_ssize_t row, d = self.dim
        if self.users.pulls[user] == 0:
            clear_row(&self.users, user, self.ridge, d)
        absorb_row(&self.users, user, x, reward, self.work, d)
        add_outer(self.grams + user * d * d, x, d)
        for row in range(self.n_seeds):
            if self.holds(row, user):
                absorb_row(&self.pools, row, x, reward, self.work, d)
                add_outer(self.pool_grams + row * d * d, x, d)
        return 0

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Compare the user with every seed whose cluster is not final."""
        cdef Py_ssize_t row, seed
        cdef double apart, reach, own = radius(&self.shape, self.users.pulls[user])
        for row in range(self.n_seeds):
            seed = self.seeds[row]
            if seed < 0 or self.finished[row]:
                continue
            apart = sqrt(distance2(self.users.estimate + user * self.dim, self.users.estimate + seed * self.dim, self.dim))
            reach = radius(&self.shape, self.users.pulls[seed])
            if apart > own + reach and self.holds(row, user):
                drop(self.members + row * self.stride, user)
                self.shift(user, row, -1.0)
            elif apart < own + reach and not self.holds(row, user):
                put(self.members + row * self.stride, user)
                self.shift(user, row, 1.0)
            self.finished[row] = reach <= self.final_radius
        return 0

    cdef void shift(self, Py_ssize_t user, Py_ssize_t row, double sign) noexcept nogil:
        """Add the user's data to a cluster, or take it away."""
        cdef Py_ssize_t d = self.dim
        add_scaled(self.pool_grams + row * d * d, sign, self.grams + user * d * d, d * d)
        add_scaled(self.pools.moment + row * d, sign, self.users.moment + user * d, d)
        self.pools.pulls[row] += <int64_t> sign * self.users.pulls[user]
        pool_from_gram(&self.pools, row, self.pool_grams + row * d * d, self.ridge, self.work, d)
        if sign < 0.0:
            self.epochs[row] += 1
        if self.pools.pulls[row] == 0:  # nothing is left but rounding
            clear_row(&self.pools, row, self.ridge, d)
            memset(self.pool_grams + row * d * d, 0, d * d * sizeof(double))

    cdef int label(self, int64_t *out) except -1 nogil:
        """The first cluster of each user; users in none have labels of their own."""
        cdef Py_ssize_t user, row
        for user in range(self.n_users):
            out[user] = self.n_seeds + user
            for row in range(self.n_seeds):
                if self.holds(row, user):
                    out[user] = row
                    break
        return 0

    def cluster_of(self, Py_ssize_t user):
        """The users who share a cluster with the user, ascending."""
        cdef Py_ssize_t row, other
        found = {user}
        for row in range(self.n_seeds):
            if self.holds(row, user):
                found.update([other for other in range(self.n_users) if has(self.members + row * self.stride, other)])
        return np.array(sorted(found))
