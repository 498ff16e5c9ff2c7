"""SCLUB, UniSCLUB, SASCLUB: clusters are sets of users that split and merge   (Alg. 3, with Split and Merge)."""

from libc.math cimport INFINITY, fabs, isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memmove, memset

from coterie.policies._kd_tree cimport Tree
from coterie.policies._linalg cimport (
    absorb_row, add_outer, add_scaled, clear_row, copy_row, distance2, pool_from_gram
)
from coterie.policies._linked cimport link, unlink
from coterie.policies._offers cimport View, show_row
from coterie.policies._radius cimport arrival_radius, radius
from coterie.policies._sclub_sets cimport Sets

cdef double ROUNDING = 1e-9  # what a bound on a distance may lose
cdef double LENGTH_ROUNDING = 1e-6  # and of a sketch, for each unit of length


cdef class SplitMerge(Sets):
    """Sets of users that split and merge, with a tree of the clusters that may merge.

    Parameters are those of `Sets`.
    """

    FITS = True

    def __init__(self, n_users, dim, **settings):
        self.closeness, self.tree = 1.0, Tree()
        Sets.__init__(self, n_users, dim, **settings)

    cdef int bind(self) except -1:
        Sets.bind(self)
        return self.tree.hold(self.pools.estimate, len(self._arrays["labels"]), self.dim)

    def scratch(self):
        return Sets.scratch(self) + self.tree.nbytes

    def refresh(self):
        Sets.refresh(self)
        self.tree.planted = 0

    cdef int welcome(self, Py_ssize_t known) except -1:
        """Newcomers start as one set of their own, the youngest, unchecked; it merges like any other."""
        cdef Py_ssize_t user, fresh = self.open(self.n_users - known)
        for user in range(known, self.n_users):
            self.row_of[user] = fresh
            link(&self.members, fresh, user)
        self.unchecked[fresh] = self.absent[fresh] = self.n_users - known
        clear_row(&self.pools, fresh, self.ridge, self.dim)
        memset(self.pool_grams + fresh * self.dim * self.dim, 0, self.dim * self.dim * sizeof(double))
        if self.reshaped:
            self.compare_all, self.tree.planted = True, 0
            for user in range(self.n_clusters):
                self.least[self.order[user]] = INFINITY  # all slack is computed anew
        for user in range(0 if self.reshaped else known, self.n_users):
            self.radii[user] = radius(&self.shape, self.users.pulls[user])
            self.trust(user)
        for user in range(0 if self.reshaped else self.n_clusters - 1, self.n_clusters):
            self.measure(self.order[user])
        self.reshaped = False
        return 0

    cdef void pool(self, Py_ssize_t slot) noexcept nogil:
        """M̄⁻¹ and θ̂ of a cluster from its gram and moment   (Alg. 3, line 12)."""
        cdef double *gram = self.pool_grams + slot * self.dim * self.dim
        pool_from_gram(&self.pools, slot, gram, self.ridge, self.work, self.dim)
        self.measure(slot)

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
            self.absent[slot] -= 1
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
        self.tree.planted = 0

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
        self.absent[fresh] = self.users.pulls[user] == 0
        self.absent[slot] -= self.absent[fresh]
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
        cdef Py_ssize_t k
        for k in range(self.n_clusters if every else 0):
            self.touch(self.order[k])
        cdef (int64_t, int64_t) pair = self.oldest_close()
        while pair[0] >= 0:
            self.touch(pair[0])
            self.join(pair[0], pair[1])
            pair = self.oldest_close()

    cdef (int64_t, int64_t) oldest_close(self) noexcept nogil:
        """The oldest close pair with a cluster that was touched; -1 if there is none."""
        cdef int64_t a, b, old, young, older = -1, younger = -1
        cdef Py_ssize_t k, j
        for k in range(self.n_changed):
            self.place(self.changed[k])
        for k in range(self.n_changed):
            a = self.changed[k]
            if self.unchecked[a] or self.sizes[a] == 0:  # a cluster with unchecked users is close to none
                continue
            for j in range(self.tree.near(a, self.span(a), self.closeness)):
                b = self.tree.found[j]
                if a == b or not self.close(a, b):
                    continue
                old, young = (a, b) if self.births[a] < self.births[b] else (b, a)
                if older < 0 or self.births[old] < self.births[older] or (
                    old == older and self.births[young] < self.births[younger]
                ):
                    older, younger = old, young
        return older, younger

    cdef void place(self, Py_ssize_t slot) noexcept nogil:
        """Put a cluster where it is now into the tree, which has all whose users are checked."""
        cdef Py_ssize_t k
        if self.unchecked[slot] or self.sizes[slot] == 0:
            return
        if not self.tree.worn():
            self.tree.put(slot, self.span(slot))
            return
        self.tree.plant(self.order, self.n_clusters)
        for k in range(self.n_clusters):
            if self.unchecked[self.order[k]] == 0:
                self.tree.put(self.order[k], self.span(self.order[k]))

    cdef double span(self, Py_ssize_t slot) noexcept nogil:
        """f(T) of a cluster and what rounding may hide; infinity if θ̂ has overflowed: it is compared with all."""
        return self.reach[slot] + LENGTH_ROUNDING * self.length[slot] if isfinite(self.length[slot]) else INFINITY

    cdef void join(self, Py_ssize_t older, Py_ssize_t younger) noexcept nogil:
        """The older cluster takes in the younger   (Merge, lines 3-4)."""
        cdef Py_ssize_t d = self.dim, place = 0
        cdef int64_t user
        cdef bint alone = self.sizes[older] == 1
        self.sizes[older] += self.sizes[younger]
        self.sizes[younger] = 0
        self.absent[older] += self.absent[younger]
        if alone:
            self.trust(self.members.head[older])
        while self.members.head[younger] >= 0:
            user = self.members.head[younger]
            unlink(&self.members, younger, user)
            link(&self.members, older, user)
            self.row_of[user] = older
            self.trust(user)
        self.vacant = min(self.vacant, younger)
        add_scaled(self.pool_grams + older * d * d, 1.0, self.pool_grams + younger * d * d, d * d)
        add_scaled(self.pools.moment + older * d, 1.0, self.pools.moment + younger * d, d)
        self.pools.pulls[older] += self.pools.pulls[younger]
        self.pool(older)
        self.tree.drop(younger)
        while self.order[place] != younger:
            place += 1
        self.n_clusters -= 1
        memmove(self.order + place, self.order + place + 1, (self.n_clusters - place) * sizeof(int64_t))
