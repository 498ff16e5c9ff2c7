"""What users of AutoCLUB act on, and how a reward is learnt."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from coterie.policies.autoclub.members cimport MOST_LISTED
from coterie.policies.autoclub.sums cimport ClusterSums
from coterie.policies.kernel.learner cimport View
from coterie.policies.kernel.linalg cimport absorb, add_outer, add_scaled

from coterie.policies.autoclub.sums import ClusterSums as Base
from coterie.policies.kernel.arrays import Field
from coterie.policies.kernel.linalg import eliminated

cnp.import_array()


FIRST_REVIEW = 4
"""Pulls after which a user is first reviewed."""


cdef class EvidenceRows(ClusterSums):
    """Users in clusters, with room for a review.

    A user acts on its `share` of its cluster's estimate plus its `mixture` of the alternatives; `alone` is the weight of a
    preference of its own, wherever it is. `due` is the pulls at which it is next reviewed.
    """

    FIELDS = {
        "shares": Field(("users",)),
        "alone": Field(("users",)),
        "mixtures": Field(("users", "dim")),
        "due": Field(("users",), "int64"),
        **Base.FIELDS,
    }

    def __init__(self, n_users, dim, *, ridge, schedule, generator):
        self.noise2, self.weight = 1.0, ridge
        ClusterSums.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim
        self.shares, self.mixtures = <double *> self.pointer("shares"), <double *> self.pointer("mixtures")
        self.alone, self.due = <double *> self.pointer("alone"), <int64_t *> self.pointer("due")
        if "review" not in self._scratch:
            self._scratch["losses"] = np.empty((3, MOST_LISTED))
            self._scratch["likely"] = np.empty(MOST_LISTED, np.int64)
            self._scratch["review"] = np.empty(d * d + (2 + MOST) * d)
        self.inverse = <double *> cnp.PyArray_DATA(self._scratch["review"])
        self.centred, self.acting, self.fits = self.inverse + d * d, self.inverse + d * d + d, self.inverse + d * d + 2 * d
        self.losses = <double *> cnp.PyArray_DATA(self._scratch["losses"])
        self.likely = self.list("likely")
        return ClusterSums.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
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
        if self.spots[row] > 0:
            self.place(row, self.spots[row])
        return 0

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
        ClusterSums.amend(self, before, after)
        add_scaled(self.pools.moment + row * d, self.precisions[self.holder] * (after - before), self.largest, d)
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
        return self.estimates_of(np.arange(self.n_users))

    def estimates_of(self, users):
        """The same of some users: a regression takes 14 µs, and a service has many users."""
        out, ridge, pulls = np.zeros((len(users), self.dim)), self.ridge * np.eye(self.dim), self.array("pulls")
        for row, user in enumerate(users.tolist()):
            if pulls[user]:
                moment = self.array("moments")[user].copy()
                out[row] = eliminated(self.gram(user) + ridge, moment, 0.5 * self.ridge)[2]
        return out
