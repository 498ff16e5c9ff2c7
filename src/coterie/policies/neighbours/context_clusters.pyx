# optimize: 2
"""CAB: a separate neighbourhood for each arm, the users whose estimates agree on it   (Gentile et al. 2017)."""

import numpy as np

cimport numpy as cnp
from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t

from coterie.policies.kernel.learner cimport Learner, WidthCache, Offer, ScoreModel, View, show_row
from coterie.policies.kernel.linalg cimport dot, largest_eigenvalue, means, natural_log, quadratic, quadratics, squares
from coterie.policies.kernel.ridge cimport Ridge, absorb_row, clear_row

from coterie.policies.kernel.arrays import Field, ridge_fields

cnp.import_array()


cdef double EIGENVALUE_SLACK = 1.0 + 1e-9  # rounding error of a bound on an eigenvalue, generously


cdef class ContextClusters(Learner):
    """Statistics of users, to which neighbours contribute; `pulls` counts a user's own rewards.

    `reaches` bounds the largest eigenvalue of each user's M⁻¹: a user whose mean is farther away than any width allows is
    no neighbour, and its width is not computed.

    Parameters
    ----------
    alpha : float
        The factor of the width, which also grows with √ln(t + 1).
    shared : float
        γ/4: rewards are shared with whoever has a width below this.
    """

    FIELDS = {**ridge_fields("users", "users"), "pulls": Field(("users",), "int64")}

    cdef Ridge users
    cdef int64_t *pulls
    cdef double alpha
    cdef double sharing_width
    cdef double *eigenvalue_bounds
    cdef int64_t *found
    cdef double *own_means
    cdef double *own_widths
    cdef double *other_means
    cdef double *other_widths
    cdef double *counts
    cdef int64_t *near

    def __init__(self, n_users, dim, *, double alpha, double shared, ridge, schedule, generator):
        self.alpha, self.sharing_width = alpha, shared
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    cdef int bind(self) except -1:
        room = len(self._arrays["pulls"])
        self.users, self.pulls = self.ridge_rows("users"), <int64_t *> self.pointer("pulls")
        if room > len(self._scratch.get("reaches", ())):
            reaches, found = np.zeros(room), np.zeros(room, np.int64)
            reaches[: len(self._scratch.get("reaches", ()))] = self._scratch.get("reaches", ())
            self._scratch.update(reaches=reaches, found=found)
        self.eigenvalue_bounds = <double *> cnp.PyArray_DATA(self._scratch["reaches"])
        self.found = <int64_t *> cnp.PyArray_DATA(self._scratch["found"])
        return Learner.bind(self)

    cdef int reserve(self, Py_ssize_t n_arms) except -1:
        """Allocate work space for sums over the neighbourhoods of so many arms."""
        if n_arms > self.n_arms:
            self._scratch["sums"], self._scratch["near"] = np.empty((5, n_arms)), np.empty(n_arms, np.int64)
            self.own_means = <double *> cnp.PyArray_DATA(self._scratch["sums"])
            self.own_widths, self.counts = self.own_means + n_arms, self.own_means + 2 * n_arms
            self.other_means, self.other_widths = self.own_means + 3 * n_arms, self.own_means + 4 * n_arms
            self.near = <int64_t *> cnp.PyArray_DATA(self._scratch["near"])
        return Learner.reserve(self, n_arms)

    cdef int init_users(self, Py_ssize_t known) except -1:
        cdef Py_ssize_t user
        for user in range(known, self.n_users):
            clear_row(&self.users, user, self.ridge, self.dim)
            self.eigenvalue_bounds[user] = EIGENVALUE_SLACK / self.ridge
        return 0

    def refresh(self):
        cdef Py_ssize_t user
        for user in range(self.n_users):
            self.bound_eigenvalue(user)

    cdef void bound_eigenvalue(self, Py_ssize_t user) noexcept nogil:
        """An upper bound of the largest eigenvalue of M⁻¹."""
        cdef const double *inverse = self.users.inverse + user * self.dim * self.dim
        self.eigenvalue_bounds[user] = EIGENVALUE_SLACK * min(largest_eigenvalue(inverse, self.work, self.dim), EIGENVALUE_SLACK / self.ridge)

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The user's own statistics; decisions use those of neighbours too."""
        show_row(seen, &self.users, user, self.factor(self.rounds + 1), self.ridge, self.dim)
        seen.row = -1
        return 0

    cdef double factor(self, int64_t t) noexcept nogil:
        """α√ln(t + 1)."""
        return self.alpha * sqrt(natural_log(t + 1.0))

    # Decisions.

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil:
        """The first arm of largest score; -1 if an arm is too long."""
        cdef int64_t arm
        if self.too_long(offer):
            return -1
        self.rank(user, offer, 1, &arm)
        return arm

    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        """The mean of xᵀθ̂ and that of CB(x) over the neighbourhood of every arm."""
        cdef Py_ssize_t k, other, d = self.dim
        cdef double factor = self.factor(self.rounds + 1)
        squares(offer.items, offer.picks, offer.n, d, self.bounds)
        means(self.users.estimate + user * d, offer.items, offer.picks, offer.n, d, self.own_means)
        quadratics(self.users.inverse + user * d * d, offer.items, offer.picks, offer.n, d, self.own_widths)
        for k in range(offer.n):
            self.bounds[k] = sqrt(self.bounds[k])
            self.own_widths[k] = factor * sqrt(max(self.own_widths[k], 0.0))
            mean[k], width[k], self.counts[k] = self.own_means[k], self.own_widths[k], 1.0
        for other in range(self.n_users):
            if other != user and self.pulls[other]:
                self.add_neighbour(other, offer, factor, mean, width)
        for k in range(offer.n):
            mean[k] /= self.counts[k]
            width[k] /= self.counts[k]
        return 0

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        return False  # every arm has a neighbourhood of its own

    cdef void add_neighbour(
        self, Py_ssize_t other, Offer *offer, double factor, double *mean, double *width
    ) noexcept nogil:
        """Add a user to the sums of the arms on which it agrees; its widths are computed only where it may."""
        cdef Py_ssize_t k, a, count = 0, d = self.dim
        cdef double longest = factor * sqrt(self.eigenvalue_bounds[other]), spread
        cdef const double *inverse = self.users.inverse + other * d * d
        means(self.users.estimate + other * d, offer.items, offer.picks, offer.n, d, self.other_means)
        for k in range(offer.n):
            if fabs(self.own_means[k] - self.other_means[k]) <= self.own_widths[k] + longest * self.bounds[k]:
                self.waiting[count] = k
                self.near[count] = k if offer.picks == NULL else offer.picks[k]
                count += 1
        quadratics(inverse, offer.items, self.near, count, d, self.other_widths)
        for a in range(count):
            k, spread = self.waiting[a], factor * sqrt(max(self.other_widths[a], 0.0))
            if fabs(self.own_means[k] - self.other_means[k]) <= self.own_widths[k] + spread:
                mean[k] += self.other_means[k]
                width[k] += spread
                self.counts[k] += 1.0

    # Learning.

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Add to the user and, if its width is small, to all neighbours with small widths."""
        cdef Py_ssize_t k, count = self.find_sharers(user, x)
        for k in range(count):
            absorb_row(&self.users, self.found[k], x, reward, self.work, self.dim)
            self.bound_eigenvalue(self.found[k])
        self.pulls[user] += 1
        return 0

    cdef Py_ssize_t find_sharers(self, Py_ssize_t user, const double *x) noexcept nogil:
        """Write the users who learn from a reward to `found`, its own user first; returns how many."""
        cdef Py_ssize_t other, d = self.dim, count = 1
        cdef double factor = self.factor(self.rounds), mean = dot(x, self.users.estimate + user * d, d)
        cdef double own = factor * sqrt(max(quadratic(self.users.inverse + user * d * d, x, d), 0.0)), apart, width
        self.found[0] = user
        if own >= self.sharing_width:
            return 1
        for other in range(self.n_users):
            if other == user or self.pulls[other] == 0:
                continue
            apart = fabs(mean - dot(x, self.users.estimate + other * d, d))
            if apart > own + self.sharing_width:  # a width that allows for it would be too large to share
                continue
            width = factor * sqrt(max(quadratic(self.users.inverse + other * d * d, x, d), 0.0))
            if width < self.sharing_width and apart <= own + width:
                self.found[count] = other
                count += 1
        return count

    cdef int label(self, int64_t *out) except -1 nogil:
        """Neighbourhoods depend on the arm, so every user has its own label."""
        cdef Py_ssize_t user
        for user in range(self.n_users):
            out[user] = user
        return 0

    def pulls_of_users(self):
        """How many rewards each user has given itself."""
        return self.array("pulls").copy()
