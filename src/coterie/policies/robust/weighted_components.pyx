"""RCLUBWCU: CLUB whose rewards weigh less where little is known, with statistics for OCCUD   (Wang et al. 2023)."""

import numpy as np

cimport numpy as cnp
from libc.math cimport sqrt

from coterie.policies.club.components cimport Components
from coterie.policies.kernel.linalg cimport quadratic
from coterie.policies.kernel.ridge cimport Ridge, absorb_row, clear_row

from coterie.policies.club.components import Components as Base
from coterie.policies.kernel.arrays import ridge_fields

cnp.import_array()


cdef class WeightedComponents(Components):
    """Components of weighted statistics, and beside them each user's plain regression.

    Parameters
    ----------
    beta : float
        The factor of the width.
    shape : Radius
        The radius f.
    threshold : float
        α, the width above which a reward weighs less.
    """

    FIELDS = {**Base.FIELDS, **ridge_fields("plain", "users")}

    cdef Ridge plain
    cdef double threshold
    cdef double *weighted

    def __init__(self, n_users, dim, *, double threshold, **settings):
        self.threshold = threshold
        Components.__init__(self, n_users, dim, **settings)

    cdef int bind(self) except -1:
        self.plain = self.ridge_rows("plain")
        self._scratch["weighted"] = np.empty(self.dim)
        self.weighted = <double *> cnp.PyArray_DATA(self._scratch["weighted"])
        return Components.bind(self)

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Absorb (√w·x, √w·r), which adds wxxᵀ and wrx; the plain regression absorbs (x, r)."""
        cdef Py_ssize_t i
        cdef double root
        if self.plain.pulls[user] == 0:
            clear_row(&self.plain, user, self.ridge, self.dim)
            clear_row(&self.users, user, self.ridge, self.dim)
        root = sqrt(self.weight(user, x))
        absorb_row(&self.plain, user, x, reward, self.work, self.dim)
        for i in range(self.dim):
            self.weighted[i] = root * x[i]
        return Components.absorb(self, user, self.weighted, root * reward)

    cdef double weight(self, Py_ssize_t user, const double *x) noexcept nogil:
        """w = min{1, α/√(xᵀM̃ᵢ⁻¹x)}, with M̃ᵢ of the user's own weighted data, before this reward."""
        cdef double width = sqrt(max(quadratic(self.users.inverse + user * self.dim * self.dim, x, self.dim), 0.0))
        return self.threshold / width if width > self.threshold else 1.0
