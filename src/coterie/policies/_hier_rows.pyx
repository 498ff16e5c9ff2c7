"""The users of a hierarchical model: what each has told, and its posterior given everybody's data at the last fit.

θᵤ ~ N(μ, Σ), a reward is xᵀθᵤ + N(0, σ²). Covariances are kept relative to σ²: A = Σ/σ², and a posterior covariance V
stands for σ²V. So a posterior is a ridge regression, and its rank-one update that of `linalg.c`.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from coterie.policies._linalg import eliminated
from coterie.policies._learner cimport Learner
from coterie.policies._linalg cimport (
    absorb, add_outer, add_scaled, apply, cholesky, dot, invert
)
from coterie.policies._matrices cimport add_gram, congruent, invert_sums, multiply

from coterie.policies._arrays import Field

cnp.import_array()

SHRINKAGE = 2.0
"""Pseudo-users for each dimension before there are two users to choose by."""
cdef double NEGLIGIBLE = 0.1  # a posterior is not widened by the doubt about the mean if that is less a dimension, relative to A
cdef enum:
    SIDE_BY_SIDE = 4  # users whose posteriors `invert_sums` takes at a time
cdef double FLAT = 1e-6  # the prior of the intercept's mean is worth this part of what users tell of it


cdef class UserRows(Learner):
    """Sums S, b, Σr² and T of each user, its posterior N(m, σ²V), and the prior.

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
        "prior.newcomer": Field(("size", "size")),
    }
    NUMBERS = ("rounds", "noise2", "spread2", "shrinkage", "due")

    def __init__(self, n_users, dim, *, intercept, noise, mean, covariance, ridge, schedule, generator):
        self.intercept, self.noise, self.mean, self.covariance = intercept, noise, mean, covariance
        self.size, self.mean_given = dim + intercept, mean is not None
        self.noise2, self.spread2, self.due = 1.0 if noise is None else noise * noise, 1.0 / ridge, 1.0
        self.shrinkage = SHRINKAGE * self.size
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
        self.newcomer = <double *> self.pointer("prior.newcomer")
        if "fit" not in self._scratch:
            self._scratch["fit"] = np.zeros(13 * square + 13 * p)
        cdef double *room = <double *> cnp.PyArray_DATA(self._scratch["fit"])
        self.folds[0].inverses, self.folds[0].scatter = room, room + square
        self.folds[1].inverses, self.folds[1].scatter = room + 2 * square, room + 3 * square
        self.precision, self.doubt, self.root = room + 4 * square, room + 5 * square, room + 6 * square
        self.matrix, self.product = room + 7 * square, room + 8 * square
        self.scratch, self.total = room + 9 * square, room + 13 * square + 8 * p
        self.lift, self.reduced = self.total + p, self.total + 2 * p
        self.longer = self.total + 4 * p
        return Learner.bind(self)

    cdef int welcome(self, Py_ssize_t known) except -1:
        """Newcomers need nothing: they start from the prior."""
        if known == 0:
            start = np.eye(self.size) / self.ridge if self.covariance is None else self.covariance / self.noise2
            self.array("prior.covariance")[...] = self.array("prior.newcomer")[...] = start
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

    cdef const double *lengthen(self, const double *x, double times) noexcept nogil:
        """So many times the vector with its intercept, if there is one."""
        cdef Py_ssize_t i, first = self.intercept
        self.longer[0] = times
        for i in range(self.dim):
            self.longer[i + first] = times * x[i]
        return self.longer

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Add to the user's sums and to its posterior."""
        self.absorb_weighted(user, x, reward, 1.0)
        return 0

    cdef void absorb_weighted(self, Py_ssize_t user, const double *x, double reward, double weight) noexcept nogil:
        """Add a reward of so much weight to the user's sums and to its posterior, which starts as the prior's."""
        cdef Py_ssize_t i, p = self.size
        cdef double root = sqrt(weight)
        cdef const double *full = self.lengthen(x, root)
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

    cdef void amend(
        self, Py_ssize_t user, const double *x, double weight, double before, double after
    ) noexcept nogil:
        """A reward that was absorbed with some weight counts for something else."""
        cdef Py_ssize_t p = self.size
        cdef const double *full = self.lengthen(x, weight * (after - before))
        add_scaled(self.moments + user * p, 1.0, full, p)
        apply(self.covariances + user * p * p, full, self.total, p)
        add_scaled(self.means + user * p, 1.0, self.total, p)
        self.squared[user] += weight * (after * after - before * before)

    cdef void copy_from(self, Py_ssize_t user, UserRows others, Py_ssize_t other) noexcept nogil:
        """The sums and the posterior of someone else's user."""
        cdef Py_ssize_t p = self.size, square = p * p
        memcpy(self.grams + user * square, others.grams + other * square, square * sizeof(double))
        memcpy(self.covariances + user * square, others.covariances + other * square, square * sizeof(double))
        memcpy(self.moments + user * p, others.moments + other * p, p * sizeof(double))
        memcpy(self.means + user * p, others.means + other * p, p * sizeof(double))
        self.squared[user], self.pulls[user] = others.squared[other], others.pulls[other]

    cdef void reweigh(self, Py_ssize_t user, double times) noexcept nogil:
        """All rewards of a user have so many times the weight; its posterior says so from the next fit on."""
        cdef Py_ssize_t i, p = self.size
        for i in range(p * p):
            self.grams[user * p * p + i] *= times
        for i in range(p):
            self.moments[user * p + i] *= times
        self.squared[user] *= times

    # A posterior made anew under today's prior, for one user.

    cdef void start_covariance(self, Py_ssize_t user) noexcept nogil:
        """V as before any reward."""
        memcpy(self.covariances + user * self.size * self.size, self.newcomer, self.size * self.size * sizeof(double))

    cdef void narrow(self, Py_ssize_t user, const double *x) noexcept nogil:
        """V with one more vector."""
        cdef Py_ssize_t p = self.size
        absorb(self.covariances + user * p * p, self.reduced, self.lift, x, 0.0, self.total, p)

    cdef void start_posterior(self, Py_ssize_t user) noexcept nogil:
        """V = (N⁻¹ + S)⁻¹, with N what is known of a newcomer, and m."""
        cdef Py_ssize_t i, p = self.size
        cdef double *covariance = self.covariances + user * p * p
        cdef double least = INFINITY, floor = 0.0
        for i in range(p):
            least, floor = min(least, self.newcomer[i * p + i]), floor + self.newcomer[i * p + i]
        memcpy(covariance, self.newcomer, p * p * sizeof(double))
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
        """H = Σ (A⁻¹ − A⁻¹CA⁻¹): what users tell of the mean, relative to σ²; `out` is not `product`."""
        cdef Py_ssize_t i
        congruent(self.precision, inverses, out, self.scratch, self.size)
        for i in range(self.size * self.size):
            out[i] = users * self.precision[i] - out[i]

    cdef void condition_mean(self) noexcept nogil:
        """μ | data ~ N(μ̄, σ²W): W = (Q + H)⁻¹, μ̄ = WA⁻¹ΣCb; nothing if the mean is given."""
        cdef Py_ssize_t i, p = self.size
        cdef double floor = 1.0 / self.spread2
        for i in range(p * p):
            self.doubt[i] = self.root[i] = 0.0
            self.product[i] = self.folds[0].inverses[i] + self.folds[1].inverses[i]
        if not self.mean_given:
            self.information(self.folds[0].users + self.folds[1].users, self.product, self.doubt)
            for i in range(p):
                if i == 0 and self.intercept:
                    floor = min(floor, FLAT * self.doubt[0])
                    self.doubt[0] += FLAT * self.doubt[0]
                else:
                    self.doubt[i * p + i] += 1.0 / self.spread2
            invert(self.doubt, self.scratch, p, 0.5 * floor)
            cholesky(self.doubt, self.matrix, self.scratch, p)
            for i in range(p * p):
                if i % p <= i / p:
                    self.root[i] = self.matrix[i]
            apply(self.precision, self.total, self.lift, p)
            apply(self.doubt, self.lift, self.centre, p)
        multiply(self.precision, self.root, self.matrix, p)
        for i in range(p * p):
            self.root[i] = self.matrix[i]
            self.newcomer[i] = self.relative[i] + self.doubt[i]
        apply(self.precision, self.centre, self.lift, p)
        self.doubtful = dot(self.precision, self.doubt, p * p) > NEGLIGIBLE * p

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
        return np.array(solved)[:, self.intercept :]

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return self.array("pulls").copy()
