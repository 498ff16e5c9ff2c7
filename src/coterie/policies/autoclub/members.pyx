"""Who is in which cluster of AutoCLUB, and the list of clusters that a user might belong to.

Nothing here touches all users or all clusters in a round: users of a cluster are linked, those without a reward apart, and
of very many clusters only those that count most are listed.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.stdlib cimport qsort

from coterie.policies.autoclub.users cimport Histories
from coterie.policies.kernel.linked_lists cimport check_free_slots, release_slot, link, relink, take_slot, unlink

from coterie.policies.autoclub.users import Histories as Base
from coterie.policies.kernel.arrays import Field

cnp.import_array()


FREEDOM = 3
"""The place of tr H among the terms of a user."""
cdef enum:
    SPARE = 4  # rows that a reward may take
    KEPT_LISTED = 768  # so many stay when the list is too long
    FEWEST_LISTED = 512  # and if there are less, it is made anew


cdef int ascending(const void *first, const void *second) noexcept nogil:
    cdef int64_t a = (<const int64_t *> first)[0], b = (<const int64_t *> second)[0]
    return (a > b) - (a < b)


cdef int by_count(const void *first, const void *second) noexcept nogil:
    """The greatest count first, the lower row on ties."""
    cdef const Ranked *a = <const Ranked *> first
    cdef const Ranked *b = <const Ranked *> second
    if a.count != b.count:
        return 1 if a.count < b.count else -1
    return (a.row > b.row) - (a.row < b.row)


cdef class Memberships(Histories):
    """The label of each user is the row of its cluster; `counts` is what the members of a cluster count for together.

    `spots` are places in the list of clusters, from 1 on, 0 for those that are not on it: clusters that count for less
    than `bar`.
    """

    FIELDS = {
        "labels": Field(("users",), "int64"),
        "sizes": Field(("rows",), "int64"),
        "counts": Field(("rows",)),
        "epochs": Field(("rows",), "int64"),
        "spots": Field(("rows",), "int64"),
        "rows.next": Field(("rows",), "int64"),
        **Base.FIELDS,
    }
    NUMBERS = (*Base.NUMBERS, "n_clusters", "used_rows", "free_row", "bar", "list_due")
    LENGTHS = {**Base.LENGTHS, "rows": "used_rows"}

    def __init__(self, n_users, dim, **others):
        self.free_row = -1
        self._scratch = {name: np.full(1, -1, np.int64) for name in ("members", "unseen", "next", "previous", "gathered")}
        self._scratch["listed"] = np.full(MOST_LISTED + 1, -1, np.int64)
        Histories.__init__(self, n_users, dim, **others)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {**Base.extents(n_users, dim), "rows": 0}

    @property
    def n_rows(self):
        """There are never more clusters than users."""
        return self.n_users

    def _allocate(self):
        self._lengthen(("next", "previous", "gathered"), self.n_users)
        Histories._allocate(self)

    def extend(self, str axis, Py_ssize_t length):
        if axis == "rows":
            self._lengthen(("members", "unseen"), length)
        Histories.extend(self, axis, length)

    def _lengthen(self, names, Py_ssize_t length):
        """Room for so many in arrays that follow from others; what is there stays."""
        for name in names:
            old = self._scratch[name]
            if length > len(old):
                self._scratch[name] = np.full(length + length // 8, -1, np.int64)
                self._scratch[name][: len(old)] = old

    cdef int bind(self) except -1:
        self.sizes, self.counts = <int64_t *> self.pointer("sizes"), <double *> self.pointer("counts")
        self.next_row, self.spots = <int64_t *> self.pointer("rows.next"), <int64_t *> self.pointer("spots")
        self.rows_room = min(len(self._arrays["sizes"]), len(self._scratch["members"]), len(self._scratch["unseen"]))
        self.members.head, self.unseen.head = self.list("members"), self.list("unseen")
        self.members.next = self.unseen.next = self.list("next")
        self.members.previous = self.unseen.previous = self.list("previous")
        self.gathered, self.listed = self.list("gathered"), self.list("listed")
        return Histories.bind(self)

    cdef int64_t *list(self, str name) except NULL:
        """The address of an array that follows from others."""
        return <int64_t *> cnp.PyArray_DATA(self._scratch[name])

    def refresh(self):
        Histories.refresh(self)
        rows, sizes, spots = self.array("labels"), self.array("sizes"), self.array("spots")
        if rows.min() < 0 or rows.max() >= self.used_rows:
            raise ValueError("has numbers in 'labels' that are no rows")
        if not np.array_equal(np.bincount(rows, minlength=self.used_rows), sizes):
            raise ValueError("has sizes of clusters that are not those of its labels")
        if np.count_nonzero(sizes) != self.n_clusters:
            raise ValueError(f"has {np.count_nonzero(sizes)} clusters, not {self.n_clusters}")
        if not check_free_slots(self.next_row, self.free_row, self.used_rows, self.sizes):
            raise ValueError("has rows that belong to no cluster")
        listed = np.flatnonzero(spots)
        self.n_listed = len(listed)
        if not np.array_equal(np.sort(spots[listed]), np.arange(1, len(listed) + 1)) or len(listed) > MOST_LISTED:
            raise ValueError("has a list of clusters that is none")
        if not sizes[listed].all():
            raise ValueError("has clusters on its list that have no members")
        known = self.array("prior.terms")[:, FREEDOM]
        counts = np.bincount(rows, (1.0 + known) / (1.0 + self.dim), minlength=self.used_rows)
        if known.min() < 0 or not np.allclose(self.array("counts")[sizes > 0], counts[sizes > 0], rtol=1e-6):
            raise ValueError("has clusters that do not count as their members do")
        self._lengthen(("members", "unseen"), self.used_rows)
        self.bind()
        for row in listed.tolist():
            self.place(row, self.spots[<Py_ssize_t> row])
        self.list_members()

    cdef void list_members(self) noexcept nogil:
        """All lists anew from the label of each user."""
        cdef Py_ssize_t row, user
        for row in range(self.used_rows):
            self.members.head[row] = self.unseen.head[row] = -1
        for user in range(self.n_users):
            link(&self.members if self.pulls[user] > 0 else &self.unseen, self.row_of[user], user)

    cdef int make_space(self) except -1 nogil:
        if self.used_rows + SPARE > self.rows_room:
            with gil:
                self.extend("rows", self.used_rows + SPARE)
        if self.n_listed < FEWEST_LISTED and self.bar > 0.0 and self.rounds >= self.list_due:
            with gil:
                self.relist()
        return Histories.make_space(self)

    cdef Py_ssize_t open_row(self) noexcept nogil:
        """A row for a new cluster."""
        cdef Py_ssize_t row = take_slot(self.next_row, &self.free_row, &self.used_rows)
        self.members.head[row] = self.unseen.head[row] = -1
        self.sizes[row], self.spots[row] = 0, 0
        self.epochs[row] += 1
        self.n_clusters += 1
        return row

    cdef void close_row(self, Py_ssize_t row) noexcept nogil:
        """A cluster without members is none."""
        self.strike(row)
        self.sizes[row] = 0
        self.n_clusters -= 1
        release_slot(self.next_row, &self.free_row, row)

    cdef void enter(self, Py_ssize_t row, Py_ssize_t user) noexcept nogil:
        """A user is in this cluster."""
        link(&self.members if self.pulls[user] > 0 else &self.unseen, row, user)
        self.row_of[user] = row
        self.sizes[row] += 1

    cdef void leave(self, Py_ssize_t user) noexcept nogil:
        """A user with rewards is in its cluster no more."""
        unlink(&self.members, self.row_of[user], user)
        self.sizes[self.row_of[user]] -= 1

    cdef void awake(self, Py_ssize_t user) noexcept nogil:
        """A user gives its first reward."""
        unlink(&self.unseen, self.row_of[user], user)
        link(&self.members, self.row_of[user], user)

    cdef void unite(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil:
        """All users of another cluster are in this one."""
        relink(&self.members, row, other, self.row_of)
        relink(&self.unseen, row, other, self.row_of)
        self.sizes[row] += self.sizes[other]

    cdef double crowd_of(self, Py_ssize_t user) noexcept nogil:
        """What a user counts for among the members of its cluster: (1 + tr H) / (1 + d), as far as it is known."""
        return (1.0 + self.terms[user].freedom) / (1.0 + self.dim)

    cdef Py_ssize_t gather(self, Py_ssize_t row) noexcept nogil:
        """Put the users of a cluster who have given rewards into `gathered`, ascending; returns how many they are."""
        cdef Py_ssize_t n = 0
        cdef int64_t user = self.members.head[row]
        while user >= 0:
            self.gathered[n] = user
            n += 1
            user = self.members.next[user]
        qsort(self.gathered, n, sizeof(int64_t), ascending)
        return n

    # The list of clusters.

    cdef Py_ssize_t nobody_taught(self, Py_ssize_t known) noexcept nogil:
        """The lowest cluster on the list whose users have given no reward, or the last user's; -1 if there is none."""
        cdef Py_ssize_t k, row, found = -1
        for k in range(self.n_listed):
            row = self.listed[k]
            if self.members.head[row] < 0 and (found < 0 or row < found):
                found = row
        if found < 0 and known > 0 and self.members.head[self.row_of[known - 1]] < 0:
            return self.row_of[known - 1]
        return found

    cdef void place(self, Py_ssize_t row, Py_ssize_t spot) noexcept nogil:
        """A cluster is at this spot of the list, from 1 on."""
        self.listed[spot - 1], self.spots[row] = row, spot

    cdef void enlist(self, Py_ssize_t row) noexcept nogil:
        """What a cluster counts for has changed: is it on the list?"""
        if self.counts[row] < self.bar:
            self.strike(row)
        elif self.spots[row] == 0:
            self.n_listed += 1
            self.place(row, self.n_listed)
            if self.n_listed > MOST_LISTED:
                self.shorten()

    cdef void strike(self, Py_ssize_t row) noexcept nogil:
        """A cluster is not on the list any more, if it was."""
        cdef int64_t last
        if self.spots[row] == 0:
            return
        last = self.listed[self.n_listed - 1]
        if last != row:
            self.place(last, self.spots[row])
        self.spots[row] = 0
        self.n_listed -= 1

    cdef void shorten(self) noexcept nogil:
        """Only the clusters that count most stay on the list."""
        cdef Ranked[MOST_LISTED + 1] ranked
        cdef Py_ssize_t k
        for k in range(self.n_listed):
            ranked[k] = Ranked(self.counts[self.listed[k]], self.listed[k])
        qsort(ranked, self.n_listed, sizeof(Ranked), by_count)
        for k in range(self.n_listed):
            if k < KEPT_LISTED:
                self.place(ranked[k].row, k + 1)
            else:
                self.spots[ranked[k].row] = 0
        self.n_listed, self.bar = KEPT_LISTED, ranked[KEPT_LISTED - 1].count

    cdef int relist(self) except -1:
        """The list anew from all clusters; not again before as many rounds as there are rows."""
        cdef Py_ssize_t k
        rows = np.flatnonzero(self.array("sizes"))
        counts = self.array("counts")[rows]
        self.list_due, self.bar = self.rounds + self.used_rows, 0.0
        if len(rows) > MOST_LISTED:
            self.bar = np.partition(counts, len(rows) - KEPT_LISTED)[len(rows) - KEPT_LISTED]
            rows = rows[counts >= self.bar][:MOST_LISTED]
        self.array("spots")[...] = 0
        self.n_listed = len(rows)
        for k in range(self.n_listed):
            self.place(rows[k], k + 1)
        return 0
