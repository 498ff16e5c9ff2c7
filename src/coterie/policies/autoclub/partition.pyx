"""Which user of AutoCLUB is in which cluster, and the clusters that a user might move to.

Users are in a cluster from their first reward on; until then they act in the one of largest effective size. Nothing here loops
over all users or all clusters in a round: the users of a cluster are linked, and of very many clusters only those of largest
effective size are candidates.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.stdlib cimport qsort

from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.linked_lists cimport check_free_slots, release_slot, link, relink, take_slot, unlink

from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef enum:
    SPARE = 4  # rows that a reward may take
    KEPT_CANDIDATES = 768  # so many stay when there are too many candidates
    FEWEST_CANDIDATES = 512  # and if there are less, they are chosen anew


cdef struct Ranked:
    double size
    int64_t row


cdef int ascending(const void *first, const void *second) noexcept nogil:
    cdef int64_t a = (<const int64_t *> first)[0], b = (<const int64_t *> second)[0]
    return (a > b) - (a < b)


cdef int by_size(const void *first, const void *second) noexcept nogil:
    """The largest effective size first, the lower row on ties."""
    cdef const Ranked *a = <const Ranked *> first
    cdef const Ranked *b = <const Ranked *> second
    if a.size != b.size:
        return 1 if a.size < b.size else -1
    return (a.row > b.row) - (a.row < b.row)


cdef class Partition(NamedArrays):
    """Users in clusters: the label of a user is the row of its cluster.

    `effective_sizes` are what the members of a cluster count for together; whoever knows the members sets them. `positions`
    are places among the candidates, from 1 on, 0 for clusters that are none: those smaller than `least_size`. `epochs` change
    where widths that were cached of a row bound those of today no longer.

    Parameters
    ----------
    users : UserHistories
        Who has given rewards: only they are `members`.
    """

    FIELDS = {
        "labels": Field(("users",), "int64"),
        "sizes": Field(("rows",), "int64"),
        "effective_sizes": Field(("rows",)),
        "epochs": Field(("rows",), "int64"),
        "positions": Field(("rows",), "int64"),
        "next_row": Field(("rows",), "int64"),
    }
    NUMBERS = ("n_clusters", "used_rows", "free_row", "least_size", "candidates_due")
    LENGTHS = {"rows": "used_rows"}
    IN_PLACE = True

    def __init__(self, UserHistories users):
        self.users, self.free_row = users, -1
        for name in ("members", "next", "previous", "collected"):
            self._scratch[name] = np.full(1, -1, np.int64)
        self._scratch["candidates"] = np.full(MOST_CANDIDATES + 1, -1, np.int64)
        NamedArrays.__init__(self, users.n_users, users.dim)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "rows": 0, "dim": dim}

    def _allocate(self):
        self._lengthen(("next", "previous", "collected"), self.n_users)
        NamedArrays._allocate(self)

    def extend(self, str axis, Py_ssize_t length):
        if axis == "rows":
            self._lengthen(("members",), length)
        NamedArrays.extend(self, axis, length)

    def _lengthen(self, names, Py_ssize_t length):
        """Room for so many in arrays that follow from others; what is there stays."""
        for name in names:
            old = self._scratch[name]
            if length > len(old):
                self._scratch[name] = np.full(length + length // 8, -1, np.int64)
                self._scratch[name][: len(old)] = old

    cdef int bind(self) except -1:
        self.sizes, self.effective_sizes = <int64_t *> self.pointer("sizes"), <double *> self.pointer("effective_sizes")
        self.next_row, self.positions = <int64_t *> self.pointer("next_row"), <int64_t *> self.pointer("positions")
        self.rows_room = min(len(self._arrays["sizes"]), len(self._scratch["members"]))
        self.members.head, self.members.next = self.indices("members"), self.indices("next")
        self.members.previous = self.indices("previous")
        self.collected, self.candidates = self.indices("collected"), self.indices("candidates")
        return NamedArrays.bind(self)

    cdef int64_t *indices(self, str name) except NULL:
        """The address of an array that follows from others."""
        return <int64_t *> cnp.PyArray_DATA(self._scratch[name])

    def refresh(self):
        seen = self.users.array("pulls") > 0
        rows, sizes, positions = self.array("labels")[seen], self.array("sizes"), self.array("positions")
        taken = sizes if seen.any() else np.ones(1, np.int64)  # the cluster that the first user will enter
        cdef int64_t *counts = <int64_t *> cnp.PyArray_DATA(taken)
        if rows.size and not 0 <= rows.min() <= rows.max() < self.used_rows:
            raise ValueError("has numbers in 'labels' that are no rows")
        if not np.array_equal(np.bincount(rows, minlength=self.used_rows), sizes):
            raise ValueError("has sizes of clusters that are not those of its labels")
        if np.count_nonzero(taken) != self.n_clusters or len(taken) != self.used_rows:
            raise ValueError(f"has {np.count_nonzero(taken)} clusters, not {self.n_clusters}")
        if not check_free_slots(self.next_row, self.free_row, self.used_rows, counts):
            raise ValueError("has rows that belong to no cluster")
        listed = np.flatnonzero(positions)
        self.n_candidates = len(listed)
        if not np.array_equal(np.sort(positions[listed]), np.arange(1, len(listed) + 1)) or len(listed) > MOST_CANDIDATES:
            raise ValueError("has candidates among its clusters that are none")
        if not taken[listed].all():
            raise ValueError("has candidates among its clusters that have no members")
        self._lengthen(("members",), self.used_rows)
        self.bind()
        for row in listed.tolist():
            self.set_candidate(row, self.positions[<Py_ssize_t> row])
        self.link_members()

    cdef void link_members(self) noexcept nogil:
        """All lists anew from the label of each user."""
        cdef Py_ssize_t row, user
        for row in range(self.used_rows):
            self.members.head[row] = -1
        for user in range(self.n_users):
            if self.users.pulls[user] > 0:
                link(&self.members, self.row_of[user], user)

    cdef int make_space(self, int64_t rounds) except -1 nogil:
        """Room for the clusters that a reward may open."""
        if self.used_rows + SPARE > self.rows_room:
            with gil:
                self.extend("rows", self.used_rows + SPARE)
        if self.n_candidates < FEWEST_CANDIDATES and self.least_size > 0.0 and rounds >= self.candidates_due:
            with gil:
                self.rebuild_candidates(rounds)
        return 0

    # Clusters and their members.

    cdef Py_ssize_t open_row(self) noexcept nogil:
        """A row for a new cluster."""
        cdef Py_ssize_t row = take_slot(self.next_row, &self.free_row, &self.used_rows)
        self.members.head[row] = -1
        self.sizes[row], self.positions[row] = 0, 0
        self.epochs[row] += 1
        self.n_clusters += 1
        return row

    cdef void close_row(self, Py_ssize_t row) noexcept nogil:
        """A cluster without members is none."""
        self.remove_candidate(row)
        self.sizes[row] = 0
        self.n_clusters -= 1
        release_slot(self.next_row, &self.free_row, row)

    cdef void enter(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil:
        """A user is in this cluster."""
        link(&self.members, row, user)
        self.row_of[user] = row
        self.sizes[row] += 1

    cdef void leave(self, Py_ssize_t user) noexcept nogil:
        """A user is in its cluster no more."""
        unlink(&self.members, self.row_of[user], user)
        self.sizes[self.row_of[user]] -= 1

    cdef void merge_rows(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil:
        """All users of another cluster, which is to be closed, are in this one."""
        relink(&self.members, row, other, self.row_of)
        self.sizes[row] += self.sizes[other]

    cdef Py_ssize_t collect_members(self, Py_ssize_t row) noexcept nogil:
        """Put the users of a cluster into `collected`, ascending; returns how many they are."""
        cdef Py_ssize_t n = 0
        cdef int64_t user = self.members.head[row]
        while user >= 0:
            self.collected[n] = user
            n += 1
            user = self.members.next[user]
        qsort(self.collected, n, sizeof(int64_t), ascending)
        return n

    cdef Py_ssize_t largest_row(self) noexcept nogil:
        """The cluster of largest effective size, in which users without rewards act; the first candidate on ties."""
        cdef Py_ssize_t k, found = self.candidates[0]
        for k in range(1, self.n_candidates):
            if self.effective_sizes[self.candidates[k]] > self.effective_sizes[found]:
                found = self.candidates[k]
        return found

    cdef void place_newcomer(self, Py_ssize_t user) noexcept nogil:
        """A user without rewards acts in the largest cluster, and enters it with its first reward."""
        self.row_of[user] = self.largest_row()

    cdef void invalidate_widths(self, Py_ssize_t row) noexcept nogil:
        """A row has lost data: widths that were cached of it are no bounds any more."""
        self.epochs[row] += 1

    # Effective sizes, and the candidates that follow from them.

    cdef void set_size(self, Py_ssize_t row, double size) noexcept nogil:
        self.effective_sizes[row] = size

    cdef void change_size(self, Py_ssize_t row, double by) noexcept nogil:
        self.effective_sizes[row] += by

    cdef void update_candidate(self, Py_ssize_t row) noexcept nogil:
        """The effective size of a cluster has changed: is it a candidate?"""
        if self.effective_sizes[row] < self.least_size:
            self.remove_candidate(row)
        elif self.positions[row] == 0:
            self.n_candidates += 1
            self.set_candidate(row, self.n_candidates)
            if self.n_candidates > MOST_CANDIDATES:
                self.trim_candidates()

    cdef void set_candidate(self, Py_ssize_t row, Py_ssize_t position) noexcept nogil:
        """A cluster is the candidate of this position, from 1 on."""
        self.candidates[position - 1], self.positions[row] = row, position

    cdef void remove_candidate(self, Py_ssize_t row) noexcept nogil:
        """A cluster is no candidate any more, if it was; the last one takes its position."""
        cdef int64_t last
        if self.positions[row] == 0:
            return
        last = self.candidates[self.n_candidates - 1]
        if last != row:
            self.set_candidate(last, self.positions[row])
        self.positions[row] = 0
        self.n_candidates -= 1

    cdef void trim_candidates(self) noexcept nogil:
        """Only the largest clusters stay candidates."""
        cdef Ranked[MOST_CANDIDATES + 1] ranked
        cdef Py_ssize_t k
        for k in range(self.n_candidates):
            ranked[k] = Ranked(self.effective_sizes[self.candidates[k]], self.candidates[k])
        qsort(ranked, self.n_candidates, sizeof(Ranked), by_size)
        for k in range(self.n_candidates):
            if k < KEPT_CANDIDATES:
                self.set_candidate(ranked[k].row, k + 1)
            else:
                self.positions[ranked[k].row] = 0
        self.n_candidates, self.least_size = KEPT_CANDIDATES, ranked[KEPT_CANDIDATES - 1].size

    cdef int rebuild_candidates(self, int64_t rounds) except -1:
        """Candidates anew from all clusters; not again before as many rounds as there are rows."""
        cdef Py_ssize_t k
        rows = np.flatnonzero(self.array("sizes"))
        sizes = self.array("effective_sizes")[rows]
        self.candidates_due, self.least_size = rounds + self.used_rows, 0.0
        if len(rows) > MOST_CANDIDATES:
            self.least_size = np.partition(sizes, len(rows) - KEPT_CANDIDATES)[len(rows) - KEPT_CANDIDATES]
            rows = rows[sizes >= self.least_size][:MOST_CANDIDATES]
        self.array("positions")[...] = 0
        self.n_candidates = len(rows)
        for k in range(self.n_candidates):
            self.set_candidate(rows[k], k + 1)
        return 0
