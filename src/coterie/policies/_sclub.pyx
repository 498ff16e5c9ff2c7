"""SCLUB, UniSCLUB, SASCLUB: clusters are sets of users that split and merge   (Alg. 3, with Split and Merge)."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from coterie.policies._elementary cimport natural_log
from coterie.policies._learner cimport Learner
from coterie.policies._linalg cimport (
    absorb_row, add_outer, add_scaled, clear_row, copy_row, distance2, dot, pool_from_gram
)
from coterie.policies._linked cimport link, unlink
from coterie.policies._radius cimport radius, radius_of
from coterie.policies._offers cimport View, show_row

from coterie.policies._arrays import Field, ridge_fields

cnp.import_array()

cdef double ROUNDING = 1e-9  # what a bound on a distance may lose


cdef double arrival_radius(int64_t t) noexcept nogil:
    """F(t) = √((1 + ln(1 + t)) / (1 + t))   (Li et al. 2019)."""
    return sqrt((1.0 + natural_log(1.0 + t)) / (1.0 + t))


cdef class SplitMerge(Learner):
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

    FITS = True
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
        self.closeness = 1.0
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
        if room > self._scratch.get("derived", np.empty((1, 0))).shape[1]:
            derived, lists, touched = np.zeros((4, room)), np.full((6, room), -1, np.int64), np.zeros(room, np.int8)
            centres, blocks = np.zeros((self.dim, room), order="F"), np.full((room + 63) // 64, np.inf)
            derived[0] = np.inf
            made = {"derived": derived, "lists": lists, "touched": touched, "centres": centres, "blocks": blocks}
            for name, fresh in made.items():
                old = self._scratch.get(name)
                if old is not None:
                    fresh[..., : old.shape[old.ndim - 1]] = old
                self._scratch[name] = fresh
        self.slack = <double *> cnp.PyArray_DATA(self._scratch["derived"])
        self.reach, self.length, self.least = self.slack + room, self.slack + 2 * room, self.slack + 3 * room
        self.members.head = <int64_t *> cnp.PyArray_DATA(self._scratch["lists"])
        self.members.next, self.members.previous = self.members.head + room, self.members.head + 2 * room
        self.changed, self.places = self.members.head + 3 * room, self.members.head + 4 * room
        self.centred = self.members.head + 5 * room
        self.centres = <double *> cnp.PyArray_DATA(self._scratch["centres"])
        self.block_least = <double *> cnp.PyArray_DATA(self._scratch["blocks"])
        self.touched = <char *> cnp.PyArray_DATA(self._scratch["touched"])
        return Learner.bind(self)

    cdef int welcome(self, Py_ssize_t known) except -1:
        """Newcomers start as one set of their own, the youngest, unchecked; it merges like any other."""
        cdef Py_ssize_t user, fresh = self.open(self.n_users - known)
        for user in range(known, self.n_users):
            self.row_of[user] = fresh
            link(&self.members, fresh, user)
        self.unchecked[fresh] = self.n_users - known
        clear_row(&self.pools, fresh, self.ridge, self.dim)
        memset(self.pool_grams + fresh * self.dim * self.dim, 0, self.dim * self.dim * sizeof(double))
        self.compare_all = known > 0
        if self.reshaped:
            self._scratch["derived"][3] = np.inf  # `least`: all slack is computed anew
        for user in range(0 if self.reshaped else known, self.n_users):
            self.radii[user] = radius(&self.shape, self.users.pulls[user])
            self.trust(user)
        for user in range(0 if self.reshaped else self.n_clusters - 1, self.n_clusters):
            self.measure(self.order[user])
        self.reshaped = False
        return 0

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
        self.vacant = 0
        self._scratch["lists"][:] = -1
        self._scratch["centres"][:] = 0.0
        for k in range(self.n_users - 1, -1, -1):
            link(&self.members, self.row_of[k], k)
        self._scratch["derived"][3] = np.inf
        for k in range(self.n_users):
            self.trust(k)
        for k in range(self.n_clusters):
            self.measure(self.order[k])

    cdef void trust(self, Py_ssize_t user) noexcept nogil:
        """How far another's θ̂ may be from the centre c of the cluster before both must be compared: f(T) − ‖θ̂ − c‖."""
        cdef Py_ssize_t slot = self.row_of[user]
        cdef double apart = sqrt(distance2(self.users.estimate + user * self.dim, self.centres + slot * self.dim, self.dim))
        cdef double f = self.radii[user], least = INFINITY
        cdef Py_ssize_t other, start = user & ~<Py_ssize_t> 63
        self.slack[user] = (f - apart) - ROUNDING * (f + apart)
        self.least[slot] = min(self.least[slot], self.slack[user])
        for other in range(start, min(start + 64, self.n_users)):
            least = min(least, self.slack[other])
        self.block_least[user >> 6] = least

    cdef void centre(self, Py_ssize_t slot, const double *point) noexcept nogil:
        """Measure the members of a cluster from another point."""
        cdef int64_t user = self.members.head[slot]
        memcpy(self.centres + slot * self.dim, point, self.dim * sizeof(double))
        self.centred[slot], self.least[slot] = self.pools.pulls[slot], INFINITY
        while user >= 0:
            self.trust(user)
            user = self.members.next[user]

    cdef void measure(self, Py_ssize_t slot) noexcept nogil:
        """f(T) and ‖θ̂‖ of a cluster."""
        cdef const double *estimate = self.pools.estimate + slot * self.dim
        self.reach[slot] = radius(&self.shape, self.pools.pulls[slot])
        self.length[slot] = sqrt(dot(estimate, estimate, self.dim))

    cdef void pool(self, Py_ssize_t slot) noexcept nogil:
        """M̄⁻¹ and θ̂ of a cluster from its gram and moment   (Alg. 3, line 12)."""
        cdef double *gram = self.pool_grams + slot * self.dim * self.dim
        pool_from_gram(&self.pools, slot, gram, self.ridge, self.work, self.dim)
        self.measure(slot)

    cdef Py_ssize_t open(self, Py_ssize_t size) noexcept nogil:
        """The lowest slot that no cluster uses, as the youngest cluster."""
        cdef Py_ssize_t slot = self.vacant
        while self.sizes[slot] > 0:
            slot += 1
        self.vacant = slot
        self.least[slot], self.centred[slot] = INFINITY, 0
        memset(self.centres + slot * self.dim, 0, self.dim * sizeof(double))
        self.sizes[slot] = size
        self.members.head[slot] = -1
        self.epochs[slot] += 1
        self.order[self.n_clusters] = slot
        self.n_clusters += 1
        return slot

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The cluster that holds the user   (Alg. 3, lines 6-7)."""
        show_row(seen, &self.pools, self.row_of[user], self.beta, self.ridge, self.dim)
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Update the user and its cluster   (Alg. 3, lines 11-12)."""
        cdef Py_ssize_t slot = self.row_of[user], d = self.dim
        if self.rounds & (self.rounds - 1) == 0:  # a phase begins at t = 2^(s-1): Alg. 3, lines 1-3
            self.begin_phase()
        if self.users.pulls[user] == 0:
            clear_row(&self.users, user, self.ridge, d)
        absorb_row(&self.users, user, x, reward, self.work, d)
        add_outer(self.grams + user * d * d, x, d)
        self.radii[user] = radius(&self.shape, self.users.pulls[user])
        self.trust(user)
        absorb_row(&self.pools, slot, x, reward, self.work, d)
        add_outer(self.pool_grams + slot * d * d, x, d)
        self.measure(slot)
        self.touch(slot)
        return 0

    cdef void begin_phase(self) noexcept nogil:
        """Mark every user unchecked   (Alg. 3, line 2)."""
        cdef Py_ssize_t k
        for k in range(self.n_users):
            self.checked[k] = False
        for k in range(self.n_clusters):
            self.unchecked[self.order[k]] = self.sizes[self.order[k]]

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Split, mark and merge   (Alg. 3, lines 13-15)."""
        cdef Py_ssize_t slot = self.row_of[user], k
        self.touch(slot)
        if self.parts(user, slot):  # line 13
            self.touch(self.split(user, slot))
        if not self.checked[user]:  # line 14
            self.checked[user] = True
            self.unchecked[self.row_of[user]] -= 1
        self.merge(self.arrivals > 0.0 or self.compare_all)  # line 15
        self.compare_all = False
        for k in range(self.n_changed):
            self.touched[self.changed[k]] = False
        self.n_changed = 0
        return 0

    cdef void touch(self, Py_ssize_t slot) noexcept nogil:
        """Note that a cluster has changed in this round."""
        if not self.touched[slot]:
            self.touched[slot] = True
            self.changed[self.n_changed] = slot
            self.n_changed += 1

    cdef bint parts(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """Is some user of the cluster no longer like this one?   (Split, line 1).

        ‖θ̂ᵢ − θ̂_ℓ‖ ≤ ‖θ̂ᵢ − c‖ + ‖θ̂_ℓ − c‖: in most rounds no member has to be looked at.
        """
        cdef const double *own = self.users.estimate + user * self.dim
        cdef double apart = sqrt(distance2(own, self.centres + slot * self.dim, self.dim)), f = self.radii[user]
        cdef double need = (apart - f) + ROUNDING * (apart + f)
        if need <= self.least[slot] and self.arrivals <= 0.0:
            return False
        cdef bint many = self.arrivals <= 0.0 and self.sizes[slot] > self.n_users >> 6
        if self.differs_from_many(user, slot, need) if many else self.differs(user, slot, need):
            return True
        if need > self.least[slot] and self.pools.pulls[slot] >= 2 * self.centred[slot]:
            self.centre(slot, self.pools.estimate + slot * self.dim)
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
        cdef Py_ssize_t block, other
        cdef double least = INFINITY
        for block in range((self.n_users + 63) >> 6):
            least = min(least, self.block_least[block])
            if need > self.block_least[block]:
                for other in range(block << 6, min((block + 1) << 6, self.n_users)):
                    if need > self.slack[other] and self.row_of[other] == slot and other != user and self.unlike(user, other):
                        return True
        self.least[slot] = least
        return False

    cdef Py_ssize_t split(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """Take the user out of its cluster into a new one of its own; returns the new slot   (Split, lines 2-4)."""
        cdef Py_ssize_t d = self.dim, fresh = self.open(1)
        unlink(&self.members, slot, user)
        link(&self.members, fresh, user)
        self.row_of[user] = fresh
        self.trust(user)
        self.sizes[slot] -= 1
        self.unchecked[fresh] = 0 if self.checked[user] else 1
        self.unchecked[slot] -= self.unchecked[fresh]
        add_scaled(self.pool_grams + slot * d * d, -1.0, self.grams + user * d * d, d * d)
        add_scaled(self.pools.moment + slot * d, -1.0, self.users.moment + user * d, d)
        self.pools.pulls[slot] -= self.users.pulls[user]
        self.epochs[slot] += 1
        self.pool(slot)
        copy_row(&self.users, user, &self.pools, fresh, d)
        memcpy(self.pool_grams + fresh * d * d, self.grams + user * d * d, d * d * sizeof(double))
        self.measure(fresh)
        return fresh

    cdef bint close(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """Are two checked clusters alike?   (Merge, line 2)."""
        cdef double reach = self.closeness * (self.reach[a] + self.reach[b]), apart = fabs(self.length[a] - self.length[b]), often
        if self.unchecked[a] or self.unchecked[b]:
            return False
        if apart * (1.0 - ROUNDING) > reach:  # ‖a − b‖ ≥ |‖a‖ − ‖b‖|
            return False
        if distance2(self.pools.estimate + a * self.dim, self.pools.estimate + b * self.dim, self.dim) >= reach * reach:
            return False
        if self.arrivals <= 0.0:
            return True
        often = <double> self.pools.pulls[a] / self.sizes[a] - <double> self.pools.pulls[b] / self.sizes[b]
        return fabs(often) < self.arrivals * arrival_radius(self.rounds) * self.rounds

    cdef void merge(self, bint every) noexcept nogil:
        """Merge until no two checked clusters are close, oldest pair first   (Merge, line 1).

        When a round begins no pair is close, so only pairs with a cluster touched since can be, unless `every` pair must
        be looked at.
        """
        cdef Py_ssize_t i, j
        i, j = self.first_close(every)
        while i >= 0:
            self.touch(self.order[i])
            self.join(i, j)
            i, j = self.first_close(every)

    cdef (Py_ssize_t, Py_ssize_t) first_close(self, bint every) noexcept nogil:
        """The places in `order` of the oldest close pair; -1 if there is none."""
        cdef Py_ssize_t i, j, k, a, n_places = 0
        cdef bint ready = every
        for k in range(self.n_changed):
            ready = ready or self.unchecked[self.changed[k]] == 0
        if not ready:  # a cluster with unchecked users is close to none
            return -1, -1
        for i in range(self.n_clusters):
            if self.touched[self.order[i]]:
                self.places[n_places] = i
                n_places += 1
        for i in range(self.n_clusters):
            a = self.order[i]
            if self.unchecked[a]:
                continue
            if every or self.touched[a]:
                for j in range(i + 1, self.n_clusters):
                    if self.close(a, self.order[j]):
                        return i, j
            else:
                for k in range(n_places):
                    if self.places[k] > i and self.close(a, self.order[self.places[k]]):
                        return i, self.places[k]
        return -1, -1

    cdef void join(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """The older cluster takes in the younger   (Merge, lines 3-4)."""
        cdef Py_ssize_t older = self.order[i], younger = self.order[j], d = self.dim, k
        cdef int64_t user
        while self.members.head[younger] >= 0:
            user = self.members.head[younger]
            unlink(&self.members, younger, user)
            link(&self.members, older, user)
            self.row_of[user] = older
            self.trust(user)
        self.vacant = min(self.vacant, younger)
        self.sizes[older] += self.sizes[younger]
        self.sizes[younger] = 0
        add_scaled(self.pool_grams + older * d * d, 1.0, self.pool_grams + younger * d * d, d * d)
        add_scaled(self.pools.moment + older * d, 1.0, self.pools.moment + younger * d, d)
        self.pools.pulls[older] += self.pools.pulls[younger]
        self.pool(older)
        for k in range(j + 1, self.n_clusters):
            self.order[k - 1] = self.order[k]
        self.n_clusters -= 1
