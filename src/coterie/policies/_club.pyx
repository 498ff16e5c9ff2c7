"""CLUB, UniCLUB, SACLUB: a graph loses edges, its connected components are the clusters   (Alg. 1)."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t, uint64_t

from coterie.policies._bits cimport drop, has, lowest_bit, meet
from coterie.policies._graph cimport CuttingGraph
from coterie.policies._linalg cimport absorb_row, add_member, clear_row, finish_pool, start_pool
from coterie.policies._offers cimport View, show_row

from coterie.policies._graph import CuttingGraph as Base
from coterie.policies._arrays import Field

cnp.import_array()


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
            self.divide(self.row_of[user])
        return 0

    cdef void divide(self, Py_ssize_t row) noexcept nogil:
        """Relabel a component that may have come apart: the part of its lowest user keeps the row."""
        cdef Py_ssize_t user, lowest = 0, left = 0
        while self.row_of[lowest] != row:
            lowest += 1
        self.component(lowest)
        for user in range(lowest, self.n_users):
            left += self.row_of[user] == row and not has(self.reached, user)
        if left == 0:
            return
        self.gather(row)
        for user in range(lowest, self.n_users):
            if self.row_of[user] == row and not has(self.reached, user):
                self.component(user)
                self.gather(self.n_components)
                self.n_components += 1
                self.component(lowest)

    cdef void gather(self, Py_ssize_t row) noexcept nogil:
        """Give the users that were reached this row, with their summed statistics   (Alg. 1, lines 7-8)."""
        cdef Py_ssize_t w, user
        cdef uint64_t word
        start_pool(&self.pools, row, self.dim)
        for w in range(self.words):
            word = self.reached[w]
            while word:
                user = (w << 6) + lowest_bit(word)
                word &= word - 1
                self.row_of[user] = row
                add_member(&self.pools, row, &self.users, self.grams, user, self.dim)
        finish_pool(&self.pools, row, self.ridge, self.work, self.dim)
        self.epochs[row] += 1
