"""The base of all compiled policies: the choice of an arm, and what is done with a reward.

A family subclasses `Learner` and gives bodies to `view` (whose data counts for a user), `absorb` (add a reward to the
statistics), `review` (let the rule act) and `label`. Loops over rounds know nothing else.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from coterie.policies._choice cimport ArmChoice
from coterie.policies._linalg cimport dot
from coterie.policies._offers cimport Offer, offer_of, vector_of

cnp.import_array()


cdef class Learner(ArmChoice):
    """The compiled side of a policy: named arrays, decisions by them, and the steps that change them.

    Parameters are those of `ArmChoice`.
    """

    DUEL_REWARDS = (-0.5, 0.5)  # what a lost and a won duel count
    FITS = False  # whether its rule may act once for each user, after all rewards

    def __init__(self, n_users, dim, *, ridge, schedule, generator):
        ArmChoice.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)
        self.welcome(0)

    def add_users(self, Py_ssize_t n, *, schedule, **settings):
        """n more users, who join as the algorithm's start says; all or nothing.

        `schedule` and `settings` are those of a learner made with as many users from the start.
        """
        cdef Py_ssize_t known = self.n_users
        before = self.adjust(**settings)
        try:
            self.make_room(known + n)
            self.welcome(known)
        except BaseException:
            self.n_users = known
            self.adjust(**before)
            raise
        self.follow(schedule)

    def adjust(self, **settings):
        """Take over settings that may depend on the number of users; returns those that were in force."""
        return settings

    # What a family defines.

    cdef int welcome(self, Py_ssize_t known) except -1:
        """Users from number `known` on are new; 0 at the start."""
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Add one reward to the statistics   (Alg. 1, line 11); `rounds` counts it already."""
        return 0

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Let the rule act on a user whose statistics have changed   (Alg. 1, line 12)."""
        return 0

    cdef int label(self, int64_t *out) except -1 nogil:
        """Write each user's cluster label: those that are kept, unless a family says otherwise."""
        memcpy(out, self.row_of, self.n_users * sizeof(int64_t))
        return 0

    def estimates(self):
        """The most personal estimate θ̂ held for each user: that of its own data, unless a family says otherwise."""
        return self.array("users.estimate").copy()

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return self.array("users.pulls").copy()

    def cluster_of(self, Py_ssize_t user):
        """The users whose data counts for this one, ascending."""
        labels = self.labels()
        return np.flatnonzero(labels == labels[user])

    # What loops call.

    cdef int learn(
        self, Py_ssize_t user, const double *xs, const double *rewards, Py_ssize_t n, Py_ssize_t shown
    ) except -1 nogil:
        """Absorb the n rewards observed in a round in which `shown` arms were shown, then review the user once."""
        cdef Py_ssize_t j
        for j in range(n):
            self.rounds += 1
            self.absorb(user, xs + j * self.dim, rewards[j])
        return self.review(user) if n else 0

    # What Python calls; users and shapes have been checked, lengths are checked here.

    def scratch(self):
        """Bytes of the work space."""
        return sum([array.nbytes for array in self._scratch.values()])

    @property
    def n_rows(self):
        """How many rows of statistics decisions can rest on."""
        return self._extents()["rows"]

    def labels(self):
        """A cluster label a user, as the rule numbers them."""
        out = np.empty(self.n_users, np.int64)
        self.label(<int64_t *> cnp.PyArray_DATA(out))
        return out

    def update(self, Py_ssize_t user, x, double reward):
        """Absorb one reward; False, and nothing changes, if the vector is too long."""
        cdef const double *vector = vector_of(x, self.dim)
        if not dot(vector, vector, self.dim) <= self.longest2:
            return False
        with nogil:
            self.learn(user, vector, &reward, 1, 1)
        return True

    def update_list(self, Py_ssize_t user, xs, rewards):
        """Absorb what was observed in a list; False, and nothing changes, if a vector is too long."""
        cdef Offer offer = offer_of(xs, self.dim)
        cdef const double *values = vector_of(rewards, offer.n)
        self.reserve(offer.n)
        if self.too_long(&offer):
            return False
        with nogil:
            self.learn(user, offer.items, values, offer.n, offer.n)
        return True

    def update_many(self, users, xs, rewards, bint fitting=False):
        """Absorb rewards in order; when fitting, review all users once, at the end; False if a vector is too long."""
        cdef Offer offer = offer_of(xs, self.dim)
        cdef const double *values = vector_of(rewards, offer.n)
        cdef const int64_t[::1] served = users
        cdef Py_ssize_t k
        if served.shape[0] != offer.n:
            raise ValueError("users and xs differ in length")
        self.reserve(offer.n)
        if self.too_long(&offer):
            return False
        with nogil:
            for k in range(offer.n):
                if fitting:
                    self.rounds += 1
                    self.absorb(served[k], offer.items + k * self.dim, values[k])
                else:
                    self.learn(served[k], offer.items + k * self.dim, values + k, 1, 1)
            for k in range(self.n_users if fitting else 0):
                self.review(k)
        return True
