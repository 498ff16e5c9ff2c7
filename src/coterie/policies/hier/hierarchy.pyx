# optimize: 2
"""A hierarchical model of users: posteriors of users, a prior learnt from all of them, and decisions by both.

θᵤ ~ N(μ, Σ), a reward is xᵀθᵤ + N(0, σ²). Covariances are kept relative to σ²: A = Σ/σ², and a posterior covariance V
stands for σ²V. So a posterior is a ridge regression, and its rank-one update that of `linalg.c`.

σ, μ and the whole Σ are learnt from all users' posteriors, at geometric times. The step for Σ is the fixed point of the
marginal likelihood, not expectation–maximisation, which converges very slowly from a Σ that is too small. Σ is shrunk towards
an isotropic one by pseudo-users; their number is chosen by cross-validation between two halves of the users.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_normal

from coterie.policies.hier.arrivals cimport Arrivals
from coterie.policies.kernel.learner cimport Learner, WidthCache, Offer, ScoreModel, WidthModel, largest, row
from coterie.policies.kernel.linalg cimport (
    absorb, add_gram, add_outer, add_scaled, apply, cholesky, congruent, dot, eigen, eliminate, finish_inverse,
    invert, invert_lower, invert_sums, means, multiply, multiply_transposed, quadratic, quadratics, transpose
)

from coterie.policies.kernel.arrays import Field
from coterie.policies.kernel.linalg import eliminated

cnp.import_array()


SHRINKAGE = 2.0
"""Pseudo-users for each dimension before there are two users for cross-validation."""
cdef double NEGLIGIBLE = 0.1  # the uncertainty of the mean is left out of a posterior if it is less than this a dimension, relative to A
cdef enum:
    SIDE_BY_SIDE = 4  # users whose posteriors `invert_sums` takes at a time
    EXTENDED_AT_A_TIME = 256  # arms that get their intercepts at a time: a whole catalogue is never copied
cdef double FLAT = 1e-6  # precision of the prior of the intercept's mean, relative to that of the users' data


cdef inline Offer part_of(Offer *offer, Py_ssize_t first, Py_ssize_t d) noexcept nogil:
    """The next arms from `first` on, as many as get their intercepts at a time."""
    cdef Py_ssize_t n = min(offer.n - first, <Py_ssize_t> EXTENDED_AT_A_TIME)
    if offer.picks == NULL:
        return Offer(offer.items + first * d, NULL, n, NULL)
    return Offer(offer.items, offer.picks + first, n, NULL)


cdef inline Py_ssize_t half(Py_ssize_t user) noexcept nogil:
    """Which half of the users this one belongs to: the parity of the bits of its number."""
    cdef Py_ssize_t parity = 0
    while user:
        parity ^= user & 1
        user >>= 1
    return parity


cdef class UserRows(Learner):
    """Sums S, b, Σr² and T of each user, its posterior N(m, σ²V), and the prior.

    Rows of arrays are those of users in the order of their first rewards, as `arrivals` numbers them.

    Parameters
    ----------
    intercept : bool
        Is a feature of 1 put before those of an arm?
    noise, mean, covariance : float or array or None
        σ, μ and Σ if they are given, not learnt.
    """

    FIELDS = {
        "grams": Field(("users", "size", "size")),
        "moments": Field(("users", "size")),
        "squares": Field(("users",)),
        "pulls": Field(("users",), "int64"),
        "posterior.covariance": Field(("users", "size", "size")),
        "posterior.mean": Field(("users", "size")),
        "prior.mean": Field(("size",)),
        "prior.covariance": Field(("size", "size")),
        "prior.new_user": Field(("size", "size")),
    }
    NUMBERS = ("rounds", "noise2", "spread2", "shrinkage", "due")
    PARTS = {"arrivals": Arrivals}

    def __init__(self, n_users, dim, *, intercept, noise, mean, covariance, ridge, schedule, generator):
        self.intercept, self.noise, self.mean, self.covariance = intercept, noise, mean, covariance
        self.size, self.mean_given = dim + intercept, mean is not None
        self.noise2, self.spread2, self.due = 1.0 if noise is None else noise * noise, 1.0 / ridge, 1.0
        self.shrinkage = SHRINKAGE * self.size
        self.arrivals = Arrivals(n_users, dim)
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    @classmethod
    def extents(cls, n_users, dim, *, intercept, **settings):
        return {"users": n_users, "rows": n_users, "dim": dim, "size": dim + intercept}

    def _extents(self):
        return {"users": self.n_users, "rows": self.n_users, "dim": self.dim, "size": self.size}

    cdef int bind(self) except -1:
        cdef Py_ssize_t p = self.size, square = self.size * self.size
        self.grams, self.moments = <double *> self.pointer("grams"), <double *> self.pointer("moments")
        self.squared, self.pulls = <double *> self.pointer("squares"), <int64_t *> self.pointer("pulls")
        self.covariances = <double *> self.pointer("posterior.covariance")
        self.means, self.centre = <double *> self.pointer("posterior.mean"), <double *> self.pointer("prior.mean")
        self.relative = <double *> self.pointer("prior.covariance")
        self.new_user = <double *> self.pointer("prior.new_user")
        if "fit" not in self._scratch:
            self._scratch["fit"] = np.zeros(13 * square + 13 * p)
        cdef double *room = <double *> cnp.PyArray_DATA(self._scratch["fit"])
        self.folds[0].inverses, self.folds[0].scatter = room, room + square
        self.folds[1].inverses, self.folds[1].scatter = room + 2 * square, room + 3 * square
        self.precision, self.mean_covariance, self.root = room + 4 * square, room + 5 * square, room + 6 * square
        self.matrix, self.product = room + 7 * square, room + 8 * square
        self.scratch, self.total = room + 9 * square, room + 13 * square + 8 * p
        self.lift, self.reduced = self.total + p, self.total + 2 * p
        self.extended = self.total + 4 * p
        return Learner.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """New users start from the prior, which needs no arrays of theirs."""
        if known == 0:
            start = np.eye(self.size) / self.ridge if self.covariance is None else self.covariance / self.noise2
            self.array("prior.covariance")[...] = self.array("prior.new_user")[...] = start
            if self.mean is not None:
                self.array("prior.mean")[...] = self.mean
        return 0

    def refresh(self):
        known = [getattr(self, name) for name in self.NUMBERS]
        if not np.isfinite(known).all() or min(self.noise2, self.spread2, self.shrinkage) <= 0:
            raise ValueError("has estimates of noise and prior that are no numbers above 0")
        if self.array("pulls").min() < 0:
            raise ValueError("has negative numbers of pulls")
        if np.diagonal(self.array("prior.covariance")).min() <= 0:
            raise ValueError("has a covariance of preferences that is none")

    cdef Py_ssize_t number_of(self, Py_ssize_t user) noexcept nogil:
        return self.arrivals.number_of(user)

    cdef Py_ssize_t admit(self, Py_ssize_t user) noexcept nogil:
        return self.arrivals.admit(user)

    cdef const double *with_intercept(self, const double *x, double times) noexcept nogil:
        """`times` the vector, with its intercept if there is one; in `extended`, until the next call."""
        cdef Py_ssize_t i, first = self.intercept
        self.extended[0] = times
        for i in range(self.dim):
            self.extended[i + first] = times * x[i]
        return self.extended

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Add to the user's sums and to its posterior."""
        self.absorb_weighted(user, x, reward, 1.0)
        return 0

    cdef void absorb_weighted(self, Py_ssize_t user, const double *x, double reward, double weight) noexcept nogil:
        """Add a reward of so much weight to the user's sums and to its posterior, which starts as the prior's."""
        cdef Py_ssize_t i, p = self.size
        cdef double root = sqrt(weight)
        cdef const double *full = self.with_intercept(x, root)
        cdef double *covariance = self.covariances + user * p * p
        reward *= root
        if self.pulls[user] == 0:
            self.start_covariance(user)
            for i in range(p):
                self.means[user * p + i] = self.centre[i]
        absorb(covariance, self.moments + user * p, self.means + user * p, full, reward, self.total, p)
        add_outer(self.grams + user * p * p, full, p)
        self.squared[user] += reward * reward
        self.pulls[user] += 1

    cdef void copy_from(self, Py_ssize_t user, UserRows others, Py_ssize_t other) noexcept nogil:
        """Copy the sums and the posterior of a user of another model."""
        cdef Py_ssize_t p = self.size, square = p * p
        memcpy(self.grams + user * square, others.grams + other * square, square * sizeof(double))
        memcpy(self.covariances + user * square, others.covariances + other * square, square * sizeof(double))
        memcpy(self.moments + user * p, others.moments + other * p, p * sizeof(double))
        memcpy(self.means + user * p, others.means + other * p, p * sizeof(double))
        self.squared[user], self.pulls[user] = others.squared[other], others.pulls[other]

    cdef void reweigh(self, Py_ssize_t user, double times) noexcept nogil:
        """Multiply the weight of all rewards of a user; its posterior follows with the next fit."""
        cdef Py_ssize_t i, p = self.size
        for i in range(p * p):
            self.grams[user * p * p + i] *= times
        for i in range(p):
            self.moments[user * p + i] *= times
        self.squared[user] *= times

    def rescale(self, times, double growth):
        """All vectors are multiplied by `times`, powers of two, and the mean of ‖x‖² by `growth`: the same model in other units."""
        factors = np.concatenate([np.ones(int(self.intercept)), times])
        squares = np.outer(factors, factors)
        self.array("grams")[...] *= squares
        self.array("moments")[...] *= factors
        for name in ("posterior.covariance", "prior.covariance", "prior.new_user"):
            self.array(name)[...] /= squares
        for name in ("posterior.mean", "prior.mean"):
            self.array(name)[...] /= factors
        self.spread2 /= growth

    # The posterior of one user, recomputed under the present prior.

    cdef void start_covariance(self, Py_ssize_t user) noexcept nogil:
        """V as before any reward."""
        memcpy(self.covariances + user * self.size * self.size, self.new_user, self.size * self.size * sizeof(double))

    cdef void add_vector(self, Py_ssize_t user, const double *x) noexcept nogil:
        """Add a vector to V."""
        cdef Py_ssize_t p = self.size
        absorb(self.covariances + user * p * p, self.reduced, self.lift, x, 0.0, self.total, p)

    cdef void start_posterior(self, Py_ssize_t user) noexcept nogil:
        """V = (N⁻¹ + S)⁻¹ and m, with N the covariance of a user without data."""
        cdef Py_ssize_t i, p = self.size
        cdef double *covariance = self.covariances + user * p * p
        cdef double least = INFINITY, floor = 0.0
        for i in range(p):
            least, floor = min(least, self.new_user[i * p + i]), floor + self.new_user[i * p + i]
        memcpy(covariance, self.new_user, p * p * sizeof(double))
        invert(covariance, self.scratch, p, 1e-12 * least)
        add_scaled(covariance, 1.0, self.grams + user * p * p, p * p)
        invert(covariance, self.scratch, p, 0.5 / floor)
        self.find_mean(user)

    cdef void find_mean(self, Py_ssize_t user) noexcept nogil:
        """m = μ + V(b − Sμ)."""
        cdef Py_ssize_t i, p = self.size
        apply(self.grams + user * p * p, self.centre, self.reduced, p)
        for i in range(p):
            self.reduced[i] = self.moments[user * p + i] - self.reduced[i]
        apply(self.covariances + user * p * p, self.reduced, self.means + user * p, p)
        add_scaled(self.means + user * p, 1.0, self.centre, p)

    cdef void condition(self) noexcept nogil:
        """The posteriors of all users given all data, and of the mean, under today's σ and A."""
        cdef Py_ssize_t i, square = self.size * self.size
        cdef double least = INFINITY
        for i in range(square):
            self.precision[i] = self.relative[i]
        for i in range(self.size):
            least = min(least, self.relative[i * self.size + i])
        invert(self.precision, self.scratch, self.size, 1e-12 * least)
        self.condition_users()
        self.condition_mean()
        self.combine()

    cdef void condition_users(self) noexcept nogil:
        """C = (A⁻¹ + S)⁻¹ and Cb of each user, in the place of V and m, and their sums."""
        cdef Py_ssize_t[SIDE_BY_SIDE] group
        cdef Py_ssize_t user, i, p = self.size, filled = 0
        cdef double floor = 0.0
        for i in range(p):
            floor += self.relative[i * p + i]
            self.total[i] = 0.0
        self.folds[0].users = self.folds[1].users = self.reach = self.rewards = 0.0
        for i in range(4 * p * p):
            self.folds[0].inverses[i] = 0.0  # and what follows it
        for user in range(self.n_users):
            if self.pulls[user] == 0:
                continue
            group[filled] = user
            filled += 1
            if filled == SIDE_BY_SIDE:
                self.condition_group(group, filled, 0.5 / floor)
                filled = 0
        if filled:
            self.condition_group(group, filled, 0.5 / floor)

    cdef void condition_group(self, const Py_ssize_t *group, Py_ssize_t count, double floor) noexcept nogil:
        """C and Cb of up to four users, and what they add to the sums."""
        cdef const double *grams[SIDE_BY_SIDE]
        cdef double *inverses[SIDE_BY_SIDE]
        cdef Py_ssize_t k, i, user, p = self.size
        cdef Fold *fold
        for k in range(SIDE_BY_SIDE):
            user = group[min(k, count - 1)]
            grams[k], inverses[k] = self.grams + user * p * p, self.covariances + user * p * p
        invert_sums(self.precision, grams, inverses, self.scratch, p, floor)
        for k in range(count):
            user, fold = group[k], &self.folds[half(group[k])]
            for i in range(self.intercept, p):
                self.reach += grams[k][i * p + i]
            apply(inverses[k], self.moments + user * p, self.means + user * p, p)
            fold.users += 1.0
            self.rewards += self.pulls[user]
            add_scaled(fold.inverses, 1.0, inverses[k], p * p)
            add_scaled(self.total, 1.0, self.means + user * p, p)

    cdef void information(self, double users, const double *inverses, double *out) noexcept nogil:
        """H = Σ (A⁻¹ − A⁻¹CA⁻¹): the information that users have on the mean, relative to σ². Writes `out`, which is not `product`."""
        cdef Py_ssize_t i
        congruent(self.precision, inverses, out, self.scratch, self.size)
        for i in range(self.size * self.size):
            out[i] = users * self.precision[i] - out[i]

    cdef void condition_mean(self) noexcept nogil:
        """μ | data ~ N(μ̄, σ²W): W = (Q + H)⁻¹, μ̄ = WA⁻¹ΣCb; nothing if the mean is given."""
        cdef Py_ssize_t i, p = self.size
        cdef double floor = 1.0 / self.spread2
        for i in range(p * p):
            self.mean_covariance[i] = self.root[i] = 0.0
            self.product[i] = self.folds[0].inverses[i] + self.folds[1].inverses[i]
        if not self.mean_given:
            self.information(self.folds[0].users + self.folds[1].users, self.product, self.mean_covariance)
            for i in range(p):
                if i == 0 and self.intercept:
                    floor = min(floor, FLAT * self.mean_covariance[0])
                    self.mean_covariance[0] += FLAT * self.mean_covariance[0]
                else:
                    self.mean_covariance[i * p + i] += 1.0 / self.spread2
            invert(self.mean_covariance, self.scratch, p, 0.5 * floor)
            cholesky(self.mean_covariance, self.matrix, self.scratch, p)
            for i in range(p * p):
                if i % p <= i / p:
                    self.root[i] = self.matrix[i]
            apply(self.precision, self.total, self.lift, p)
            apply(self.mean_covariance, self.lift, self.centre, p)
        multiply(self.precision, self.root, self.matrix, p)
        for i in range(p * p):
            self.root[i] = self.matrix[i]
            self.new_user[i] = self.relative[i] + self.mean_covariance[i]
        apply(self.precision, self.centre, self.lift, p)
        self.doubtful = dot(self.precision, self.mean_covariance, p * p) > NEGLIGIBLE * p

    cdef void combine(self) noexcept nogil:
        """m = C(b + A⁻¹μ̄) and V = C + CA⁻¹WA⁻¹C of each user, and what they leave unexplained."""
        cdef Py_ssize_t user, fold, p = self.size
        cdef double *covariance
        self.residual = self.freedom = self.level = self.square = 0.0
        for user in range(self.n_users):
            if self.pulls[user] == 0:
                continue
            covariance = self.covariances + user * p * p
            apply(covariance, self.lift, self.reduced, p)
            add_scaled(self.means + user * p, 1.0, self.reduced, p)
            if self.doubtful:
                multiply(covariance, self.root, self.product, p)
                add_gram(covariance, self.product, self.scratch, p)
                self.freedom += dot(covariance, self.grams + user * p * p, p * p)
            self.count(user, &self.folds[half(user)])
        for fold in range(2):
            self.residual -= dot(self.precision, self.folds[fold].scatter, p * p)
            if not self.doubtful:
                self.freedom += p * self.folds[fold].users - dot(self.precision, self.folds[fold].inverses, p * p)

    cdef void count(self, Py_ssize_t user, Fold *fold) noexcept nogil:
        """Add a user to the sums that σ² and Σ are estimated from: Sm = b − A⁻¹δ, δ = m − μ̄, so RSS = Σr² − bᵀm − (μ̄ + δ)ᵀA⁻¹δ."""
        cdef Py_ssize_t i, p = self.size
        cdef const double *estimate = self.means + user * p
        for i in range(p):
            self.reduced[i] = estimate[i] - self.centre[i]
        add_outer(fold.scatter, self.reduced, p)
        self.residual += self.squared[user] - dot(self.moments + user * p, estimate, p) - dot(self.lift, self.reduced, p)
        self.square += self.squared[user]
        self.level += self.moments[user * p]

    cdef int label(self, int64_t *out) except -1 nogil:
        """Nothing is clustered: each user by itself."""
        cdef Py_ssize_t user
        for user in range(self.n_users):
            out[user] = user
        return 0

    def cluster_of(self, Py_ssize_t user):
        """The user alone."""
        return np.array([user], np.int64)

    def estimates(self):
        """Each user's own ridge regression, without its intercept; what it acts on is in `scores`."""
        own, moments = self.array("grams") + self.ridge * np.eye(self.size), self.array("moments").copy()
        solved = [eliminated(gram, moment, 0.5 * self.ridge)[2] for gram, moment in zip(own, moments)]
        return np.array([*solved, np.zeros(self.size)])[self.arrivals.of_all(), self.intercept :]

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return np.append(self.array("pulls"), 0)[self.arrivals.of_all()]

    def known_preferences(self):
        """The posterior mean of each user, a constant first; the mean of xxᵀ over all rewards; and the rewards of each user."""
        pulls, prior = self.pulls_of_users(), self.array("prior.mean")
        means = np.vstack([self.array("posterior.mean"), prior])[self.arrivals.of_all()]
        means = np.where(pulls[:, None] > 0, means, prior)
        moment = self.array("grams").sum(0) / max(1, pulls.sum())
        if self.intercept:
            return means, moment, pulls
        constant = np.zeros(len(means))
        return np.column_stack([constant, means]), np.pad(moment, ((1, 0), (1, 0))), pulls


