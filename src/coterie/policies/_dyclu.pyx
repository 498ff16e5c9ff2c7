"""DyClu: users whose data pass a test of homogeneity are neighbours; a user who changes starts anew   (Li, Wu and Wang 2021)."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from coterie.policies._bits cimport drop, has, lowest_bit, put, put_up_to
from coterie.policies._changes cimport has_changed
from coterie.policies._dyclu_models cimport LeastSquares, Model
from coterie.policies._elementary cimport natural_log
from coterie.policies._linalg cimport Ridge, add_scaled, finish_pool, start_pool
from coterie.policies._offers cimport View, show_row

from coterie.policies._arrays import MOST_COUNTED, Field
from coterie.policies._dyclu_models import LeastSquares as Base

cnp.import_array()

cdef double DELTA = 0.1  # δ₁ in the factor of the width
cdef double CLEAR = 1e-6  # a bound must clear its limit by this part, lest rounding decides
cdef double ROUNDING = 1e-12  # what s may lose, relative to what it is a difference of
cdef Py_ssize_t MOST_PAIRS = 4096  # among more users no lower bounds are remembered


cdef class HomogeneousUsers(LeastSquares):
    """Edges between users whose models passed their last test, and links to outdated models that did.

    An outdated model is what a user told before it changed; `births` tells the order in which they came, 0 if there is none.
    """

    FIELDS = {
        **Base.FIELDS,
        "edges": Field(("users", "words"), "uint64"),
        "links": Field(("users", "words"), "uint64"),
        "models.gram": Field(("rows", "dim", "dim")),
        "models.moment": Field(("rows", "dim")),
        "models.fit": Field(("rows", "dim")),
        "models.explained": Field(("rows",)),
        "models.count": Field(("rows",), "int64"),
        "models.rank": Field(("rows",), "int64"),
        "births": Field(("rows",), "int64"),
    }
    NUMBERS = (*Base.NUMBERS, "retired")

    cdef uint64_t *edges
    cdef uint64_t *links
    cdef double *old_grams
    cdef double *old_moments
    cdef double *old_fits
    cdef double *old_explained
    cdef int64_t *old_counts
    cdef int64_t *old_ranks
    cdef int64_t *births
    cdef public int64_t retired
    cdef Py_ssize_t stride
    cdef Py_ssize_t room
    cdef float *least_apart
    cdef int64_t *stack
    cdef Ridge pool
    cdef double beta
    cdef bint outdated

    def __init__(self, n_users, dim, *, beta, outdated, **others):
        self.beta, self.outdated = -1.0 if beta is None else beta, outdated
        LeastSquares.__init__(self, n_users, dim, **others)

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim, room = len(self._arrays["counts"])
        self.edges, self.links = <uint64_t *> self.pointer("edges"), <uint64_t *> self.pointer("links")
        self.old_grams, self.old_moments = <double *> self.pointer("models.gram"), <double *> self.pointer("models.moment")
        self.old_fits, self.births = <double *> self.pointer("models.fit"), <int64_t *> self.pointer("births")
        self.old_explained = <double *> self.pointer("models.explained")
        self.old_counts = <int64_t *> self.pointer("models.count")
        self.old_ranks = <int64_t *> self.pointer("models.rank")
        self.stride = self._arrays["edges"].shape[1]
        if room > len(self._scratch.get("stack", ())):
            side = room if room <= MOST_PAIRS else 0
            bounds = np.zeros((side, side), np.float32)
            self._scratch.update(stack=np.zeros(room, np.int64), bounds=bounds)
        if "pool" not in self._scratch:
            self._scratch["pool"] = np.zeros(d * d + 2 * d)
            self._scratch["pool_pulls"] = np.zeros(1, np.int64)
        self.room = self._scratch["bounds"].shape[0]
        self.least_apart = <float *> cnp.PyArray_DATA(self._scratch["bounds"])
        self.stack = <int64_t *> cnp.PyArray_DATA(self._scratch["stack"])
        self.pool.inverse = <double *> cnp.PyArray_DATA(self._scratch["pool"])
        self.pool.moment, self.pool.estimate = self.pool.inverse + d * d, self.pool.inverse + d * d + d
        self.pool.pulls = <int64_t *> cnp.PyArray_DATA(self._scratch["pool_pulls"])
        return LeastSquares.bind(self)

    cdef int welcome(self, Py_ssize_t known) except -1:
        """Newcomers are joined to everybody."""
        cdef Py_ssize_t user
        for user in range(self.n_users):
            put_up_to(self.edges + user * self.stride, known if user < known else 0, self.n_users)
            drop(self.edges + user * self.stride, user)
        return 0

    def refresh(self):
        LeastSquares.refresh(self)
        edges, links = bits_of(self.array("edges")), bits_of(self.array("links"))
        if edges[:, self.n_users :].any() or links[:, self.n_users :].any():
            raise ValueError("has an edge in 'edges' or 'links' that leads nowhere")
        edges = edges[:, : self.n_users]
        if edges.diagonal().any() or not np.array_equal(edges, edges.T):
            raise ValueError("has an edge in 'edges' to the user itself, or in one direction only")
        if not 0 <= self.retired <= MOST_COUNTED:
            raise ValueError(f"has {self.retired} outdated models")
        for name, most in (("births", self.retired), ("models.count", MOST_COUNTED), ("models.rank", self.dim)):
            if self.array(name).min() < 0 or self.array(name).max() > most:
                raise ValueError(f"has numbers in {name!r} that count nothing")
        self._scratch["bounds"][...] = 0.0

    cdef Model outdated_model(self, Py_ssize_t slot) noexcept nogil:
        """A model that its user has left behind."""
        cdef Model m
        cdef Py_ssize_t d = self.dim
        m.gram, m.moment, m.fit = self.old_grams + slot * d * d, self.old_moments + slot * d, self.old_fits + slot * d
        m.explained, m.count, m.rank = self.old_explained[slot], self.old_counts[slot], self.old_ranks[slot]
        return m

    # Decisions.

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The user, its neighbours and its linked outdated models, pooled."""
        cdef Py_ssize_t w, other, d = self.dim
        cdef uint64_t word
        cdef Model m = self.model_of(user)
        start_pool(&self.pool, 0, d)
        self.add(&m)
        for w in range(self.stride):
            word = self.edges[user * self.stride + w]
            while word:
                other = (w << 6) + lowest_bit(word)
                word &= word - 1
                if self.counts[other]:
                    m = self.model_of(other)
                    self.add(&m)
            word = self.links[user * self.stride + w]
            while word:
                m = self.outdated_model((w << 6) + lowest_bit(word))
                word &= word - 1
                self.add(&m)
        finish_pool(&self.pool, 0, self.ridge, self.work, d)
        show_row(seen, &self.pool, 0, self.factor(), self.ridge, d)
        seen.row = -1
        return 0

    cdef void add(self, Model *m) noexcept nogil:
        """Add a model's data to the pool."""
        add_scaled(self.pool.inverse, 1.0, m.gram, self.dim * self.dim)
        add_scaled(self.pool.moment, 1.0, m.moment, self.dim)
        self.pool.pulls[0] += m.count

    cdef double factor(self) noexcept nogil:
        """β if it is given, or σ√(d ln(1 + n/(dλ)) + 2 ln(1/δ₁)) + √λ."""
        if self.beta >= 0.0:
            return self.beta
        cdef double grown = self.dim * natural_log(1.0 + self.pool.pulls[0] / (self.dim * self.ridge))
        return sqrt(self.noise2 * (grown - 2.0 * natural_log(DELTA))) + sqrt(self.ridge)

    # Who is alike.

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Test the user against everybody if its model has new data; then let it start anew if it has changed."""
        if self.fresh:
            self.fresh = False
            self.compare_users(user)
            self.compare_outdated(user)
        if has_changed(&self.detector, self.outcomes[user], self.watched[user]):
            self.retire(user)
        return 0

    cdef void compare_users(self, Py_ssize_t user) noexcept nogil:
        """Edges of the user anew: to all whose data may have the same preference."""
        cdef Py_ssize_t other
        cdef Model own = self.model_of(user), m
        for other in range(self.n_users):
            if other == user:
                continue
            m = self.model_of(other)
            if not self.knows_noise() or (not self.surely_apart(user, other) and self.alike(&own, &m, user, other)):
                put(self.edges + user * self.stride, other)
                put(self.edges + other * self.stride, user)
            else:
                drop(self.edges + user * self.stride, other)
                drop(self.edges + other * self.stride, user)

    cdef void compare_outdated(self, Py_ssize_t user) noexcept nogil:
        """Links of the user anew: to all outdated models that may have the same preference."""
        cdef Py_ssize_t slot
        cdef Model own = self.model_of(user), m
        memset(self.links + user * self.stride, 0, self.stride * sizeof(uint64_t))
        for slot in range(min(self.retired, self.n_users)):
            m = self.outdated_model(slot)
            if self.births[slot] and (not self.knows_noise() or self.alike(&own, &m, user, -1)):
                put(self.links + user * self.stride, slot)

    cdef bint surely_apart(self, Py_ssize_t user, Py_ssize_t other) noexcept nogil:
        """Was s so large that it is above its limit still?

        A reward adds to the residuals of its user what it adds at most to those of the joint fit: s falls by no more.
        """
        if self.room == 0:
            return False
        cdef double least = self.least_apart[user * self.room + other] - self.growth[user] - self.growth[other]
        cdef double limit = self.noise2 * self.critical[min(self.ranks[user], self.ranks[other])]
        return least > 0.0 and least > (1.0 + CLEAR) * limit

    cdef bint alike(self, Model *a, Model *b, Py_ssize_t user, Py_ssize_t other) noexcept nogil:
        """Can both models have the same preference?"""
        cdef Py_ssize_t freedom
        cdef double s, limit
        if a.rank == 0 or b.rank == 0:
            return True
        limit = self.noise2 * self.critical[max(a.rank + b.rank - self.dim, 1)]
        if self.within(a, b) < (1.0 - CLEAR) * limit:
            return True
        s = self.excess(a, b, &freedom)
        if other >= 0 and self.room:
            self.remember(user, other, s)
        return freedom == 0 or s <= self.noise2 * self.critical[freedom] + ROUNDING * (a.explained + b.explained)

    cdef void remember(self, Py_ssize_t user, Py_ssize_t other, double s) noexcept nogil:
        """Keep s, and what has been added to residuals before."""
        cdef double bound = (s + self.growth[user] + self.growth[other]) * (1.0 - CLEAR)
        self.least_apart[user * self.room + other] = <float> bound
        self.least_apart[other * self.room + user] = <float> bound

    # Changes.

    cdef void retire(self, Py_ssize_t user) noexcept nogil:
        """The user's model becomes an outdated one, and the user starts without data, joined to everybody."""
        cdef Py_ssize_t other, d = self.dim
        if self.outdated:
            self.keep(user)
        memset(self.grams + user * d * d, 0, d * d * sizeof(double))
        memset(self.moments + user * d, 0, d * sizeof(double))
        memset(self.fits + user * d, 0, d * sizeof(double))
        memset(self.links + user * self.stride, 0, self.stride * sizeof(uint64_t))
        self.squared[user], self.explained[user], self.counts[user], self.ranks[user] = 0.0, 0.0, 0, 0
        self.outcomes[user], self.watched[user] = 0, 0
        for other in range(self.n_users):
            if other != user:
                put(self.edges + user * self.stride, other)
                put(self.edges + other * self.stride, user)
                if self.room:
                    self.least_apart[user * self.room + other] = self.least_apart[other * self.room + user] = 0.0
        self.settle_noise()

    cdef void keep(self, Py_ssize_t user) noexcept nogil:
        """Copy the user's model into a free slot, or that of the oldest outdated model."""
        cdef Py_ssize_t slot = 0, k, d = self.dim
        for k in range(self.n_users):
            if self.births[k] < self.births[slot]:
                slot = k
        for k in range(self.n_users):
            drop(self.links + k * self.stride, slot)
        memcpy(self.old_grams + slot * d * d, self.grams + user * d * d, d * d * sizeof(double))
        memcpy(self.old_moments + slot * d, self.moments + user * d, d * sizeof(double))
        memcpy(self.old_fits + slot * d, self.fits + user * d, d * sizeof(double))
        self.old_explained[slot], self.old_counts[slot] = self.explained[user], self.counts[user]
        self.old_ranks[slot] = self.ranks[user]
        self.retired += 1
        self.births[slot] = self.retired

    cdef int label(self, int64_t *out) except -1 nogil:
        """Connected components, numbered by their lowest users."""
        cdef Py_ssize_t user, w, other, waiting
        cdef uint64_t word
        for user in range(self.n_users):
            out[user] = -1
        for user in range(self.n_users):
            if out[user] >= 0:
                continue
            out[user], self.stack[0], waiting = user, user, 1
            while waiting:
                waiting -= 1
                other = self.stack[waiting]
                for w in range(self.stride):
                    word = self.edges[other * self.stride + w]
                    while word:
                        waiting = self.visit((w << 6) + lowest_bit(word), user, waiting, out)
                        word &= word - 1
        return 0

    cdef Py_ssize_t visit(self, Py_ssize_t other, Py_ssize_t user, Py_ssize_t waiting, int64_t *out) noexcept nogil:
        """Label a neighbour that has none yet, and let it wait for its own neighbours."""
        if out[other] < 0:
            out[other], self.stack[waiting] = user, other
            waiting += 1
        return waiting

    def cluster_of(self, Py_ssize_t user):
        """The user and its neighbours, ascending."""
        cdef Py_ssize_t other
        cdef const uint64_t *row = self.edges + user * self.stride
        return np.array([other for other in range(self.n_users) if other == user or has(row, other)])


def bits_of(words):
    """Rows of words as booleans."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little").astype(bool)
