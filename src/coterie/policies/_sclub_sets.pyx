"""Sets of users for SCLUB: who is in which, and does a user still resemble all others of its set?"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset

from coterie.policies._learner cimport Learner
from coterie.policies._linalg cimport add_scaled, distance2, dot
from coterie.policies._linked cimport link
from coterie.policies._radius cimport arrival_radius, radius, radius_of

from coterie.policies._arrays import Field, ridge_fields

cnp.import_array()

cdef double ROUNDING = 1e-9  # what a bound on a distance may lose


cdef class Sets(Learner):
    """Statistics of users and of clusters; each cluster has a slot, its size and its unchecked members.

    `order` holds the slots in use, from the oldest cluster to the youngest.

    Parameters
    ----------
    beta : float
        The factor of the width.
    shape : Radius
        The radius f.
    arrivals : float
        α_p of the arrival-frequency test; 0 for none.
    """

    FIELDS = {
        **ridge_fields("users", "users"),
        "grams": Field(("users", "dim", "dim")),
        **ridge_fields("pools", "rows"),
        "pools.gram": Field(("rows", "dim", "dim")),
        "labels": Field(("users",), "int64"),
        "checked": Field(("users",), "bool"),
        "sizes": Field(("rows",), "int64"),
        "unchecked": Field(("rows",), "int64"),
        "order": Field(("rows",), "int64"),
        "radii": Field(("users",)),
        "epochs": Field(("rows",), "int64"),
    }
    NUMBERS = ("rounds", "n_clusters", "compare_all")

    def __init__(self, n_users, dim, *, double beta, shape, double arrivals, ridge, schedule, generator):
        self.beta, self._shape, self.shape, self.arrivals = beta, shape, radius_of(shape), arrivals
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    def adjust(self, *, beta, shape, arrivals):
        """β and the radius, which may depend on the number of users."""
        before = {"beta": self.beta, "shape": self._shape, "arrivals": arrivals}
        self.reshaped = self.reshaped or shape != self._shape
        self.beta, self._shape, self.shape = beta, shape, radius_of(shape)
        return before

    cdef int bind(self) except -1:
        cdef Py_ssize_t room = len(self._arrays["labels"])
        self.users = self.ridge_rows("users")
        self.pools = self.ridge_rows("pools")
        self.grams, self.pool_grams = <double *> self.pointer("grams"), <double *> self.pointer("pools.gram")
        self.radii = <double *> self.pointer("radii")
        self.checked = <char *> self.pointer("checked")
        self.sizes, self.unchecked = <int64_t *> self.pointer("sizes"), <int64_t *> self.pointer("unchecked")
        self.order = <int64_t *> self.pointer("order")
        if "derived" not in self._scratch or room > self._scratch["derived"].shape[1]:
            derived, lists, touched = np.zeros((4, room)), np.full((7, room), -1, np.int64), np.zeros(room, np.int8)
            centres, blocks = np.zeros((self.dim, room), order="F"), np.full((room + 63) // 64, np.inf)
            derived[0] = np.inf
            made = {"derived": derived, "lists": lists, "touched": touched, "centres": centres, "blocks": blocks}
            for name, fresh in made.items():
                old = self._scratch.get(name)
                if old is not None:
                    fresh[..., : old.shape[old.ndim - 1]] = old
                self._scratch[name] = fresh
        room = self._scratch["derived"].shape[1]  # more, if memory for something else was lacking after these had grown
        self.slack = <double *> cnp.PyArray_DATA(self._scratch["derived"])
        self.reach, self.length, self.least = self.slack + room, self.slack + 2 * room, self.slack + 3 * room
        self.members.head = <int64_t *> cnp.PyArray_DATA(self._scratch["lists"])
        self.members.next, self.members.previous = self.members.head + room, self.members.head + 2 * room
        self.changed, self.births = self.members.head + 3 * room, self.members.head + 4 * room
        self.centred, self.absent = self.members.head + 5 * room, self.members.head + 6 * room
        self.centres = <double *> cnp.PyArray_DATA(self._scratch["centres"])
        self.block_least = <double *> cnp.PyArray_DATA(self._scratch["blocks"])
        self.touched = <char *> cnp.PyArray_DATA(self._scratch["touched"])
        return Learner.bind(self)

    def refresh(self):
        rows, sizes, order = self.array("labels"), self.array("sizes"), self.array("order")
        n = self.n_users
        if not 1 <= self.n_clusters <= n:
            raise ValueError(f"has {self.n_clusters} clusters of {n} users")
        used = order[: self.n_clusters]
        if rows.min() < 0 or rows.max() >= n or used.min() < 0 or used.max() >= n:
            raise ValueError("has numbers in 'labels' or 'order' that are no rows")
        if not np.array_equal(np.sort(used), np.flatnonzero(sizes)) or not np.array_equal(np.bincount(rows, minlength=n), sizes):
            raise ValueError("has sizes of clusters that are not those of its labels")
        waiting = np.bincount(rows, weights=~self.array("checked"), minlength=n)
        if not np.array_equal(self.array("unchecked")[used], waiting[used]):
            raise ValueError("has numbers in 'unchecked' that are not those of its users")
        cdef Py_ssize_t k
        self.vacant, self.opened = 0, self.n_clusters
        self._scratch["lists"][:] = -1
        self._scratch["lists"][6, :n] = np.bincount(rows, weights=self.array("users.pulls") == 0, minlength=n)
        self._scratch["centres"][:] = 0.0
        for k in range(self.n_users - 1, -1, -1):
            link(&self.members, self.row_of[k], k)
        self._scratch["derived"][3] = np.inf
        for k in range(self.n_users):
            self.trust(k)
        for k in range(self.n_clusters):
            self.measure(self.order[k])
            self.births[self.order[k]] = k

    cdef void trust(self, Py_ssize_t user) noexcept nogil:
        """How far another's θ̂ may be from the centre c of the cluster before both must be compared: f(T) − ‖θ̂ − c‖.

        One who is alone is never compared, and those who never came, whose θ̂ is 0, are compared all at once.
        """
        cdef Py_ssize_t slot = self.row_of[user]
        cdef double apart = sqrt(distance2(self.users.estimate + user * self.dim, self.centres + slot * self.dim, self.dim))
        cdef double f = self.radii[user], least = INFINITY
        cdef Py_ssize_t other, start = user & ~<Py_ssize_t> 63
        self.slack[user] = (f - apart) - ROUNDING * (f + apart)
        if self.sizes[slot] == 1 or self.users.pulls[user] == 0:
            self.slack[user] = INFINITY
        self.least[slot] = min(self.least[slot], self.slack[user])
        for other in range(start, min(start + 64, self.n_users)):
            least = min(least, self.slack[other])
        self.block_least[user >> 6] = least

    cdef void centre(self, Py_ssize_t slot) noexcept nogil:
        """Measure the members of a cluster from the mean of their θ̂, of those who came."""
        cdef double *point = self.centres + slot * self.dim
        cdef double share = 1.0 / max(self.sizes[slot] - self.absent[slot], 1)
        cdef int64_t user = self.members.head[slot]
        memset(point, 0, self.dim * sizeof(double))
        while user >= 0:
            if self.users.pulls[user]:
                add_scaled(point, share, self.users.estimate + user * self.dim, self.dim)
            user = self.members.next[user]
        self.centred[slot], self.least[slot] = self.pools.pulls[slot], INFINITY
        user = self.members.head[slot]
        while user >= 0:
            self.trust(user)
            user = self.members.next[user]

    cdef void measure(self, Py_ssize_t slot) noexcept nogil:
        """f(T) and ‖θ̂‖ of a cluster."""
        cdef const double *estimate = self.pools.estimate + slot * self.dim
        self.reach[slot] = radius(&self.shape, self.pools.pulls[slot])
        self.length[slot] = sqrt(dot(estimate, estimate, self.dim))

    cdef Py_ssize_t open(self, Py_ssize_t size) noexcept nogil:
        """The lowest slot that no cluster uses, as the youngest cluster."""
        cdef Py_ssize_t slot = self.vacant
        while self.sizes[slot] > 0:
            slot += 1
        self.vacant = slot
        self.least[slot], self.centred[slot], self.absent[slot] = INFINITY, 0, 0
        memset(self.centres + slot * self.dim, 0, self.dim * sizeof(double))
        self.sizes[slot] = size
        self.members.head[slot] = -1
        self.epochs[slot] += 1
        self.order[self.n_clusters], self.births[slot] = slot, self.opened
        self.n_clusters += 1
        self.opened += 1
        return slot

    cdef bint parts(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """Is some user of the cluster no longer like this one?   (Split, line 1).

        ‖θ̂ᵢ − θ̂_ℓ‖ ≤ ‖θ̂ᵢ − c‖ + ‖θ̂_ℓ − c‖: in most rounds no member has to be looked at.
        """
        cdef const double *own = self.users.estimate + user * self.dim
        cdef double apart = sqrt(distance2(own, self.centres + slot * self.dim, self.dim)), f = self.radii[user]
        cdef double need = (apart - f) + ROUNDING * (apart + f), reach = f + radius(&self.shape, 0)
        if self.absent[slot] > (self.users.pulls[user] == 0) and dot(own, own, self.dim) > reach * reach:
            return True
        if need <= self.least[slot] and self.arrivals <= 0.0:
            return False
        cdef bint many = self.arrivals <= 0.0 and self.sizes[slot] > self.n_users >> 6
        if self.differs_from_many(user, slot, need) if many else self.differs(user, slot, need):
            return True
        if need > self.least[slot] and self.pools.pulls[slot] >= 2 * self.centred[slot]:
            self.centre(slot)
        return False

    cdef bint unlike(self, Py_ssize_t user, Py_ssize_t other) noexcept nogil:
        """Is ‖θ̂ᵢ − θ̂_ℓ‖ > f(Tᵢ) + f(T_ℓ)?"""
        cdef const double *own = self.users.estimate + user * self.dim
        cdef double reach = self.radii[user] + self.radii[other]
        return distance2(own, self.users.estimate + other * self.dim, self.dim) > reach * reach

    cdef bint differs(self, Py_ssize_t user, Py_ssize_t slot, double need) noexcept nogil:
        """Compare the user with all of its cluster, and learn the least slack of them."""
        cdef double far = 2.0 * self.arrivals * arrival_radius(self.rounds) * self.rounds, least = INFINITY
        cdef int64_t other = self.members.head[slot]
        while other >= 0:
            least = min(least, self.slack[other])
            if other != user:
                if need > self.slack[other] and self.unlike(user, other):
                    return True
                if self.arrivals > 0.0 and fabs(<double> (self.users.pulls[user] - self.users.pulls[other])) > far:
                    return True
            other = self.members.next[other]
        self.least[slot] = least
        return False

    cdef bint differs_from_many(self, Py_ssize_t user, Py_ssize_t slot, double need) noexcept nogil:
        """The same in a large cluster: 64 users are passed over at a time, whatever their clusters."""
        cdef const double *estimates = self.users.estimate
        cdef Py_ssize_t block, other, d = self.dim
        cdef double least = INFINITY, f = self.radii[user], reach
        for block in range((self.n_users + 63) >> 6):
            least = min(least, self.block_least[block])
            if need > self.block_least[block]:
                for other in range(block << 6, min((block + 1) << 6, self.n_users)):
                    if need > self.slack[other] and self.row_of[other] == slot and other != user:
                        reach = f + self.radii[other]
                        if distance2(estimates + user * d, estimates + other * d, d) > reach * reach:
                            return True
        self.least[slot] = least
        return False
