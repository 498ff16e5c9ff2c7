# optimize: 2
"""Effects of items: how much better an item does than a linear model predicts, learnt over all users.

r = m + xᵀθ_u + b_i + ε, b_i ~ N(0, τ²). Whoever predicts xᵀθ_u passes the residual e = r − prediction on, with the weight
a = σ²/(predictive variance). An item is two sums, P = Σa and E = Σae, in an open-addressing table: O(1) memory for an item,
O(1) time for a reward. τ² is learnt from products of residuals of the same item, which average τ² whatever the noise is, and
is 0 unless they are clearly above 0. The rows below are those of docs/algorithms/item-effects.md.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from coterie.policies.kernel.arrays cimport NamedArrays

from coterie.policies.kernel.arrays import Field

cnp.import_array()

MOST_VECTORS = 2**18
"""Vectors without an id that are remembered at most."""

cdef enum:
    FIRST_SLOTS = 16  # a power of two, as every later size
cdef double KEPT = 0.9995  # of the sums that τ² and σ² come from: about the last 2,000 rewards count
cdef double EARLY = 4.0  # after n rewards no more than 1 − 4/n is kept: early residuals are those of a model without data
cdef double GATE = 4.0  # τ² is 0 unless the mean product of residuals is above 0 by so many standard errors
cdef double CLIP2 = 256.0  # a residual counts for at most 16 standard deviations, lest one reward makes an effect
cdef double LEAST_SHRINKAGE = 0.5
cdef double EXPLORED2 = 0.25  # half a standard deviation of an effect is explored: 4 % more clicks on Last.fm than with a whole one
cdef double LARGEST = 1e60  # the square of a product of two residuals must not overflow
cdef double LEAST_WEIGHT = 1e-12


cdef int64_t key_of_vector(const double *x, Py_ssize_t d) noexcept nogil:
    """A key below 0 for a vector; that two vectors share one of the 2⁶³ is left to chance."""
    cdef uint64_t key = 0, bits
    cdef Py_ssize_t i
    cdef double value
    for i in range(d):
        value = x[i] + 0.0  # −0 and 0 are one number
        memcpy(&bits, &value, sizeof(double))
        key = (key ^ bits) * <uint64_t> 0x9E3779B97F4A7C15
        key ^= key >> 29
    key *= <uint64_t> 0xBF58476D1CE4E5B9
    key ^= key >> 32
    return <int64_t> (key | (<uint64_t> 1 << 63))


cdef inline double kept_share(int64_t rounds) noexcept nogil:
    """The part k of the sums over all items that is kept at this reward."""
    return max(0.0, min(KEPT, 1.0 - EARLY / rounds))


cdef class ItemEffects(NamedArrays):
    """The effects of all items that were ever rewarded.

    `variance` is τ², 0 while there are no effects; `shrinkage` is κ = σ²/τ². `mean` is m, the mean of recent residuals: what a
    model without an intercept misses of all items alike is no effect of any.

    Parameters
    ----------
    most_vectors : int
        How many items known by their vectors alone are remembered. Beyond, those rewarded about once are forgotten, or all
        if more than half were rewarded more often. Items with ids are never forgotten.
    """

    FIELDS = {"keys": Field(("slots",), "int64"), "weights": Field(("slots",)), "sums": Field(("slots",))}
    NUMBERS = (
        "rounds", "slots", "used", "vectors", "mean", "weight", "agreement", "agreement2", "pairs", "squares", "count"
    )
    LENGTHS = {"slots": "slots"}

    def __init__(self, most_vectors=MOST_VECTORS):
        self.slots, self.most_vectors = FIRST_SLOTS, most_vectors
        NamedArrays.__init__(self, 1, 1)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"slots": FIRST_SLOTS}

    cdef int bind(self) except -1:
        self.keys = <int64_t *> self.pointer("keys")
        self.weights, self.sums = <double *> self.pointer("weights"), <double *> self.pointer("sums")
        return 0

    def prepare(self, numbers):
        """An empty table of the size of a state that is to be read: arrays are exactly as long as the table."""
        self._arrays = {}
        NamedArrays.prepare(self, numbers)

    def refresh(self):
        """Check a state that was read: every key must be found where it is, and one slot must be free."""
        keys, weights = self.array("keys"), self.array("weights")
        cdef int64_t slot
        if self.slots < FIRST_SLOTS or self.slots & (self.slots - 1):
            raise ValueError(f"has a table of {self.slots} items")
        if np.count_nonzero(keys) != self.used or 2 * self.used > self.slots or (keys < 0).sum() != self.vectors:
            raise ValueError("has other numbers of items than it says")
        if not np.array_equal(weights > 0, keys != 0) or self.array("sums")[keys == 0].any():
            raise ValueError("has items whose rewards count nothing")
        for slot in range(self.slots):
            if self.keys[slot] != 0 and self.slot_of(self.keys[slot]) != slot:
                raise ValueError("has items where they are not found")
        if min(self.weight, self.agreement2, self.pairs, self.squares) < 0 or self.count < self.pairs or self.vectors > self.most_vectors:
            raise ValueError("has sums of squares below 0")
        self.settle()

    # The table: linear probing from a hash of the key; at least half of it is free, so that a search ends.

    cdef int64_t slot_of(self, int64_t key) noexcept nogil:
        """The slot of a key, or the free one where it belongs."""
        cdef uint64_t mask = <uint64_t> self.slots - 1, mixed = <uint64_t> key
        mixed = (mixed ^ (mixed >> 32)) * <uint64_t> 0xD6E8FEB86659FD93
        mixed ^= mixed >> 32
        while self.keys[mixed & mask] != key and self.keys[mixed & mask] != 0:
            mixed += 1
        return <int64_t> (mixed & mask)

    cdef int insert(self, int64_t key, double weight, double total) except -1:
        """A new item, in a table that is at most half full afterwards."""
        cdef int64_t slot
        if key < 0 and self.vectors >= self.most_vectors:
            self.resize(self.slots, 1.0)
        elif 2 * (self.used + 1) > self.slots:
            self.resize(2 * self.slots, 0.0)
        slot = self.slot_of(key)
        self.keys[slot], self.weights[slot], self.sums[slot] = key, weight, total
        self.used += 1
        self.vectors += key < 0
        return 0

    cdef int resize(self, int64_t slots, double least) except -1:
        """A table of so many slots, without items known by vectors that weigh no more than `least`, if that is above 0."""
        cdef int64_t slot, to, kept = self.vectors
        before = dict(self._arrays)
        keys, weights, sums = before["keys"], before["weights"], before["sums"]
        stays = keys != 0
        if least > 0.0:
            heavy = (keys < 0) & (weights > least)
            kept = np.count_nonzero(heavy)
            stays = (keys > 0) | heavy if 2 * kept <= self.most_vectors else keys > 0
            kept = np.count_nonzero(stays & (keys < 0))
        fresh = {"keys": np.zeros(slots, np.int64), "weights": np.zeros(slots), "sums": np.zeros(slots)}
        self._arrays, self.slots, self.vectors, self.used = fresh, slots, kept, np.count_nonzero(stays)
        self.bind()
        for slot in np.flatnonzero(stays):
            to = self.slot_of(keys[slot])
            self.keys[to], self.weights[to], self.sums[to] = keys[slot], weights[slot], sums[slot]
        return 0

    # Learning.

    cdef int add(self, int64_t key, double residual, double weight) except -1 nogil:
        """Learn the residual of an item's reward, which has this weight a   (rows 1-5)."""
        cdef int64_t slot = self.slot_of(key)
        cdef bint seen = self.keys[slot] != 0
        cdef double off = self.clipped(residual - self.mean)
        residual = self.mean + off
        if not weight > LEAST_WEIGHT:
            weight = LEAST_WEIGHT
        self.rounds += 1
        self.compare(off, self.sums[slot] / self.weights[slot] - self.mean if seen else 0.0, weight, seen)
        # An early residual is that of a model without data: were it kept in the mean, all later items would seem to share an effect.
        self.weight = kept_share(self.rounds) * self.weight + weight
        self.mean += weight * off / self.weight
        if seen:
            self.weights[slot] += weight
            self.sums[slot] += weight * residual
        else:
            with gil:
                self.insert(key, weight, weight * residual)
        self.settle()
        return 0

    cdef double clipped(self, double off) noexcept nogil:
        """A residual about the mean, at most so many standard deviations of those before; any, if those were all 0."""
        cdef double most = sqrt(CLIP2 * self.squares / self.count) if self.squares > 0.0 else LARGEST
        if off != off:  # the model's numbers have overflowed
            return 0.0
        return min(max(off, -most), most)

    cdef void compare(self, double off, double before, double weight, bint seen) noexcept nogil:
        """What a residual tells of σ² and, beside the mean of those before of the same item, of τ²."""
        cdef double kept = kept_share(self.rounds), product = off * before
        self.squares = kept * self.squares + weight * off * off
        self.count = kept * self.count + 1.0
        self.agreement, self.agreement2, self.pairs = kept * self.agreement, kept * kept * self.agreement2, kept * self.pairs
        if seen:
            self.agreement += product
            self.agreement2 += product * product
            self.pairs += 1.0

    cdef void settle(self) noexcept nogil:
        """τ² and κ from the sums."""
        self.variance = self.shrinkage = 0.0
        if self.pairs > 0.0 and self.agreement > GATE * sqrt(self.agreement2):
            self.variance = self.agreement / self.pairs
            self.shrinkage = max(LEAST_SHRINKAGE, self.squares / self.count / self.variance - 1.0)

    # What is known of an item.

    cdef void look(self, int64_t key, double *mean, double *width2) noexcept nogil:
        """b̂ and the part of its variance that is explored, relative to σ², where there are effects   (row 6)."""
        cdef int64_t slot = self.slot_of(key)
        cdef double weight = self.weights[slot]  # 0 where an item is new
        mean[0] = (self.sums[slot] - weight * self.mean) / (weight + self.shrinkage)
        width2[0] = EXPLORED2 / (weight + self.shrinkage)

    # What Python calls: whoever uses the effects alone.

    def _key(self, item):
        """The key of an id or of a vector."""
        cdef double[::1] x
        if isinstance(item, int):
            return key_of_id(item)
        x = np.array(item, np.float64)
        return key_of_vector(&x[0], x.shape[0])

    def learn(self, item, double residual, double weight=1.0):
        """Learn the residual of a reward of an item, which is an id or a vector."""
        self.add(self._key(item), residual, weight)

    def effect(self, item):
        """b̂ of an item and a quarter of its variance relative to σ²; zeros while there are no effects."""
        cdef double mean = 0.0, width2 = 0.0
        if self.variance > 0.0:
            self.look(self._key(item), &mean, &width2)
        return mean, width2
