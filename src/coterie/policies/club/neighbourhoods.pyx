"""PhaseUniCLUB: a user learns from its direct neighbours, not from the whole component   (Alg. 2).

Users with the same neighbourhood share one row of pooled statistics. A row is built when one of its users has been
served, and kept up to date from then on.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from coterie.policies.club.components cimport CuttingGraph
from coterie.policies.kernel.bits cimport checksum, drop, has, lowest_bit, put, same
from coterie.policies.kernel.learner cimport View, show_row
from coterie.policies.kernel.linked_lists cimport link, unlink
from coterie.policies.kernel.ridge cimport Ridge, absorb_row, add_member, finish_pool, start_pool

from coterie.policies.club.components import CuttingGraph as Base
from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef class Neighbourhoods(CuttingGraph):
    """Each user learns from its direct neighbours.

    `neighbourhoods` is the row each user learns from, or -1; `sharers` how many users learn from each row; `members` the users
    whose data a row holds, as bits.

    Parameters
    ----------
    beta : float
        The factor of the width.
    shape : Radius
        The radius f.
    first : int
        Rounds before edges are cut.
    """

    FIELDS = {
        **Base.FIELDS,
        "neighbourhoods": Field(("users",), "int64"),
        "sharers": Field(("rows",), "int64"),
        "members": Field(("rows", "words"), "uint64"),
    }
    NUMBERS = ("rounds", "n_neighbourhoods")

    def __init__(self, n_users, dim, *, beta, shape, first, ridge, schedule, generator):
        self.first_cut = first
        CuttingGraph.__init__(self, n_users, dim, beta=beta, shape=shape, ridge=ridge, schedule=schedule, generator=generator)

    def adjust(self, *, first, **others):
        before = CuttingGraph.adjust(self, first=self.first_cut, **others)
        self.first_cut = first
        return before

    cdef int bind(self) except -1:
        CuttingGraph.bind(self)
        self.row_of, self.sharers = <int64_t *> self.pointer("neighbourhoods"), <int64_t *> self.pointer("sharers")
        self.members = <uint64_t *> self.pointer("members")
        once, pulls, around = np.empty(self.dim * (self.dim + 2)), np.empty(1, np.int64), np.zeros(self.stride, np.uint64)
        self._scratch.update(once=once, once_pulls=pulls, around=around)
        self.temporary.inverse = <double *> cnp.PyArray_DATA(once)
        self.temporary.moment = self.temporary.inverse + self.dim * self.dim
        self.temporary.estimate = self.temporary.moment + self.dim
        self.temporary.pulls = <int64_t *> cnp.PyArray_DATA(pulls)
        self.neighbourhood = <uint64_t *> cnp.PyArray_DATA(around)
        self._scratch["updated"] = np.full(len(self._arrays["sharers"]), -1, np.int64)
        self.updated = <int64_t *> cnp.PyArray_DATA(self._scratch["updated"])
        cdef Py_ssize_t room = len(self._arrays["sharers"])
        self._scratch.update(lists=np.empty((4, room), np.int64), vacant=np.empty((room + 63) // 64, np.uint64))
        self.by_checksum.head = <int64_t *> cnp.PyArray_DATA(self._scratch["lists"])
        self.by_checksum.next, self.by_checksum.previous = self.by_checksum.head + room, self.by_checksum.head + 2 * room
        self.bucket_of, self.room = self.by_checksum.head + 3 * room, room
        self.vacant = <uint64_t *> cnp.PyArray_DATA(self._scratch["vacant"])
        self.list_rows()
        return 0

    cdef void list_rows(self) noexcept nogil:
        """List the rows in use by a checksum of their members, and note the vacant ones."""
        cdef Py_ssize_t row
        memset(self.by_checksum.head, -1, self.room * sizeof(int64_t))
        memset(self.vacant, 0, (self.room + 63) // 64 * sizeof(uint64_t))
        for row in range(self.n_neighbourhoods):
            if self.sharers[row]:
                self.bucket_of[row] = checksum(self.members + row * self.stride, self.words) % <uint64_t> self.room
                link(&self.by_checksum, self.bucket_of[row], row)
            else:
                put(self.vacant, row)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """New users are connected to all users, so every neighbourhood changes."""
        cdef Py_ssize_t k
        CuttingGraph.init_users(self, known)
        for k in range(self.n_neighbourhoods):
            self.sharers[k] = 0
            self.epochs[k] += 1
        for k in range(known if self.n_neighbourhoods == 0 else 0, self.n_users):
            self.row_of[k] = -1
        self.n_neighbourhoods = 0
        self.list_rows()
        return 0

    def refresh(self):
        CuttingGraph.refresh(self)
        rows, sharers = self.array("neighbourhoods"), self.array("sharers")
        if not 0 <= self.n_neighbourhoods <= self.n_users:
            raise ValueError(f"has {self.n_neighbourhoods} neighbourhoods of {self.n_users} users")
        if rows.min() < -1 or rows.max() >= self.n_neighbourhoods:
            raise ValueError("has numbers in 'neighbourhoods' that are no rows")
        if not np.array_equal(np.bincount(rows[rows >= 0], minlength=self.n_users), sharers):
            raise ValueError("has numbers in 'sharers' that are not those of its users")
        last = self.array("members")[:, -1]
        if self.n_users % 64 and (last >> np.uint64(self.n_users % 64)).any():
            raise ValueError("has users in 'members' that are not there")
        self.list_rows()

    cdef void load_neighbourhood(self, Py_ssize_t user) noexcept nogil:
        """The user and its neighbours as bits   (Alg. 2, line 13)."""
        memcpy(self.neighbourhood, self.neighbours(user), self.words * sizeof(uint64_t))
        put(self.neighbourhood, user)

    cdef void pool(self, Ridge *pools, Py_ssize_t row) noexcept nogil:
        """Sum the statistics of the users in `neighbourhood`   (Alg. 2, lines 14-15)."""
        cdef Py_ssize_t w
        cdef uint64_t word
        start_pool(pools, row, self.dim)
        for w in range(self.words):
            word = self.neighbourhood[w]
            while word:
                add_member(pools, row, &self.users, self.grams, (w << 6) + lowest_bit(word), self.dim)
                word &= word - 1
        finish_pool(pools, row, self.ridge, self.work, self.dim)

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The user and its neighbours   (Alg. 2, lines 13-15); changes no row."""
        cdef Py_ssize_t row = self.row_of[user]
        if row >= 0:
            show_row(seen, &self.pools, row, self.beta, self.ridge, self.dim)
        else:
            self.load_neighbourhood(user)
            self.pool(&self.temporary, 0)
            show_row(seen, &self.temporary, 0, self.beta, self.ridge, self.dim)
            seen.row = -1
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Update the user and every row that holds its data, those of its neighbours   (Alg. 2, lines 5 and 18)."""
        cdef Py_ssize_t w, row
        cdef uint64_t word
        self.absorb_user(user, x, reward)
        self.load_neighbourhood(user)
        for w in range(self.words):
            word = self.neighbourhood[w]
            while word:
                row = self.row_of[(w << 6) + lowest_bit(word)]
                word &= word - 1
                if row >= 0 and self.updated[row] != self.rounds:
                    self.updated[row] = self.rounds
                    absorb_row(&self.pools, row, x, reward, self.work, self.dim)
        return 0

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """After the initial uniform rounds, cut edges   (Alg. 2, line 19); then make sure that the user has a row."""
        cdef Py_ssize_t k, count = self.find_dissimilar(user) if self.rounds > self.first_cut else 0
        for k in range(count):
            drop(self.neighbours(user), self.found[k])
            drop(self.neighbours(self.found[k]), user)
            self.release_row(self.found[k])
        if count:
            self.release_row(user)
        self.assign_row(user)
        return 0

    cdef void release_row(self, Py_ssize_t user) noexcept nogil:
        """Detach the user, whose neighbourhood has changed, from its row."""
        cdef Py_ssize_t row = self.row_of[user]
        if row < 0:
            return
        self.row_of[user] = -1
        self.sharers[row] -= 1
        if self.sharers[row] == 0:
            unlink(&self.by_checksum, self.bucket_of[row], row)
            put(self.vacant, row)

    cdef void assign_row(self, Py_ssize_t user) noexcept nogil:
        """Assign a row to the user: its own, that of the same neighbourhood, or a new one   (Alg. 2, lines 13-15)."""
        cdef Py_ssize_t row, place
        if self.row_of[user] >= 0:
            return
        self.load_neighbourhood(user)
        place = checksum(self.neighbourhood, self.words) % <uint64_t> self.room
        row = self.by_checksum.head[place]
        while row >= 0 and not same(self.members + row * self.stride, self.neighbourhood, self.words):
            row = self.by_checksum.next[row]
        if row < 0:
            row = self.new_row()
            memcpy(self.members + row * self.stride, self.neighbourhood, self.words * sizeof(uint64_t))
            self.pool(&self.pools, row)
            self.epochs[row] += 1
            self.bucket_of[row] = place
            link(&self.by_checksum, place, row)
        self.row_of[user] = row
        self.sharers[row] += 1

    cdef Py_ssize_t new_row(self) noexcept nogil:
        """The lowest row that no user has."""
        cdef Py_ssize_t w, row
        for w in range((self.n_neighbourhoods + 63) >> 6):
            if self.vacant[w]:
                row = (w << 6) + lowest_bit(self.vacant[w])
                drop(self.vacant, row)
                return row
        self.n_neighbourhoods += 1
        return self.n_neighbourhoods - 1

    cdef int label(self, int64_t *out) except -1 nogil:
        """Connected components: neighbourhoods overlap, and this is the finest partition that separates no two neighbours."""
        self.components(out)
        return 0

    def cluster_of(self, Py_ssize_t user):
        """The user and its neighbours, ascending."""
        cdef Py_ssize_t other
        self.load_neighbourhood(user)
        return np.array([other for other in range(self.n_users) if has(self.neighbourhood, other)], np.int64)
