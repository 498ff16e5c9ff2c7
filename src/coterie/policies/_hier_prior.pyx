"""How σ, μ and the whole Σ are learnt: from all users' posteriors, at geometric times.

The step for Σ is the fixed point of the marginal likelihood, not expectation–maximisation, which hardly leaves a Σ that is
too small. Σ is drawn towards an isotropic one by pseudo-users; how many, users decide whose data was not used.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from coterie.policies._hier_rows cimport Fold, UserRows, half
from coterie.policies._linalg cimport add_scaled, apply, cholesky, dot, eliminate, finish_inverse
from coterie.policies._matrices cimport congruent, eigen, invert_lower, multiply, multiply_transposed, transpose

cnp.import_array()

cdef double PSEUDO = 0.5  # pseudo-users for each dimension whose preferences have the variance σ²/ridge
cdef double TINY = 1e-8  # σ̂² is no less than this part of the mean of r², and of what a given Σ makes of rewards, for rounding
cdef double LEAST = 1e-100  # σ̂² of rewards that are all zero
cdef enum:
    GRID = 5
    AT_FIRST = 8  # fits come at twice the rewards until they are p²/8 rewards apart
    FREE = 256  # so many users cost little enough to fit often
    EXAMINERS = 32  # users of each half, at most, whose evidence counts
cdef double[GRID] SHRINKAGES = [32.0, 8.0, 2.0, 0.5, 0.125]


cdef class LearntPrior(UserRows):
    """The prior of a hierarchical model, with room to learn it."""

    def __init__(self, n_users, dim, *, noise, covariance, **others):
        self.noise_given, self.covariance_given = noise is not None, covariance is not None
        UserRows.__init__(self, n_users, dim, noise=noise, covariance=covariance, **others)

    cdef int bind(self) except -1:
        cdef Py_ssize_t p = self.size, square = self.size * self.size
        if "prior" not in self._scratch:
            self._scratch["prior"] = np.zeros(12 * square + 5 * p)
            if self.covariance is not None:
                self._scratch["given"] = np.ascontiguousarray(self.covariance)
        cdef double *room = <double *> cnp.PyArray_DATA(self._scratch["prior"])
        if self.covariance_given:
            self.fixed = <double *> cnp.PyArray_DATA(self._scratch["given"])
        self.factor, self.inverse_factor, self.vectors = room, room + square, room + 2 * square
        self.all_known.inwards, self.all_known.outwards = room + 3 * square, room + 4 * square
        self.half_known.inwards, self.half_known.outwards = room + 9 * square, room + 10 * square
        self.told, self.candidate = room + 5 * square, room + 6 * square
        self.everybody.inverses, self.everybody.scatter = room + 7 * square, room + 8 * square
        self.start = room + 11 * square
        self.target, self.weights = self.start + p, self.start + 2 * p
        self.all_known.values, self.half_known.values = self.start + 3 * p, self.start + 4 * p
        return UserRows.bind(self)

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Fit the model anew when rewards are a sixth more, or twice as many at first, if there is anything to learn.

        A fit is also paid by a reward for each user beyond 256.
        """
        cdef int64_t soon
        if self.rounds < self.due or (self.noise_given and self.mean_given and self.covariance_given):
            return 0
        self.fit()
        soon = max(self.rounds // 6, min(self.rounds, 1 + <int64_t> (self.size * self.size) // AT_FIRST))
        self.due = self.rounds + soon + max(0, <int64_t> self.everybody.users - FREE)
        return 0

    cdef bint is_sound(self) noexcept nogil:
        """Are σ, μ and Σ numbers, whatever the rewards were?"""
        cdef Py_ssize_t i
        cdef double total = self.noise2 + self.spread2
        for i in range(self.size):
            total += fabs(self.centre[i]) + self.relative[i * self.size + i] + self.newcomer[i * self.size + i]
        return total < INFINITY

    cdef void start_over(self) noexcept nogil:
        """The prior as at the start; posteriors follow with the next fit."""
        cdef Py_ssize_t i, p = self.size
        self.noise2, self.spread2 = 1.0, 1.0 / self.ridge
        for i in range(p):
            self.centre[i] = 0.0
        for i in range(p * p):
            self.relative[i] = self.newcomer[i] = (1.0 / self.ridge if i % (p + 1) == 0 else 0.0)

    cdef void fit(self) noexcept nogil:
        """Posteriors under the prior of the last fit; then the prior of the next one."""
        self.condition()
        self.settle_noise()
        self.settle_spread()
        self.settle_covariance()

    cdef void settle_noise(self) noexcept nogil:
        """σ̂² = (Σ RSS + v)/(N − Σ tr VS + 1): residuals per degree of freedom, and one more reward of the usual variance v."""
        cdef double usual = self.square / self.rewards, level = self.level / self.rewards
        if self.noise_given:
            return
        if self.intercept:
            usual = max(usual - level * level, 0.0)
        self.noise2 = (max(self.residual, 0.0) + usual) / (max(self.rewards - self.freedom, 0.0) + 1.0)
        self.noise2 = max(self.noise2, max(TINY * self.largest_part(), LEAST))

    cdef double largest_part(self) noexcept nogil:
        """The mean of r², or the variance of rewards by a given Σ as if all features were alike, whichever is greater."""
        cdef Py_ssize_t i
        cdef double variance = 0.0
        if self.covariance_given:
            for i in range(self.intercept, self.size):
                variance += self.fixed[i * self.size + i] * self.reach / (self.dim * self.rewards)
            if self.intercept:
                variance += self.fixed[0]
        return max(self.square / self.rewards, variance)

    cdef void settle_spread(self) noexcept nogil:
        """The variance of the mean's coordinates, relative to σ²: one step to the fixed point of its likelihood."""
        cdef Py_ssize_t i, first = self.intercept, p = self.size
        cdef double about = self.ridge * (self.reach / self.rewards if self.reach > 0.0 else 1.0)
        cdef double known = 0.0, length2 = 0.0, pseudo = PSEUDO * self.dim
        for i in range(p):
            self.start[i] = 1.0 / (self.ridge if i < first else about)
        if self.mean_given:
            return
        for i in range(first, p):
            known += 1.0 - self.doubt[i * p + i] / self.spread2
            length2 += self.centre[i] * self.centre[i]
        self.spread2 = (length2 / self.noise2 + pseudo / about) / (max(known, 0.0) + pseudo)

    cdef void settle_covariance(self) noexcept nogil:
        """A for the next fit: from all users, shrunk as much as the evidence says."""
        cdef Py_ssize_t i, p = self.size
        self.everybody.users = self.folds[0].users + self.folds[1].users
        if self.covariance_given:
            for i in range(p * p):
                self.relative[i] = self.fixed[i] / self.noise2
            return
        for i in range(p * p):
            self.factor[i] = 0.0
            self.everybody.inverses[i] = self.folds[0].inverses[i] + self.folds[1].inverses[i]
            self.everybody.scatter[i] = self.folds[0].scatter[i] + self.folds[1].scatter[i]
        cholesky(self.relative, self.factor, self.scratch, p)
        invert_lower(self.factor, self.inverse_factor, p)
        self.examine(&self.everybody, &self.all_known)
        self.set_target()
        if self.folds[0].users > 0.0 and self.folds[1].users > 0.0:
            self.choose_shrinkage()
        self.step(&self.everybody, &self.all_known, self.shrinkage, self.relative)

    cdef void examine(self, Fold *fold, Directions *known) noexcept nogil:
        """The eigenvalues g of RᵀHR, A = RRᵀ: by how many users each direction is known; H is left in `told`.

        H is less what was used up by the mean, as if all users knew alike.
        """
        cdef Py_ssize_t i, p = self.size
        self.information(fold.users, fold.inverses, self.told)
        congruent(self.told, self.doubt, self.matrix, self.scratch, p)
        add_scaled(self.told, -1.0 / fold.users, self.matrix, p * p)
        transpose(self.factor, self.matrix, p)
        congruent(self.matrix, self.told, self.product, self.scratch, p)
        eigen(self.product, self.vectors, p)
        for i in range(p):
            known.values[i] = max(self.product[i * p + i], 0.0)
        multiply(self.vectors, self.inverse_factor, known.inwards, p)
        multiply_transposed(self.factor, self.vectors, known.outwards, self.scratch, p)

    cdef void step(self, Fold *fold, Directions *known, double pseudo, double *out) noexcept nogil:
        """R G^-½ F G^-½ Rᵀ, F = R⁻¹(Σδδᵀ/σ²)R⁻ᵀ: what differs over what is known, pseudo-users in both."""
        cdef Py_ssize_t i, j, p = self.size
        cdef double least = PSEUDO * p
        for i in range(p * p):
            self.matrix[i] = fold.scatter[i] / self.noise2
        for i in range(p):
            self.matrix[i * p + i] += pseudo * self.target[i] + least * self.start[i]
            self.weights[i] = 1.0 / sqrt(known.values[i] + pseudo + least)
        congruent(known.inwards, self.matrix, self.product, self.scratch, p)
        for i in range(p):
            for j in range(p):
                self.product[i * p + j] *= self.weights[i] * self.weights[j]
        congruent(known.outwards, self.product, out, self.scratch, p)

    cdef void set_target(self) noexcept nogil:
        """An isotropic covariance: as large as what the unshrunk step says of directions that are known."""
        cdef Py_ssize_t i, first = self.intercept, p = self.size
        cdef double known = 0.0, large = 0.0
        for i in range(p):
            self.target[i] = 0.0
        self.step(&self.everybody, &self.all_known, 0.0, self.candidate)
        for i in range(first, p):
            known += self.told[i * p + i]
            large += dot(self.told + i * p + first, self.candidate + i * p + first, self.dim)
        for i in range(p):
            self.target[i] = large / known if known > 0.0 else self.start[i]
            if i < first:
                self.target[i] = self.candidate[0]
            self.target[i] = max(self.target[i], 1e-12 * self.start[i])

    cdef void choose_shrinkage(self) noexcept nogil:
        """The number of pseudo-users with which each half of the users explains the other best."""
        cdef Py_ssize_t which, k, best = 0
        cdef double[GRID] found
        for k in range(GRID):
            found[k] = 0.0
        for which in range(2):
            self.examine(&self.folds[which], &self.half_known)
            for k in range(GRID):
                self.step(&self.folds[which], &self.half_known, SHRINKAGES[k] * self.size, self.candidate)
                found[k] += self.evidence(1 - which, self.candidate)
        for k in range(1, GRID):
            if found[k] > found[best]:
                best = k
        self.shrinkage = SHRINKAGES[best] * self.size

    cdef double evidence(self, Py_ssize_t which, double *covariance) noexcept nogil:
        """Σ ln|B| − ln|B + S| + cᵀ(B + S)⁻¹c/σ², B = A⁻¹, c = b − Sμ, over some users of a half; A is used up."""
        cdef Py_ssize_t user, i, p = self.size, count = 0
        cdef Py_ssize_t stride = <Py_ssize_t> ((self.folds[which].users + EXAMINERS - 1) // EXAMINERS)
        cdef double total = 0.0, whole = 0.0, logdet, explained, floor = 0.0, least = INFINITY
        for i in range(p):
            floor += covariance[i * p + i]
            least = min(least, covariance[i * p + i])
            self.reduced[i] = 0.0
        eliminate(covariance, self.reduced, p, 1e-12 * least, &whole, &explained)
        finish_inverse(covariance, self.scratch, covariance, p)
        for user in range(self.n_users):
            if self.pulls[user] == 0 or half(user) != which:
                continue
            count += 1
            if (count - 1) % stride:
                continue
            memcpy(self.matrix, covariance, p * p * sizeof(double))
            add_scaled(self.matrix, 1.0, self.grams + user * p * p, p * p)
            apply(self.grams + user * p * p, self.centre, self.reduced, p)
            for i in range(p):
                self.reduced[i] = self.moments[user * p + i] - self.reduced[i]
            eliminate(self.matrix, self.reduced, p, 0.5 / floor, &logdet, &explained)
            total += explained / self.noise2 - whole - logdet
        return total
