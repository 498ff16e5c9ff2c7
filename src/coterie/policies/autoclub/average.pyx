"""AutoCLUB as it acts: by clusters and by people, each as far as it is trusted, and by what a user has told of an arm before.

Where users fall into clusters, ByEvidence foretells best; where they differ by degrees, a learnt covariance of preferences
does.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from coterie.policies.autoclub.people cimport ClustersAndPeople, misled
from coterie.policies.autoclub.prior cimport Terms
from coterie.policies.kernel.effects cimport Effect, Effects, key_of_item, key_of_pair
from coterie.policies.kernel.learner cimport (
    NO_ITEM, WidthCache, Offer, ScoreModel, View, WidthModel, bonus, item_key, row
)
from coterie.policies.kernel.linalg cimport dot, largest_eigenvalue, means, quadratic, quadratics

from coterie.policies.autoclub.people import ClustersAndPeople as Base
from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef double SLACK = 1.0 + 1e-9  # bounds of widths hold up to rounding
cdef enum:
    AT_A_TIME = 8  # exact widths are computed for so many arms together
cdef enum:
    MOST_PAIRS = 65536  # pairs of a user and an item that are remembered
cdef double MOST_WEIGHT = 32.0  # rewards of a pair count for no more than this in their mean, so that it follows a change
cdef double SURE = 0.02  # the effect of a pair has at most 50 times the variance of the rest of the noise
cdef double LASTS = 1.0  # effects of pairs must have more variance than the rest of the noise, or there are none


cdef enum:
    LOOKED_AT = 32  # columns are judged by the vectors of so many rewards
    DISTINCT = 16  # if so many of them differ
    MOST_LEVELLED = 20  # a column is divided by at most 2 to this power
cdef double UNLIKE = 20.0  # columns are levelled if one varies more than so many times as much as another


cdef struct Both:
    # What a decision rests on: the weight of people, what clusters say, what people say, and the arms with intercepts; `scale` is
    # the σ̂ of both by their weights
    double trust
    View seen
    View people
    Offer longer
    double scale


cdef struct Best:
    int64_t arm
    double score


cdef inline double weighted(Both *both, double width2, double people2) noexcept nogil:
    """The bonus by both models, from xᵀMx and xᵀVx."""
    return (1.0 - both.trust) * bonus(&both.seen, width2) + both.trust * bonus(&both.people, people2)


cdef class Averaged(ClustersAndPeople):
    """Decisions by the weighted scores of clusters and people.

    `pairs` are the effects of pairs of a user and an item. If these make up most of the noise, a reward of a pair that was
    rewarded before is `repeated`: it is remembered, and not learnt.
    """

    FIELDS = {**Base.FIELDS, "repeats": Field(("users",), "int64")}
    EFFECTS = ("items.", "pairs.")
    cdef readonly Effects pairs
    cdef bint repeated
    cdef bint recalls
    cdef double *people_means
    cdef double *people_widths
    cdef double *formula
    cdef int64_t *unlearnt
    cdef int64_t *arm_keys
    cdef Effect *recalled

    cdef int bind(self) except -1:
        if "formula" not in self._scratch:
            self._scratch["formula"] = np.empty(self.dim)
        self.formula = <double *> cnp.PyArray_DATA(self._scratch["formula"])
        self.unlearnt = <int64_t *> self.pointer("repeats")
        return ClustersAndPeople.bind(self)

    cdef int reserve(self, Py_ssize_t n_arms) except -1:
        """Room for the scores of both models."""
        if n_arms > self.n_arms:
            self._scratch["people"] = np.empty((2, n_arms))
            self.people_means = <double *> cnp.PyArray_DATA(self._scratch["people"])
            self.people_widths = self.people_means + n_arms
            self._scratch["keys"], self._scratch["recalled"] = np.empty(n_arms, np.int64), np.empty((n_arms, 3))
            self.arm_keys = <int64_t *> cnp.PyArray_DATA(self._scratch["keys"])
            self.recalled = <Effect *> cnp.PyArray_DATA(self._scratch["recalled"])
        return ClustersAndPeople.reserve(self, n_arms)

    def know_items(self):
        """Learn effects of items, and of pairs of a user and an item, from now on."""
        self.pairs = Effects(least_shrinkage=SURE, most_shrinkage=LASTS, most_weight=MOST_WEIGHT, most_keys=MOST_PAIRS)
        ClustersAndPeople.know_items(self)

    def refresh(self):
        ClustersAndPeople.refresh(self)
        if not 0 <= self.skipped == self.array("repeats").sum() <= self.rounds:
            raise ValueError("has rewards that were not learnt and cannot be")

    # Both learn.

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Both models learn a reward, unless it only says again what the user has told of this item."""
        if self.repeated:
            self.repeated = False
            self.skipped += 1
            self.unlearnt[user] += 1
            return 0
        return ClustersAndPeople.absorb(self, user, x, reward)

    cdef int predict(self, Py_ssize_t user, const double *x, double *mean, double *variance) except -1 nogil:
        """The prediction of both models by their weights; rewards of noisy users have a greater variance."""
        cdef double trust = self.update_slack(), own = 1.0 / self.precisions[user]
        cdef const double *centre
        cdef const double *covariance
        mean[0] = variance[0] = 0.0
        if trust < 1.0:
            mean[0] = (1.0 - trust) * (self.offset + dot(self.mixture_of(user), x, self.dim))
            variance[0] = (1.0 - trust) * (own + self.width2(self.row_of[user], x))
        if trust > 0.0:
            self.look_up(user, &centre, &covariance)
            x = self.people.with_intercept(x, 1.0)
            mean[0] += trust * dot(centre, x, self.people.size)
            variance[0] += trust * (own + max(quadratic(covariance, x, self.people.size), 0.0))
        return 0

    cdef double absorb_effect(
        self, Py_ssize_t user, const double *x, double reward, const int64_t *item
    ) except? -1.0 nogil:
        """What a reward tells of its pair and, unless it only says again what the user has told of this item, of its item."""
        cdef double mean = 0.0, variance = 1.0, effect
        cdef int64_t key = key_of_item(item, x, self.dim)
        self.repeated = False
        if self.items is None or (item != NULL and item[0] == NO_ITEM):
            return 0.0
        self.predict(user, x, &mean, &variance)
        effect = self.items.effect_of(key)
        self.repeated = (
            self.pairs.add(key_of_pair(user, key), reward, mean + effect, 1.0 / variance) and self.remembers()
        )
        if not self.repeated:
            self.items.add(key, reward - mean, 0.0, 1.0 / variance)
        return effect

    cdef bint reassess(self, Py_ssize_t user, Terms *terms) noexcept nogil:
        """Residuals of a user who turns out to be noisy counted for too much: what effects are is learnt anew."""
        cdef double before = self.precisions[user]
        cdef bint changed = ClustersAndPeople.reassess(self, user, terms)
        if self.items is not None and misled(self.precisions[user], before):
            self.items.restart()
            self.pairs.restart()
        return changed

    # Both decide.

    cdef bint remembers(self) noexcept nogil:
        """Do pairs of a user and an item have effects?"""
        return self.pairs is not None and self.pairs.variance > 0.0

    cdef void look_up_effects(self, Offer *offer, int kinds) noexcept nogil:
        """The effects of items, and the keys of the arms if pairs have effects, too."""
        cdef Py_ssize_t k
        ClustersAndPeople.look_up_effects(self, offer, kinds)
        self.recalls = kinds > 1 and self.remembers()
        for k in range(offer.n if self.recalls else 0):
            self.arm_keys[k] = item_key(offer, k, self.dim)

    cdef void view_both(self, Py_ssize_t user, Both *both) noexcept nogil:
        """What both models say of a user."""
        cdef int64_t pulls = self.pulls[user]
        both.trust = self.update_slack()
        both.seen.beta, both.seen.usual = 0.0, INFINITY  # unless clusters are asked
        if both.trust < 1.0:
            self.view(user, &both.seen)
        self.look_up(user, &both.people.estimate, &both.people.inverse)
        both.people.beta = sqrt(self.people.noise2)
        both.people.usual = <double> self.people.size / pulls if pulls > 0 else INFINITY

    cdef void look_at_both(self, Py_ssize_t user, Offer *offer, Both *both, double *mean) noexcept nogil:
        """What both models say of a user, and the mean of every arm by both, weighted."""
        cdef Py_ssize_t k
        self.view_both(user, both)
        both.longer = self.people.arms_with_intercept(offer)
        if both.trust < 1.0:
            means(both.seen.estimate, offer.items, offer.picks, offer.n, self.dim, mean)
        else:
            memset(mean, 0, offer.n * sizeof(double))
        means(both.people.estimate, both.longer.items, NULL, offer.n, self.people.size, self.people_means)
        for k in range(offer.n):
            mean[k] = (1.0 - both.trust) * (mean[k] + self.offset) + both.trust * self.people_means[k]
        for k in range(offer.n if self.effective else 0):
            mean[k] += self.item_means[k]
        both.scale = (1.0 - both.trust) * both.seen.beta + both.trust * both.people.beta
        for k in range(offer.n if self.recalls else 0):
            self.recalled[k] = self.pairs.look(key_of_pair(user, self.arm_keys[k]), mean[k])
            mean[k] += self.recalled[k].mean

    cdef void find_widths(
        self, Offer *offer, Both *both, const int64_t *arms, Py_ssize_t n, double *out
    ) noexcept nogil:
        """The bonus of some arms, by both models, weighted; of the first n where `arms` is NULL."""
        cdef Py_ssize_t j, k
        cdef int64_t rows[AT_A_TIME]
        cdef const int64_t *found = offer.picks
        if arms != NULL and offer.picks != NULL:
            for j in range(n):
                rows[j] = offer.picks[arms[j]]
            found = rows
        elif arms != NULL:
            found = arms
        if both.trust < 1.0:
            quadratics(both.seen.inverse, offer.items, found, n, self.dim, out)
        else:
            memset(out, 0, n * sizeof(double))
        quadratics(both.people.inverse, both.longer.items, arms, n, self.people.size, self.people_widths)
        for j in range(n):
            k = j if arms == NULL else arms[j]
            out[j], self.people_widths[j] = max(out[j], 0.0), max(self.people_widths[j], 0.0)
            out[j] = self.with_effects(weighted(both, out[j], self.people_widths[j]), both.scale, k)

    cdef double with_effects(self, double width, double scale, Py_ssize_t k) noexcept nogil:
        """A bonus with what is known of item and pair of arm k; grows with the bonus, so that bounds stay bounds."""
        width = self.with_effect(width, scale, k)
        return (1.0 - self.recalled[k].share) * width if self.recalls else width

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil:
        """The first arm of largest score, -1 if an arm is too long; widths are bounded first, and few computed."""
        cdef Both both
        cdef Py_ssize_t k, top = 0, count = 0
        cdef double first = 0.0, second, most
        cdef double *mean = self.widths
        cdef Best best
        if self.update_slack() == 0.0 and not self.recalls:
            return ClustersAndPeople.decide(self, user, offer, cache)
        if cache != NULL:
            for k in range(offer.n):
                self.bounds[k] = cache.squares[offer.picks[k]]
        elif self.too_long(offer):
            return -1
        self.look_at_both(user, offer, &both, mean)
        if both.trust < 1.0:
            first = SLACK * min(largest_eigenvalue(both.seen.inverse, self.work, self.dim), 1.0 / both.seen.ridge)
        second = SLACK * largest_eigenvalue(both.people.inverse, self.people.scratch, self.people.size)
        for k in range(offer.n):
            most = weighted(&both, first * self.bounds[k], second * (1.0 + self.bounds[k]))
            self.upper[k] = mean[k] + self.with_effects(most, both.scale, k)
            if self.upper[k] > self.upper[top]:
                top = k
        best.arm, best.score, self.waiting[0] = top, -INFINITY, top
        self.consider(offer, &both, mean, 1, &best)
        for k in range(offer.n):
            if k != top and self.upper[k] >= best.score:
                self.waiting[count] = k
                count += 1
                if count == AT_A_TIME:
                    self.consider(offer, &both, mean, count, &best)
                    count = 0
        self.consider(offer, &both, mean, count, &best)
        return best.arm

    cdef void consider(
        self, Offer *offer, Both *both, const double *mean, Py_ssize_t count, Best *best
    ) noexcept nogil:
        """The exact scores of the waiting arms against the best so far."""
        cdef Py_ssize_t j
        cdef int64_t k
        cdef double[AT_A_TIME] found
        self.find_widths(offer, both, self.waiting, count, found)
        for j in range(count):
            k = self.waiting[j]
            if mean[k] + found[j] > best.score or (mean[k] + found[j] == best.score and k < best.arm):
                best.arm, best.score = k, mean[k] + found[j]

    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        """Expected reward and bonus of every arm."""
        cdef Both both
        self.look_at_both(user, offer, &both, mean)
        self.find_widths(offer, &both, NULL, offer.n, width)
        return 0

    cdef bint by_clusters_alone(self, Py_ssize_t k) noexcept nogil:
        """Is an arm chosen by `ClustersAndPeople.decide`, whose scores leave out what is the same for all arms?"""
        return k == 1 and self.update_slack() == 0.0 and not self.remembers()

    cdef int final_scores(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, double *out) except -1 nogil:
        cdef Py_ssize_t j
        if not self.by_clusters_alone(k):
            return ClustersAndPeople.final_scores(self, user, offer, k, out)
        ClustersAndPeople.score_all(self, user, offer, out, self.widths)
        for j in range(offer.n):
            out[j] += self.widths[j]
        return 0

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        """The weighted models, added up; none while pairs have effects, which are looked up one by one."""
        cdef Both both
        cdef Py_ssize_t i, first = self.people.intercept
        cdef const double *people
        if self.by_clusters_alone(k):
            return ClustersAndPeople.describe(self, user, k, model)
        if self.remembers():
            return False
        self.view_both(user, &both)
        people = both.people.estimate
        model.constant = (1.0 - both.trust) * self.offset + (both.trust * people[0] if first else 0.0)
        for i in range(self.dim):
            self.formula[i] = both.trust * people[first + i]
            if both.trust < 1.0:
                self.formula[i] += (1.0 - both.trust) * both.seen.estimate[i]
        model.linear, model.parts = self.formula, sqrt(dot(people, people, self.people.size)) + fabs(self.offset)
        model.scale = (1.0 - both.trust) * both.seen.beta + both.trust * both.people.beta
        model.n_widths = 0
        if both.trust < 1.0:
            model.parts += sqrt(dot(both.seen.estimate, both.seen.estimate, self.dim))
            model.widths[0] = WidthModel(
                both.seen.inverse, False, (1.0 - both.trust) * both.seen.beta, both.seen.usual, 1.0 / both.seen.ridge
            )
            model.n_widths = 1
        if both.trust > 0.0:
            model.widths[model.n_widths] = WidthModel(
                both.people.inverse, first, both.trust * both.people.beta, both.people.usual, INFINITY
            )
            model.n_widths += 1
        return True

    def modelled(self, Py_ssize_t user, arms):
        """Expected reward of every arm by both models, whatever the user has told of it; that by people, and what the places
        beside its cluster add to that by clusters."""
        mean, _ = Averaged.scores(self, user, arms, None, 0)
        return mean, self._scratch["people"][0, : len(arms)].copy(), arms @ self.array("mixtures")[user]

    def explained(self, Py_ssize_t user):
        """What is known of a user, by name."""
        known = ClustersAndPeople.explained(self, user)
        return {**known, "rewards": self.pulls[user] + self.unlearnt[user], "people": self.update_slack()}

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return self.array("pulls") + self.array("repeats")


