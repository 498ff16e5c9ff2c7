# optimize: 2
"""SCLUB, UniSCLUB, SASCLUB: clusters are sets of users that split and merge   (Alg. 3, with Split and Merge).

`Sets` keeps the members of each set, and tests whether a user is still similar to all of them; `SplitMerge` adds the rules.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memmove, memset

from coterie.policies.kernel.learner cimport Learner, View, show_row
from coterie.policies.kernel.linalg cimport add_outer, add_scaled, distance2, dot
from coterie.policies.kernel.linked_lists cimport link, unlink
from coterie.policies.kernel.ridge cimport (
    absorb_row, arrival_radius, clear_row, copy_row, pool_from_gram, radius, radius_of
)
from coterie.policies.sclub.kd_tree cimport Tree

from coterie.policies.kernel.arrays import Field, ridge_fields

cnp.import_array()


cdef double DISTANCE_ROUNDING = 1e-9  # relative rounding error of a bound on a distance, generously


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
        self.centred, self.inactive = self.members.head + 5 * room, self.members.head + 6 * room
        self.centres = <double *> cnp.PyArray_DATA(self._scratch["centres"])
        self.block_least = <double *> cnp.PyArray_DATA(self._scratch["blocks"])
        self.is_changed = <char *> cnp.PyArray_DATA(self._scratch["touched"])
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
        self.first_vacant, self.opened = 0, self.n_clusters
        self._scratch["lists"][:] = -1
        self._scratch["lists"][6, :n] = np.bincount(rows, weights=self.array("users.pulls") == 0, minlength=n)
        self._scratch["centres"][:] = 0.0
        for k in range(self.n_users - 1, -1, -1):
            link(&self.members, self.row_of[k], k)
        self._scratch["derived"][3] = np.inf
        for k in range(self.n_users):
            self.update_slack(k)
        for k in range(self.n_clusters):
            self.measure_cluster(self.order[k])
            self.births[self.order[k]] = k

    cdef void update_slack(self, Py_ssize_t user) noexcept nogil:
        """Update f(T) − ‖θ̂ − c‖ of a user, c the centre of its cluster, and the least of its cluster and of its block of 64.

        It is infinite for a user alone in its cluster, and for inactive users, without rewards: their θ̂ is 0, so that
        `must_split` compares all of them at once.
        """
        cdef Py_ssize_t slot = self.row_of[user]
        cdef double apart = sqrt(distance2(self.users.estimate + user * self.dim, self.centres + slot * self.dim, self.dim))
        cdef double f = self.radii[user], least = INFINITY
        cdef Py_ssize_t other, start = user & ~<Py_ssize_t> 63
        self.slack[user] = (f - apart) - DISTANCE_ROUNDING * (f + apart)
        if self.sizes[slot] == 1 or self.users.pulls[user] == 0:
            self.slack[user] = INFINITY
        self.least[slot] = min(self.least[slot], self.slack[user])
        for other in range(start, min(start + 64, self.n_users)):
            least = min(least, self.slack[other])
        self.block_least[user >> 6] = least

    cdef void recentre(self, Py_ssize_t slot) noexcept nogil:
        """Move the centre of a cluster to the mean θ̂ of its active members, and update their slack."""
        cdef double *point = self.centres + slot * self.dim
        cdef double share = 1.0 / max(self.sizes[slot] - self.inactive[slot], 1)
        cdef int64_t user = self.members.head[slot]
        memset(point, 0, self.dim * sizeof(double))
        while user >= 0:
            if self.users.pulls[user]:
                add_scaled(point, share, self.users.estimate + user * self.dim, self.dim)
            user = self.members.next[user]
        self.centred[slot], self.least[slot] = self.pools.pulls[slot], INFINITY
        user = self.members.head[slot]
        while user >= 0:
            self.update_slack(user)
            user = self.members.next[user]

    cdef void measure_cluster(self, Py_ssize_t slot) noexcept nogil:
        """f(T) and ‖θ̂‖ of a cluster."""
        cdef const double *estimate = self.pools.estimate + slot * self.dim
        self.reach[slot] = radius(&self.shape, self.pools.pulls[slot])
        self.length[slot] = sqrt(dot(estimate, estimate, self.dim))

    cdef Py_ssize_t open_cluster(self, Py_ssize_t size) noexcept nogil:
        """The lowest slot that no cluster uses, as the youngest cluster."""
        cdef Py_ssize_t slot = self.first_vacant
        while self.sizes[slot] > 0:
            slot += 1
        self.first_vacant = slot
        self.least[slot], self.centred[slot], self.inactive[slot] = INFINITY, 0, 0
        memset(self.centres + slot * self.dim, 0, self.dim * sizeof(double))
        self.sizes[slot] = size
        self.members.head[slot] = -1
        self.epochs[slot] += 1
        self.order[self.n_clusters], self.births[slot] = slot, self.opened
        self.n_clusters += 1
        self.opened += 1
        return slot

    cdef bint must_split(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """Is some member of the cluster dissimilar to the user?   (Split, line 1).

        ‖θ̂ᵢ − θ̂_ℓ‖ ≤ ‖θ̂ᵢ − c‖ + ‖θ̂_ℓ − c‖: in most rounds no member has to be compared.
        """
        cdef const double *own = self.users.estimate + user * self.dim
        cdef double apart = sqrt(distance2(own, self.centres + slot * self.dim, self.dim)), f = self.radii[user]
        cdef double need = (apart - f) + DISTANCE_ROUNDING * (apart + f), reach = f + radius(&self.shape, 0)
        if self.inactive[slot] > (self.users.pulls[user] == 0) and dot(own, own, self.dim) > reach * reach:
            return True
        if need <= self.least[slot] and self.arrivals <= 0.0:
            return False
        cdef bint many = self.arrivals <= 0.0 and self.sizes[slot] > self.n_users >> 6
        if self.differs_from_many(user, slot, need) if many else self.differs_from_any(user, slot, need):
            return True
        if need > self.least[slot] and self.pools.pulls[slot] >= 2 * self.centred[slot]:
            self.recentre(slot)
        return False

    cdef bint is_dissimilar(self, Py_ssize_t user, Py_ssize_t other) noexcept nogil:
        """Is ‖θ̂ᵢ − θ̂_ℓ‖ > f(Tᵢ) + f(T_ℓ)?"""
        cdef const double *own = self.users.estimate + user * self.dim
        cdef double reach = self.radii[user] + self.radii[other]
        return distance2(own, self.users.estimate + other * self.dim, self.dim) > reach * reach

    cdef bint differs_from_any(self, Py_ssize_t user, Py_ssize_t slot, double need) noexcept nogil:
        """Compare the user with all members of its cluster; updates the least slack of the cluster."""
        cdef double far = 2.0 * self.arrivals * arrival_radius(self.rounds) * self.rounds, least = INFINITY
        cdef int64_t other = self.members.head[slot]
        while other >= 0:
            least = min(least, self.slack[other])
            if other != user:
                if need > self.slack[other] and self.is_dissimilar(user, other):
                    return True
                if self.arrivals > 0.0 and fabs(<double> (self.users.pulls[user] - self.users.pulls[other])) > far:
                    return True
            other = self.members.next[other]
        self.least[slot] = least
        return False

    cdef bint differs_from_many(self, Py_ssize_t user, Py_ssize_t slot, double need) noexcept nogil:
        """The same in a large cluster: skips blocks of 64 users, whatever their clusters."""
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


cdef double LENGTH_ROUNDING = 1e-6  # the same of a sketch in single precision, for each unit of length


cdef class SplitMerge(Sets):
    """Sets of users that split and merge, with a tree of the clusters that may merge.

    Parameters are those of `Sets`.
    """

    FITS = True

    def __init__(self, n_users, dim, **settings):
        self.merge_factor, self.tree = 1.0, Tree()
        Sets.__init__(self, n_users, dim, **settings)

    cdef int bind(self) except -1:
        Sets.bind(self)
        return self.tree.attach(self.pools.estimate, len(self._arrays["labels"]), self.dim)

    def scratch(self):
        return Sets.scratch(self) + self.tree.nbytes

    def refresh(self):
        Sets.refresh(self)
        self.tree.built_from = 0

    cdef int init_users(self, Py_ssize_t known) except -1:
        """New users form one set, the youngest; its users are unchecked, and it merges like any other."""
        cdef Py_ssize_t user, fresh = self.open_cluster(self.n_users - known)
        for user in range(known, self.n_users):
            self.row_of[user] = fresh
            link(&self.members, fresh, user)
        self.unchecked[fresh] = self.inactive[fresh] = self.n_users - known
        clear_row(&self.pools, fresh, self.ridge, self.dim)
        memset(self.pool_grams + fresh * self.dim * self.dim, 0, self.dim * self.dim * sizeof(double))
        if self.reshaped:
            self.compare_all, self.tree.built_from = True, 0
            for user in range(self.n_clusters):
                self.least[self.order[user]] = INFINITY  # all slack is computed anew
        for user in range(0 if self.reshaped else known, self.n_users):
            self.radii[user] = radius(&self.shape, self.users.pulls[user])
            self.update_slack(user)
        for user in range(0 if self.reshaped else self.n_clusters - 1, self.n_clusters):
            self.measure_cluster(self.order[user])
        self.reshaped = False
        return 0

    cdef void pool(self, Py_ssize_t slot) noexcept nogil:
        """M̄⁻¹ and θ̂ of a cluster from its gram and moment   (Alg. 3, line 12)."""
        cdef double *gram = self.pool_grams + slot * self.dim * self.dim
        pool_from_gram(&self.pools, slot, gram, self.ridge, self.work, self.dim)
        self.measure_cluster(slot)

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
            self.inactive[slot] -= 1
        absorb_row(&self.users, user, x, reward, self.work, d)
        add_outer(self.grams + user * d * d, x, d)
        self.radii[user] = radius(&self.shape, self.users.pulls[user])
        self.update_slack(user)
        absorb_row(&self.pools, slot, x, reward, self.work, d)
        add_outer(self.pool_grams + slot * d * d, x, d)
        self.measure_cluster(slot)
        self.mark_changed(slot)
        return 0

    cdef void begin_phase(self) noexcept nogil:
        """Mark every user unchecked   (Alg. 3, line 2)."""
        cdef Py_ssize_t k
        for k in range(self.n_users):
            self.checked[k] = False
        for k in range(self.n_clusters):
            self.unchecked[self.order[k]] = self.sizes[self.order[k]]
        self.tree.built_from = 0

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Split, mark and merge   (Alg. 3, lines 13-15)."""
        cdef Py_ssize_t slot = self.row_of[user], k
        self.mark_changed(slot)
        if self.must_split(user, slot):  # line 13
            self.mark_changed(self.split(user, slot))
        if not self.checked[user]:  # line 14
            self.checked[user] = True
            self.unchecked[self.row_of[user]] -= 1
        self.merge(self.arrivals > 0.0 or self.compare_all)  # line 15
        self.compare_all = False
        for k in range(self.n_changed):
            self.is_changed[self.changed[k]] = False
        self.n_changed = 0
        return 0

    cdef void mark_changed(self, Py_ssize_t slot) noexcept nogil:
        """Record that a cluster has changed in this round."""
        if not self.is_changed[slot]:
            self.is_changed[slot] = True
            self.changed[self.n_changed] = slot
            self.n_changed += 1

    cdef Py_ssize_t split(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """Move the user to a new cluster of its own; returns the new slot   (Split, lines 2-4)."""
        cdef Py_ssize_t d = self.dim, fresh = self.open_cluster(1)
        unlink(&self.members, slot, user)
        link(&self.members, fresh, user)
        self.row_of[user] = fresh
        self.update_slack(user)
        self.sizes[slot] -= 1
        self.unchecked[fresh] = 0 if self.checked[user] else 1
        self.unchecked[slot] -= self.unchecked[fresh]
        self.inactive[fresh] = self.users.pulls[user] == 0
        self.inactive[slot] -= self.inactive[fresh]
        add_scaled(self.pool_grams + slot * d * d, -1.0, self.grams + user * d * d, d * d)
        add_scaled(self.pools.moment + slot * d, -1.0, self.users.moment + user * d, d)
        self.pools.pulls[slot] -= self.users.pulls[user]
        self.epochs[slot] += 1
        self.pool(slot)
        copy_row(&self.users, user, &self.pools, fresh, d)
        memcpy(self.pool_grams + fresh * d * d, self.grams + user * d * d, d * d * sizeof(double))
        self.measure_cluster(fresh)
        return fresh

    cdef bint are_close(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """Are two checked clusters close?   (Merge, line 2)."""
        cdef double reach = self.merge_factor * (self.reach[a] + self.reach[b]), apart = fabs(self.length[a] - self.length[b]), often
        if self.unchecked[a] or self.unchecked[b]:
            return False
        if apart * (1.0 - DISTANCE_ROUNDING) > reach:  # ‖a − b‖ ≥ |‖a‖ − ‖b‖|
            return False
        if distance2(self.pools.estimate + a * self.dim, self.pools.estimate + b * self.dim, self.dim) >= reach * reach:
            return False
        if self.arrivals <= 0.0:
            return True
        often = <double> self.pools.pulls[a] / self.sizes[a] - <double> self.pools.pulls[b] / self.sizes[b]
        return fabs(often) < self.arrivals * arrival_radius(self.rounds) * self.rounds

    cdef void merge(self, bint every) noexcept nogil:
        """Merge until no two checked clusters are close, oldest pair first   (Merge, line 1).

        Invariant: when a round begins, no pair is close. So only pairs with a changed cluster can be, unless `every` pair
        must be compared.
        """
        cdef Py_ssize_t k
        for k in range(self.n_clusters if every else 0):
            self.mark_changed(self.order[k])
        cdef (int64_t, int64_t) pair = self.oldest_close()
        while pair[0] >= 0:
            self.mark_changed(pair[0])
            self.merge_pair(pair[0], pair[1])
            pair = self.oldest_close()

    cdef (int64_t, int64_t) oldest_close(self) noexcept nogil:
        """The oldest close pair with a changed cluster; -1 if there is none."""
        cdef int64_t a, b, old, young, older = -1, younger = -1
        cdef Py_ssize_t k, j
        for k in range(self.n_changed):
            self.insert_into_tree(self.changed[k])
        for k in range(self.n_changed):
            a = self.changed[k]
            if self.unchecked[a] or self.sizes[a] == 0:  # a cluster with unchecked users is close to none
                continue
            for j in range(self.tree.find_near(a, self.search_radius(a), self.merge_factor)):
                b = self.tree.found[j]
                if a == b or not self.are_close(a, b):
                    continue
                old, young = (a, b) if self.births[a] < self.births[b] else (b, a)
                if older < 0 or self.births[old] < self.births[older] or (
                    old == older and self.births[young] < self.births[younger]
                ):
                    older, younger = old, young
        return older, younger

    cdef void insert_into_tree(self, Py_ssize_t slot) noexcept nogil:
        """Insert a cluster into the tree at its present position; the tree holds the clusters whose users are all checked."""
        cdef Py_ssize_t k
        if self.unchecked[slot] or self.sizes[slot] == 0:
            return
        if not self.tree.is_due():
            self.tree.insert(slot, self.search_radius(slot))
            return
        self.tree.build(self.order, self.n_clusters)
        for k in range(self.n_clusters):
            if self.unchecked[self.order[k]] == 0:
                self.tree.insert(self.order[k], self.search_radius(self.order[k]))

    cdef double search_radius(self, Py_ssize_t slot) noexcept nogil:
        """f(T) of a cluster plus rounding; infinite if θ̂ has overflowed, so that it is compared with all."""
        return self.reach[slot] + LENGTH_ROUNDING * self.length[slot] if isfinite(self.length[slot]) else INFINITY

    cdef void merge_pair(self, Py_ssize_t older, Py_ssize_t younger) noexcept nogil:
        """Merge the younger cluster into the older one   (Merge, lines 3-4)."""
        cdef Py_ssize_t d = self.dim, place = 0
        cdef int64_t user
        cdef bint alone = self.sizes[older] == 1
        self.sizes[older] += self.sizes[younger]
        self.sizes[younger] = 0
        self.inactive[older] += self.inactive[younger]
        if alone:
            self.update_slack(self.members.head[older])
        while self.members.head[younger] >= 0:
            user = self.members.head[younger]
            unlink(&self.members, younger, user)
            link(&self.members, older, user)
            self.row_of[user] = older
            self.update_slack(user)
        self.first_vacant = min(self.first_vacant, younger)
        add_scaled(self.pool_grams + older * d * d, 1.0, self.pool_grams + younger * d * d, d * d)
        add_scaled(self.pools.moment + older * d, 1.0, self.pools.moment + younger * d, d)
        self.pools.pulls[older] += self.pools.pulls[younger]
        self.pool(older)
        self.tree.remove(younger)
        while self.order[place] != younger:
            place += 1
        self.n_clusters -= 1
        memmove(self.order + place, self.order + place + 1, (self.n_clusters - place) * sizeof(int64_t))
