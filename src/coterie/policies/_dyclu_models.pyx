"""Models of users for DyClu: least squares without a ridge, and the test of whether two have the same preference.

Two models with the same preference: the sum of squared residuals of one joint fit exceeds that of two fits by
s = b₁ᵀS₁⁺b₁ + b₂ᵀS₂⁺b₂ − bᵀS⁺b, with S = S₁ + S₂ and b = b₁ + b₂, and s/σ² is χ² distributed with
rank S₁ + rank S₂ − rank S degrees of freedom.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from coterie.policies._changes cimport Detector, record
from coterie.policies._learner cimport Learner
from coterie.policies._linalg cimport (
    add_outer, add_scaled, back_substitute, dot, eliminate, quadratic
)

from coterie.policies._arrays import MOST_COUNTED, Field
from coterie.policies._linalg import eliminated

cnp.import_array()

cdef double NULL_PIVOT = 1e-9  # a pivot below this part of the largest diagonal entry is 0
cdef double LEAST = 10.0  # degrees of freedom that an estimate of the noise needs
cdef double USUAL = 0.1  # δ₁: the share of rewards that may fail their test without a change
cdef double ALARM = 1.151292546497023  # ln(1/δ₂)/2 with δ₂ = 0.1


cdef class LeastSquares(Learner):
    """What each user has told since its last change: S, b, Σr², the number and rank, and a solution of Sθ = b.

    `pulls` counts all rewards of a user. `growth` is by how much its sum of squared residuals has grown so far.

    Parameters
    ----------
    noise : float or None
        σ, estimated if None.
    critical : array
        What χ² with 0 to d degrees of freedom exceeds with the level of the test; infinite for 0.
    sharp : float
        The same for the test of a single reward.
    window : int
        Rewards that the detector of changes looks at.
    """

    FIELDS = {
        "grams": Field(("users", "dim", "dim")),
        "moments": Field(("users", "dim")),
        "fits": Field(("users", "dim")),
        "squares": Field(("users",)),
        "explained": Field(("users",)),
        "counts": Field(("users",), "int64"),
        "ranks": Field(("users",), "int64"),
        "pulls": Field(("users",), "int64"),
        "outcomes": Field(("users",), "uint64"),
        "watched": Field(("users",), "int64"),
    }
    NUMBERS = ("rounds", "noise2", "freedom")

    def __init__(self, n_users, dim, *, noise, critical, sharp, window, ridge, schedule, generator):
        self.estimated, self.noise2 = noise is None, 0.0 if noise is None else noise * noise
        self._critical, self.sharp = np.array(critical), sharp
        self.critical = <double *> cnp.PyArray_DATA(self._critical)
        self.detector = Detector(window, USUAL, ALARM)
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim, room = len(self._arrays["counts"])
        self.grams, self.moments = <double *> self.pointer("grams"), <double *> self.pointer("moments")
        self.fits, self.explained = <double *> self.pointer("fits"), <double *> self.pointer("explained")
        self.squared, self.pulls = <double *> self.pointer("squares"), <int64_t *> self.pointer("pulls")
        self.counts, self.ranks = <int64_t *> self.pointer("counts"), <int64_t *> self.pointer("ranks")
        self.outcomes, self.watched = <uint64_t *> self.pointer("outcomes"), <int64_t *> self.pointer("watched")
        if room > len(self._scratch.get("growth", ())):
            self._scratch["growth"] = np.zeros(room)
        if "matrix" not in self._scratch:
            self._scratch["matrix"] = np.zeros(d * d + 2 * d)
        self.growth = <double *> cnp.PyArray_DATA(self._scratch["growth"])
        self.matrix = <double *> cnp.PyArray_DATA(self._scratch["matrix"])
        self.reduced, self.apart = self.matrix + d * d, self.matrix + d * d + d
        return Learner.bind(self)

    def refresh(self):
        for name, most in (("counts", MOST_COUNTED), ("watched", MOST_COUNTED), ("ranks", self.dim)):
            numbers = self.array(name)
            if numbers.min() < 0 or numbers.max() > most:
                raise ValueError(f"has numbers in {name!r} that count nothing")
        if self.noise2 < 0 or self.freedom < 0:
            raise ValueError("has a negative variance of the noise")

    cdef Model model_of(self, Py_ssize_t user) noexcept nogil:
        """A user's present model."""
        cdef Model m
        cdef Py_ssize_t d = self.dim
        m.gram, m.moment, m.fit = self.grams + user * d * d, self.moments + user * d, self.fits + user * d
        m.explained, m.count, m.rank = self.explained[user], self.counts[user], self.ranks[user]
        return m

    # The noise.

    cdef bint knows_noise(self) noexcept nogil:
        """Is σ given, or estimated from enough data?"""
        return not self.estimated or self.freedom >= LEAST

    cdef void settle_noise(self) noexcept nogil:
        """σ̂² = Σ residuals² / Σ (n − rank) over all users; before there is enough data, the mean of r²."""
        cdef Py_ssize_t user
        cdef double residual = 0.0, squares = 0.0, count = 0.0, freedom = 0.0
        if not self.estimated:
            return
        for user in range(self.n_users):
            residual += max(self.squared[user] - self.explained[user], 0.0)
            freedom += self.counts[user] - self.ranks[user]
            squares += self.squared[user]
            count += self.counts[user]
        self.freedom = freedom
        self.noise2 = residual / freedom if freedom >= LEAST else squares / max(count, 1.0)

    # A user's own data.

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Add the reward to the user's model, unless it is unlike what the model lets expect."""
        cdef Py_ssize_t d = self.dim
        cdef double residual
        cdef bint failed
        self.pulls[user] += 1
        if self.detector.window > 0:
            failed = self.surprising(user, x, reward)
            record(&self.outcomes[user], &self.watched[user], failed)
            if failed:
                return 0
        residual = self.squared[user] - self.explained[user]
        add_outer(self.grams + user * d * d, x, d)
        add_scaled(self.moments + user * d, reward, x, d)
        self.squared[user] += reward * reward
        self.counts[user] += 1
        self.refit(user)
        self.growth[user] += max(self.squared[user] - self.explained[user] - residual, 0.0)
        self.settle_noise()
        self.fresh = True
        return 0

    cdef bint surprising(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """Is (r − xᵀθ̂)²/(σ²(1 + xᵀS⁻¹x)) above its critical value, for an S of full rank?"""
        cdef Py_ssize_t d = self.dim
        cdef double logdet, width2, error
        if self.ranks[user] < d or not self.knows_noise():
            return False
        memcpy(self.matrix, self.grams + user * d * d, d * d * sizeof(double))
        memcpy(self.reduced, x, d * sizeof(double))
        eliminate(self.matrix, self.reduced, d, 0.0, &logdet, &width2)
        error = reward - dot(x, self.fits + user * d, d)
        return error * error >= self.sharp * self.noise2 * (1.0 + width2)

    cdef void refit(self, Py_ssize_t user) noexcept nogil:
        """Rank, bᵀS⁺b and a solution of Sθ = b."""
        cdef Py_ssize_t d = self.dim
        memcpy(self.matrix, self.grams + user * d * d, d * d * sizeof(double))
        memcpy(self.reduced, self.moments + user * d, d * sizeof(double))
        self.ranks[user] = self.solve(&self.explained[user])
        back_substitute(self.matrix, self.reduced, self.fits + user * d, d)

    cdef Py_ssize_t solve(self, double *explained) noexcept nogil:
        """Eliminate `matrix` and `reduced`; returns the rank. Pivots that are 0 but for rounding explain nothing."""
        cdef Py_ssize_t k, d = self.dim, rank = 0
        cdef double largest = 0.0, floor, logdet
        for k in range(d):
            largest = max(largest, self.matrix[k * d + k])
        floor = max(NULL_PIVOT * largest, 1e-200)
        eliminate(self.matrix, self.reduced, d, floor, &logdet, explained)
        explained[0] = 0.0
        for k in range(d):
            if self.matrix[k * d + k] > floor:
                rank += 1
                explained[0] += self.reduced[k] * self.reduced[k] / self.matrix[k * d + k]
            else:
                self.reduced[k] = 0.0
        return rank

    # Two models.

    cdef double within(self, Model *a, Model *b) noexcept nogil:
        """An upper bound of s in O(d²): the joint fit is at least as good as the best one between the two fits."""
        cdef Py_ssize_t i, d = self.dim
        cdef double first, second
        for i in range(d):
            self.apart[i] = a.fit[i] - b.fit[i]
        first = max(quadratic(a.gram, self.apart, d), 0.0)
        second = max(quadratic(b.gram, self.apart, d), 0.0)
        return first * second / (first + second) if first + second > 0.0 else 0.0

    cdef double excess(self, Model *a, Model *b, Py_ssize_t *freedom) noexcept nogil:
        """s, and its degrees of freedom."""
        cdef Py_ssize_t k, i, d = self.dim, rank
        cdef double explained
        for k in range(d):
            for i in range(k * d + k, k * d + d):
                self.matrix[i] = a.gram[i] + b.gram[i]
            self.reduced[k] = a.moment[k] + b.moment[k]
        rank = self.solve(&explained)
        freedom[0] = min(max(a.rank + b.rank - rank, 0), d)
        return a.explained + b.explained - explained

    def estimates(self):
        """Each user's own ridge regression, of what it has told since its last change."""
        own, moments = self.array("grams") + self.ridge * np.eye(self.dim), self.array("moments").copy()
        return np.array([eliminated(gram, moment, 0.5 * self.ridge)[2] for gram, moment in zip(own, moments)])

    def pulls_of_users(self):
        """How many rewards each user has given, those that were not absorbed included."""
        return self.array("pulls").copy()
