# optimize: 2
"""CLUB, UniCLUB, SACLUB: a graph loses edges, its connected components are the clusters   (Alg. 1).

`CuttingGraph` is what CLUB and PhaseUniCLUB share: users' own statistics, and the graph.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from coterie.policies.kernel.bits cimport count_bits, drop, has, lowest_bit, meet, put, put_range, transpose
from coterie.policies.kernel.learner cimport Learner, View, show_row
from coterie.policies.kernel.linalg cimport add_outer, distance2, dot
from coterie.policies.kernel.ridge cimport (
    Ridge, absorb_row, add_member, clear_row, finish_pool, radius, radius_of, start_pool
)

from coterie.policies.kernel.arrays import Field, ridge_fields

cnp.import_array()


cdef double DISTANCE_ROUNDING = 1e-9  # relative rounding error of a bound on a distance, generously


cdef class CuttingGraph(Learner):
    """Users' statistics Sᵢ, bᵢ, Tᵢ, θ̂ᵢ and f(Tᵢ), and edges as rows of bits, complete at the start.

    Parameters
    ----------
    beta : float
        The factor of the width.
    shape : Radius
        The radius f.
    """

    FITS = True
    FIELDS = {
        **ridge_fields("users", "users"),
        "grams": Field(("users", "dim", "dim")),
        **ridge_fields("pools", "rows"),
        "edges": Field(("users", "words"), "uint64"),
        "radii": Field(("users",)),
        "epochs": Field(("rows",), "int64"),
    }

    def __init__(self, n_users, dim, *, double beta, shape, ridge, schedule, generator):
        self.beta, self._shape, self.shape = beta, shape, radius_of(shape)
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    def adjust(self, *, beta, shape, **others):
        """β and the radius, which may depend on the number of users."""
        before = {"beta": self.beta, "shape": self._shape, **others}
        self.reshaped = self.reshaped or shape != self._shape
        self.beta, self._shape, self.shape = beta, shape, radius_of(shape)
        return before

    cdef int bind(self) except -1:
        self.users = self.ridge_rows("users")
        self.pools = self.ridge_rows("pools")
        self.grams, self.radii = <double *> self.pointer("grams"), <double *> self.pointer("radii")
        self.edges = <uint64_t *> self.pointer("edges")
        self.stride, self.words = self._arrays["edges"].shape[1], (self.n_users + 63) // 64
        room = 64 * self.stride
        if room > len(self._scratch.get("slack", ())):
            slack, bits = np.full(room, np.inf), np.zeros((3, self.stride), np.uint64)
            slack[: len(self._scratch.get("slack", ()))] = self._scratch.get("slack", ())
            least, found = np.full(self.stride, np.inf), np.empty(room, np.int64)
            least[: len(self._scratch.get("least", ()))] = self._scratch.get("least", ())
            self._scratch.update(slack=slack, least=least, bits=bits, found=found)
        self.slack = <double *> cnp.PyArray_DATA(self._scratch["slack"])
        self.least_slack = <double *> cnp.PyArray_DATA(self._scratch["least"])
        self.reached = <uint64_t *> cnp.PyArray_DATA(self._scratch["bits"])
        self.frontier, self.targets = self.reached + self.stride, self.reached + 2 * self.stride
        self.found = <int64_t *> cnp.PyArray_DATA(self._scratch["found"])
        return Learner.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """Connect new users to all users, as in a complete graph   (Alg. 1, initialisation)."""
        cdef Py_ssize_t user
        for user in range(self.n_users):
            put_range(self.neighbours(user), known if user < known else 0, self.n_users)
            drop(self.neighbours(user), user)
        for user in range(0 if self.reshaped else known, self.n_users):
            self.radii[user] = radius(&self.shape, self.users.pulls[user])
            self.update_slack(user)
        self.reshaped = False
        return 0

    def refresh(self):
        cdef Py_ssize_t user
        if not (self.array("radii") >= 0).all():
            raise ValueError("has numbers in 'radii' that are no radii")
        for user in range(self.n_users):
            if has(self.neighbours(user), user):
                raise ValueError("has an edge from a user to itself in 'edges'")
        if not self.is_symmetric():
            raise ValueError("has an edge in 'edges' that leads nowhere")
        for user in range(self.n_users):
            self.update_slack(user)

    cdef bint is_symmetric(self) noexcept nogil:
        """Is the graph symmetric, without edges to users that do not exist? Compares 64 × 64 edges at a time."""
        cdef Py_ssize_t v, w, k
        cdef uint64_t square[64]
        for v in range(self.words):
            for w in range(v, self.words):
                for k in range(64):
                    square[k] = self.neighbours((v << 6) + k)[w] if (v << 6) + k < self.n_users else 0
                transpose(square)
                for k in range(64):
                    if square[k] != (self.neighbours((w << 6) + k)[v] if (w << 6) + k < self.n_users else 0):
                        return False
        return True

    cdef uint64_t *neighbours(self, Py_ssize_t user) noexcept nogil:
        """The user's edges."""
        return self.edges + user * self.stride

    cdef void update_slack(self, Py_ssize_t user) noexcept nogil:
        """Update f(T) − ‖θ̂‖ of the user, and the least of its block of 64 users; `find_dissimilar` skips neighbours by it."""
        cdef const double *estimate = self.users.estimate + user * self.dim
        cdef double length = sqrt(dot(estimate, estimate, self.dim)), f = self.radii[user], least = INFINITY
        cdef Py_ssize_t other, start = user & ~<Py_ssize_t> 63
        self.slack[user] = (f - length) - DISTANCE_ROUNDING * (f + length)
        for other in range(start, start + 64):
            if self.slack[other] < least:
                least = self.slack[other]
        self.least_slack[user >> 6] = least

    cdef void absorb_user(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """S, b, T, θ̂ and f(T) of the user served; others remain unchanged   (Alg. 1, line 11)."""
        if self.users.pulls[user] == 0:
            clear_row(&self.users, user, self.ridge, self.dim)
        absorb_row(&self.users, user, x, reward, self.work, self.dim)
        add_outer(self.grams + user * self.dim * self.dim, x, self.dim)
        self.radii[user] = radius(&self.shape, self.users.pulls[user])
        self.update_slack(user)

    cdef Py_ssize_t find_dissimilar(self, Py_ssize_t user) noexcept nogil:
        """Find the neighbours ℓ with ‖θ̂ᵢ − θ̂_ℓ‖ > f(Tᵢ) + f(T_ℓ); returns how many   (Alg. 1, line 12).

        The neighbours are written to `found`. ‖θ̂ᵢ − θ̂_ℓ‖ ≤ ‖θ̂ᵢ‖ + ‖θ̂_ℓ‖, so most neighbours need no comparison; they are
        skipped 64 at a time.
        """
        cdef const double *own = self.users.estimate + user * self.dim
        cdef double length = sqrt(dot(own, own, self.dim)), f = self.radii[user], reach, need
        cdef Py_ssize_t w, other, count = 0
        cdef uint64_t word
        need = (length - f) + DISTANCE_ROUNDING * (length + f)
        for w in range(self.words):
            if need <= self.least_slack[w]:
                continue
            word = self.neighbours(user)[w]
            while word:
                other = (w << 6) + lowest_bit(word)
                word &= word - 1
                if need <= self.slack[other]:
                    continue
                reach = f + self.radii[other]
                if distance2(own, self.users.estimate + other * self.dim, self.dim) > reach * reach:
                    self.found[count] = other
                    count += 1
        return count

    cdef bint reach(self, Py_ssize_t user, const uint64_t *targets) noexcept nogil:
        """Write the bits of all users that are connected to one to `reached`   (Alg. 1, line 6).

        With targets, the search stops and returns True as soon as every target, or a neighbour of it, is reached.
        """
        cdef Py_ssize_t w, v, words = self.words, target = -1
        cdef uint64_t fresh, meeting
        cdef uint64_t *reached = self.reached
        cdef uint64_t *frontier = self.frontier
        cdef const uint64_t *row
        cdef const uint64_t *around = reached
        cdef bint growing = True
        memset(reached, 0, words * sizeof(uint64_t))
        memset(frontier, 0, words * sizeof(uint64_t))
        put(reached, user)
        put(frontier, user)
        if targets != NULL:
            target = self.next_target(targets, 0)
        while growing:
            growing = False
            for w in range(words):
                while frontier[w]:
                    if targets != NULL:
                        if target < 0:
                            return True
                        around = self.neighbours(target)
                    row = self.neighbours((w << 6) + lowest_bit(frontier[w]))
                    frontier[w] &= frontier[w] - 1
                    meeting = 0
                    for v in range(words):
                        fresh = row[v] & ~reached[v]
                        frontier[v] |= fresh
                        reached[v] |= fresh
                        meeting |= around[v] & reached[v]
                    if targets != NULL and meeting:
                        target = self.next_target(targets, target + 1)
                    growing = True
        return targets != NULL and target < 0

    cdef Py_ssize_t next_target(self, const uint64_t *targets, Py_ssize_t start) noexcept nogil:
        """The next target that is not reached, nor any of its neighbours; -1 if there is none."""
        cdef Py_ssize_t w, target
        cdef uint64_t word
        for w in range(start >> 6, self.words):
            word = targets[w] & ~self.reached[w]
            if w == start >> 6:
                word &= ~(<uint64_t> 0) << (start & 63)
            while word:
                target = (w << 6) + lowest_bit(word)
                word &= word - 1
                if not meet(self.neighbours(target), self.reached, self.words):
                    return target
        return -1

    cdef Py_ssize_t components(self, int64_t *labels) noexcept nogil:
        """Label every user by connected component, in order of its lowest user; returns how many there are."""
        cdef Py_ssize_t user, w, count = 0
        cdef uint64_t word
        for user in range(self.n_users):
            labels[user] = -1
        for user in range(self.n_users):
            if labels[user] < 0:
                self.reach(user, NULL)
                for w in range(user >> 6, self.words):
                    word = self.reached[w]
                    while word:
                        labels[(w << 6) + lowest_bit(word)] = count
                        word &= word - 1
                count += 1
        return count


cdef enum:
    MANY = 64  # neighbours: a user with more is unlikely to be in a small part


cdef class Components(CuttingGraph):
    """Clusters are the connected components of the graph; each has a row of pooled statistics."""

    FIELDS = {**CuttingGraph.FIELDS, "labels": Field(("users",), "int64")}
    NUMBERS = ("rounds", "n_components")

    cdef int init_users(self, Py_ssize_t known) except -1:
        """New users are connected to all users, so there is one component."""
        cdef Py_ssize_t row, user
        CuttingGraph.init_users(self, known)
        if known == 0:
            clear_row(&self.pools, 0, self.ridge, self.dim)
        elif self.n_components > 1:
            start_pool(&self.pools, 0, self.dim)
            for user in range(known):
                add_member(&self.pools, 0, &self.users, self.grams, user, self.dim)
                self.row_of[user] = 0
            finish_pool(&self.pools, 0, self.ridge, self.work, self.dim)
            for row in range(self.n_components):
                self.epochs[row] += 1
        self.n_components = 1
        return 0

    def refresh(self):
        CuttingGraph.refresh(self)
        labels = self.array("labels")
        if not 1 <= self.n_components <= self.n_users:
            raise ValueError(f"has {self.n_components} components of {self.n_users} users")
        if not np.array_equal(np.unique(labels), np.arange(self.n_components)):
            raise ValueError("has numbers in 'labels' that are no components")
        found = np.empty(self.n_users, np.int64)
        if self.components(<int64_t *> cnp.PyArray_DATA(found)) != self.n_components:
            raise ValueError(f"has other components in 'edges' than {self.n_components}")
        named = np.empty(self.n_components, np.int64)
        named[found] = labels
        if not np.array_equal(named[found], labels):
            raise ValueError("has numbers in 'labels' that are not the components of 'edges'")

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The component of the user   (Alg. 1, lines 6-8)."""
        show_row(seen, &self.pools, self.row_of[user], self.beta, self.ridge, self.dim)
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        self.absorb_user(user, x, reward)  # Alg. 1, line 11
        absorb_row(&self.pools, self.row_of[user], x, reward, self.work, self.dim)  # lines 7-8, kept up to date
        return 0

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Cut the edges to dissimilar users   (Alg. 1, line 12)."""
        cdef Py_ssize_t count = self.find_dissimilar(user), k
        cdef bint apart = False
        for k in range(count):
            drop(self.neighbours(user), self.found[k])
            drop(self.neighbours(self.found[k]), user)
        for k in range(count):
            apart = apart or not meet(self.neighbours(user), self.neighbours(self.found[k]), self.words)
        if apart:  # some pair has no common neighbour left, so the component may have come apart
            self.split_component(user, count)
        return 0

    cdef void split_component(self, Py_ssize_t user, Py_ssize_t count) noexcept nogil:
        """Split a component if the edges that its user lost, to the users in `found`, have disconnected it.

        Each part holds one of these users. A part that is searched completely gets a negative label; as soon as all remaining
        users are known to be connected, they are one part and the search stops.
        """
        cdef Py_ssize_t row = self.row_of[user], k, w, parts = 0
        cdef uint64_t word
        memset(self.targets, 0, self.words * sizeof(uint64_t))
        put(self.targets, user)
        for k in range(count):
            put(self.targets, self.found[k])
        while not self.reach(self.fewest_neighbours(), self.targets):
            parts += 1
            for w in range(self.words):
                self.targets[w] &= ~self.reached[w]
                word = self.reached[w]
                while word:
                    self.row_of[(w << 6) + lowest_bit(word)] = -parts
                    word &= word - 1
        if parts:
            self.relabel(row, parts)

    cdef Py_ssize_t fewest_neighbours(self) noexcept nogil:
        """The target with the fewest neighbours, whose part is likely to be small; the first if all have many."""
        cdef Py_ssize_t w, v, user, degree, least = MANY, found = -1
        cdef uint64_t word
        for w in range(self.words):
            word = self.targets[w]
            while word and least:
                user = (w << 6) + lowest_bit(word)
                word &= word - 1
                degree = v = 0
                while degree < least and v < self.words:
                    degree += count_bits(self.neighbours(user)[v])
                    v += 1
                if degree < least or found < 0:
                    least, found = min(degree, least), user
        return found

    cdef void relabel(self, Py_ssize_t row, Py_ssize_t parts) noexcept nogil:
        """Number the parts of a component by their lowest users; the first keeps the row, the marked ones are -1, -2, …"""
        cdef Py_ssize_t user, part, first = self.n_components
        for part in range(parts + 1):
            self.found[part] = -1
        cdef bint kept = False
        for user in range(self.n_users):
            if self.row_of[user] == row or self.row_of[user] < 0:
                part = 0 if self.row_of[user] >= 0 else -self.row_of[user]
                if self.found[part] < 0 and not kept:
                    self.found[part], kept = row, True
                elif self.found[part] < 0:
                    self.found[part] = self.n_components
                    self.n_components += 1
                self.row_of[user] = self.found[part]
        self.pool_parts(row, first)

    cdef void pool_parts(self, Py_ssize_t row, Py_ssize_t first) noexcept nogil:
        """Sum the statistics of the users of a row, and of all rows from the first new one on   (Alg. 1, lines 7-8)."""
        cdef Py_ssize_t user, new
        start_pool(&self.pools, row, self.dim)
        for new in range(first, self.n_components):
            start_pool(&self.pools, new, self.dim)
        for user in range(self.n_users):
            if self.row_of[user] == row or self.row_of[user] >= first:
                add_member(&self.pools, self.row_of[user], &self.users, self.grams, user, self.dim)
        for new in range(first - 1, self.n_components):
            finish_pool(&self.pools, row if new < first else new, self.ridge, self.work, self.dim)
            self.epochs[row if new < first else new] += 1
