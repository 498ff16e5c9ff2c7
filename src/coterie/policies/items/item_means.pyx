# optimize: 2
"""Mean rewards of items, the same for all users: upper bounds, and Thompson sampling on the same sums.

The sums of an item are those of `Effects`, to which the whole reward is a residual: nothing is predicted from vectors. The
rows below are those of docs/algorithms/itemucb.md.
"""

import numpy as np

from libc.math cimport isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset

from coterie.policies.kernel.effects cimport key_of_item
from coterie.policies.kernel.learner cimport NO_ITEM, Learner, Offer, ScoreModel, WidthCache, item_key, largest
from coterie.policies.kernel.linalg cimport natural_log

from coterie.policies.kernel.arrays import Field


cdef class ItemMeans(Learner):
    """A mean for each item, shrunk to the mean first reward of all items; users and vectors do not count.

    Parameters
    ----------
    scale : float
        The factor c of the bonus, in standard deviations of rewards.
    """

    FITS = True
    ITEM_EFFECTS = {"most_shrinkage": 0.0}  # sums alone: no variance of effects is learnt
    FIELDS = {"pulls": Field(("users",), "int64")}
    NUMBERS = ("rounds", "known", "first_mean")

    cdef public int64_t known  # K, the number of items with a reward
    cdef public double first_mean
    cdef double scale
    cdef int64_t *pulls

    def __init__(self, n_users, dim, *, double scale, ridge, schedule, generator):
        self.scale = scale
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "rows": 1, "dim": dim}

    cdef int bind(self) except -1:
        self.pulls = <int64_t *> self.pointer("pulls")
        return Learner.bind(self)

    def refresh(self):
        if self.known < 0 or not isfinite(self.first_mean):
            raise ValueError("has a mean of items that is none")

    # Learning.

    cdef int predict(self, Py_ssize_t user, const double *x, double *mean, double *variance) except -1 nogil:
        """Nothing: the whole reward is the item's."""
        mean[0], variance[0] = 0.0, 1.0
        return 0

    cdef double absorb_effect(
        self, Py_ssize_t user, const double *x, double reward, const int64_t *item
    ) except? -1.0 nogil:
        """Add a reward to its item   (row 1), and to the mean of first rewards if it is one   (row 2)."""
        cdef int64_t slot
        if item != NULL and item[0] == NO_ITEM:
            return 0
        Learner.absorb_effect(self, user, x, reward, item)
        slot = self.items.slot_of(key_of_item(item, x, self.dim))
        if self.items.weights[slot] == 1.0:
            self.known += 1
            self.first_mean += (self.items.sums[slot] - self.first_mean) / self.known
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        self.pulls[user] += 1
        return 0

    # Decisions.

    cdef double deviation(self) noexcept nogil:
        """c·s, where s is the standard deviation of recent rewards   (row 3)."""
        # While all rewards were the same s may be any number: the bonus alone decides, and the item of fewest rewards is next.
        return self.scale * (sqrt(self.items.squares / self.items.count) if self.items.squares > 0.0 else 1.0)

    cdef void look_up_effects(self, Offer *offer, int kinds) noexcept nogil:
        """The mean of every arm and 1/(n + λ)   (row 4)."""
        cdef Py_ssize_t k
        cdef int64_t slot
        self.effective = kinds > 0
        for k in range(offer.n):
            slot = self.items.slot_of(item_key(offer, k, self.dim))
            self.item_widths2[k] = 1.0 / (self.items.weights[slot] + self.ridge)
            self.item_means[k] = (self.items.sums[slot] + self.ridge * self.first_mean) * self.item_widths2[k]

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil:
        """The first arm of largest score; -1 if an arm is too long."""
        cdef int64_t arm
        if cache == NULL and self.too_long(offer):  # cached items were checked before the first round
            return -1
        self.rank(user, offer, 1, &arm)
        return arm

    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        """The means and bonuses of all arms   (row 5); zeros for differences of arms, which are no items."""
        cdef Py_ssize_t k
        cdef double deviation = self.deviation(), width2
        cdef double rounds_per_item = (self.rounds + 1.0) / max(self.known, 1)
        for k in range(offer.n):
            mean[k], width2 = self.item_means[k], self.item_widths2[k]
            width[k] = deviation * sqrt(width2 * natural_log(1.0 + rounds_per_item * width2))
            if not self.effective:
                mean[k] = width[k] = 0.0
        return 0

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        return False  # scores do not depend on vectors

    cdef int label(self, int64_t *out) except -1 nogil:
        """All users are one cluster."""
        memset(out, 0, self.n_users * sizeof(int64_t))
        return 0

    def estimates(self):
        """Zeros: no preference is estimated."""
        return np.zeros((self.n_users, self.dim))

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return self.array("pulls").copy()


cdef class SampledItems(ItemMeans):
    """A reward is drawn for every item on offer, N(mean, c²s²/(n + λ)); the item of the largest is played."""

    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil:
        """The k arms of the largest samples."""
        memset(self.upper, 0, offer.n * sizeof(double))
        self.sample_effects(self.deviation(), offer.n, self.upper)
        largest(self.upper, offer.n, k, out)
        return 0
