"""Thompson sampling on rows that never change: for all users, for each, or for known clusters."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t

from coterie.policies._linalg cimport means
from coterie.policies._offers cimport Memory, Offer, View, largest
from coterie.policies._rows cimport FixedRows
from coterie.policies._samples cimport draw_sample

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

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, Memory *memory) except -2 nogil:
        """The first arm of largest xᵀθ̃; -1 if an arm is too long."""
        cdef int64_t arm
        if self.too_long(offer):
            return -1
        self.rank(user, offer, 1, &arm)
        return arm

    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil:
        """The k arms of largest xᵀθ̃, of one sample."""
        cdef View seen
        self.view(user, &seen)
        draw_sample(&seen, self.bitgen, self.factor, self.work, self.sample, self.dim)
        means(self.sample, offer.items, offer.picks, offer.n, self.dim, self.upper)
        largest(self.upper, offer.n, k, out)
        return 0