cdef class Levelled(Averaged):
    """AutoCLUB for columns in any units: those of very different size are divided by powers of two, and all starts anew.

    `columns.first` are the vectors of the first rewards, `columns.scales` what columns are divided by, 0 if they are not.
    """

    FIELDS = {**Averaged.FIELDS, "columns.first": Field(("first", "dim")), "columns.scales": Field(("dim",))}
    cdef double *first
    cdef double *scales
    cdef double *even
    cdef double *formula_matrices

    def __init__(self, n_users, dim, **others):
        self.dim = dim  # which room for arms asks for
        Averaged.__init__(self, n_users, dim, **others)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {**Averaged.extents(n_users, dim, **settings), "first": LOOKED_AT}

    cdef int bind(self) except -1:
        self.first, self.scales = <double *> self.pointer("columns.first"), <double *> self.pointer("columns.scales")
        if "formula matrices" not in self._scratch:
            self._scratch["formula matrices"] = np.empty((2, self.dim + 1, self.dim + 1))
        self.formula_matrices = <double *> cnp.PyArray_DATA(self._scratch["formula matrices"])
        return Averaged.bind(self)

    cdef int reserve(self, Py_ssize_t n_arms) except -1:
        if n_arms > self.n_arms:
            self._scratch["even"] = np.empty((n_arms, self.dim))
            self.even = <double *> cnp.PyArray_DATA(self._scratch["even"])
        return Averaged.reserve(self, n_arms)

    def refresh(self):
        Averaged.refresh(self)
        scales = self.array("columns.scales")
        if not (0 <= scales.min() and (scales >= 1).all() == scales.any() and scales.max() <= 2.0**MOST_LEVELLED):
            raise ValueError("has scales of columns that are none")

    cdef Offer levelled(self, const double *items, const int64_t *picks, Py_ssize_t n) noexcept nogil:
        """Vectors with their columns divided by the scales."""
        cdef Offer offer = Offer(items, picks, n, NULL)
        cdef Py_ssize_t k, i
        if self.scales[0] == 0.0:
            return offer
        for k in range(n):
            for i in range(self.dim):
                self.even[k * self.dim + i] = row(&offer, k, self.dim)[i] / self.scales[i]
        return Offer(self.even, NULL, n, NULL)

    cdef int choose(
        self, Py_ssize_t user, Offer *offer, WidthCache *cache, Py_ssize_t k, int64_t *out
    ) except -1 nogil:
        cdef Offer even
        if self.scales[0] == 0.0:
            return Averaged.choose(self, user, offer, cache, k, out)
        if self.too_long(offer):
            return 1
        even = self.levelled(offer.items, offer.picks, offer.n)
        even.ids = offer.ids
        return Averaged.choose(self, user, &even, NULL, k, out)

    cdef int score_items(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, double *out) except -1 nogil:
        cdef Offer even = self.levelled(offer.items, offer.picks, offer.n)
        even.ids = offer.ids
        return Averaged.final_scores(self, user, &even, k, out)

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        """The same for vectors as they come: what is divided in an arm is divided in the formula instead."""
        cdef Py_ssize_t i, j, m, first, p
        cdef double *matrix = self.formula_matrices
        if not Averaged.describe(self, user, k, model):
            return False
        if self.scales[0] == 0.0:
            return True
        for i in range(self.dim):
            self.formula[i] = model.linear[i] / self.scales[i]
        model.linear = self.formula
        for m in range(model.n_widths):
            first = model.widths[m].intercept
            p = self.dim + first
            memcpy(matrix, model.widths[m].matrix, p * p * sizeof(double))
            for i in range(first, p):
                for j in range(p):
                    matrix[i * p + j] /= self.scales[i - first]
                    matrix[j * p + i] /= self.scales[i - first]
            model.widths[m].matrix = matrix
            matrix += p * p
        return True

    cdef double absorb_effect(
        self, Py_ssize_t user, const double *x, double reward, const int64_t *item
    ) except? -1.0 nogil:
        """Settle the columns before anything is learnt of the first reward after those that are looked at."""
        if self.rounds < LOOKED_AT:
            memcpy(self.first + self.rounds * self.dim, x, self.dim * sizeof(double))
        elif self.rounds == LOOKED_AT:
            with gil:
                self.settle_columns()
        return Averaged.absorb_effect(self, user, self.levelled(x, NULL, 1).items, reward, item)

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        return Averaged.absorb(self, user, self.levelled(x, NULL, 1).items, reward)

    def settle_columns(self):
        """Start anew with columns that vary alike, if they do not; what was learnt is forgotten."""
        scales = scales_of_columns(self.array("columns.first"))
        if scales is None:
            return
        fresh = type(self)(
            self.n_users, self.dim, ridge=self.ridge, schedule=self.schedule, generator=np.random.default_rng(0), seats=self.most_seats
        )
        if self.items is not None:
            fresh.know_items()
        kept = {"repeats": self.pulls_of_users(), "columns.first": self.array("columns.first").copy(), "columns.scales": scales}

        def fill(name, out):
            out[...] = kept.get(name, fresh.array(name))

        self.restore(fill, {**fresh.numbers(), "rounds": LOOKED_AT, "skipped": LOOKED_AT})

    def divided(self, vectors):
        """Vectors with their columns divided by the scales, or as they are."""
        scales = self.array("columns.scales")
        return vectors / scales if scales.any() else vectors

    def scores(self, Py_ssize_t user, arms, ids=None, int effects=2):
        """Expected reward and bonus of every arm."""
        return Averaged.scores(self, user, self.divided(arms), ids, effects)

    def modelled(self, Py_ssize_t user, arms):
        """The same as of vectors that are divided."""
        return Averaged.modelled(self, user, self.divided(arms))

    def known_preferences(self):
        """The same for vectors as they came."""
        means, moment, pulls = Averaged.known_preferences(self)
        means[:, 1:] = self.divided(means[:, 1:])
        scales = np.concatenate([[1.0], self.divided(np.ones(self.dim))])
        return means, moment / np.outer(scales, scales), pulls

    def estimates_of(self, users):
        """Each user's own ridge regression, of vectors as they came; `estimates` calls this, too."""
        return self.divided(Averaged.estimates_of(self, users))


def scales_of_columns(vectors):
    """Powers of two that make columns vary alike, or None if they do within reason, or too few vectors tell."""
    distinct = np.unique(vectors, axis=0)
    spread = distinct.std(axis=0)
    varies = spread > 1e-6 * np.abs(distinct).max(axis=0)
    if len(distinct) < DISTINCT or not varies.any() or spread[varies].max() <= UNLIKE * spread[varies].min():
        return None
    powers = np.frexp(spread)[1]
    lowest = max(powers[varies].min(), powers[varies].max() - MOST_LEVELLED)
    return np.where(varies, 2.0 ** np.maximum(powers - lowest, 0), 1.0)
