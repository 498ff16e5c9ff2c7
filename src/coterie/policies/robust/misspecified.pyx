# optimize: 2
"""RCLUMB, RSCLUMB: neighbours and sets of users whose means deviate from a linear model   (Wang et al. 2023)."""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t

from coterie.policies.club.neighbourhoods cimport Neighbourhoods
from coterie.policies.kernel.learner cimport Learner, Offer, ScoreModel, View, row
from coterie.policies.kernel.linalg cimport ARMS_AT_A_TIME, apply, distance2, dot, means, quadratics
from coterie.policies.sclub.split_merge cimport SplitMerge


cdef double WIDTH_SLACK = 1.0 + 1e-9  # rounding error of an upper bound on a width, generously
cdef double CANCELLED = 1e-13  # xᵀM⁻¹x − λ‖M⁻¹x‖² below this fraction of xᵀM⁻¹x is rounding error


cdef double bonus(View *seen, double factor, const double *x, double *work, Py_ssize_t d, double *width2) noexcept nogil:
    """β√(xᵀM⁻¹x) + ε*√T·√(xᵀM⁻¹SM⁻¹x), the latter as xᵀM⁻¹x − λ‖M⁻¹x‖².

    `factor` is ε*√T, `work` has room for d numbers; xᵀM⁻¹x is written to `width2`   (OUT).
    """
    apply(seen.inverse, x, work, d)
    width2[0] = max(dot(x, work, d), 0.0)
    cdef double spread2 = width2[0] - seen.ridge * dot(work, work, d)
    if spread2 < CANCELLED * width2[0]:
        spread2 = 0.0
    return seen.beta * sqrt(width2[0]) + factor * sqrt(spread2)


cdef Py_ssize_t best_arm(Learner self, View *seen, double factor, Offer *offer) noexcept nogil:
    """The arm of the largest score, the first on ties; exact widths replace their bounds in `self.bounds`.

    √(xᵀM⁻¹SM⁻¹x) ≤ √(xᵀM⁻¹x): arms that cannot have the largest score by a bound on their width get no width, and those that
    cannot by their width no exact bonus.
    """
    cdef Py_ssize_t k, best = 0, top = -1, d = self.dim
    cdef double score, other
    means(seen.estimate, offer.items, offer.picks, offer.n, d, self.widths)
    for k in range(offer.n):
        self.upper[k] = self.widths[k] + (seen.beta + factor) * sqrt(WIDTH_SLACK * self.bounds[k])
        if self.upper[k] > self.upper[best]:
            best = k
    score = self.widths[best] + bonus(seen, factor, row(offer, best, d), self.work, d, &self.bounds[best])
    self.upper[best] = -INFINITY
    tighten(self, seen, factor, offer, score)
    for k in range(offer.n):
        if top < 0 or self.upper[k] > self.upper[top]:
            top = k
    while self.upper[top] >= score:  # the most promising first, then in order
        other = self.widths[top] + bonus(seen, factor, row(offer, top, d), self.work, d, &self.bounds[top])
        if other > score or (other == score and top < best):
            best, score = top, other
        self.upper[top] = -INFINITY
        top = 0
        while top < offer.n - 1 and self.upper[top] < score:
            top += 1
    return best


cdef void tighten(Learner self, View *seen, double factor, Offer *offer, double score) noexcept nogil:
    """Replace upper scores that reach so high by those of the arms' widths, eight at a time."""
    cdef Py_ssize_t j, k, arm, count = 0, d = self.dim
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
                arm = self.waiting[j]
                self.bounds[arm] = max(widths2[j], 0.0)
                self.upper[arm] = self.widths[arm] + (seen.beta + factor) * sqrt(WIDTH_SLACK * self.bounds[arm])
            count = 0


cdef void score_arms(Learner self, View *seen, double factor, Offer *offer, double *mean, double *width) noexcept nogil:
    """Write xᵀθ̂ of every arm to `mean` and its bonus to `width`."""
    cdef Py_ssize_t k
    cdef double width2
    means(seen.estimate, offer.items, offer.picks, offer.n, self.dim, mean)
    for k in range(offer.n):
        width[k] = bonus(seen, factor, row(offer, k, self.dim), self.work, self.dim, &width2)


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
        cdef int64_t pulls = self.temporary.pulls[0] if seen.row < 0 else self.pools.pulls[seen.row]
        return self.misspecification * sqrt(<double> pulls)

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        return False  # bonuses for deviations need sums over all rewards

    cdef Py_ssize_t best(self, View *seen, Offer *offer) noexcept nogil:
        return best_arm(self, seen, self.factor(seen), offer)

    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        cdef View seen
        self.scaled_view(user, &seen)
        score_arms(self, &seen, self.factor(&seen), offer, mean, width)
        return 0


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
        self.merge_factor = 0.5

    def adjust(self, *, misspecification, **others):
        return {"misspecification": misspecification, **SplitMerge.adjust(self, **others)}

    cdef bint must_split(self, Py_ssize_t user, Py_ssize_t slot) noexcept nogil:
        """Does the user differ from its cluster as it is now, itself included?"""
        cdef double reach = self.radii[user] + self.reach[slot], apart
        apart = distance2(self.users.estimate + user * self.dim, self.pools.estimate + slot * self.dim, self.dim)
        return self.sizes[slot] > 1 and apart > reach * reach

    cdef double factor(self, View *seen) noexcept nogil:
        """ε*√T of the cluster that a decision rests on."""
        return self.misspecification * sqrt(<double> self.pools.pulls[seen.row])

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        return False  # as above

    cdef Py_ssize_t best(self, View *seen, Offer *offer) noexcept nogil:
        return best_arm(self, seen, self.factor(seen), offer)

    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        cdef View seen
        self.scaled_view(user, &seen)
        score_arms(self, &seen, self.factor(&seen), offer, mean, width)
        return 0
