"""What each user of AutoCLUB has told, in as little memory as it needs.

Most users of a large service come a few times. Of a user with fewer than (d + 1)/2 rewards the vectors themselves are kept,
in a ring, each as large as one more row of its gram matrix; of others one half of the gram matrix, which is symmetric.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport fabs
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from coterie.policies.autoclub.prior cimport Prior
from coterie.policies.kernel.linalg cimport (
    add_outer, add_outers, add_scaled, dot, mirror, reduce_rows, reduced_gram, turn, turn_back
)
from coterie.policies.kernel.linked_lists cimport check_free_slots, take_slot

from coterie.policies.autoclub.prior import Prior as Base
from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef double BELIEVED = 2.0  # the greatest reward counts for at most so many times the size of the second greatest


cdef class Histories(Prior):
    """The sums of each user: S = Σxxᵀ, b = Σrx, s = Σx, Σr, Σr² and the number of rewards.

    `places` says where S is: for a user with few rewards the last of its ring of `vectors`, for others a row of `packed`.
    `precisions` are what users' rewards count for beside others'. `greatest` is the reward of largest size so far, `holder`
    who gave it and `greatest.x` for what; it counts for at most twice `second`, the second largest size.
    """

    FIELDS = {
        "moments": Field(("users", "dim")),
        "totals": Field(("users", "dim")),
        "levels": Field(("users",)),
        "squares": Field(("users",)),
        "pulls": Field(("users",), "int64"),
        "precisions": Field(("users",)),
        "places": Field(("users",), "int64"),
        "vectors": Field(("vectors", "dim")),
        "vectors.next": Field(("vectors",), "int64"),
        "packed": Field(("packed", "half")),
        "greatest.x": Field(("dim",)),
        **Base.FIELDS,
    }
    NUMBERS = (*Base.NUMBERS, "used_vectors", "free_vector", "n_packed", "holder", "greatest", "second")
    LENGTHS = {"vectors": "used_vectors", "packed": "n_packed"}
    IN_PLACE = True

    def __init__(self, n_users, dim, *, ridge, schedule, generator):
        self.light, self.half, self.expanded = (dim + 1) // 2, dim * (dim + 1) // 2, -1
        self.free_vector = -1
        Prior.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {**Base.extents(n_users, dim), "half": dim * (dim + 1) // 2, "vectors": 0, "packed": 0}

    cdef int bind(self) except -1:
        self.moments, self.totals = <double *> self.pointer("moments"), <double *> self.pointer("totals")
        self.levels, self.squared = <double *> self.pointer("levels"), <double *> self.pointer("squares")
        self.pulls, self.places = <int64_t *> self.pointer("pulls"), <int64_t *> self.pointer("places")
        self.precisions, self.largest = <double *> self.pointer("precisions"), <double *> self.pointer("greatest.x")
        self.vectors, self.packed = <double *> self.pointer("vectors"), <double *> self.pointer("packed")
        self.next_vector = <int64_t *> self.pointer("vectors.next")
        self.vectors_room, self.packed_room = len(self._arrays["vectors.next"]), len(self._arrays["packed"])
        if "own" not in self._scratch:
            self._scratch["own"] = np.empty(self.dim * self.dim)
            self._scratch["folded"] = np.empty(self.light * (self.dim + self.light + 2))
        self.own = <double *> cnp.PyArray_DATA(self._scratch["own"])
        self.turned = <double *> cnp.PyArray_DATA(self._scratch["folded"])
        self.small = self.turned + self.light * self.dim
        self.diagonal = self.small + self.light * self.light
        self.betas = self.diagonal + self.light
        return Prior.bind(self)

    def refresh(self):
        Prior.refresh(self)
        self.expanded = -1
        if self.array("precisions").min() <= 0 or self.array("precisions").max() > 1:
            raise ValueError("has numbers in 'precisions' that are not above 0 and at most 1")
        if not (0 <= self.holder < self.n_users and 0 <= self.second <= abs(self.greatest)):
            raise ValueError("has a greatest reward that cannot be")
        taken = np.zeros(self.used_vectors, np.int64)
        packed = self.array("places")[self.array("pulls") >= self.light]
        if not np.array_equal(np.sort(packed), np.arange(self.n_packed)):
            raise ValueError("has numbers in 'places' that are none")
        if not self.histories_are_whole(<int64_t *> cnp.PyArray_DATA(taken)):
            raise ValueError("has vectors that are not those of its users")

    cdef bint histories_are_whole(self, int64_t *taken) noexcept nogil:
        """Is the ring of each user with few rewards as long as its rewards are many, and every other place free?"""
        cdef Py_ssize_t user, n
        cdef int64_t at
        for user in range(self.n_users):
            if self.pulls[user] == 0 or self.pulls[user] >= self.light:
                continue
            at = self.places[user]
            for n in range(self.pulls[user]):
                if not 0 <= at < self.used_vectors or taken[at]:
                    return False
                taken[at] = 1
                at = self.next_vector[at]
            if at != self.places[user]:
                return False
        return check_free_slots(self.next_vector, self.free_vector, self.used_vectors, taken)

    # What a reward counts for.

    cdef double restrain(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """What a reward counts for now; and what the greatest so far counts for, given this one."""
        cdef Py_ssize_t i
        cdef double size = fabs(reward)
        if size <= self.second:
            return reward
        if size <= fabs(self.greatest):
            self.believe(size)
            return reward
        self.believe(fabs(self.greatest))
        self.greatest, self.holder = reward, user
        for i in range(self.dim):
            self.largest[i] = x[i]
        return self.counted()

    cdef double counted(self) noexcept nogil:
        """What the greatest reward counts for: at most twice the second greatest in size."""
        return self.within_reason(self.greatest)

    cdef double within_reason(self, double reward) noexcept nogil:
        """A reward of at most twice the second greatest in size."""
        return min(max(reward, -BELIEVED * self.second), BELIEVED * self.second)

    cdef void believe(self, double second) noexcept nogil:
        """Take note of a new second greatest size: the greatest reward may count for more now."""
        cdef double before = self.counted()
        self.second = second
        if self.counted() != before:
            self.amend(before, self.counted())

    cdef void amend(self, double before, double after) noexcept nogil:
        """The greatest reward counts for something else."""
        cdef Py_ssize_t user = self.holder
        cdef double square = after * after - before * before
        add_scaled(self.moments + user * self.dim, after - before, self.largest, self.dim)
        self.levels[user] += after - before
        self.level += after - before
        self.squared[user] += square
        self.squares += square

    # Vectors.

    cdef int make_space(self) except -1 nogil:
        """Room for one more reward of anyone."""
        if self.free_vector < 0 and self.used_vectors == self.vectors_room:
            with gil:
                self.extend("vectors", self.used_vectors + 1)
        if self.n_packed == self.packed_room:
            with gil:
                self.extend("packed", self.n_packed + 1)
        return 0

    cdef void learn_own(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """Add a reward to the user's sums."""
        self.record(user, x)
        if self.pulls[user] == 0:
            self.seen += 1.0
        self.squared[user] += reward * reward
        self.pulls[user] += 1
        self.levels[user] += reward
        add_scaled(self.moments + user * self.dim, reward, x, self.dim)
        add_scaled(self.totals + user * self.dim, 1.0, x, self.dim)
        self.level += reward
        self.squares += reward * reward
        self.reach += dot(x, x, self.dim)

    cdef double squared_about_offset(self, Py_ssize_t user) noexcept nogil:
        """Σ(r − m)² of a user."""
        return self.squared[user] - self.offset * (self.levels[user] + (self.levels[user] - self.offset * self.pulls[user]))

    cdef void record(self, Py_ssize_t user, const double *x) noexcept nogil:
        """Add a vector to a user's S; its pulls do not count it yet."""
        cdef Py_ssize_t d = self.dim
        cdef int64_t n = self.pulls[user] + 1, last, place
        if n >= self.light:
            if n == self.light:
                self.pack(user)
            self.add_packed(user, x)
        else:
            place, last = take_slot(self.next_vector, &self.free_vector, &self.used_vectors), self.places[user]
            memcpy(self.vectors + place * d, x, d * sizeof(double))
            self.next_vector[place] = place
            if n > 1:
                self.next_vector[place], self.next_vector[last] = self.next_vector[last], place
            self.places[user] = place
        if self.expanded == user:
            add_outer(self.own, x, d)

    cdef void pack(self, Py_ssize_t user) noexcept nogil:
        """From vectors, as many as there are, to half a matrix."""
        cdef Py_ssize_t i
        cdef int64_t last = self.places[user], at, n
        self.places[user] = self.n_packed
        self.n_packed += 1
        for i in range(self.half):
            self.packed[self.places[user] * self.half + i] = 0.0
        if self.pulls[user] == 0:
            return
        at = last
        for n in range(self.pulls[user]):
            at = self.next_vector[at]
            self.add_packed(user, self.vectors + at * self.dim)
        at = self.next_vector[last]
        self.next_vector[last], self.free_vector = self.free_vector, at

    cdef void add_packed(self, Py_ssize_t user, const double *x) noexcept nogil:
        """Add xxᵀ to the half of a matrix, row by row from its diagonal on."""
        cdef Py_ssize_t i, j
        cdef double *out = self.packed + self.places[user] * self.half
        for i in range(self.dim):
            for j in range(self.dim - i):
                out[j] += x[i] * x[i + j]
            out += self.dim - i

    cdef void expand(self, Py_ssize_t user, double *out) noexcept nogil:
        """A user's S, all of it."""
        cdef Py_ssize_t i, d = self.dim, held = 0
        cdef int64_t n, at
        cdef const double *half
        cdef const double *some[4]
        if self.pulls[user] >= self.light:
            half = self.packed + self.places[user] * self.half
            for i in range(d):
                memcpy(out + i * d + i, half, (d - i) * sizeof(double))
                half += d - i
            mirror(out, d)
            return
        memset(out, 0, d * d * sizeof(double))
        if self.pulls[user] == 0:
            return
        at = self.places[user]
        for n in range(self.pulls[user]):
            at = self.next_vector[at]
            some[held] = self.vectors + at * d
            held += 1
            if held == 4:
                add_outers(out, some, 4, d)
                held = 0
        add_outers(out, some, held, d)
        mirror(out, d)

    cdef Py_ssize_t fold(self, Py_ssize_t user) noexcept nogil:
        """Turn the space so that the vectors of a user with few rewards have as many coordinates; returns their number.

        `small` is left holding their gram matrix, and what is turned with them is zero from there on if it is made of them.
        """
        cdef int64_t n, at = self.places[user]
        for n in range(self.pulls[user]):
            at = self.next_vector[at]
            memcpy(self.turned + n * self.dim, self.vectors + at * self.dim, self.dim * sizeof(double))
        self.folded = self.pulls[user]
        reduce_rows(self.turned, self.diagonal, self.betas, self.folded, self.dim)
        reduced_gram(self.turned, self.diagonal, self.small, self.folded, self.dim)
        return self.folded

    cdef void turn(self, double *x) noexcept nogil:
        """A vector in the space that was turned last."""
        turn(self.turned, self.betas, x, self.folded, self.dim)

    cdef void unfold(self, double *x) noexcept nogil:
        """Back from the coordinates of that user's vectors."""
        memset(x + self.folded, 0, (self.dim - self.folded) * sizeof(double))
        turn_back(self.turned, self.betas, x, self.folded, self.dim)

    cdef const double *gram_of(self, Py_ssize_t user) noexcept nogil:
        """A user's S, until another's is asked for."""
        if self.expanded != user:
            self.expand(user, self.own)
            self.expanded = user
        return self.own

    def gram(self, Py_ssize_t user):
        """A copy of a user's S."""
        out = np.empty((self.dim, self.dim))
        self.expand(user, <double *> cnp.PyArray_DATA(out))
        return out

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return self.array("pulls").copy()
