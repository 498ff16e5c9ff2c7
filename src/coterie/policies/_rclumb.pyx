"""RCLUMB, RSCLUMB: neighbours and sets of users whose means deviate from a linear model   (Wang et al. 2023)."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t

from coterie.policies._learner cimport Learner
from coterie.policies._linalg cimport ARMS_AT_A_TIME, apply, distance2, dot, largest_eigenvalue, means, quadratics
from coterie.policies._offers cimport Memory, Offer, View, largest, offer_of, row
from coterie.policies._phase cimport Neighbourhoods
from coterie.policies._sclub cimport SplitMerge

cnp.import_array()

cdef double SLACK = 1.0 + 1e-9  # what an upper bound on a width may lose by rounding
cdef double ROUNDING = 1e-13  # below this share of xᵀM⁻¹x, what is left of it is rounding


cdef double bonus(View *seen, double factor, const double *x, double *work, Py_ssize_t d) noexcept nogil:
    """β√(xᵀM⁻¹x) + ε*√T·√(xᵀM⁻¹SM⁻¹x), the latter as xᵀM⁻¹x − λ‖M⁻¹x‖²; `factor` is ε*√T, `work` holds d numbers."""
    apply(seen.inverse, x, work, d)
    cdef double width2 = max(dot(x, work, d), 0.0), spread2 = width2 - seen.ridge * dot(work, work, d)
    if spread2 < ROUNDING * width2:
        spread2 = 0.0
    return seen.beta * sqrt(width2) + factor * sqrt(spread2)


cdef Py_ssize_t best_arm(Learner self, View *seen, double factor, Offer *offer) noexcept nogil:
    """The arm of the largest score, the first on ties; -1 if an arm is too long.

    √(xᵀM⁻¹SM⁻¹x) ≤ √(xᵀM⁻¹x), which is at most ‖x‖ times the root of M⁻¹'s largest eigenvalue: arms that cannot have the
    largest score by the latter get no width, and those that cannot by the former no exact bonus.
    """
    cdef Py_ssize_t k, best = 0, top = -1, d = self.dim
    cdef double most, score, other
    if self.too_long(offer):
        return -1
    most = SLACK * min(largest_eigenvalue(seen.inverse, self.work, d), 1.0 / seen.ridge)
    means(seen.estimate, offer.items, offer.picks, offer.n, d, self.widths)
    for k in range(offer.n):
        self.upper[k] = self.widths[k] + (seen.beta + factor) * sqrt(most * self.bounds[k])
        if self.upper[k] > self.upper[best]:
            best = k
    score = self.widths[best] + bonus(seen, factor, row(offer, best, d), self.work, d)
    self.upper[best] = -INFINITY
    tighten(self, seen, factor, offer, score)
    for k in range(offer.n):
        if top < 0 or self.upper[k] > self.upper[top]:
            top = k
    while self.upper[top] >= score:  # the most promising first, then in order
        other = self.widths[top] + bonus(seen, factor, row(offer, top, d), self.work, d)
        if other > score or (other == score and top < best):
            best, score = top, other
        self.upper[top] = -INFINITY
        top = 0
        while top < offer.n - 1 and self.upper[top] < score:
            top += 1
    return best


cdef void tighten(Learner self, View *seen, double factor, Offer *offer, double score) noexcept nogil:
    """Replace upper scores that reach so high by those of the arms' widths, eight at a time."""
    cdef Py_ssize_t j, k, count = 0, d = self.dim
    cdef int64_t rows[ARMS_AT_A_TIME]
    cdef double widths2[ARMS_AT_A_TIME]
    for k in range(offer.n):
        if self.upper[k] >= score:
            self.waiting[count] = k
            rows[count] = k if offer.picks == NULL else offer.picks[k]
            count += 1
        if count == ARMS_AT_A_TIME or (count and k == offer.n - 1):
            quadratics(seen.inverse, offer.items, rows, count, d, widths2)
            for j in range(count):
                self.upper[self.waiting[j]] = self.widths[self.waiting[j]] + (seen.beta + factor) * sqrt(
                    SLACK * max(widths2[j], 0.0)
                )
            count = 0


