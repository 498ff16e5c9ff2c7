# optimize: 2
"""Effects by key: how much better an item does than a model predicts, or a user's reward for an item.

A value y of a key i is y = level + b_i + ε with b_i ~ N(0, τ²) and ε ~ N(0, σ²); the model beside which effects are learnt gives
the level, and with each value a weight a. A key is two sums, P = Σa and E = Σay, in an open-addressing table: O(1) memory for a
key, O(1) time for a reward. τ² is learnt from products of residuals of the same key, which average τ² whatever the noise is, and
is 0 unless they are clearly above 0. The rows below are those of docs/algorithms/item-effects.md.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from coterie.policies.kernel.arrays cimport NamedArrays

from coterie.policies.kernel.arrays import Field

cnp.import_array()

MOST_KEYS = 2**18
"""Keys of vectors or of pairs that are remembered at most."""

cdef enum:
    FIRST_SLOTS = 16  # a power of two, as every later size
cdef double KEPT = 0.9995  # of the sums that τ² comes from: about the last 2,000 rewards count
cdef double EARLY = 4.0  # after n rewards no more than 1 − 4/n is kept: early residuals are those of a model without data
cdef double GATE = 4.0  # τ² is 0 unless the mean product of residuals is above 0 by so many standard errors
cdef double CLIP2 = 256.0  # a residual counts for at most 16 standard deviations, lest one reward makes an effect
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


cdef int64_t key_of_pair(Py_ssize_t user, int64_t item) noexcept nogil:
    """A key below 0 for a user and the key of an item; that two pairs share one of the 2⁶³ is left to chance."""
    cdef uint64_t key = (<uint64_t> user + 1) * <uint64_t> 0x9E3779B97F4A7C15 ^ <uint64_t> item
    key = (key ^ (key >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    key = (key ^ (key >> 27)) * <uint64_t> 0x94D049BB133111EB
    key ^= key >> 31
    return <int64_t> (key | (<uint64_t> 1 << 63))


cdef inline double kept_share(int64_t rounds) noexcept nogil:
    """The part k of the sums over all keys that is kept at this reward."""
    return max(0.0, min(KEPT, 1.0 - EARLY / rounds))


cdef class Effects(NamedArrays):
    """The effects of all keys that were ever rewarded.

    `variance` is τ², 0 while there are no effects; `shrinkage` is κ = σ²/τ². `mean` is the mean of recent residuals: what a
    level misses of all keys alike is no effect of any.

    Parameters
    ----------
    explored : float, default 0
        How many standard deviations of an effect are explored.
    least_shrinkage, most_shrinkage : float, default 1 and infinity
        κ is no less than the first; there are no effects while it is no less than the second.
    most_weight : float, default infinity
        P is no more than this, so that an effect follows a change.
    most_keys : int, default 2¹⁸
        How many keys of vectors or pairs are remembered. Beyond, those rewarded about once are forgotten, or all if more than
        half were rewarded more often. Ids are never forgotten.
    """

    FIELDS = {"keys": Field(("slots",), "int64"), "weights": Field(("slots",)), "sums": Field(("slots",))}
    NUMBERS = (
        "rounds", "slots", "used", "forgettable", "mean", "weight", "squares", "count", "agreement", "agreement2", "compared", "compared2"
    )
    LENGTHS = {"slots": "slots"}

    def __init__(
        self,
        *,
        double explored=0.0,
        double least_shrinkage=1.0,
        double most_shrinkage=INFINITY,
        double most_weight=INFINITY,
        most_keys=MOST_KEYS,
    ):
        self.slots, self.most_keys, self.explored2 = FIRST_SLOTS, most_keys, explored * explored
        self.least_shrinkage, self.most_shrinkage, self.most_weight = least_shrinkage, most_shrinkage, most_weight
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
            raise ValueError(f"has a table of {self.slots} effects")
        if np.count_nonzero(keys) != self.used or 2 * self.used > self.slots or (keys < 0).sum() != self.forgettable:
            raise ValueError("has other numbers of effects than it says")
        if not np.array_equal(weights > 0, keys != 0) or self.array("sums")[keys == 0].any():
            raise ValueError("has effects whose rewards count nothing")
        for slot in range(self.slots):
            if self.keys[slot] != 0 and self.slot_of(self.keys[slot]) != slot:
                raise ValueError("has effects where they are not found")
        if min(self.weight, self.squares, self.count, self.agreement2, self.compared, self.compared2) < 0:
            raise ValueError("has sums of squares below 0")
        if self.forgettable > self.most_keys:
            raise ValueError("has more keys than it may remember")
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
        """A new key, in a table that is at most half full afterwards."""
        cdef int64_t slot
        if key < 0 and self.forgettable >= self.most_keys:
            self.resize(self.slots, 1.0)
        elif 2 * (self.used + 1) > self.slots:
            self.resize(2 * self.slots, 0.0)
        slot = self.slot_of(key)
        self.keys[slot], self.weights[slot], self.sums[slot] = key, weight, total
        self.used += 1
        self.forgettable += key < 0
        return 0

    cdef int resize(self, int64_t slots, double least) except -1:
        """A table of so many slots, without those that may be forgotten and weigh no more than `least`, if that is above 0."""
        cdef int64_t slot, to, kept = self.forgettable
        before = dict(self._arrays)
        keys, weights, sums = before["keys"], before["weights"], before["sums"]
        stays = keys != 0
        if least > 0.0:
            heavy = (keys < 0) & (weights > least)
            kept = np.count_nonzero(heavy)
            stays = (keys > 0) | heavy if 2 * kept <= self.most_keys else keys > 0
            kept = np.count_nonzero(stays & (keys < 0))
        fresh = {"keys": np.zeros(slots, np.int64), "weights": np.zeros(slots), "sums": np.zeros(slots)}
        self._arrays, self.slots, self.forgettable, self.used = fresh, slots, kept, np.count_nonzero(stays)
        self.bind()
        for slot in np.flatnonzero(stays):
            to = self.slot_of(keys[slot])
            self.keys[to], self.weights[to], self.sums[to] = keys[slot], weights[slot], sums[slot]
        return 0

    # Learning.

    cdef int add(self, int64_t key, double value, double level, double weight) except -1 nogil:
        """Learn a value of a key, which has this level and this weight a; 1 if the key was known   (rows 1-5)."""
        cdef int64_t slot = self.slot_of(key)
        cdef bint seen = self.keys[slot] != 0
        cdef double off, before = 0.0, share = 0.0, kept
        level += self.mean
        if not fabs(level) < LARGEST:  # the model's numbers have overflowed
            return seen
        off = self.clipped(value - level)
        if not weight > LEAST_WEIGHT:
            weight = LEAST_WEIGHT
        if seen:
            before = self.sums[slot] / self.weights[slot] - level
            if self.variance > 0.0:
                share = self.weights[slot] / (self.weights[slot] + self.shrinkage)
        self.rounds += 1
        kept = kept_share(self.rounds)
        self.squares, self.count = kept * self.squares + weight * off * off, kept * self.count + 1.0
        # A key that is well known tells little of τ²: those that are chosen most would pass for typical ones.
        self.compare(off, before, (1.0 - share) * weight if seen else 0.0, kept)
        # Only recent residuals: early ones are those of a model without data, and all later keys would seem to share an effect.
        self.weight = kept * self.weight + weight
        self.mean += weight * (off - share * before) / self.weight
        if seen:
            self.sums[slot] += weight * (level + off)
            self.weights[slot] += weight
            if self.weights[slot] > self.most_weight:
                self.sums[slot] *= self.most_weight / self.weights[slot]
                self.weights[slot] = self.most_weight
        else:
            with gil:
                self.insert(key, weight, weight * (level + off))
        self.settle()
        return seen

    cdef double clipped(self, double off) noexcept nogil:
        """A residual about the mean, at most so many standard deviations of those before; any, if those were all 0."""
        cdef double most = sqrt(CLIP2 * self.squares / self.count) if self.squares > 0.0 else LARGEST
        if off != off:  # the model's numbers have overflowed
            return 0.0
        return min(max(off, -most), most)

    cdef void compare(self, double off, double before, double weight, double kept) noexcept nogil:
        """What a residual tells of τ² and κ beside the mean of those before of the same key; nothing if its weight is 0."""
        cdef double product = weight * off * before
        self.agreement, self.agreement2 = kept * self.agreement + product, kept * kept * self.agreement2 + product * product
        self.compared, self.compared2 = kept * self.compared + weight, kept * self.compared2 + weight * off * off

    cdef void settle(self) noexcept nogil:
        """τ² and κ from the sums."""
        cdef double shrinkage
        self.variance = self.shrinkage = 0.0
        if self.compared > 0.0 and self.agreement > GATE * sqrt(self.agreement2):
            shrinkage = max(self.least_shrinkage, self.compared2 / self.agreement - 1.0)
            if shrinkage < self.most_shrinkage:
                self.variance, self.shrinkage = self.agreement / self.compared, shrinkage

    # What is known of a key.

    cdef Effect look(self, int64_t key, double level) noexcept nogil:
        """What is known of a key of this level, where there are effects   (row 6)."""
        cdef int64_t slot = self.slot_of(key)
        cdef double weight = self.weights[slot], total = weight + self.shrinkage  # the weight of a new key is 0
        return Effect((self.sums[slot] - weight * (level + self.mean)) / total, self.explored2 / total, weight / total)

    cdef double effect_of(self, int64_t key) noexcept nogil:
        """b̂ of a key of level 0; 0 while there are no effects."""
        return self.look(key, 0.0).mean if self.variance > 0.0 else 0.0

    # What Python calls: whoever uses the effects alone.

    def _key(self, key):
        """The key of an id or of a vector."""
        cdef double[::1] x
        if isinstance(key, int):
            return key_of_id(key)
        x = np.array(key, np.float64)
        return key_of_vector(&x[0], x.shape[0])

    def learn(self, key, double value, double level=0.0, double weight=1.0):
        """Learn a value of an id or a vector."""
        self.add(self._key(key), value, level, weight)

    def effect(self, key, double level=0.0):
        """b̂ of an id or a vector, the variance relative to σ² that is explored, and P/(P + κ); zeros while there are no effects."""
        if self.variance > 0.0:
            found = self.look(self._key(key), level)
            return found.mean, found.width2, found.share
        return 0.0, 0.0, 0.0
