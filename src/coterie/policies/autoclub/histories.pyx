"""What each user of AutoCLUB has rewarded: its sums, in as little memory as they need.

Most users of a large service come a few times. Of a user with fewer than (d + 1)/2 rewards the vectors themselves are kept,
in a ring, each as large as one more row of its gram matrix; of others one triangle of the gram matrix, which is symmetric.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.linalg cimport (
    add_outer, add_outers, add_scaled, dot, mirror, reduce_rows, reduced_gram, turn, turn_back
)
from coterie.policies.kernel.linked_lists cimport check_free_slots, take_slot

from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef class UserHistories(NamedArrays):
    """The sums of each user: S = Σxxᵀ, b = Σrx, s = Σx, Σr, Σr² and the number of rewards.

    `places` says where S is: for a user with few rewards the last of its ring of `vectors`, for others a row of `packed`.
    `noise_weights` are ω, what a user's rewards count for in sums over users; the sums here are without it. `rounds` counts the
    rewards of all users and `whole_rewards` those that were not shrunk, of which `reward_sum` and `reward_square` are; `seen` counts
    the users with rewards, and `square_norms` is Σ‖x‖² over all rewards.
    """

    FIELDS = {
        "moments": Field(("users", "dim")),
        "vector_sums": Field(("users", "dim")),
        "reward_sums": Field(("users",)),
        "reward_squares": Field(("users",)),
        "pulls": Field(("users",), "int64"),
        "noise_weights": Field(("users",)),
        "places": Field(("users",), "int64"),
        "vectors": Field(("vectors", "dim")),
        "next_vector": Field(("vectors",), "int64"),
        "packed": Field(("packed", "triangle")),
    }
    NUMBERS = (
        "rounds", "whole_rewards", "reward_sum", "reward_square", "square_norms", "seen", "used_vectors", "free_vector", "n_packed"
    )
    LENGTHS = {"vectors": "used_vectors", "packed": "n_packed"}
    IN_PLACE = True

    def __init__(self, n_users, dim):
        self.packed_from, self.triangle = (dim + 1) // 2, dim * (dim + 1) // 2
        self.expanded_user = self.free_vector = -1
        NamedArrays.__init__(self, n_users, dim)
        self.init_users(0)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "dim": dim, "triangle": dim * (dim + 1) // 2, "vectors": 0, "packed": 0}

    cdef int bind(self) except -1:
        cdef Py_ssize_t few = self.packed_from
        self.moments, self.vector_sums = <double *> self.pointer("moments"), <double *> self.pointer("vector_sums")
        self.reward_sums = <double *> self.pointer("reward_sums")
        self.reward_squares = <double *> self.pointer("reward_squares")
        self.pulls, self.places = <int64_t *> self.pointer("pulls"), <int64_t *> self.pointer("places")
        self.noise_weights = <double *> self.pointer("noise_weights")
        self.vectors, self.packed = <double *> self.pointer("vectors"), <double *> self.pointer("packed")
        self.next_vector = <int64_t *> self.pointer("next_vector")
        self.vectors_room, self.packed_room = len(self._arrays["next_vector"]), len(self._arrays["packed"])
        self.expanded_gram = self.workspace("gram", self.dim * self.dim)
        self.reflectors = self.workspace("span", few * (self.dim + few + 2))
        self.span_gram = self.reflectors + few * self.dim
        self.diagonal = self.span_gram + few * few
        self.betas = self.diagonal + few
        return NamedArrays.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        self.array("noise_weights")[known:] = 1.0
        return 0

    def refresh(self):
        self.expanded_user = -1
        if not np.isfinite([self.reward_sum, self.reward_square, self.square_norms, self.seen]).all():
            raise ValueError("has sums over users that are not finite")
        if self.array("noise_weights").min() <= 0 or self.array("noise_weights").max() > 1:
            raise ValueError("has numbers in 'noise_weights' that are not above 0 and at most 1")
        if self.array("pulls").sum() != self.rounds:
            raise ValueError("has users whose rewards are not those that it has learnt from")
        taken = np.zeros(self.used_vectors, np.int64)
        packed = self.array("places")[self.array("pulls") >= self.packed_from]
        if not np.array_equal(np.sort(packed), np.arange(self.n_packed)):
            raise ValueError("has numbers in 'places' that are none")
        if not self.rings_are_whole(<int64_t *> cnp.PyArray_DATA(taken)):
            raise ValueError("has vectors that are not those of its users")

    cdef bint rings_are_whole(self, int64_t *taken) noexcept nogil:
        """Is the ring of each user with few rewards as long as its rewards are many, and every other place free?"""
        cdef Py_ssize_t user, n
        cdef int64_t at
        for user in range(self.n_users):
            if self.pulls[user] == 0 or not self.keeps_vectors(user):
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

    # Adding rewards.

    cdef int make_space(self) except -1 nogil:
        """Room for one more reward of any user."""
        if self.free_vector < 0 and self.used_vectors == self.vectors_room:
            with gil:
                self.extend("vectors", self.used_vectors + 1)
        if self.n_packed == self.packed_room:
            with gil:
                self.extend("packed", self.n_packed + 1)
        return 0

    cdef void add(self, Py_ssize_t user, const double *x, double reward, bint whole) noexcept nogil:
        """Add a reward, `whole` or shrunk, to the user's sums; `rounds` counts it already."""
        self.add_vector(user, x)
        if self.pulls[user] == 0:
            self.seen += 1.0
        self.reward_squares[user] += reward * reward
        self.pulls[user] += 1
        self.reward_sums[user] += reward
        add_scaled(self.moments + user * self.dim, reward, x, self.dim)
        add_scaled(self.vector_sums + user * self.dim, 1.0, x, self.dim)
        if whole:
            self.reward_sum += reward
            self.reward_square += reward * reward
            self.whole_rewards += 1
        self.square_norms += dot(x, x, self.dim)

    cdef void set_noise_weight(self, Py_ssize_t user, double weight) noexcept nogil:
        self.noise_weights[user] = weight

    cdef double squares_about(self, Py_ssize_t user, double offset) noexcept nogil:
        """Σ(r − m)² of a user."""
        cdef double total = self.reward_sums[user]
        return self.reward_squares[user] - offset * (total + (total - offset * self.pulls[user]))

    cdef bint keeps_vectors(self, Py_ssize_t user) noexcept nogil:
        """Has the user so few rewards that its vectors are kept?"""
        return self.pulls[user] < self.packed_from

    cdef const double *next_vector_of(self, int64_t *place) noexcept nogil:
        """The next vector of a ring, oldest first if `place` starts as the user's place. Writes `place`."""
        place[0] = self.next_vector[place[0]]
        return self.vectors + place[0] * self.dim

    cdef void add_vector(self, Py_ssize_t user, const double *x) noexcept nogil:
        """Add a vector to a user's S; its pulls do not count it yet."""
        cdef Py_ssize_t d = self.dim
        cdef int64_t n = self.pulls[user] + 1, last, place
        if n >= self.packed_from:
            if n == self.packed_from:
                self.pack(user)
            self.add_packed(user, x)
        else:
            place, last = take_slot(self.next_vector, &self.free_vector, &self.used_vectors), self.places[user]
            memcpy(self.vectors + place * d, x, d * sizeof(double))
            self.next_vector[place] = place
            if n > 1:
                self.next_vector[place], self.next_vector[last] = self.next_vector[last], place
            self.places[user] = place
        if self.expanded_user == user:
            add_outer(self.expanded_gram, x, d)

    cdef void pack(self, Py_ssize_t user) noexcept nogil:
        """From vectors, as many as there are, to a triangle of their gram matrix."""
        cdef Py_ssize_t i
        cdef int64_t last = self.places[user], at, n
        self.places[user] = self.n_packed
        self.n_packed += 1
        for i in range(self.triangle):
            self.packed[self.places[user] * self.triangle + i] = 0.0
        if self.pulls[user] == 0:
            return
        at = last
        for n in range(self.pulls[user]):
            self.add_packed(user, self.next_vector_of(&at))
        at = self.next_vector[last]
        self.next_vector[last], self.free_vector = self.free_vector, at

    cdef void add_packed(self, Py_ssize_t user, const double *x) noexcept nogil:
        """Add xxᵀ to a triangle, row by row from its diagonal on."""
        cdef Py_ssize_t i, j
        cdef double *out = self.packed + self.places[user] * self.triangle
        for i in range(self.dim):
            for j in range(self.dim - i):
                out[j] += x[i] * x[i + j]
            out += self.dim - i

    # S of a user.

    cdef const double *gram_of(self, Py_ssize_t user) noexcept nogil:
        """A user's S, until another's is asked for."""
        if self.expanded_user != user:
            self.expand(user, self.expanded_gram)
            self.expanded_user = user
        return self.expanded_gram

    cdef void expand(self, Py_ssize_t user, double *out) noexcept nogil:
        """Write a user's S, all of it, to `out`."""
        cdef Py_ssize_t i, d = self.dim, held = 0
        cdef int64_t n, at
        cdef const double *triangle
        cdef const double *some[4]
        if not self.keeps_vectors(user):
            triangle = self.packed + self.places[user] * self.triangle
            for i in range(d):
                memcpy(out + i * d + i, triangle, (d - i) * sizeof(double))
                triangle += d - i
            mirror(out, d)
            return
        memset(out, 0, d * d * sizeof(double))
        if self.pulls[user] == 0:
            return
        at = self.places[user]
        for n in range(self.pulls[user]):
            some[held] = self.next_vector_of(&at)
            held += 1
            if held == 4:
                add_outers(out, some, 4, d)
                held = 0
        add_outers(out, some, held, d)
        mirror(out, d)

    # The span of the vectors of a user with few rewards: with n of them, S has rank n, and a regression takes n³ instead of d³.

    cdef Py_ssize_t enter_span(self, Py_ssize_t user) noexcept nogil:
        """Rotate the space so that the user's n vectors have only n coordinates that are not 0; returns n.

        `span_gram` is left holding their gram matrix in these coordinates. A user below 0 has no vectors.
        """
        cdef int64_t n, at
        self.span = self.pulls[user] if user >= 0 else 0
        if self.span == 0:
            return 0
        at = self.places[user]
        for n in range(self.span):
            memcpy(self.reflectors + n * self.dim, self.next_vector_of(&at), self.dim * sizeof(double))
        reduce_rows(self.reflectors, self.diagonal, self.betas, self.span, self.dim)
        reduced_gram(self.reflectors, self.diagonal, self.span_gram, self.span, self.dim)
        return self.span

    cdef void to_span(self, double *x) noexcept nogil:
        """Rotate a vector in place as the space was rotated last."""
        turn(self.reflectors, self.betas, x, self.span, self.dim)

    cdef void from_span(self, double *x) noexcept nogil:
        """Rotate a vector of the span back, in place."""
        memset(x + self.span, 0, (self.dim - self.span) * sizeof(double))
        turn_back(self.reflectors, self.betas, x, self.span, self.dim)

    # Units of columns.

    def rescale(self, times):
        """All vectors are multiplied by `times`, powers of two."""
        self.array("vectors")[...] *= times
        self.array("moments")[...] *= times
        self.array("vector_sums")[...] *= times
        first, second = np.triu_indices(self.dim)
        self.array("packed")[...] *= times[first] * times[second]
        self.expanded_user = -1
        self.square_norms = sum([float(np.trace(self.gram(user))) for user in np.flatnonzero(self.array("pulls")).tolist()])

    # What Python calls.

    def gram(self, Py_ssize_t user):
        """A copy of a user's S."""
        out = np.empty((self.dim, self.dim))
        self.expand(user, <double *> cnp.PyArray_DATA(out))
        return out

    def learn(self, Py_ssize_t user, double[::1] x, double reward):
        """Add a reward: for whoever uses the histories alone."""
        self.make_space()
        self.rounds += 1
        self.add(user, &x[0], reward, True)
