"""Thompson sampling on rows that never change: for all users, for each, or for known clusters."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_normal

from coterie.policies._linalg cimport cholesky, dot, means
from coterie.policies._rows cimport FixedRows
from coterie.policies._offers cimport Memory, Offer, View, largest

cnp.import_array()


cdef class SampledRows(FixedRows):
    """θ̃ ~ N(θ̂, β²M⁻¹) is drawn for each decision; the arm of largest xᵀθ̃ is played."""

    cdef double *factor
    cdef double *sample

    cdef int bind(self) except -1:
        room = np.zeros(self.dim * self.dim + 2 * self.dim)
        self._scratch["sample"] = room
        self.factor = <double *> cnp.PyArray_DATA(room)
        self.sample = self.factor + self.dim * self.dim
        return FixedRows.bind(self)

    cdef void draw(self, Py_ssize_t user) noexcept nogil:
        """θ̃ = θ̂ + βLz with LLᵀ = M⁻¹ and z standard normal."""
        cdef View seen
        cdef Py_ssize_t i
        cdef double *normals = self.sample + self.dim
        self.view(user, &seen)
        cholesky(seen.inverse, self.factor, self.work, self.dim)
        for i in range(self.dim):
            normals[i] = random_standard_normal(self.bitgen)
        for i in range(self.dim):
            self.sample[i] = seen.estimate[i] + seen.beta * dot(self.factor + i * self.dim, normals, i + 1)

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, Memory *memory) except -2 nogil:
        """The first arm of largest xᵀθ̃; -1 if an arm is too long."""
        cdef int64_t arm
        if self.too_long(offer):
            return -1
        self.rank(user, offer, 1, &arm)
        return arm

    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil:
        """The k arms of largest xᵀθ̃, of one sample."""
        self.draw(user)
        means(self.sample, offer.items, offer.picks, offer.n, self.dim, self.upper)
        largest(self.upper, offer.n, k, out)
        return 0
