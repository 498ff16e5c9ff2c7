# optimize: 2
"""Off-C²LUB: users are joined if they are surely closer to each other than clusters are   (Liu et al. 2025).

The graph follows from the statistics of users, so none is kept; the rows below are those of docs/algorithms/offc2lub.md.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport sqrt
from libc.stdint cimport int64_t

from coterie.policies.kernel.learner cimport Learner, View, show_row
from coterie.policies.kernel.linalg cimport add_outer, distance2
from coterie.policies.kernel.ridge cimport (
    Radius, Ridge, absorb_row, add_member, clear_row, finish_pool, radius, radius_of, start_pool
)

from coterie.policies.kernel.arrays import Field, ridge_fields

cnp.import_array()


cdef class SureNeighbours(Learner):
    """Users' statistics; neighbours are found when a decision needs them.

    Parameters
    ----------
    beta : float
        The factor of the width, negative for lower bounds.
    shape : Radius
        The radius f.
    gap : float
        γ̂, by which preferences of different clusters are assumed to differ at least.
    """

    FITS = True
    FIELDS = {**ridge_fields("users", "users"), "grams": Field(("users", "dim", "dim"))}

    cdef Ridge users
    cdef Ridge pool
    cdef double *grams
    cdef Radius shape
    cdef object _shape
    cdef double beta
    cdef double gap
    cdef int64_t *stack

    def __init__(self, n_users, dim, *, double beta, shape, double gap, ridge, schedule, generator):
        self.beta, self._shape, self.shape, self.gap = beta, shape, radius_of(shape), gap
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    def adjust(self, *, beta, shape, **others):
        """β and the radius, which may depend on the number of users."""
        before = {"beta": self.beta, "shape": self._shape, **others}
        self.beta, self._shape, self.shape = beta, shape, radius_of(shape)
        return before

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim
        self.users, self.grams = self.ridge_rows("users"), <double *> self.pointer("grams")
        if "pool" not in self._scratch:
            self._scratch["pool"], self._scratch["pool_pulls"] = np.zeros(d * d + 2 * d), np.zeros(1, np.int64)
        if len(self._arrays["users.pulls"]) > len(self._scratch.get("stack", ())):
            self._scratch["stack"] = np.zeros(len(self._arrays["users.pulls"]), np.int64)
        self.pool.inverse = <double *> cnp.PyArray_DATA(self._scratch["pool"])
        self.pool.moment, self.pool.estimate = self.pool.inverse + d * d, self.pool.inverse + d * d + d
        self.pool.pulls = <int64_t *> cnp.PyArray_DATA(self._scratch["pool_pulls"])
        self.stack = <int64_t *> cnp.PyArray_DATA(self._scratch["stack"])
        return Learner.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """Users without data, who are joined to nobody unless the gap is large   (row 1)."""
        cdef Py_ssize_t user
        for user in range(known, self.n_users):
            clear_row(&self.users, user, self.ridge, self.dim)
        return 0

    cdef bint are_neighbours(self, Py_ssize_t user, Py_ssize_t other) noexcept nogil:
        """Is ‖θ̂ᵢ − θ̂_j‖ < γ̂ − f(Tᵢ) − f(T_j)?   (row 3)"""
        cdef double reach = self.gap - radius(&self.shape, self.users.pulls[user]) - radius(&self.shape, self.users.pulls[other])
        cdef const double *estimates = self.users.estimate
        return reach > 0.0 and sqrt(distance2(estimates + user * self.dim, estimates + other * self.dim, self.dim)) < reach

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The user and its neighbours, pooled   (row 4)."""
        cdef Py_ssize_t other
        start_pool(&self.pool, 0, self.dim)
        for other in range(self.n_users):
            if other == user or self.are_neighbours(user, other):
                add_member(&self.pool, 0, &self.users, self.grams, other, self.dim)
        finish_pool(&self.pool, 0, self.ridge, self.work, self.dim)
        show_row(seen, &self.pool, 0, self.beta, self.ridge, self.dim)
        seen.row = -1
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """S, b, T and θ̂ of the user   (row 2)."""
        absorb_row(&self.users, user, x, reward, self.work, self.dim)
        add_outer(self.grams + user * self.dim * self.dim, x, self.dim)
        return 0

    cdef int label(self, int64_t *out) except -1 nogil:
        """Connected components, numbered by their lowest users."""
        cdef Py_ssize_t user, other, waiting
        for user in range(self.n_users):
            out[user] = -1
        for user in range(self.n_users):
            if out[user] >= 0:
                continue
            out[user], self.stack[0], waiting = user, user, 1
            while waiting:
                waiting -= 1
                waiting = self.visit_neighbours(self.stack[waiting], user, waiting, out)
        return 0

    cdef Py_ssize_t visit_neighbours(
        self, Py_ssize_t user, Py_ssize_t label, Py_ssize_t waiting, int64_t *out
    ) noexcept nogil:
        """Label the neighbours of a user that have no label yet; they wait for their own neighbours."""
        cdef Py_ssize_t other
        for other in range(self.n_users):
            if out[other] < 0 and self.are_neighbours(user, other):
                out[other], self.stack[waiting] = label, other
                waiting += 1
        return waiting

    def cluster_of(self, Py_ssize_t user):
        """The user and its neighbours, ascending."""
        cdef Py_ssize_t other
        return np.array([other for other in range(self.n_users) if other == user or self.are_neighbours(user, other)])
