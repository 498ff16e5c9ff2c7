"""What a quorum of users says of rewards and vectors: how large they are, and which values are common.

No reward counts for more than 2^(e+2) in size, where 2^e is the largest power of two that the rewards of a quorum have reached; and
no vector, likewise. A reward beyond the limits is shrunk with its vector: so it says the same about preferences, but less. A limit
only grows, and never by what less than a quorum sends.

A user who clicks often has rewards of larger variance than one who never does, and yet is no noisy user. So rewards whose exact
value a quorum has given, as clicks and ratings, say nothing about a user's noise.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, frexp, ldexp, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.linalg cimport dot

from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef extern from *:
    int __builtin_popcountll(unsigned long long word) nogil


cdef enum:
    EXPONENTS = 1024  # sizes are distinguished by their power of two, between 2^-512 and 2^511
    ENTRIES = 512  # values that are remembered
    TRIED = 4  # places where a value may be
    MOST_QUORUM = 32  # users who give a value are told apart by their numbers modulo 64


cdef Py_ssize_t quorum(double users) noexcept nogil:
    """2 + √n of n users, but no more than a majority: how many must agree before what they say holds for all."""
    return min(2 + <Py_ssize_t> sqrt(users), <Py_ssize_t> users // 2 + 1)


cdef inline int64_t exponent_of(double size) noexcept nogil:
    """The power of two of a size, from 1 on; 0 for a size of 0."""
    cdef int exponent
    if size == 0.0:
        return 0
    frexp(size, &exponent)
    return min(max(exponent + EXPONENTS // 2, 1), EXPONENTS - 1)


cdef class SizeLimits(NamedArrays):
    """The powers of two that each user's rewards and vectors have reached, and the limits that follow.

    `counts` are the users of each power, `users` those who have sent anything but 0, and `most` the limits, for rewards and for
    vectors.
    """

    FIELDS = {"exponents": Field(("users", "kinds"), "int64")}
    NUMBERS = ()
    IN_PLACE = True

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "kinds": KINDS}

    def __init__(self, n_users, dim):
        NamedArrays.__init__(self, n_users, dim)
        self.refresh()

    cdef int bind(self) except -1:
        self.exponents = <int64_t *> self.pointer("exponents")
        if "counts" not in self._scratch:
            self._scratch["counts"] = np.zeros((KINDS, EXPONENTS), np.int64)
        self.counts = <int64_t *> cnp.PyArray_DATA(self._scratch["counts"])
        self.shortened = self.workspace("shortened", self.dim)
        return NamedArrays.bind(self)

    def refresh(self):
        exponents = self.array("exponents")
        if exponents.size and not 0 <= exponents.min() <= exponents.max() < EXPONENTS:
            raise ValueError("has sizes of rewards or vectors that cannot be")
        for kind in range(KINDS):
            counts = np.bincount(exponents[:, kind], minlength=EXPONENTS)
            counts[0] = 0
            self._scratch["counts"][kind] = counts
            self.users[<Py_ssize_t> kind] = counts.sum()
            self.find_limit(kind)

    cdef void find_limit(self, Py_ssize_t kind) noexcept nogil:
        """The limit of today's counts; none before anything but 0 was sent."""
        cdef Py_ssize_t k = EXPONENTS, found = 0, wanted = quorum(self.users[kind])
        self.most[kind] = INFINITY
        if self.users[kind] > 0 and not self.omitted:
            while found < wanted:
                k -= 1
                found += self.counts[kind * EXPONENTS + k]
            self.most[kind] = ldexp(1.0, <int> k - EXPONENTS // 2 + 1)

    cdef void reach(self, Py_ssize_t kind, Py_ssize_t user, double size) noexcept nogil:
        """A user has sent a reward or a vector of this size."""
        cdef int64_t *known = self.exponents + user * KINDS + kind
        cdef int64_t *counts = self.counts + kind * EXPONENTS
        cdef int64_t exponent = exponent_of(size)
        if exponent <= known[0]:
            return
        if known[0] > 0:
            counts[known[0]] -= 1
        else:
            self.users[kind] += 1
        counts[exponent] += 1
        known[0] = exponent
        self.find_limit(kind)

    cdef double factor(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """What a reward and its vector are multiplied by, so that both are within the limits."""
        cdef double size = fabs(reward), length = sqrt(dot(x, x, self.dim)), found = 1.0
        self.reach(REWARDS, user, size)
        self.reach(VECTORS, user, length)
        if size > self.most[REWARDS]:
            found = self.most[REWARDS] / size
        if length * found > self.most[VECTORS]:
            found = self.most[VECTORS] / length
        return found

    cdef double cut(self, double reward) noexcept nogil:
        """A reward within the limits, whatever its vector."""
        return min(max(reward, -self.most[REWARDS]), self.most[REWARDS])

    cdef const double *shrunk(self, const double *x, double factor) noexcept nogil:
        """A vector times a factor, until the next call."""
        cdef Py_ssize_t i
        if factor == 1.0:
            return x
        for i in range(self.dim):
            self.shortened[i] = factor * x[i]
        return self.shortened

    # What Python calls.

    def limited(self, Py_ssize_t user, double[::1] x, double reward):
        """What a vector and a reward of a user are multiplied by: for whoever uses the limits alone."""
        return self.factor(user, &x[0], reward)


cdef inline Py_ssize_t place_of(double value) noexcept nogil:
    """The first of the places where a value may be."""
    cdef uint64_t bits
    value += 0.0  # −0 is 0
    memcpy(&bits, &value, sizeof(bits))
    return <Py_ssize_t> ((bits * <uint64_t> 0x9E3779B97F4A7C15) >> 55)


cdef class SharedValues(NamedArrays):
    """Who has given each value, a bit a user, and the energy Σ(r − m)² of each user's rewards: all, and those of own values."""

    FIELDS = {
        "values": Field(("entries",)),
        "givers": Field(("entries",), "int64"),
        "energies": Field(("users", "kinds")),
    }
    NUMBERS = ()
    IN_PLACE = True

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "entries": ENTRIES, "kinds": 2}

    cdef int bind(self) except -1:
        self.values, self.givers = <double *> self.pointer("values"), <int64_t *> self.pointer("givers")
        self.energies = <double *> self.pointer("energies")
        return NamedArrays.bind(self)

    def refresh(self):
        energies = self.array("energies")
        if not (np.isfinite(energies).all() and (energies >= 0.0).all() and (energies[:, 1] <= energies[:, 0]).all()):
            raise ValueError("has energies of rewards that cannot be")

    cdef bint give(self, Py_ssize_t user, double value, double users) noexcept nogil:
        """A user gives a value: have a quorum of so many users given it by now?"""
        cdef Py_ssize_t k, place, first = place_of(value), rarest = first
        cdef int64_t bit = (<int64_t> 1) << (user % 64)
        for k in range(TRIED):
            place = (first + k) % ENTRIES
            if self.givers[place] != 0 and self.values[place] == value:
                self.givers[place] |= bit
                return __builtin_popcountll(self.givers[place]) >= min(quorum(users), <Py_ssize_t> MOST_QUORUM)
            if __builtin_popcountll(self.givers[place]) < __builtin_popcountll(self.givers[rarest]):
                rarest = place
        self.values[rarest], self.givers[rarest] = value, bit
        return False

    cdef void add(self, Py_ssize_t user, double deviation, bint shared) noexcept nogil:
        """A user's reward deviates so much from the offset."""
        self.energies[2 * user] += deviation * deviation
        if not shared:
            self.energies[2 * user + 1] += deviation * deviation

    cdef double own_share(self, Py_ssize_t user) noexcept nogil:
        """The part of the energy of a user's rewards that is not in shared values; 1 if there is none."""
        cdef double energy = self.energies[2 * user]
        return self.energies[2 * user + 1] / energy if energy > 0.0 and not self.omitted else 1.0

    # What Python calls.

    def learn(self, Py_ssize_t user, double value, Py_ssize_t users):
        """A user gives a value, which deviates from 0: for whoever uses this alone; is it shared?"""
        cdef bint shared = self.give(user, value, users)
        self.add(user, value, shared)
        return shared

    def share(self, Py_ssize_t user):
        """The part of the energy of a user's rewards that is not in shared values."""
        return self.own_share(user)
