"""Decisions in a hierarchical model: by the upper bounds of posteriors, or by samples of them."""

import numpy as np

cimport numpy as cnp
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_normal

from coterie.policies._hier_prior cimport LearntPrior
from coterie.policies._linalg cimport cholesky, dot, means, quadratics
from coterie.policies._offers cimport Memory, Offer, largest, row

cnp.import_array()


cdef class UpperBounds(LearntPrior):
    """The arm of largest posterior mean plus posterior standard deviation.

    Widths are computed for all arms: each fit changes every posterior, so nothing is remembered.
    """

    cdef int reserve(self, Py_ssize_t n_arms) except -1:
        """Room for so many arms with their intercepts."""
        if n_arms > self.n_arms:
            self._scratch["arms"] = np.empty((n_arms, self.size))
            self.longer_arms = <double *> cnp.PyArray_DATA(self._scratch["arms"])
        return LearntPrior.reserve(self, n_arms)

    cdef int bind(self) except -1:
        if "deviates" not in self._scratch:
            self._scratch["deviates"] = np.zeros(2 * self.size)
        self.deviates = <double *> cnp.PyArray_DATA(self._scratch["deviates"])
        return LearntPrior.bind(self)

    cdef Offer lengthened(self, Offer *offer) noexcept nogil:
        """The arms with their intercepts, if there is one."""
        cdef Offer longer
        cdef Py_ssize_t k
        if not self.intercept:
            return offer[0]
        for k in range(offer.n):
            self.longer_arms[k * self.size] = 1.0
            memcpy(self.longer_arms + k * self.size + 1, row(offer, k, self.dim), self.dim * sizeof(double))
        longer.items, longer.picks, longer.n = self.longer_arms, NULL, offer.n
        return longer

    cdef const double *covariance_of(self, Py_ssize_t user) noexcept nogil:
        """V of a user; of one who has told nothing, that of the prior."""
        return self.newcomer if self.pulls[user] == 0 else self.covariances + user * self.size * self.size

    cdef const double *mean_of(self, Py_ssize_t user) noexcept nogil:
        """m of a user; of one who has told nothing, that of the prior."""
        return self.centre if self.pulls[user] == 0 else self.means + user * self.size

    cdef int judge(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        """xᵀm and σ√(xᵀVx) of every arm, the latter times √ln(t + 1) if the bonus grows."""
        cdef Offer longer = self.lengthened(offer)
        cdef Py_ssize_t k
        cdef double noise = sqrt(self.noise2) * self.time_factor()
        means(self.mean_of(user), longer.items, longer.picks, longer.n, self.size, mean)
        quadratics(self.covariance_of(user), longer.items, longer.picks, longer.n, self.size, width)
        for k in range(longer.n):
            width[k] = noise * sqrt(max(width[k], 0.0))
        return 0

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, Memory *memory) except -2 nogil:
        """The first arm of largest score; -1 if an arm is too long."""
        cdef int64_t arm
        if self.too_long(offer):
            return -1
        self.rank(user, offer, 1, &arm)
        return arm


cdef class PosteriorSamples(UpperBounds):
    """θ̃ ~ N(m, c²σ²V) is drawn for each decision, c the scale; the arm of largest xᵀθ̃ is played."""

    cdef double scale

    def __init__(self, n_users, dim, *, scale, **others):
        self.scale = scale
        UpperBounds.__init__(self, n_users, dim, **others)

    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil:
        """The k arms of largest xᵀθ̃, of one sample: θ̃ = m + cσLz, LLᵀ = V, z standard normal."""
        cdef Offer longer = self.lengthened(offer)
        cdef const double *mean = self.mean_of(user)
        cdef double *sample = self.deviates + self.size
        cdef double noise = self.scale * sqrt(self.noise2)
        cdef Py_ssize_t i
        cholesky(self.covariance_of(user), self.product, self.scratch, self.size)
        for i in range(self.size):
            self.deviates[i] = random_standard_normal(self.bitgen)
        for i in range(self.size):
            sample[i] = mean[i] + noise * dot(self.product + i * self.size, self.deviates, i + 1)
        means(sample, longer.items, longer.picks, longer.n, self.size, self.upper)
        largest(self.upper, longer.n, k, out)
        return 0
