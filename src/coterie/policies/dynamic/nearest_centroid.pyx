"""DynUCB: a given number of clusters; after each reward the user moves to the nearest centroid   (Nguyen and Lauw 2014)."""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset

from coterie.policies.kernel.learner cimport Learner, View, show_row
from coterie.policies.kernel.linalg cimport add_outer, add_scaled, distance2, natural_log
from coterie.policies.kernel.ridge cimport Ridge, absorb_row, clear_row, pool_from_gram

from coterie.policies.kernel.arrays import Field, ridge_fields


cdef class NearestCentroid(Learner):
    """Statistics of users and of clusters, a row each; a cluster's centroid is its pooled θ̂.

    Parameters
    ----------
    start : array of int
        The cluster that each user begins in.
    n_clusters : int
        How many clusters there are.
    alpha : float
        The factor of the width, which also grows with √ln(t + 1).
    """

    FITS = True
    FIELDS = {
        **ridge_fields("users", "users"),
        "grams": Field(("users", "dim", "dim")),
        **ridge_fields("pools", "rows"),
        "pools.gram": Field(("rows", "dim", "dim")),
        "labels": Field(("users",), "int64"),
        "epochs": Field(("rows",), "int64"),
    }

    cdef Ridge users
    cdef Ridge pools
    cdef double *grams
    cdef double *pool_grams
    cdef double alpha
    cdef Py_ssize_t n_clusters
    cdef object _start

    def __init__(self, n_users, dim, *, start, n_clusters, double alpha, ridge, schedule, generator):
        self._start, self.n_clusters, self.alpha = start, n_clusters, alpha
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    @classmethod
    def extents(cls, n_users, dim, *, n_clusters, **settings):
        return {"users": n_users, "rows": n_clusters, "dim": dim}

    def _extents(self):
        return {"users": self.n_users, "rows": self.n_clusters, "dim": self.dim}

    def adjust(self, *, start, **others):
        before = {"start": self._start, **others}
        self._start = start
        return before

    cdef int bind(self) except -1:
        self.users, self.pools = self.ridge_rows("users"), self.ridge_rows("pools")
        self.grams, self.pool_grams = <double *> self.pointer("grams"), <double *> self.pointer("pools.gram")
        return Learner.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """Users begin in a random cluster, to which they bring no data yet."""
        cdef Py_ssize_t row
        self.array("labels")[known:] = self._start[known:]
        for row in range(0 if known else self.n_clusters):
            clear_row(&self.pools, row, self.ridge, self.dim)
        return 0

    def refresh(self):
        rows = self.array("labels")
        if rows.min() < 0 or rows.max() >= self.n_clusters:
            raise ValueError("has numbers in 'labels' that are no clusters")

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The user's cluster, with β = α√ln(t + 1)."""
        cdef double beta = self.alpha * sqrt(natural_log(self.rounds + 2.0))
        show_row(seen, &self.pools, self.row_of[user], beta, self.ridge, self.dim)
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Add to the user and to its cluster."""
        cdef Py_ssize_t row = self.row_of[user], d = self.dim
        if self.users.pulls[user] == 0:
            clear_row(&self.users, user, self.ridge, d)
        absorb_row(&self.users, user, x, reward, self.work, d)
        add_outer(self.grams + user * d * d, x, d)
        absorb_row(&self.pools, row, x, reward, self.work, d)
        add_outer(self.pool_grams + row * d * d, x, d)
        return 0

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Move the user to the cluster with the nearest centroid."""
        cdef Py_ssize_t target = self.nearest(user)
        if target != self.row_of[user]:
            self.move(user, target)
        return 0

    cdef Py_ssize_t nearest(self, Py_ssize_t user) noexcept nogil:
        """argmin ‖θ̂ᵢ − c_k‖, the lowest k on ties."""
        cdef Py_ssize_t row, best = 0
        cdef double apart, least = INFINITY
        for row in range(self.n_clusters):
            apart = distance2(self.users.estimate + user * self.dim, self.pools.estimate + row * self.dim, self.dim)
            if apart < least:
                best, least = row, apart
        return best

    cdef void move(self, Py_ssize_t user, Py_ssize_t target) noexcept nogil:
        """Take the user's data from its cluster to another, and recompute both."""
        cdef Py_ssize_t source = self.row_of[user], d = self.dim
        self.shift(user, source, -1.0)
        self.shift(user, target, 1.0)
        self.epochs[source] += 1
        self.row_of[user] = target
        if self.pools.pulls[source] == 0:  # nothing is left but rounding
            clear_row(&self.pools, source, self.ridge, d)
            memset(self.pool_grams + source * d * d, 0, d * d * sizeof(double))

    cdef void shift(self, Py_ssize_t user, Py_ssize_t row, double sign) noexcept nogil:
        """Add the user's data to a cluster, or take it away."""
        cdef Py_ssize_t d = self.dim
        add_scaled(self.pool_grams + row * d * d, sign, self.grams + user * d * d, d * d)
        add_scaled(self.pools.moment + row * d, sign, self.users.moment + user * d, d)
        self.pools.pulls[row] += <int64_t> sign * self.users.pulls[user]
        pool_from_gram(&self.pools, row, self.pool_grams + row * d * d, self.ridge, self.work, d)
