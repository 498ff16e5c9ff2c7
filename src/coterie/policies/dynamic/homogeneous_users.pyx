# optimize: 2
"""DyClu: users whose data pass a test of homogeneity are neighbours; the model of a user who changes is reset   (Li, Wu and Wang 2021).

Two models with the same preference: the sum of squared residuals of one joint fit exceeds that of two fits by
s = b₁ᵀS₁⁺b₁ + b₂ᵀS₂⁺b₂ − bᵀS⁺b, with S = S₁ + S₂ and b = b₁ + b₂, and s/σ² is χ² distributed with
rank S₁ + rank S₂ − rank S degrees of freedom.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from coterie.policies.dynamic.change_detector cimport Detector, has_changed, record
from coterie.policies.kernel.bits cimport drop, has, lowest_bit, put, put_range
from coterie.policies.kernel.learner cimport Learner, View, show_row
from coterie.policies.kernel.linalg cimport (
    add_outer, add_scaled, dot, eliminate, natural_log, quadratic
)
from coterie.policies.kernel.ridge cimport Ridge, finish_pool, start_pool

from coterie.policies.kernel.arrays import MOST_COUNTED, Field
from coterie.policies.kernel.linalg import eliminated

cnp.import_array()


cdef double NULL_PIVOT = 1e-9  # a smaller pivot is 0, in a matrix whose diagonal is 1
cdef double LEAST_FREEDOM = 10.0  # degrees of freedom that an estimate of the noise needs
cdef double TEST_FAILURES = 0.1  # δ₁: the fraction of rewards that may fail their test without a change
cdef double TEST_MARGIN = 1.151292546497023  # ln(1/δ₂)/2 with δ₂ = 0.1


cdef struct Model:
    # S, b, a solution of Sθ = b, bᵀS⁺b, the number of rewards and the rank of S
    const double *gram
    const double *moment
    const double *fit
    double explained
    int64_t count
    int64_t rank


cdef class LeastSquares(Learner):
    """The rewards of each user since its last change: S, b, Σr², their number, the rank of S, and a solution of Sθ = b.

    `pulls` counts all rewards of a user. `growth` is by how much its sum of squared residuals has grown so far.

    Parameters
    ----------
    noise : float or None
        σ, estimated if None.
    critical : array
        Critical values of χ² with 0 to d degrees of freedom; infinite for 0.
    sharp : float
        Critical value of the test of a single reward.
    window : int
        Number of last rewards that change detection uses.
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

    cdef double *grams
    cdef double *moments
    cdef double *fits
    cdef double *squared
    cdef double *explained
    cdef int64_t *counts
    cdef int64_t *ranks
    cdef int64_t *pulls
    cdef uint64_t *outcomes
    cdef int64_t *watched
    cdef Detector detector
    cdef public double noise2
    cdef public double freedom
    cdef bint estimated
    cdef object _critical
    cdef double *critical
    cdef double outlier_level
    cdef double *matrix
    cdef double *reduced
    cdef double *apart
    cdef double *scales
    cdef int64_t *order
    cdef double *growth
    cdef bint has_new_data

    def __init__(self, n_users, dim, *, noise, critical, sharp, window, ridge, schedule, generator):
        self.estimated, self.noise2 = noise is None, 0.0 if noise is None else noise * noise
        self._critical, self.outlier_level = np.array(critical), sharp
        self.critical = <double *> cnp.PyArray_DATA(self._critical)
        self.detector = Detector(window, TEST_FAILURES, TEST_MARGIN)
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
            self._scratch["matrix"], self._scratch["order"] = np.zeros(d * d + 3 * d), np.zeros(d, np.int64)
        self.growth = <double *> cnp.PyArray_DATA(self._scratch["growth"])
        self.matrix = <double *> cnp.PyArray_DATA(self._scratch["matrix"])
        self.reduced, self.apart = self.matrix + d * d, self.matrix + d * d + d
        self.scales, self.order = self.matrix + d * d + 2 * d, <int64_t *> cnp.PyArray_DATA(self._scratch["order"])
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
        return not self.estimated or self.freedom >= LEAST_FREEDOM

    cdef void update_noise(self) noexcept nogil:
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
        self.noise2 = residual / freedom if freedom >= LEAST_FREEDOM else squares / max(count, 1.0)

    # A user's own data.

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Add the reward to the user's model, unless it is an outlier under the model."""
        cdef Py_ssize_t d = self.dim
        cdef double residual
        cdef bint failed
        self.pulls[user] += 1
        if self.detector.window > 0:
            failed = self.is_outlier(user, x, reward)
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
        self.update_noise()
        self.has_new_data = True
        return 0

    cdef bint is_outlier(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """Is (r − xᵀθ̂)²/(σ²(1 + xᵀS⁻¹x)) above its critical value, for an S of full rank?"""
        cdef Py_ssize_t d = self.dim
        cdef double width2, error
        if self.ranks[user] < d or not self.knows_noise():
            return False
        memcpy(self.matrix, self.grams + user * d * d, d * d * sizeof(double))
        memcpy(self.reduced, x, d * sizeof(double))
        self.solve(d, &width2)
        error = reward - dot(x, self.fits + user * d, d)
        return error * error >= self.outlier_level * self.noise2 * (1.0 + width2)

    cdef void refit(self, Py_ssize_t user) noexcept nogil:
        """Rank, bᵀS⁺b and a solution of Sθ = b, which is 0 where no pivot is left."""
        cdef Py_ssize_t k, d = self.dim, rank
        cdef double *fit = self.fits + user * d
        memcpy(self.matrix, self.grams + user * d * d, d * d * sizeof(double))
        memcpy(self.reduced, self.moments + user * d, d * sizeof(double))
        rank = self.ranks[user] = self.solve(self.ranks[user], &self.explained[user])
        memset(fit, 0, d * sizeof(double))
        for k in range(rank - 1, -1, -1):
            self.reduced[k] -= dot(self.matrix + k * d + k + 1, self.reduced + k + 1, rank - k - 1)
            self.reduced[k] /= self.matrix[k * d + k]
            fit[self.order[k]] = self.reduced[k] * self.scales[self.order[k]]

    cdef Py_ssize_t solve(self, Py_ssize_t least, double *explained) noexcept nogil:
        """Eliminate `matrix` and `reduced` in place; returns the rank, writes bᵀS⁺b to `explained`.

        The rank is at least `least`: data that is added takes no direction away, so that a full rank need not be found again.
        """
        cdef Py_ssize_t k
        cdef double logdet
        if least < self.dim:
            return self.eliminate_largest_first(explained)
        for k in range(self.dim):
            self.order[k], self.scales[k] = k, 1.0
        eliminate(self.matrix, self.reduced, self.dim, 1e-200, &logdet, explained)
        return self.dim

    cdef Py_ssize_t eliminate_largest_first(self, double *explained) noexcept nogil:
        """`solve` with pivots in descending order.

        Columns are scaled to a diagonal of 1, so that their units do not count. In another order a small pivot that is no
        rounding error would lift the rounding errors of later ones above NULL_PIVOT, and null directions would count as rank.
        """
        cdef Py_ssize_t i, k, d = self.dim
        cdef double factor
        explained[0] = 0.0
        self.scale_diagonal()
        for k in range(d):
            self.choose_pivot(k)
            if self.matrix[k * d + k] <= NULL_PIVOT:
                return k
            explained[0] += self.reduced[k] * self.reduced[k] / self.matrix[k * d + k]
            for i in range(k + 1, d):
                factor = -self.matrix[k * d + i] / self.matrix[k * d + k]
                self.reduced[i] += factor * self.reduced[k]
                add_scaled(self.matrix + i * d + i, factor, self.matrix + k * d + i, d - i)
        return d

    cdef void scale_diagonal(self) noexcept nogil:
        """Divide rows and columns of `matrix` by the roots of its diagonal; a column of zeros stays one."""
        cdef Py_ssize_t i, k, d = self.dim
        for k in range(d):
            self.order[k] = k
            self.scales[k] = 1.0 / sqrt(self.matrix[k * d + k]) if self.matrix[k * d + k] > 1e-200 else 0.0
            self.reduced[k] *= self.scales[k]
        for k in range(d):
            for i in range(k, d):
                self.matrix[k * d + i] *= self.scales[k] * self.scales[i]

    cdef void choose_pivot(self, Py_ssize_t k) noexcept nogil:
        """Swap the largest entry of the diagonal from k on to k; only the upper half of `matrix` is in use."""
        cdef Py_ssize_t i, d = self.dim, best = k
        cdef double *m = self.matrix
        for i in range(k + 1, d):
            if m[i * d + i] > m[best * d + best]:
                best = i
        if best == k:
            return
        for i in range(k):
            m[i * d + k], m[i * d + best] = m[i * d + best], m[i * d + k]
        for i in range(k + 1, best):
            m[k * d + i], m[i * d + best] = m[i * d + best], m[k * d + i]
        for i in range(best + 1, d):
            m[k * d + i], m[best * d + i] = m[best * d + i], m[k * d + i]
        m[k * d + k], m[best * d + best] = m[best * d + best], m[k * d + k]
        self.reduced[k], self.reduced[best] = self.reduced[best], self.reduced[k]
        self.order[k], self.order[best] = self.order[best], self.order[k]

    # Two models.

    cdef double excess_bound(self, Model *a, Model *b) noexcept nogil:
        """An upper bound of s in O(d²): the joint fit is at least as good as any fit between the two."""
        cdef Py_ssize_t i, d = self.dim
        cdef double first, second
        for i in range(d):
            self.apart[i] = a.fit[i] - b.fit[i]
        first = max(quadratic(a.gram, self.apart, d), 0.0)
        second = max(quadratic(b.gram, self.apart, d), 0.0)
        return first * second / (first + second) if first + second > 0.0 else 0.0

    cdef double excess(self, Model *a, Model *b, Py_ssize_t *freedom) noexcept nogil:
        """s; its degrees of freedom are written to `freedom`."""
        cdef Py_ssize_t k, i, d = self.dim, rank
        cdef double explained
        for k in range(d):
            for i in range(k * d + k, k * d + d):
                self.matrix[i] = a.gram[i] + b.gram[i]
            self.reduced[k] = a.moment[k] + b.moment[k]
        rank = self.solve(max(a.rank, b.rank), &explained)
        freedom[0] = min(max(a.rank + b.rank - rank, 0), d)
        return a.explained + b.explained - explained

    def estimates(self):
        """Each user's own ridge regression, of its rewards since its last change."""
        own, moments = self.array("grams") + self.ridge * np.eye(self.dim), self.array("moments").copy()
        return np.array([eliminated(gram, moment, 0.5 * self.ridge)[2] for gram, moment in zip(own, moments)])

    def pulls_of_users(self):
        """How many rewards each user has given, those that were not absorbed included."""
        return self.array("pulls").copy()


cdef double WIDTH_DELTA = 0.1  # δ₁ in the factor of the width
cdef double CLEAR = 1e-6  # a bound must clear its limit by this fraction, or rounding would decide
cdef double EXCESS_ROUNDING = 1e-12  # rounding error of s, relative to the terms that it is a difference of
cdef Py_ssize_t MOST_PAIRS = 4096  # users; among more no lower bounds are kept, as they need a square matrix


cdef class HomogeneousUsers(LeastSquares):
    """Edges between users whose models passed their last test, and links to outdated models that did.

    An outdated model holds the rewards of a user before it changed; `births` is the order in which they came, 0 if there is none.
    """

    FIELDS = {
        **LeastSquares.FIELDS,
        "edges": Field(("users", "words"), "uint64"),
        "links": Field(("users", "words"), "uint64"),
        "models.gram": Field(("rows", "dim", "dim")),
        "models.moment": Field(("rows", "dim")),
        "models.fit": Field(("rows", "dim")),
        "models.explained": Field(("rows",)),
        "models.count": Field(("rows",), "int64"),
        "models.rank": Field(("rows",), "int64"),
        "births": Field(("rows",), "int64"),
    }
    NUMBERS = (*LeastSquares.NUMBERS, "retired")

    cdef uint64_t *edges
    cdef uint64_t *links
    cdef double *old_grams
    cdef double *old_moments
    cdef double *old_fits
    cdef double *old_explained
    cdef int64_t *old_counts
    cdef int64_t *old_ranks
    cdef int64_t *births
    cdef public int64_t retired
    cdef Py_ssize_t stride
    cdef Py_ssize_t room
    cdef float *least_apart
    cdef int64_t *stack
    cdef Ridge pool
    cdef double beta
    cdef bint outdated

    def __init__(self, n_users, dim, *, beta, outdated, **others):
        self.beta, self.outdated = -1.0 if beta is None else beta, outdated
        LeastSquares.__init__(self, n_users, dim, **others)

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim, room = len(self._arrays["counts"])
        self.edges, self.links = <uint64_t *> self.pointer("edges"), <uint64_t *> self.pointer("links")
        self.old_grams, self.old_moments = <double *> self.pointer("models.gram"), <double *> self.pointer("models.moment")
        self.old_fits, self.births = <double *> self.pointer("models.fit"), <int64_t *> self.pointer("births")
        self.old_explained = <double *> self.pointer("models.explained")
        self.old_counts = <int64_t *> self.pointer("models.count")
        self.old_ranks = <int64_t *> self.pointer("models.rank")
        self.stride = self._arrays["edges"].shape[1]
        if room > len(self._scratch.get("stack", ())):
            side = room if room <= MOST_PAIRS else 0
            bounds = np.zeros((side, side), np.float32)
            self._scratch.update(stack=np.zeros(room, np.int64), bounds=bounds)
        if "pool" not in self._scratch:
            self._scratch["pool"] = np.zeros(d * d + 2 * d)
            self._scratch["pool_pulls"] = np.zeros(1, np.int64)
        self.room = self._scratch["bounds"].shape[0]
        self.least_apart = <float *> cnp.PyArray_DATA(self._scratch["bounds"])
        self.stack = <int64_t *> cnp.PyArray_DATA(self._scratch["stack"])
        self.pool.inverse = <double *> cnp.PyArray_DATA(self._scratch["pool"])
        self.pool.moment, self.pool.estimate = self.pool.inverse + d * d, self.pool.inverse + d * d + d
        self.pool.pulls = <int64_t *> cnp.PyArray_DATA(self._scratch["pool_pulls"])
        return LeastSquares.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """Connect new users to all users."""
        cdef Py_ssize_t user
        for user in range(self.n_users):
            put_range(self.edges + user * self.stride, known if user < known else 0, self.n_users)
            drop(self.edges + user * self.stride, user)
        return 0

    def refresh(self):
        LeastSquares.refresh(self)
        edges, links = bits_of(self.array("edges")), bits_of(self.array("links"))
        if edges[:, self.n_users :].any() or links[:, self.n_users :].any():
            raise ValueError("has an edge in 'edges' or 'links' that leads nowhere")
        edges = edges[:, : self.n_users]
        if edges.diagonal().any() or not np.array_equal(edges, edges.T):
            raise ValueError("has an edge in 'edges' to the user itself, or in one direction only")
        if not 0 <= self.retired <= MOST_COUNTED:
            raise ValueError(f"has {self.retired} outdated models")
        for name, most in (("births", self.retired), ("models.count", MOST_COUNTED), ("models.rank", self.dim)):
            if self.array(name).min() < 0 or self.array(name).max() > most:
                raise ValueError(f"has numbers in {name!r} that count nothing")
        self._scratch["bounds"][...] = 0.0

    cdef Model outdated_model(self, Py_ssize_t slot) noexcept nogil:
        """An outdated model."""
        cdef Model m
        cdef Py_ssize_t d = self.dim
        m.gram, m.moment, m.fit = self.old_grams + slot * d * d, self.old_moments + slot * d, self.old_fits + slot * d
        m.explained, m.count, m.rank = self.old_explained[slot], self.old_counts[slot], self.old_ranks[slot]
        return m

    # Decisions.

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The user, its neighbours and its linked outdated models, pooled."""
        cdef Py_ssize_t w, other, d = self.dim
        cdef uint64_t word
        cdef Model m = self.model_of(user)
        start_pool(&self.pool, 0, d)
        self.add(&m)
        for w in range(self.stride):
            word = self.edges[user * self.stride + w]
            while word:
                other = (w << 6) + lowest_bit(word)
                word &= word - 1
                if self.counts[other]:
                    m = self.model_of(other)
                    self.add(&m)
            word = self.links[user * self.stride + w]
            while word:
                m = self.outdated_model((w << 6) + lowest_bit(word))
                word &= word - 1
                self.add(&m)
        finish_pool(&self.pool, 0, self.ridge, self.work, d)
        show_row(seen, &self.pool, 0, self.factor(), self.ridge, d)
        seen.row = -1
        return 0

    cdef void add(self, Model *m) noexcept nogil:
        """Add a model's data to the pool."""
        add_scaled(self.pool.inverse, 1.0, m.gram, self.dim * self.dim)
        add_scaled(self.pool.moment, 1.0, m.moment, self.dim)
        self.pool.pulls[0] += m.count

    cdef double factor(self) noexcept nogil:
        """β if it is given, or σ√(d ln(1 + n/(dλ)) + 2 ln(1/δ₁)) + √λ."""
        if self.beta >= 0.0:
            return self.beta
        cdef double grown = self.dim * natural_log(1.0 + self.pool.pulls[0] / (self.dim * self.ridge))
        return sqrt(self.noise2 * (grown - 2.0 * natural_log(WIDTH_DELTA))) + sqrt(self.ridge)

    # Tests between users.

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Test the user against all others if its model has new data; then reset its model if it has changed."""
        if self.has_new_data:
            self.has_new_data = False
            self.compare_users(user)
            self.compare_outdated(user)
        if has_changed(&self.detector, self.outcomes[user], self.watched[user]):
            self.retire(user)
        return 0

    cdef void compare_users(self, Py_ssize_t user) noexcept nogil:
        """Recompute the edges of the user: to all users whose data pass the test."""
        cdef Py_ssize_t other
        cdef Model own = self.model_of(user), m
        for other in range(self.n_users):
            if other == user:
                continue
            m = self.model_of(other)
            if not self.knows_noise() or (not self.surely_different(user, other) and self.alike(&own, &m, user, other)):
                put(self.edges + user * self.stride, other)
                put(self.edges + other * self.stride, user)
            else:
                drop(self.edges + user * self.stride, other)
                drop(self.edges + other * self.stride, user)

    cdef void compare_outdated(self, Py_ssize_t user) noexcept nogil:
        """Links of the user anew: to all outdated models that may have the same preference."""
        cdef Py_ssize_t slot
        cdef Model own = self.model_of(user), m
        memset(self.links + user * self.stride, 0, self.stride * sizeof(uint64_t))
        for slot in range(min(self.retired, self.n_users)):
            m = self.outdated_model(slot)
            if self.births[slot] and (not self.knows_noise() or self.alike(&own, &m, user, -1)):
                put(self.links + user * self.stride, slot)

    cdef bint surely_different(self, Py_ssize_t user, Py_ssize_t other) noexcept nogil:
        """Was s so large that it is above its limit still?

        A reward adds to the residuals of its user what it adds at most to those of the joint fit: s falls by no more.
        """
        if self.room == 0:
            return False
        cdef double least = self.least_apart[user * self.room + other] - self.growth[user] - self.growth[other]
        cdef double limit = self.noise2 * self.critical[min(self.ranks[user], self.ranks[other])]
        return least > 0.0 and least > (1.0 + CLEAR) * limit

    cdef bint alike(self, Model *a, Model *b, Py_ssize_t user, Py_ssize_t other) noexcept nogil:
        """Can both models have the same preference?"""
        cdef Py_ssize_t freedom
        cdef double s, limit
        if a.rank == 0 or b.rank == 0:
            return True
        limit = self.noise2 * self.critical[max(a.rank + b.rank - self.dim, 1)]
        if self.excess_bound(a, b) < (1.0 - CLEAR) * limit:
            return True
        s = self.excess(a, b, &freedom)
        if other >= 0 and self.room:
            self.remember(user, other, s)
        return freedom == 0 or s <= self.noise2 * self.critical[freedom] + EXCESS_ROUNDING * (a.explained + b.explained)

    cdef void remember(self, Py_ssize_t user, Py_ssize_t other, double s) noexcept nogil:
        """Keep s, and what has been added to residuals before."""
        cdef double bound = (s + self.growth[user] + self.growth[other]) * (1.0 - CLEAR)
        self.least_apart[user * self.room + other] = <float> bound
        self.least_apart[other * self.room + user] = <float> bound

    # Changes.

    cdef void retire(self, Py_ssize_t user) noexcept nogil:
        """Store the user's model as an outdated one, and reset the user: no data, connected to all users."""
        cdef Py_ssize_t other, d = self.dim
        if self.outdated:
            self.keep(user)
        memset(self.grams + user * d * d, 0, d * d * sizeof(double))
        memset(self.moments + user * d, 0, d * sizeof(double))
        memset(self.fits + user * d, 0, d * sizeof(double))
        memset(self.links + user * self.stride, 0, self.stride * sizeof(uint64_t))
        self.squared[user], self.explained[user], self.counts[user], self.ranks[user] = 0.0, 0.0, 0, 0
        self.outcomes[user], self.watched[user] = 0, 0
        for other in range(self.n_users):
            if other != user:
                put(self.edges + user * self.stride, other)
                put(self.edges + other * self.stride, user)
                if self.room:
                    self.least_apart[user * self.room + other] = self.least_apart[other * self.room + user] = 0.0
        self.update_noise()

    cdef void keep(self, Py_ssize_t user) noexcept nogil:
        """Copy the user's model into a free slot, or that of the oldest outdated model."""
        cdef Py_ssize_t slot = 0, k, d = self.dim
        for k in range(self.n_users):
            if self.births[k] < self.births[slot]:
                slot = k
        for k in range(self.n_users):
            drop(self.links + k * self.stride, slot)
        memcpy(self.old_grams + slot * d * d, self.grams + user * d * d, d * d * sizeof(double))
        memcpy(self.old_moments + slot * d, self.moments + user * d, d * sizeof(double))
        memcpy(self.old_fits + slot * d, self.fits + user * d, d * sizeof(double))
        self.old_explained[slot], self.old_counts[slot] = self.explained[user], self.counts[user]
        self.old_ranks[slot] = self.ranks[user]
        self.retired += 1
        self.births[slot] = self.retired

    cdef int label(self, int64_t *out) except -1 nogil:
        """Connected components, numbered by their lowest users."""
        cdef Py_ssize_t user, w, other, waiting
        cdef uint64_t word
        for user in range(self.n_users):
            out[user] = -1
        for user in range(self.n_users):
            if out[user] >= 0:
                continue
            out[user], self.stack[0], waiting = user, user, 1
            while waiting:
                waiting -= 1
                other = self.stack[waiting]
                for w in range(self.stride):
                    word = self.edges[other * self.stride + w]
                    while word:
                        waiting = self.visit((w << 6) + lowest_bit(word), user, waiting, out)
                        word &= word - 1
        return 0

    cdef Py_ssize_t visit(self, Py_ssize_t other, Py_ssize_t user, Py_ssize_t waiting, int64_t *out) noexcept nogil:
        """Label a neighbour that has none yet, and let it wait for its own neighbours."""
        if out[other] < 0:
            out[other], self.stack[waiting] = user, other
            waiting += 1
        return waiting

    def cluster_of(self, Py_ssize_t user):
        """The user and its neighbours, ascending."""
        cdef Py_ssize_t other
        cdef const uint64_t *row = self.edges + user * self.stride
        return np.array([other for other in range(self.n_users) if other == user or has(row, other)])


def bits_of(words):
    """Rows of words as booleans."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little").astype(bool)