cdef void rank_arms(Learner self, View *seen, double factor, Offer *offer, Py_ssize_t k, int64_t *out) noexcept nogil:
    """The k arms with the largest scores, largest first, ties to the lower index."""
    cdef Py_ssize_t j
    means(seen.estimate, offer.items, offer.picks, offer.n, self.dim, self.upper)
    for j in range(offer.n):
        self.upper[j] += bonus(seen, factor, row(offer, j, self.dim), self.work, self.dim)
    largest(self.upper, offer.n, k, out)


cdef object score_arms(Learner self, View *seen, double factor, object arms):
    """xᵀθ̂ and the bonus of every arm."""
    cdef Offer offer = offer_of(arms, self.dim)
    cdef Py_ssize_t k
    mean, width = np.empty(offer.n), np.empty(offer.n)
    cdef double *out = <double *> cnp.PyArray_DATA(width)
    means(seen.estimate, offer.items, NULL, offer.n, self.dim, <double *> cnp.PyArray_DATA(mean))
    for k in range(offer.n):
        out[k] = bonus(seen, factor, row(&offer, k, self.dim), self.work, self.dim)
    return mean, width


cdef class RobustNeighbourhoods(Neighbourhoods):
    """Neighbourhoods whose bonus allows for deviations.

    Parameters
    ----------
    misspecification : float
        ε*, the most by which a mean deviates from a linear one.
    """

    cdef double misspecification

    def __init__(self, n_users, dim, *, double misspecification, **settings):
        self.misspecification = misspecification
        Neighbourhoods.__init__(self, n_users, dim, **settings)

    cdef double factor(self, View *seen) noexcept nogil:
        """ε*√T of the neighbourhood that a decision rests on."""
        cdef int64_t pulls = self.once.pulls[0] if seen.row < 0 else self.pools.pulls[seen.row]
        return self.misspecification * sqrt(<double> pulls)

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, Memory *memory) except -2 nogil:
        cdef View seen
        self.look(user, &seen)
        return best_arm(self, &seen, self.factor(&seen), offer)

    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil:
        cdef View seen
        self.look(user, &seen)
        rank_arms(self, &seen, self.factor(&seen), offer, k, out)
        return 0

    def scores(self, Py_ssize_t user, arms):
        """xᵀθ̂ and the bonus of every arm."""
        cdef View seen
        self.look(user, &seen)
        return score_arms(self, &seen, self.factor(&seen), arms)


cdef class RobustSets(SplitMerge):
    """Sets that split against their own estimate and merge at half, and whose bonus allows for deviations.

    Parameters
    ----------
    misspecification : float
        ε*, the most by which a mean deviates from a linear one.
    """

    cdef double misspecification

    def __init__(self, n_users, dim, *, double misspecification, **settings):
        self.misspecification = misspecification
        SplitMerge.__init__(self, n_users, dim, **settings)
        self.closeness = 0.5

    def adjust(self, *, misspecification, **others):
        return {"misspecification": misspecification, **SplitMerge.adjust(self, **others)}

    cdef bint parts(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """Does the user differ from its cluster as it is now, itself included?"""
        cdef double reach = self.radii[user] + self.reach[slot], apart
        apart = distance2(self.users.estimate + user * self.dim, self.pools.estimate + slot * self.dim, self.dim)
        return self.sizes[slot] > 1 and apart > reach * reach

    cdef double factor(self, View *seen) noexcept nogil:
        """ε*√T of the cluster that a decision rests on."""
        return self.misspecification * sqrt(<double> self.pools.pulls[seen.row])

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, Memory *memory) except -2 nogil:
        cdef View seen
        self.look(user, &seen)
        return best_arm(self, &seen, self.factor(&seen), offer)

    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil:
        cdef View seen
        self.look(user, &seen)
        rank_arms(self, &seen, self.factor(&seen), offer, k, out)
        return 0

    def scores(self, Py_ssize_t user, arms):
        """xᵀθ̂ and the bonus of every arm."""
        cdef View seen
        self.look(user, &seen)
        return score_arms(self, &seen, self.factor(&seen), arms)
