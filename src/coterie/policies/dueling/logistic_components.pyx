"""COLDB: CLUB for outcomes that are won or lost, each user's regression logistic   (Wang et al. 2025)."""

import numpy as np

cimport numpy as cnp
from libc.math cimport fabs, sqrt

from coterie.policies.club.components cimport Components
from coterie.policies.kernel.linalg cimport dot, exponential, quadratic
from coterie.policies.kernel.ridge cimport clear_row

cnp.import_array()


cdef double LEAST_CURVATURE = 1e-9  # of outcomes with probability near 0 or 1; keeps 1/σ'(m) finite
cdef double CLOSE = 1e-14  # relative size of the last Newton step
cdef enum:
    MOST_STEPS = 100


cdef double logistic(double m) noexcept nogil:
    """σ(m) = 1/(1 + e⁻ᵐ), whatever m is."""
    cdef double tail = exponential(-min(fabs(m), 700.0))
    return 1.0 / (1.0 + tail) if m >= 0.0 else tail / (1.0 + tail)


cdef double mode(double start, double width2, double outcome) noexcept nogil:
    """The root of m = m₀ + (y − σ(m))·w², by Newton's method between bounds that close in on it."""
    cdef double low = start - width2 * (1.0 - outcome), high = start + width2 * outcome
    cdef double m = min(max(start, low), high), p, excess, following
    cdef Py_ssize_t k
    for k in range(MOST_STEPS):
        p = logistic(m)
        excess = (m - start) - width2 * (outcome - p)
        if excess > 0.0:
            high = m
        else:
            low = m
        following = m - excess / (1.0 + width2 * p * (1.0 - p))
        if not low <= following <= high:
            following = 0.5 * (low + high)
        if fabs(following - m) <= CLOSE * (1.0 + fabs(m)):
            return following
        m = following
    return m


cdef class LogisticComponents(Components):
    """Components of logistic regressions that are kept as Gaussians: their modes and curvatures.

    Parameters
    ----------
    beta : float
        The factor of the width.
    shape : Radius
        The radius f.
    """

    DUEL_REWARDS = (0.0, 1.0)

    cdef double *weighted

    cdef int bind(self) except -1:
        self._scratch["weighted"] = np.empty(self.dim)
        self.weighted = <double *> cnp.PyArray_DATA(self._scratch["weighted"])
        return Components.bind(self)

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Absorb (√c·z, √c·(m + (y − σ(m))/c)), c = σ'(m): the user's θ̂ becomes the mode with z and y."""
        cdef Py_ssize_t i
        cdef double outcome = min(max(reward, 0.0), 1.0), m, p, curvature, root
        if self.users.pulls[user] == 0:
            clear_row(&self.users, user, self.ridge, self.dim)
        m = mode(
            dot(self.users.estimate + user * self.dim, x, self.dim),
            max(quadratic(self.users.inverse + user * self.dim * self.dim, x, self.dim), 0.0),
            outcome,
        )
        p = logistic(m)
        curvature = max(p * (1.0 - p), LEAST_CURVATURE)
        root = sqrt(curvature)
        for i in range(self.dim):
            self.weighted[i] = root * x[i]
        return Components.absorb(self, user, self.weighted, root * (m + (outcome - p) / curvature))