cdef double PSEUDO = 0.5  # pseudo-users for each dimension whose preferences have the variance σ²/ridge
cdef double TINY = 1e-8  # σ̂² is no less than this part of the mean of r², and of what a given Σ makes of rewards, for rounding
cdef double LEAST_NOISE2 = 1e-100  # σ̂² of rewards that are all zero
cdef enum:
    GRID = 5
    DOUBLING = 8  # fits come at twice the rewards until they are p²/8 rewards apart
    FREE_USERS = 256  # a fit of so many users is cheap enough to be frequent
    MOST_JUDGES = 32  # users of each half, at most, whose evidence is summed
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
        self.information_matrix, self.candidate = room + 5 * square, room + 6 * square
        self.all_users.inverses, self.all_users.scatter = room + 7 * square, room + 8 * square
        self.start = room + 11 * square
        self.target, self.weights = self.start + p, self.start + 2 * p
        self.all_known.values, self.half_known.values = self.start + 3 * p, self.start + 4 * p
        return UserRows.bind(self)

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Refit the model when there are a sixth more rewards, twice as many at first, unless σ, μ and Σ are all given.

        Fits are further apart by one reward for each user beyond 256, so that a reward costs O(1) fits of a user.
        """
        cdef int64_t soon
        if self.rounds < self.due or (self.noise_given and self.mean_given and self.covariance_given):
            return 0
        self.fit()
        soon = max(self.rounds // 6, min(self.rounds, 1 + <int64_t> (self.size * self.size) // DOUBLING))
        self.due = self.rounds + soon + max(0, <int64_t> self.all_users.users - FREE_USERS)
        return 0

    cdef bint is_finite(self) noexcept nogil:
        """Are σ, μ and Σ finite? Extreme rewards can overflow them."""
        cdef Py_ssize_t i
        cdef double total = self.noise2 + self.spread2
        for i in range(self.size):
            total += fabs(self.centre[i]) + self.relative[i * self.size + i] + self.new_user[i * self.size + i]
        return total < INFINITY

    cdef void reset_prior(self) noexcept nogil:
        """Reset the prior to its initial value; posteriors follow with the next fit."""
        cdef Py_ssize_t i, p = self.size
        self.noise2, self.spread2 = 1.0, 1.0 / self.ridge
        for i in range(p):
            self.centre[i] = 0.0
        for i in range(p * p):
            self.relative[i] = self.new_user[i] = (1.0 / self.ridge if i % (p + 1) == 0 else 0.0)

    cdef void fit(self) noexcept nogil:
        """Posteriors under the prior of the last fit; then the prior of the next one."""
        self.condition()
        self.update_noise()
        self.update_spread()
        self.update_covariance()

    cdef void update_noise(self) noexcept nogil:
        """σ̂² = (Σ RSS + v)/(N − Σ tr VS + 1): residuals per degree of freedom, with one pseudo-reward of the variance v of rewards."""
        cdef double usual = self.square / self.rewards, level = self.level / self.rewards
        if self.noise_given:
            return
        if self.intercept:
            usual = max(usual - level * level, 0.0)
        self.noise2 = (max(self.residual, 0.0) + usual) / (max(self.rewards - self.freedom, 0.0) + 1.0)
        self.noise2 = max(self.noise2, max(TINY * self.largest_variance(), LEAST_NOISE2))

    cdef double largest_variance(self) noexcept nogil:
        """The larger of the mean of r² and the variance of rewards under a given Σ, for features of equal size."""
        cdef Py_ssize_t i
        cdef double variance = 0.0
        if self.covariance_given:
            for i in range(self.intercept, self.size):
                variance += self.fixed[i * self.size + i] * self.reach / (self.dim * self.rewards)
            if self.intercept:
                variance += self.fixed[0]
        return max(self.square / self.rewards, variance)

    cdef void update_spread(self) noexcept nogil:
        """The variance of the mean's coordinates, relative to σ²: one step to the fixed point of its likelihood."""
        cdef Py_ssize_t i, first = self.intercept, p = self.size
        cdef double about = self.ridge * (self.reach / self.rewards if self.reach > 0.0 else 1.0)
        cdef double known = 0.0, length2 = 0.0, pseudo = PSEUDO * self.dim
        for i in range(p):
            self.start[i] = 1.0 / (self.ridge if i < first else about)
        if self.mean_given:
            return
        for i in range(first, p):
            known += 1.0 - self.mean_covariance[i * p + i] / self.spread2
            length2 += self.centre[i] * self.centre[i]
        self.spread2 = (length2 / self.noise2 + pseudo / about) / (max(known, 0.0) + pseudo)

    cdef void update_covariance(self) noexcept nogil:
        """A for the next fit: from all users, with the shrinkage of highest evidence."""
        cdef Py_ssize_t i, p = self.size
        self.all_users.users = self.folds[0].users + self.folds[1].users
        if self.covariance_given:
            for i in range(p * p):
                self.relative[i] = self.fixed[i] / self.noise2
            return
        for i in range(p * p):
            self.factor[i] = 0.0
            self.all_users.inverses[i] = self.folds[0].inverses[i] + self.folds[1].inverses[i]
            self.all_users.scatter[i] = self.folds[0].scatter[i] + self.folds[1].scatter[i]
        cholesky(self.relative, self.factor, self.scratch, p)
        invert_lower(self.factor, self.inverse_factor, p)
        self.find_directions(&self.all_users, &self.all_known)
        self.set_target()
        if self.folds[0].users > 0.0 and self.folds[1].users > 0.0:
            self.choose_shrinkage()
        self.step(&self.all_users, &self.all_known, self.shrinkage, self.relative)

    cdef void find_directions(self, Fold *fold, Directions *known) noexcept nogil:
        """The eigenvalues g of RᵀHR, A = RRᵀ: the effective number of users that inform each direction. Writes H to `information_matrix`.

        H is reduced by the information that the estimate of the mean has used up, as if all users had the same.
        """
        cdef Py_ssize_t i, p = self.size
        self.information(fold.users, fold.inverses, self.information_matrix)
        congruent(self.information_matrix, self.mean_covariance, self.matrix, self.scratch, p)
        add_scaled(self.information_matrix, -1.0 / fold.users, self.matrix, p * p)
        transpose(self.factor, self.matrix, p)
        congruent(self.matrix, self.information_matrix, self.product, self.scratch, p)
        eigen(self.product, self.vectors, p)
        for i in range(p):
            known.values[i] = max(self.product[i * p + i], 0.0)
        multiply(self.vectors, self.inverse_factor, known.inwards, p)
        multiply_transposed(self.factor, self.vectors, known.outwards, self.scratch, p)

    cdef void step(self, Fold *fold, Directions *known, double pseudo, double *out) noexcept nogil:
        """R G^-½ F G^-½ Rᵀ, F = R⁻¹(Σδδᵀ/σ²)R⁻ᵀ: scatter over information, with pseudo-users in both. Writes `out`."""
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
        """The isotropic target of the shrinkage, of the size of the unshrunk step in the directions that are informed."""
        cdef Py_ssize_t i, first = self.intercept, p = self.size
        cdef double known = 0.0, large = 0.0
        for i in range(p):
            self.target[i] = 0.0
        self.step(&self.all_users, &self.all_known, 0.0, self.candidate)
        for i in range(first, p):
            known += self.information_matrix[i * p + i]
            large += dot(self.information_matrix + i * p + first, self.candidate + i * p + first, self.dim)
        for i in range(p):
            self.target[i] = large / known if known > 0.0 else self.start[i]
            if i < first:
                self.target[i] = self.candidate[0]
            self.target[i] = max(self.target[i], 1e-12 * self.start[i])

    cdef void choose_shrinkage(self) noexcept nogil:
        """Choose the number of pseudo-users with which each half of the users predicts the other best."""
        cdef Py_ssize_t which, k, best = 0
        cdef double[GRID] found
        for k in range(GRID):
            found[k] = 0.0
        for which in range(2):
            self.find_directions(&self.folds[which], &self.half_known)
            for k in range(GRID):
                self.step(&self.folds[which], &self.half_known, SHRINKAGES[k] * self.size, self.candidate)
                found[k] += self.evidence(1 - which, self.candidate)
        for k in range(1, GRID):
            if found[k] > found[best]:
                best = k
        self.shrinkage = SHRINKAGES[best] * self.size

    cdef double evidence(self, Py_ssize_t which, double *covariance) noexcept nogil:
        """Σ ln|B| − ln|B + S| + cᵀ(B + S)⁻¹c/σ², B = A⁻¹, c = b − Sμ, over some users of a half; `covariance` (A) is overwritten."""
        cdef Py_ssize_t user, i, p = self.size, count = 0
        cdef Py_ssize_t stride = <Py_ssize_t> ((self.folds[which].users + MOST_JUDGES - 1) // MOST_JUDGES)
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


cdef class UpperBounds(LearntPrior):
    """The arm of largest posterior mean plus posterior standard deviation.

    Widths are computed for all arms: each fit changes every posterior, so caching them would not pay.
    """

    cdef int reserve(self, Py_ssize_t n_arms) except -1:
        if n_arms > self.n_arms:
            self.reserve_extended(min(n_arms, <Py_ssize_t> EXTENDED_AT_A_TIME))
        return LearntPrior.reserve(self, n_arms)

    cdef int reserve_extended(self, Py_ssize_t n_arms) except -1:
        """Room for so many arms with intercepts at a time."""
        if "arms" not in self._scratch or len(self._scratch["arms"]) < n_arms:
            self._scratch["arms"] = np.empty((n_arms, self.size))
            self.extended_arms = <double *> cnp.PyArray_DATA(self._scratch["arms"])
        return 0

    cdef int bind(self) except -1:
        if "deviates" not in self._scratch:
            self._scratch["deviates"] = np.zeros(2 * self.size)
        self.deviates = <double *> cnp.PyArray_DATA(self._scratch["deviates"])
        return LearntPrior.bind(self)

    cdef Offer arms_with_intercept(self, Offer *offer) noexcept nogil:
        """The arms with their intercepts, if there is one."""
        cdef Offer extended
        cdef Py_ssize_t k
        if not self.intercept:
            return offer[0]
        for k in range(offer.n):
            self.extended_arms[k * self.size] = 1.0
            memcpy(self.extended_arms + k * self.size + 1, row(offer, k, self.dim), self.dim * sizeof(double))
        extended.items, extended.picks, extended.n = self.extended_arms, NULL, offer.n
        return extended

    cdef const double *covariance_of(self, Py_ssize_t user) noexcept nogil:
        """V of a user; that of the prior if it has no rewards."""
        return self.new_user if self.pulls[user] == 0 else self.covariances + user * self.size * self.size

    cdef const double *mean_of(self, Py_ssize_t user) noexcept nogil:
        """m of a user; that of the prior if it has no rewards."""
        return self.centre if self.pulls[user] == 0 else self.means + user * self.size

    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        """Write xᵀm to `mean` and σ√(xᵀVx) to `width`, the latter times √ln(t + 1) if the bonus grows."""
        cdef Offer extended, part
        cdef Py_ssize_t k, first = 0
        cdef double noise = sqrt(self.noise2) * self.time_factor()
        while first < offer.n:
            part = part_of(offer, first, self.dim)
            extended = self.arms_with_intercept(&part)
            means(self.mean_of(user), extended.items, extended.picks, extended.n, self.size, mean + first)
            quadratics(self.covariance_of(user), extended.items, extended.picks, extended.n, self.size, width + first)
            first += part.n
        for k in range(offer.n):
            if self.effective:
                mean[k] += self.item_means[k]
            width[k] = self.with_effect(noise * sqrt(max(width[k], 0.0)), noise, k)
        return 0

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        cdef double noise = sqrt(self.noise2) * self.time_factor()
        cdef const double *mean = self.mean_of(user)
        model.constant, model.linear, model.parts = mean[0] if self.intercept else 0.0, mean + self.intercept, 0.0
        model.n_widths, model.scale = 1, noise
        model.widths[0] = WidthModel(self.covariance_of(user), self.intercept, noise, INFINITY, INFINITY)
        return True

    cdef int predict(self, Py_ssize_t user, const double *x, double *mean, double *variance) except -1 nogil:
        """xᵀm, and 1 + xᵀVx."""
        cdef const double *full = self.with_intercept(x, 1.0) if self.intercept else x
        mean[0] = dot(self.mean_of(user), full, self.size)
        variance[0] = 1.0 + max(quadratic(self.covariance_of(user), full, self.size), 0.0)
        return 0

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil:
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

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        return False  # scores are drawn

    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil:
        """The k arms of largest xᵀθ̃, of one sample: θ̃ = m + cσLz, LLᵀ = V, z standard normal."""
        cdef Offer extended, part
        cdef const double *mean = self.mean_of(user)
        cdef double *sample = self.deviates + self.size
        cdef double noise = self.scale * sqrt(self.noise2)
        cdef Py_ssize_t i, first = 0
        cholesky(self.covariance_of(user), self.product, self.scratch, self.size)
        for i in range(self.size):
            self.deviates[i] = random_standard_normal(self.bitgen)
        for i in range(self.size):
            sample[i] = mean[i] + noise * dot(self.product + i * self.size, self.deviates, i + 1)
        while first < offer.n:
            part = part_of(offer, first, self.dim)
            extended = self.arms_with_intercept(&part)
            means(sample, extended.items, extended.picks, extended.n, self.size, self.upper + first)
            first += part.n
        self.sample_effects(noise, offer.n, self.upper)
        largest(self.upper, offer.n, k, out)
        return 0
