# optimize: 2
"""COFIBA: items are clustered by which users they tell apart, users once more in every cluster of items   (Li et al. 2016).

The rows below are those of docs/algorithms/cofiba.md.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from coterie.policies.kernel.bits cimport drop, has, lowest_bit, meet, put, put_range, same
from coterie.policies.kernel.effects cimport key_of_vector
from coterie.policies.kernel.learner cimport Learner, Offer, ScoreModel, View, WidthCache, row, show_row
from coterie.policies.kernel.linalg cimport add_outer, dot, means, natural_log, quadratic
from coterie.policies.kernel.ridge cimport Ridge, absorb_row, add_member, clear_row, finish_pool, start_pool

from coterie.policies.kernel.arrays import Field, ridge_fields

cnp.import_array()


cdef double ROUNDING = 1e-12  # relative rounding error of a bound, generously


cdef class ItemClusters(Learner):
    """Users' statistics, a graph of items, and a graph of users for each of its components; graphs are rows of bits.

    `means` and `widths` are xᵀθ̂ and xᵀM⁻¹x of every user and every item of the catalogue. A reward changes one row of both,
    by one product with each item.

    Parameters
    ----------
    catalogue : array of shape (n_items, dim)
        The vectors of all items; the number of its row is an item's id.
    alpha : float
        The factor of the widths by which users are compared.
    beta : float
        The factor of the bonus.
    """

    FIELDS = {
        **ridge_fields("users", "users"),
        "grams": Field(("users", "dim", "dim")),
        "means": Field(("users", "items")),
        "widths": Field(("users", "items")),
        "item_edges": Field(("items", "item_words"), "uint64"),
        "item_labels": Field(("items",), "int64"),
        "user_edges": Field(("clusters", "users", "words"), "uint64"),
    }
    NUMBERS = ("rounds", "n_clusters")
    LENGTHS = {"clusters": "n_clusters"}

    cdef public int64_t n_clusters
    cdef Ridge users
    cdef Ridge pool
    cdef double *grams
    cdef double *table_means
    cdef double *table_widths
    cdef uint64_t *item_edges
    cdef int64_t *item_labels
    cdef uint64_t *edges
    cdef object _catalogue
    cdef object _keys
    cdef object _rows
    cdef const double *catalogue
    cdef const int64_t *keys
    cdef const int64_t *rows
    cdef Py_ssize_t n_items
    cdef Py_ssize_t n_keys
    cdef Py_ssize_t item_words
    cdef Py_ssize_t room
    cdef Py_ssize_t user_stride
    cdef Py_ssize_t item_stride
    cdef double alpha
    cdef double beta
    cdef uint64_t *reached
    cdef uint64_t *frontier
    cdef uint64_t *lost
    cdef uint64_t *sets
    cdef char *differs
    cdef double *gains
    cdef int64_t *near
    cdef int64_t *leaders
    cdef int64_t *together
    cdef int64_t *set_of_cluster

    def __init__(self, n_users, dim, *, catalogue, double alpha, double beta, ridge, schedule, generator):
        self.alpha, self.beta, self.n_clusters = alpha, beta, 1
        self._catalogue, self.n_items = catalogue, len(catalogue)
        self.catalogue = <const double *> cnp.PyArray_DATA(catalogue)
        self.index_vectors(dim)
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    @classmethod
    def extents(cls, n_users, dim, *, catalogue, **settings):
        return cls.lengths(n_users, dim, len(catalogue))

    @staticmethod
    def lengths(n_users, dim, n_items):
        """The length of each axis, before any item is apart from the others."""
        words = {"words": (n_users + 63) // 64, "item_words": (n_items + 63) // 64}
        return {"users": n_users, "rows": 1, "dim": dim, "items": n_items, "clusters": 1, **words}

    def _extents(self):
        return {**self.lengths(self.n_users, self.dim, self.n_items), "clusters": self.n_clusters}

    def index_vectors(self, Py_ssize_t dim):
        """Sort the items by a hash of their vectors, for arms without ids; of equal vectors the first counts."""
        cdef Py_ssize_t item
        keys = np.array([key_of_vector(self.catalogue + item * dim, dim) for item in range(self.n_items)], np.int64)
        self._keys, first = np.unique(keys, return_index=True)
        self._rows, self.n_keys = np.ascontiguousarray(first, np.int64), len(first)
        self.keys = <const int64_t *> cnp.PyArray_DATA(self._keys)
        self.rows = <const int64_t *> cnp.PyArray_DATA(self._rows)

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim, words
        self.users, self.grams = self.ridge_rows("users"), <double *> self.pointer("grams")
        self.table_means, self.table_widths = <double *> self.pointer("means"), <double *> self.pointer("widths")
        self.item_edges, self.item_labels = <uint64_t *> self.pointer("item_edges"), <int64_t *> self.pointer("item_labels")
        self.edges, self.item_words = <uint64_t *> self.pointer("user_edges"), (self.n_items + 63) // 64
        self.room, self.user_stride = self._arrays["user_edges"].shape[1], self._arrays["user_edges"].shape[2]
        self.item_stride = self._arrays["item_edges"].shape[1]
        words = max(self.user_stride, self.item_stride)
        if words > self._scratch.get("bits", np.empty((0, 0))).shape[1]:
            self._scratch["bits"] = np.zeros((3, words), np.uint64)
        if "gains" not in self._scratch:
            self._scratch.update(gains=np.zeros(self.n_items), differs=np.zeros(self.n_items, np.int8))
            self._scratch.update(near=np.zeros(self.n_items, np.int64), set_of_cluster=np.full(self.n_items + 1, -1))
            self._scratch.update(pool=np.zeros(d * d + 2 * d), pulls=np.zeros(1, np.int64))
        words = self._scratch["bits"].shape[1]
        self.reached = <uint64_t *> cnp.PyArray_DATA(self._scratch["bits"])
        self.frontier, self.lost = self.reached + words, self.reached + 2 * words
        self.gains = <double *> cnp.PyArray_DATA(self._scratch["gains"])
        self.differs = <char *> cnp.PyArray_DATA(self._scratch["differs"])
        self.near = <int64_t *> cnp.PyArray_DATA(self._scratch["near"])
        self.set_of_cluster = <int64_t *> cnp.PyArray_DATA(self._scratch["set_of_cluster"])
        self.pool.inverse = <double *> cnp.PyArray_DATA(self._scratch["pool"])
        self.pool.pulls = <int64_t *> cnp.PyArray_DATA(self._scratch["pulls"])
        self.pool.moment, self.pool.estimate = self.pool.inverse + d * d, self.pool.inverse + d * d + d
        self.make_sets(self.n_arms)
        return Learner.bind(self)

    cdef int reserve(self, Py_ssize_t n_arms) except -1:
        """Room for the neighbourhoods on so many arms."""
        if n_arms > self.n_arms:
            self._scratch["arms"] = np.empty((2, n_arms), np.int64)
            self.leaders = <int64_t *> cnp.PyArray_DATA(self._scratch["arms"])
            self.together = self.leaders + n_arms
            self.make_sets(n_arms)
        return Learner.reserve(self, n_arms)

    def make_sets(self, Py_ssize_t n_arms):
        """Room for as many sets of users as there are clusters of items among so many arms."""
        n = min(n_arms, self.n_items + 1)
        have = self._scratch.get("sets", np.empty((0, 0))).shape
        if have[0] < n or have[1] < self.user_stride:
            self._scratch["sets"] = np.zeros((n, self.user_stride), np.uint64)
        self.sets = <uint64_t *> cnp.PyArray_DATA(self._scratch["sets"])

    cdef int init_users(self, Py_ssize_t known) except -1:
        """Graphs are complete at the start; new users are joined to all, in every graph   (row 1)."""
        cdef Py_ssize_t user, item, cluster
        for item in range(self.n_items if known == 0 else 0):
            put_range(self.item_edges + item * self.item_stride, 0, self.n_items)
            drop(self.item_edges + item * self.item_stride, item)
        for user in range(known, self.n_users):
            clear_row(&self.users, user, self.ridge, self.dim)
            for item in range(self.n_items):
                self.table_widths[user * self.n_items + item] = quadratic(
                    self.users.inverse + user * self.dim * self.dim, self.catalogue + item * self.dim, self.dim
                )
        for cluster in range(self.n_clusters):
            for user in range(self.n_users):
                put_range(self.graph(cluster, user), known if user < known else 0, self.n_users)
                drop(self.graph(cluster, user), user)
        return 0

    def refresh(self):
        labels = self.array("item_labels")
        if not 1 <= self.n_clusters <= self.n_items or not np.array_equal(np.unique(labels), np.arange(self.n_clusters)):
            raise ValueError("has numbers in 'item_labels' that are no clusters")
        for name, n in (("item_edges", self.n_items), ("user_edges", self.n_users)):
            bits = bits_of(self.array(name))
            if bits[..., n:].any():
                raise ValueError(f"has an edge in {name!r} that leads nowhere")
            square = bits[..., :n]
            if square.diagonal(axis1=-2, axis2=-1).any() or not np.array_equal(square, np.swapaxes(square, -1, -2)):
                raise ValueError(f"has an edge in {name!r} to the node itself, or in one direction only")

    cdef uint64_t *graph(self, Py_ssize_t cluster, Py_ssize_t user) noexcept nogil:
        """The edges of a user in the graph of a cluster of items."""
        return self.edges + (cluster * self.room + user) * self.user_stride

    cdef Py_ssize_t item_of(self, const int64_t *ids, Py_ssize_t k, const double *x) noexcept nogil:
        """The row of an arm in the catalogue, by its id or by its vector; -1 if it is not in it."""
        cdef Py_ssize_t low = 0, high = self.n_keys, middle
        cdef int64_t key
        if ids != NULL:
            return ids[k] if 0 <= ids[k] < self.n_items else -1
        key = key_of_vector(x, self.dim)
        while low < high:
            middle = (low + high) // 2
            if self.keys[middle] < key:
                low = middle + 1
            else:
                high = middle
        return self.rows[low] if low < self.n_keys and self.keys[low] == key else -1

    # Decisions.

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The user's own statistics; decisions use those of neighbours too."""
        show_row(seen, &self.users, user, self.factor(self.beta, self.rounds + 1), self.ridge, self.dim)
        seen.row = -1
        return 0

    cdef double factor(self, double constant, int64_t t) noexcept nogil:
        """A factor of widths in round t: it grows with √ln(t + 1)."""
        return constant * sqrt(natural_log(t + 1.0))

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil:
        """The first arm of largest score; -1 if an arm is too long."""
        cdef int64_t arm
        if self.too_long(offer):
            return -1
        self.rank(user, offer, 1, &arm)
        return arm

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        return False  # items of different clusters have other neighbourhoods

    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        """xᵀθ̂_V and its bonus, where V is connected to the user in the graph of the item's cluster   (rows 2, 3)."""
        cdef Py_ssize_t j, k, leader, count, n_sets = self.group_arms(user, offer)
        cdef double factor = self.factor(self.beta, self.rounds + 1)
        for leader in range(n_sets):
            count = 0
            for k in range(offer.n):
                if self.leaders[k] == leader:
                    self.together[count] = k
                    count += 1
            if count:
                self.pool_users(self.sets + leader * self.user_stride)
            for j in range(count):
                k = self.together[j]
                mean[k] = dot(self.pool.estimate, row(offer, k, self.dim), self.dim)
                width[k] = factor * sqrt(max(quadratic(self.pool.inverse, row(offer, k, self.dim), self.dim), 0.0))
        return 0

    cdef Py_ssize_t group_arms(self, Py_ssize_t user, Offer *offer) noexcept nogil:
        """Write the sets of users that decide to `sets`, and the number of each arm's set to `leaders`; returns how many."""
        cdef Py_ssize_t k, item, cluster, n_sets = 0
        for k in range(offer.n):
            item = self.item_of(offer.ids, k, row(offer, k, self.dim))
            cluster = self.n_items if item < 0 else self.item_labels[item]
            if self.set_of_cluster[cluster] < 0:
                self.set_of_cluster[cluster] = n_sets
                self.connect(user, -1 if item < 0 else cluster, self.sets + n_sets * self.user_stride)
                n_sets += 1
            self.leaders[k] = self.set_of_cluster[cluster]
        for k in range(offer.n):
            item = self.item_of(offer.ids, k, row(offer, k, self.dim))
            self.set_of_cluster[self.n_items if item < 0 else self.item_labels[item]] = -1
            self.leaders[k] = self.first_equal(self.leaders[k])
        return n_sets

    cdef Py_ssize_t first_equal(self, Py_ssize_t number) noexcept nogil:
        """The first set that has the same users as this one, so that they are pooled once."""
        cdef Py_ssize_t other
        for other in range(number):
            if same(self.sets + other * self.user_stride, self.sets + number * self.user_stride, self.user_stride):
                return other
        return number

    cdef void connect(self, Py_ssize_t user, Py_ssize_t cluster, uint64_t *out) noexcept nogil:
        """Write the users who are connected to one in the graph of a cluster to `out`; all users if it is -1."""
        memset(out, 0, self.user_stride * sizeof(uint64_t))
        if cluster < 0:
            put_range(out, 0, self.n_users)
        else:
            self.reach(self.graph(cluster, 0), self.user_stride, user, out)

    cdef void reach(self, const uint64_t *edges, Py_ssize_t stride, Py_ssize_t start, uint64_t *out) noexcept nogil:
        """Add all nodes that are connected to one to `out`."""
        cdef Py_ssize_t w, v
        cdef uint64_t fresh
        cdef const uint64_t *around
        cdef bint growing = True
        memset(self.frontier, 0, stride * sizeof(uint64_t))
        put(self.frontier, start)
        put(out, start)
        while growing:
            growing = False
            for w in range(stride):
                while self.frontier[w]:
                    around = edges + ((w << 6) + lowest_bit(self.frontier[w])) * stride
                    self.frontier[w] &= self.frontier[w] - 1
                    for v in range(stride):
                        fresh = around[v] & ~out[v]
                        self.frontier[v] |= fresh
                        out[v] |= fresh
                    growing = True

    cdef void pool_users(self, const uint64_t *members) noexcept nogil:
        """M = λI + ΣS and θ̂ = M⁻¹Σb of a set of users   (row 2)."""
        cdef Py_ssize_t w, user
        cdef uint64_t word
        start_pool(&self.pool, 0, self.dim)
        for w in range(self.user_stride):
            word = members[w]
            while word:
                user = (w << 6) + lowest_bit(word)
                word &= word - 1
                if self.users.pulls[user]:
                    add_member(&self.pool, 0, &self.users, self.grams, user, self.dim)
        finish_pool(&self.pool, 0, self.ridge, self.work, self.dim)

    # Learning.

    cdef int learn(
        self,
        Py_ssize_t user,
        const double *xs,
        const double *rewards,
        const int64_t *ids,
        Py_ssize_t n,
        Py_ssize_t shown,
    ) except -1 nogil:
        """Absorb each reward, and compare users and items on its item, if that is in the catalogue."""
        cdef Py_ssize_t j, item
        for j in range(n):
            self.learn_one(user, xs + j * self.dim, rewards[j], NULL if ids == NULL else ids + j)
            item = self.item_of(ids, j, xs + j * self.dim)
            if item >= 0:
                self.compare_users(user, item)
                self.compare_items(user, item)
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """S, b and θ̂ of the user   (row 4); xᵀθ̂ and xᵀM⁻¹x of all items by the same rank-one update."""
        cdef Py_ssize_t item, d = self.dim
        cdef double *user_means = self.table_means + user * self.n_items
        cdef double *user_widths = self.table_widths + user * self.n_items
        cdef double error = reward - dot(self.users.estimate + user * d, x, d)
        cdef double shrink = 1.0 / sqrt(1.0 + absorb_row(&self.users, user, x, reward, self.work, d))
        add_outer(self.grams + user * d * d, x, d)
        means(self.work, self.catalogue, NULL, self.n_items, d, self.gains)  # `work` holds u with M⁻¹ − uuᵀ as the new inverse
        for item in range(self.n_items):
            user_means[item] += self.gains[item] * error * shrink
            user_widths[item] = max(user_widths[item] - self.gains[item] * self.gains[item], 0.0)
        return 0

    cdef bint agree(self, Py_ssize_t user, Py_ssize_t other, Py_ssize_t item, double factor2) noexcept nogil:
        """Is |xᵀ(θ̂ᵢ − θ̂ⱼ)| ≤ CBᵢ(x) + CBⱼ(x)? √(a + b) ≤ √a + √b ≤ √(2(a + b)) answers most questions without roots."""
        cdef double apart = self.table_means[user * self.n_items + item] - self.table_means[other * self.n_items + item]
        cdef double a = self.table_widths[user * self.n_items + item], b = self.table_widths[other * self.n_items + item]
        if apart * apart <= factor2 * (a + b):
            return True
        if apart * apart > 2.0 * factor2 * (a + b) * (1.0 + ROUNDING):
            return False
        return fabs(apart) <= sqrt(factor2) * (sqrt(a) + sqrt(b))

    cdef void compare_users(self, Py_ssize_t user, Py_ssize_t item) noexcept nogil:
        """In the graph of the item's cluster, drop the edges to users who differ on the item   (row 5)."""
        cdef Py_ssize_t w, other, cluster = self.item_labels[item]
        cdef double factor2 = self.alpha * self.alpha * natural_log(self.rounds + 1.0)
        cdef uint64_t word
        for w in range(self.user_stride):
            word = self.graph(cluster, user)[w]
            while word:
                other = (w << 6) + lowest_bit(word)
                word &= word - 1
                if not self.agree(user, other, item, factor2):
                    drop(self.graph(cluster, user), other)
                    drop(self.graph(cluster, other), user)

    cdef int compare_items(self, Py_ssize_t user, Py_ssize_t item) except -1 nogil:
        """Drop the edges to items on which other users agree with this one than on this item   (row 6)."""
        cdef Py_ssize_t other, k, count = self.list_neighbours(item)
        cdef double factor2 = self.alpha * self.alpha * natural_log(self.rounds + 1.0)
        cdef bint agreed, apart = False
        for other in range(self.n_users if count else 0):
            agreed = self.agree(user, other, item, factor2)
            for k in range(count):
                if not self.differs[k] and self.agree(user, other, self.near[k], factor2) != agreed:
                    self.differs[k] = True
        for k in range(count):
            if self.differs[k]:
                drop(self.item_edges + item * self.item_stride, self.near[k])
                drop(self.item_edges + self.near[k] * self.item_stride, item)
        for k in range(count):
            if self.differs[k]:
                apart = apart or not meet(
                    self.item_edges + item * self.item_stride,
                    self.item_edges + self.near[k] * self.item_stride,
                    self.item_words,
                )
        if apart:  # some pair has no common neighbour left, so the cluster may have come apart
            self.split_items(self.item_labels[item])
        return 0

    cdef Py_ssize_t list_neighbours(self, Py_ssize_t item) noexcept nogil:
        """Write the neighbours of an item to `near`, none of which differs yet; returns how many."""
        cdef Py_ssize_t w, count = 0
        cdef uint64_t word
        for w in range(self.item_words):
            word = self.item_edges[item * self.item_stride + w]
            while word:
                self.near[count], self.differs[count] = (w << 6) + lowest_bit(word), False
                word &= word - 1
                count += 1
        return count

    cdef int split_items(self, Py_ssize_t cluster) except -1 nogil:
        """Label the components of a cluster of items by their lowest items; if there are several, each gets a new graph   (row 7)."""
        cdef Py_ssize_t item, other, label = cluster
        cdef int64_t first = self.n_clusters
        for item in range(self.n_items):
            if self.item_labels[item] == cluster:
                self.item_labels[item] = -1
        for item in range(self.n_items):
            if self.item_labels[item] == -1:
                memset(self.lost, 0, self.item_stride * sizeof(uint64_t))
                self.reach(self.item_edges, self.item_stride, item, self.lost)
                for other in range(item, self.n_items):
                    if has(self.lost, other):
                        self.item_labels[other] = label
                if label != cluster:
                    self.n_clusters += 1
                label = self.n_clusters
        if self.n_clusters > first:
            with gil:
                self.extend("clusters", self.n_clusters)
            self.restart_graph(cluster)
            for label in range(first, self.n_clusters):
                self.restart_graph(label)
        return 0

    cdef void restart_graph(self, Py_ssize_t cluster) noexcept nogil:
        """A complete graph of users for a cluster of items; what they have learnt is kept."""
        cdef Py_ssize_t user
        for user in range(self.n_users):
            put_range(self.graph(cluster, user), 0, self.n_users)
            drop(self.graph(cluster, user), user)

    cdef int label(self, int64_t *out) except -1 nogil:
        """Clusters of users depend on the item, so every user has its own label."""
        cdef Py_ssize_t user
        for user in range(self.n_users):
            out[user] = user
        return 0

    def labels_of_items(self):
        """The cluster of every item of the catalogue."""
        return self.array("item_labels").copy()

    def cluster_on(self, Py_ssize_t user, Py_ssize_t item):
        """The users whose data counts for this one on an item, ascending."""
        cdef Py_ssize_t other
        self.connect(user, self.item_labels[item], self.reached)
        return np.array([other for other in range(self.n_users) if has(self.reached, other)])


def bits_of(words):
    """The last axis as booleans instead of words."""
    return np.unpackbits(np.ascontiguousarray(words).astype("<u8").view(np.uint8), axis=-1, bitorder="little").astype(bool)
