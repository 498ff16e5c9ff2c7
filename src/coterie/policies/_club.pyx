"""CLUB, UniCLUB, SACLUB: a graph loses edges, its connected components are the clusters   (Alg. 1)."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from coterie.policies._bits cimport count_bits, drop, lowest_bit, meet, put
from coterie.policies._graph cimport CuttingGraph
from coterie.policies._linalg cimport absorb_row, add_member, clear_row, finish_pool, start_pool
from coterie.policies._offers cimport View, show_row

from coterie.policies._graph import CuttingGraph as Base
from coterie.policies._arrays import Field

cnp.import_array()

cdef enum:
    MANY = 64  # neighbours of a user whose part is hardly small


cdef class Components(CuttingGraph):
    """Clusters are the connected components of the graph, with their pooled statistics, a row each."""

    FIELDS = {**Base.FIELDS, "labels": Field(("users",), "int64")}
    NUMBERS = ("rounds", "n_components")

    cdef int welcome(self, Py_ssize_t known) except -1:
        """With newcomers, who know everybody, all are one component."""
        cdef Py_ssize_t row, user
        CuttingGraph.welcome(self, known)
        if known == 0:
            clear_row(&self.pools, 0, self.ridge, self.dim)
        elif self.n_components > 1:
            start_pool(&self.pools, 0, self.dim)
            for user in range(known):
                add_member(&self.pools, 0, &self.users, self.grams, user, self.dim)
                self.row_of[user] = 0
            finish_pool(&self.pools, 0, self.ridge, self.work, self.dim)
            for row in range(self.n_components):
                self.epochs[row] += 1
        self.n_components = 1
        return 0

    def refresh(self):
        CuttingGraph.refresh(self)
        labels = self.array("labels")
        if not 1 <= self.n_components <= self.n_users:
            raise ValueError(f"has {self.n_components} components of {self.n_users} users")
        if not np.array_equal(np.unique(labels), np.arange(self.n_components)):
            raise ValueError("has numbers in 'labels' that are no components")
        found = np.empty(self.n_users, np.int64)
        if self.components(<int64_t *> cnp.PyArray_DATA(found)) != self.n_components:
            raise ValueError(f"has other components in 'edges' than {self.n_components}")
        named = np.empty(self.n_components, np.int64)
        named[found] = labels
        if not np.array_equal(named[found], labels):
            raise ValueError("has numbers in 'labels' that are not the components of 'edges'")

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The component of the user   (Alg. 1, lines 6-8)."""
        show_row(seen, &self.pools, self.row_of[user], self.beta, self.ridge, self.dim)
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        self.absorb_user(user, x, reward)  # Alg. 1, line 11
        absorb_row(&self.pools, self.row_of[user], x, reward, self.work, self.dim)  # lines 7-8, kept up to date
        return 0

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Cut the edges to users who are no longer alike   (Alg. 1, line 12)."""
        cdef Py_ssize_t count = self.strangers(user), k
        cdef bint apart = False
        for k in range(count):
            drop(self.neighbours(user), self.found[k])
            drop(self.neighbours(self.found[k]), user)
        for k in range(count):
            apart = apart or not meet(self.neighbours(user), self.neighbours(self.found[k]), self.words)
        if apart:  # some pair has no common neighbour left, so the component may have come apart
            self.divide(user, count)
        return 0

    cdef void divide(self, Py_ssize_t user, Py_ssize_t count) noexcept nogil:
        """See whether a component has come apart where its user lost edges to those found.

        Each part holds one of them. Parts that are searched to their end are marked; when all who are left can reach each
        other, they are one part, and need no search to its end.
        """
        cdef Py_ssize_t row = self.row_of[user], k, w, parts = 0
        cdef uint64_t word
        memset(self.goals, 0, self.words * sizeof(uint64_t))
        put(self.goals, user)
        for k in range(count):
            put(self.goals, self.found[k])
        while not self.reach(self.loneliest(), self.goals):
            parts += 1
            for w in range(self.words):
                self.goals[w] &= ~self.reached[w]
                word = self.reached[w]
                while word:
                    self.row_of[(w << 6) + lowest_bit(word)] = -parts
                    word &= word - 1
        if parts:
            self.relabel(row, parts)

    cdef Py_ssize_t loneliest(self) noexcept nogil:
        """The goal with the fewest neighbours, whose part is likely to be small; the first if all have many."""
        cdef Py_ssize_t w, v, user, degree, least = MANY, found = -1
        cdef uint64_t word
        for w in range(self.words):
            word = self.goals[w]
            while word and least:
                user = (w << 6) + lowest_bit(word)
                word &= word - 1
                degree = v = 0
                while degree < least and v < self.words:
                    degree += count_bits(self.neighbours(user)[v])
                    v += 1
                if degree < least or found < 0:
                    least, found = min(degree, least), user
        return found

    cdef void relabel(self, Py_ssize_t row, Py_ssize_t parts) noexcept nogil:
        """Number the parts of a component by their lowest users; the first keeps the row, the marked ones are -1, -2, …"""
        cdef Py_ssize_t user, part, first = self.n_components
        for part in range(parts + 1):
            self.found[part] = -1
        cdef bint kept = False
        for user in range(self.n_users):
            if self.row_of[user] == row or self.row_of[user] < 0:
                part = 0 if self.row_of[user] >= 0 else -self.row_of[user]
                if self.found[part] < 0 and not kept:
                    self.found[part], kept = row, True
                elif self.found[part] < 0:
                    self.found[part] = self.n_components
                    self.n_components += 1
                self.row_of[user] = self.found[part]
        self.gather(row, first)

    cdef void gather(self, Py_ssize_t row, Py_ssize_t first) noexcept nogil:
        """Sum the statistics of the users of a row, and of all rows from the first new one on   (Alg. 1, lines 7-8)."""
        cdef Py_ssize_t user, new
        start_pool(&self.pools, row, self.dim)
        for new in range(first, self.n_components):
            start_pool(&self.pools, new, self.dim)
        for user in range(self.n_users):
            if self.row_of[user] == row or self.row_of[user] >= first:
                add_member(&self.pools, self.row_of[user], &self.users, self.grams, user, self.dim)
        for new in range(first - 1, self.n_components):
            finish_pool(&self.pools, row if new < first else new, self.ridge, self.work, self.dim)
            self.epochs[row if new < first else new] += 1
