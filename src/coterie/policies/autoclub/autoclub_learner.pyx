"""AutoCLUB's learner: what its parts do when an arm is chosen, when a reward comes, and when a user is reviewed.

Two models decide, each by its weight: clusters by evidence, which predict best where users fall into groups, and a hierarchical
model, which does where preferences vary continuously. Beside them are the effects of items and of pairs of a user and an item.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset

from coterie.policies.autoclub.adaptive.change_test cimport ChangeTest
from coterie.policies.autoclub.clusters cimport Clusters, Prediction
from coterie.policies.autoclub.adaptive.column_scales cimport ColumnScales
from coterie.policies.autoclub.hierarchical_model cimport ModelWeights, PosteriorCache
from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.autoclub.prior cimport CommonPrior
from coterie.policies.autoclub.quorums cimport SizeLimits, SharedValues
from coterie.policies.hier.arrivals cimport Arrivals
from coterie.policies.kernel.effects cimport Effect, Effects, key_of_item, key_of_pair
from coterie.policies.kernel.learner cimport (
    NO_ITEM, Learner, Offer, ScoreModel, View, WidthCache, WidthModel, bonus, item_key
)
from coterie.policies.kernel.linalg cimport ARMS_AT_A_TIME, add_scaled, dot, largest_eigenvalue, means, quadratics

from coterie.policies.autoclub.hierarchical_model import SLOTS
from coterie.policies.kernel.arrays import Field, numbers_of
from coterie.policies.kernel.linalg import eliminated

cnp.import_array()


OUTSIDE = ("arrivals", "limits")
"""Parts that know users as they are numbered outside."""
cdef enum:
    MOST_PAIRS = 65536  # pairs of a user and an item that are remembered
cdef double SLACK = 1.0 + 1e-9  # bounds of widths hold up to rounding
cdef double MOST_WEIGHT = 32.0  # rewards of a pair count for no more than this in their mean, so that it follows a change
cdef double LEAST_SHRINKAGE = 0.02  # the effect of a pair has at most 50 times the variance of the rest of the noise
cdef double MOST_SHRINKAGE = 0.5  # effects of pairs must have more variance than the rest of the noise, or there are none
cdef double LEAST_REWARDS = 1e-100  # the number of rewards is no less, lest it be divided by 0


cdef struct Models:
    # What a decision for a user rests on: the weight of the hierarchical model, what both models say, and the arms with
    # intercepts; `scale` is the σ̂ of both by their weights
    double weight
    View clusters
    View hierarchy
    Offer extended
    double scale


cdef inline double weighted_bonus(Models *models, double clusters2, double hierarchy2) noexcept nogil:
    """The bonus by both models, from xᵀMx and xᵀVx."""
    return (1.0 - models.weight) * bonus(&models.clusters, clusters2) + models.weight * bonus(&models.hierarchy, hierarchy2)


cdef class AutoClubLearner(Learner):
    """Clusters and a hierarchical model of the same users, and effects beside them.

    `arrivals` numbers users in the order of their first rewards; all other parts know these numbers only. `users` are their rewards, `limits` how large they may be, `values` which of them
    many users give, `prior` the estimates that all users share, `clusters` who is alike,
    `hierarchy` the hierarchical model, `weights` how far each of the two is followed, `items` and `pairs` the effects. If pairs
    make up most of the noise, a reward of a pair that was rewarded before is repeated: it is remembered in `pairs`, and not
    learnt; `repeats` counts such rewards of each user, `skipped` those of all.

    Parameters
    ----------
    slots : int
        Users whose posteriors in the hierarchical model are cached.
    """

    FIELDS = {"repeats": Field(("users",), "int64")}
    NUMBERS = ("rounds", "skipped")
    PARTS = {
        "arrivals": Arrivals,
        "columns": ColumnScales,
        "users": UserHistories,
        "limits": SizeLimits,
        "values": SharedValues,
        "prior": CommonPrior,
        "clusters": Clusters,
        "hierarchy": PosteriorCache,
        "weights": ModelWeights,
        "changes": ChangeTest,
    }
    EFFECTS = ("items.", "pairs.")
    IN_PLACE = True

    cdef readonly Arrivals arrivals
    cdef readonly ColumnScales columns
    cdef readonly UserHistories users
    cdef readonly SizeLimits limits
    cdef readonly SharedValues values
    cdef readonly CommonPrior prior
    cdef readonly Clusters clusters
    cdef readonly PosteriorCache hierarchy
    cdef readonly ModelWeights weights
    cdef readonly ChangeTest changes
    cdef readonly Effects pairs
    cdef public int64_t skipped
    cdef int64_t *repeats
    cdef bint is_repeat, is_shared
    cdef double factor
    # The decision under way
    cdef Models models
    cdef bint clusters_alone
    cdef bint pairs_count
    cdef double *hierarchy_means
    cdef double *hierarchy_widths
    cdef double *linear
    cdef int64_t *arm_keys
    cdef Effect *pair_effects

    def __init__(self, n_users, dim, *, ridge, schedule, generator, slots=SLOTS):
        shared = {"ridge": ridge, "schedule": schedule, "generator": generator}
        self.arrivals = Arrivals(n_users, dim)
        self.columns = ColumnScales(n_users, dim)
        self.users = UserHistories(n_users, dim)
        self.limits, self.values = SizeLimits(n_users, dim), SharedValues(n_users, dim)
        self.prior = CommonPrior(self.users, self.limits, ridge=ridge)
        self.clusters = Clusters(self.users, self.values, self.prior)
        self.hierarchy = PosteriorCache(self.users, slots=slots, **shared)
        self.weights = ModelWeights(n_users, dim)
        self.changes = ChangeTest(n_users, dim)
        Learner.__init__(self, n_users, dim, **shared)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "rows": n_users, "dim": dim}

    def _extents(self):
        return self.extents(self.part_users("users", self.n_users), self.dim)

    @classmethod
    def shapes(cls, n_users, dim, numbers=None, **settings):
        past = 0 if numbers is None else numbers["arrivals.past"]
        found = super().shapes(n_users + past, dim, numbers, **settings)
        for part in OUTSIDE:
            own = None if numbers is None else numbers_of(f"{part}.", numbers)
            shapes = cls.part_shapes(part, n_users, dim, own)
            found.update({f"{part}.{name}": shape for name, shape in shapes.items()})
        return found

    def part_users(self, str name, Py_ssize_t n_users):
        """Most parts have numbers instead of users."""
        return n_users if name in OUTSIDE else n_users + self.arrivals.past

    def prepare(self, numbers):
        self.arrivals.prepare(numbers_of("arrivals.", numbers))
        self.make_room(self.n_users)
        Learner.prepare(self, numbers)

    @classmethod
    def part_shapes(cls, name, n_users, dim, numbers, **settings):
        return cls.PARTS[name].shapes(n_users, dim, numbers, **(settings if name == "hierarchy" else {}))

    cdef int bind(self) except -1:
        Learner.bind(self)
        self.repeats = <int64_t *> self.pointer("repeats")
        self.linear = self.workspace("linear", self.dim)
        self.epochs = self.clusters.partition.epochs  # the loop over rounds reads those of every learner in one place
        return 0

    cdef int reserve(self, Py_ssize_t n_arms) except -1:
        """Room for the scores of both models."""
        if n_arms > self.n_arms:
            self.hierarchy.model.reserve_extended(n_arms)
            self._scratch["hierarchy"] = np.empty((2, n_arms))
            self.hierarchy_means = <double *> cnp.PyArray_DATA(self._scratch["hierarchy"])
            self.hierarchy_widths = self.hierarchy_means + n_arms
            self._scratch["keys"], self._scratch["pair effects"] = np.empty(n_arms, np.int64), np.empty((n_arms, 3))
            self.arm_keys = <int64_t *> cnp.PyArray_DATA(self._scratch["keys"])
            self.pair_effects = <Effect *> cnp.PyArray_DATA(self._scratch["pair effects"])
        return Learner.reserve(self, n_arms)

    def know_items(self):
        """Learn effects of items, and of pairs of a user and an item, from now on."""
        self.pairs = Effects(
            least_shrinkage=LEAST_SHRINKAGE, most_shrinkage=MOST_SHRINKAGE, most_weight=MOST_WEIGHT, most_keys=MOST_PAIRS
        )
        Learner.know_items(self)

    def refresh(self):
        if not 0 <= self.skipped == self.array("repeats").sum() <= self.rounds:
            raise ValueError("has rewards that were not learnt and cannot be")
        if self.users.rounds != self.rounds - self.skipped:
            raise ValueError("has users who have learnt other rewards than it has had")
        self.bind()

    cdef int init_users(self, Py_ssize_t known) except -1:
        if known > 0:  # the parts have placed the first users when they were made
            self.init_numbers(known + self.arrivals.past)
        return 0

    cdef int init_numbers(self, Py_ssize_t known) except -1:
        """Rows of users who have not come yet."""
        self.clusters.make_space(self.rounds)
        self.users.init_users(known)
        self.hierarchy.init_users(known)
        self.clusters.init_users(known)
        self.bind()
        return 0

    # Who a user is.

    cdef Py_ssize_t number_of(self, Py_ssize_t user) noexcept nogil:
        """The number of a user inside; one without rewards acts in the largest cluster."""
        cdef Py_ssize_t number = self.arrivals.number_of(user)
        if self.users.pulls[number] == 0:
            self.clusters.partition.place_newcomer(number)
        return number

    cdef Py_ssize_t admit(self, Py_ssize_t user) noexcept nogil:
        cdef Py_ssize_t number = self.arrivals.admit(user)
        if self.users.pulls[number] == 0:
            self.clusters.partition.place_newcomer(number)
        return number

    cdef int label(self, int64_t *out) except -1 nogil:
        """The cluster of each user; of those without rewards the one that they act in."""
        cdef Py_ssize_t user, largest = self.clusters.partition.largest_row()
        cdef int64_t number
        for user in range(self.n_users):
            number = self.arrivals.numbers[user]
            out[user] = self.clusters.partition.row_of[number - 1] if number else largest
        return 0

    def array(self, str name):
        """A view of the part of an array that is in use."""
        # A decision notes where the next newcomer acts, a replay of rewards does not: both must have the same state.
        if name == "clusters.partition.labels" and self.arrivals.count < self.n_users + self.arrivals.past:
            self.clusters.partition.place_newcomer(self.arrivals.count)
        return Learner.array(self, name)

    def first_member(self, Py_ssize_t user):
        """The lowest user of the same cluster."""
        cdef Py_ssize_t row = self.clusters.partition.row_of[self.number_of(user)], other = 0
        cdef int64_t number
        if row == self.clusters.partition.largest_row():
            while self.clusters.partition.row_of[self.number_of(other)] != row:
                other += 1
            return other
        other, number = user, self.clusters.partition.members.head[row]
        while number >= 0:
            if not self.arrivals.is_past(number):
                other = min(other, self.arrivals.users[number])
            number = self.clusters.partition.members.next[number]
        return other

    # Learning.

    cdef double absorb_effect(
        self, Py_ssize_t user, const double *x, double reward, const int64_t *item
    ) except? -1.0 nogil:
        """What a reward says of its pair and, unless it only repeats what the user has said of this item, of its item."""
        cdef double mean = 0.0, variance = 1.0, effect
        cdef int64_t key = key_of_item(item, x, self.dim)
        self.is_repeat, self.is_shared = False, self.values.give(user, reward, self.users.seen)
        self.factor = self.limits.factor(self.arrivals.users[user], x, reward)
        if self.items is None or (item != NULL and item[0] == NO_ITEM):
            return 0.0
        reward = self.limits.cut(reward)
        self.predict(user, x, &mean, &variance)
        effect = self.items.effect_of(key)
        if self.prior.is_known(user):  # before its first review a user's own taste would pass for effects of pairs
            self.is_repeat = (
                self.pairs.add(key_of_pair(user, key), reward, mean + effect, 1.0 / variance) and self.has_pair_effects()
            )
        if not self.is_repeat:
            self.items.add(key, reward - mean, 0.0, 1.0 / variance)
        return effect

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Both models learn a reward, unless it only repeats what the user has said of this item."""
        cdef bint compared
        cdef Prediction by_clusters, by_hierarchy
        if self.is_repeat:
            self.is_repeat = False
            self.skipped += 1
            self.repeats[user] += 1
            return 0
        self.make_space()
        if self.columns.count(x, self.users.pulls[user]):
            with gil:
                self.level_columns()
        x, reward = self.columns.level_vector(self.limits.shrunk(x, self.factor)), self.factor * reward
        self.users.rounds += 1
        self.hierarchy.model.rounds = self.users.rounds
        self.values.add(user, reward - self.prior.offset, self.is_shared)
        # While nothing rests on the hierarchical model, only cached users teach it: others would cost O(d³)
        compared = self.weights.hierarchy_weight() > 0.0 or self.hierarchy.holds(user)
        if compared:
            self.predict_both(user, x, &by_clusters, &by_hierarchy)
        else:
            self.predict_clusters(user, x, &by_clusters)
        self.hierarchy.forget_uncached()
        if compared:
            self.weights.compare(reward, &by_clusters, &by_hierarchy, self.users.rounds, self.prior.share_of(user))
            self.hierarchy.absorb(user, x, reward)
        self.look_for_change(user, x, reward, &by_clusters)
        self.clusters.absorb(user, x, reward, self.factor == 1.0)
        self.hierarchy.model.noise2 = self.prior.noise2
        return 0

    cdef void look_for_change(self, Py_ssize_t user, const double *x, double reward, Prediction *known) noexcept nogil:
        """Compare what clusters have expected of a user who was reviewed with what the prior would have."""
        cdef Prediction prior
        if self.prior.terms[user].pulls > 0.0:
            self.prior.predict(user, x, &prior.mean, &prior.variance)
            self.changes.add(user, reward, known, &prior, self.users.pulls[user])

    cdef int make_space(self) except -1 nogil:
        """Room for what a reward may change."""
        self.clusters.make_space(self.rounds)
        self.users.make_space()
        self.epochs = self.clusters.partition.epochs  # which may have been allocated anew
        return 0

    def level_columns(self):
        """Divide columns by the units that the vectors so far have; all that was learnt follows."""
        cdef double before = self.prior.usual_precision()
        times = self.columns.revise()
        if times is None:
            return
        self.users.rescale(times)
        growth = self.prior.usual_precision() / before
        self.prior.rescale(times, growth)
        self.clusters.rescale(times)
        self.hierarchy.rescale(times, growth)

    cdef void predict_both(
        self, Py_ssize_t user, const double *x, Prediction *by_clusters, Prediction *by_hierarchy
    ) noexcept nogil:
        """Write the predictive densities of the next reward by both models; the user's posterior is cached."""
        self.hierarchy.slot_of(user)
        self.predict_clusters(user, x, by_clusters)
        self.hierarchy.predict(user, x, by_hierarchy)
        by_hierarchy.variance *= self.hierarchy.model.noise2

    cdef void predict_clusters(self, Py_ssize_t user, const double *x, Prediction *out) noexcept nogil:
        """Write the predictive density of the next reward by clusters."""
        self.clusters.predict(user, x, out)
        out.variance *= self.prior.noise2

    cdef int predict(self, Py_ssize_t user, const double *x, double *mean, double *variance) except -1 nogil:
        """The prediction of both models by their weights; rewards of noisy users have a larger variance."""
        cdef double weight = self.weights.hierarchy_weight()
        cdef Prediction found
        x = self.columns.level_vector(x)
        mean[0] = variance[0] = 0.0
        if weight < 1.0:
            self.clusters.predict(user, x, &found)
            mean[0], variance[0] = (1.0 - weight) * found.mean, (1.0 - weight) * found.variance
        if weight > 0.0:
            self.hierarchy.predict(user, x, &found)
            mean[0] += weight * found.mean
            variance[0] += weight * found.variance
        return 0

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Review the user's place when that is due, and then fit the hierarchical model when that is."""
        cdef double before = self.users.noise_weights[user]
        cdef bint changed = self.changes.has_changed(user, self.users.pulls[user] - 1)
        self.hierarchy.forget_uncached()
        if changed or self.clusters.is_due(user):
            self.clusters.review(user)
            self.hierarchy.model.noise2 = self.prior.noise2
            if self.users.noise_weights[user] != before:
                self.hierarchy.reweigh(user, self.users.noise_weights[user] / before)
        if self.hierarchy.review(user):
            self.weights.reject_hierarchy()
        if changed:
            with gil:
                self.restart_user(user)
        return 0

    def restart_user(self, Py_ssize_t number):
        """The user of a number has changed: it starts again, and what it has taught stays where its last review has put it."""
        cdef Py_ssize_t known = self.users.n_users
        self.changes.record(self.arrivals.restart(number), self.rounds)
        self.make_room(self.n_users)
        self.init_numbers(known)

    # Deciding.

    cdef bint has_pair_effects(self) noexcept nogil:
        """Do pairs of a user and an item have effects?"""
        return self.pairs is not None and self.pairs.variance > 0.0

    cdef void look_up_effects(self, Offer *offer, int kinds) noexcept nogil:
        """The effects of items, and the keys of the arms if pairs have effects, too."""
        cdef Py_ssize_t k
        Learner.look_up_effects(self, offer, kinds)
        self.pairs_count = kinds > 1 and self.has_pair_effects()
        for k in range(offer.n if self.pairs_count else 0):
            self.arm_keys[k] = item_key(offer, k, self.dim)

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        self.clusters.view(user, seen)
        seen.estimate, seen.inverse = self.columns.raw_preference(seen.estimate, 0), self.columns.raw_matrix(seen.inverse, 0)
        return 0

    cdef void view_models(self, Py_ssize_t user, Models *models) noexcept nogil:
        """Write what both models say of a user to `models`."""
        cdef int64_t pulls = self.users.pulls[user]
        models.weight = self.weights.hierarchy_weight()
        models.clusters.beta, models.clusters.usual = 0.0, INFINITY  # unless clusters count
        if models.weight < 1.0:
            self.view(user, &models.clusters)
        self.hierarchy.look_up(user, &models.hierarchy.estimate, &models.hierarchy.inverse)
        models.hierarchy.estimate = self.columns.raw_preference(models.hierarchy.estimate, self.hierarchy.model.intercept)
        models.hierarchy.inverse = self.columns.raw_matrix(models.hierarchy.inverse, self.hierarchy.model.intercept)
        models.hierarchy.beta = sqrt(self.hierarchy.model.noise2)
        models.hierarchy.usual = <double> self.hierarchy.model.size / pulls if pulls > 0 and not self.clusters.omits_raise else INFINITY
        models.scale = (1.0 - models.weight) * models.clusters.beta + models.weight * models.hierarchy.beta

    cdef void find_means(self, Py_ssize_t user, Offer *offer, Models *models, double *mean) noexcept nogil:
        """Write what both models say of a user to `models`, and the mean of every arm, effects included, to `mean`."""
        cdef Py_ssize_t k
        self.view_models(user, models)
        models.extended = self.hierarchy.model.arms_with_intercept(offer)
        if models.weight < 1.0:
            means(models.clusters.estimate, offer.items, offer.picks, offer.n, self.dim, mean)
        else:
            memset(mean, 0, offer.n * sizeof(double))
        means(
            models.hierarchy.estimate, models.extended.items, NULL, offer.n, self.hierarchy.model.size, self.hierarchy_means
        )
        for k in range(offer.n):
            mean[k] = (1.0 - models.weight) * (mean[k] + self.prior.offset) + models.weight * self.hierarchy_means[k]
        for k in range(offer.n if self.effective else 0):
            mean[k] += self.item_means[k]
        for k in range(offer.n if self.pairs_count else 0):
            self.pair_effects[k] = self.pairs.look(key_of_pair(user, self.arm_keys[k]), mean[k])
            mean[k] += self.pair_effects[k].mean

    cdef void find_widths(
        self, Offer *offer, Models *models, const int64_t *arms, Py_ssize_t n, double *out
    ) noexcept nogil:
        """Write the bonus of some arms, by both models, to `out`; of the first n where `arms` is NULL."""
        cdef Py_ssize_t j, k
        cdef int64_t rows[ARMS_AT_A_TIME]
        cdef const int64_t *found = offer.picks
        if arms != NULL and offer.picks != NULL:
            for j in range(n):
                rows[j] = offer.picks[arms[j]]
            found = rows
        elif arms != NULL:
            found = arms
        if models.weight < 1.0:
            quadratics(models.clusters.inverse, offer.items, found, n, self.dim, out)
        else:
            memset(out, 0, n * sizeof(double))
        quadratics(
            models.hierarchy.inverse, models.extended.items, arms, n, self.hierarchy.model.size, self.hierarchy_widths
        )
        for j in range(n):
            k = j if arms == NULL else arms[j]
            out[j] = weighted_bonus(models, max(out[j], 0.0), max(self.hierarchy_widths[j], 0.0))
            out[j] = self.with_effects(out[j], models.scale, k)

    cdef double with_effects(self, double width, double scale, Py_ssize_t k) noexcept nogil:
        """A bonus with what is known of item and pair of arm k; grows with the bonus, so that bounds stay bounds."""
        width = self.with_effect(width, scale, k)
        return (1.0 - self.pair_effects[k].share) * width if self.pairs_count else width

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil:
        """The first arm of largest score, -1 if an arm is too long; scores are bounded by the largest eigenvalues of both models."""
        cdef Py_ssize_t k
        cdef double first = 0.0, second, most
        self.clusters_alone = self.weights.hierarchy_weight() == 0.0 and not self.pairs_count
        if self.clusters_alone:
            return Learner.decide(self, user, offer, cache)
        if cache != NULL:
            for k in range(offer.n):
                self.bounds[k] = cache.squares[offer.picks[k]]
        elif self.too_long(offer):
            return -1
        self.find_means(user, offer, &self.models, self.widths)
        if self.models.weight < 1.0:
            first = largest_eigenvalue(self.models.clusters.inverse, self.work, self.dim)
            first = SLACK * min(first, 1.0 / self.models.clusters.ridge)
        second = SLACK * largest_eigenvalue(
            self.models.hierarchy.inverse, self.hierarchy.model.scratch, self.hierarchy.model.size
        )
        for k in range(offer.n):
            most = weighted_bonus(&self.models, first * self.bounds[k], second * (1.0 + self.bounds[k]))
            self.upper[k] = self.widths[k] + self.with_effects(most, self.models.scale, k)
        return self.search(offer)

    cdef void exact_scores(self, Offer *offer, const int64_t *arms, Py_ssize_t n, double *out) noexcept nogil:
        cdef Py_ssize_t j
        if self.clusters_alone:
            Learner.exact_scores(self, offer, arms, n, out)
            return
        self.find_widths(offer, &self.models, arms, n, out)
        for j in range(n):
            out[j] += self.widths[arms[j]]

    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        """Expected reward and bonus of every arm."""
        self.find_means(user, offer, &self.models, mean)
        self.find_widths(offer, &self.models, NULL, offer.n, width)
        return 0

    cdef bint by_clusters_alone(self, Py_ssize_t k) noexcept nogil:
        """Is an arm chosen by `Learner.decide`, whose scores leave out what is the same for all arms?"""
        return k == 1 and self.weights.hierarchy_weight() == 0.0 and not self.has_pair_effects()

    cdef int final_scores(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, double *out) except -1 nogil:
        cdef Py_ssize_t j
        if not self.by_clusters_alone(k):
            return Learner.final_scores(self, user, offer, k, out)
        Learner.score_all(self, user, offer, out, self.widths)
        for j in range(offer.n):
            out[j] += self.widths[j]
        return 0

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        """The weighted models, added up; none while pairs have effects, which are looked up one by one."""
        cdef Models models
        cdef Py_ssize_t i, first = self.hierarchy.model.intercept
        cdef const double *mean
        cdef double weight
        if self.by_clusters_alone(k):
            return Learner.describe(self, user, k, model)
        if self.has_pair_effects():
            return False
        self.view_models(user, &models)
        mean, weight = models.hierarchy.estimate, models.weight
        model.constant = (1.0 - weight) * self.prior.offset + (weight * mean[0] if first else 0.0)
        for i in range(self.dim):
            self.linear[i] = weight * mean[first + i]
            if weight < 1.0:
                self.linear[i] += (1.0 - weight) * models.clusters.estimate[i]
        model.linear = self.linear
        model.parts = sqrt(dot(mean, mean, self.hierarchy.model.size)) + fabs(self.prior.offset)
        model.scale, model.n_widths = models.scale, 0
        if weight < 1.0:
            model.parts += sqrt(dot(models.clusters.estimate, models.clusters.estimate, self.dim))
            model.widths[0] = WidthModel(
                models.clusters.inverse,
                False,
                (1.0 - weight) * models.clusters.beta,
                models.clusters.usual,
                1.0 / models.clusters.ridge,
            )
            model.n_widths = 1
        if weight > 0.0:
            model.widths[model.n_widths] = WidthModel(
                models.hierarchy.inverse, first, weight * models.hierarchy.beta, models.hierarchy.usual, INFINITY
            )
            model.n_widths += 1
        return True

    # What Python asks.

    def explained(self, Py_ssize_t user):
        """What is known of a user, by name."""
        user = self.number_of(user)
        return {
            "current": self.users.pulls[user] + self.repeats[user],
            "known": self.prior.terms[user].freedom / self.dim,
            "noise_weight": self.users.noise_weights[user],
            "weight": self.clusters.cluster_weights[user],
            "alone": self.clusters.single_weights[user],
            "hierarchy": self.weights.hierarchy_weight(),
            "noise": sqrt(self.prior.noise2),
            "offset": self.prior.offset,
        }

    def changes_of(self, Py_ssize_t user):
        """How often a user has started again."""
        numbers = int(np.count_nonzero(self.arrivals.array("users")[: self.arrivals.count] == user))
        return numbers - (self.arrivals.numbers[user] > 0)

    def modelled(self, Py_ssize_t user, arms):
        """Expected reward of every arm by both models without effects; that by the hierarchical model, and what the places
        beside the user's cluster add to that by clusters."""
        mean, _ = self.scores(user, arms, None, 0)
        by_hierarchy = self._scratch["hierarchy"][0, : len(arms)].copy()
        return mean, by_hierarchy, arms @ (self.columns.raw_factors() * self.clusters.array("alternatives")[self.number_of(user)])

    def known_preferences(self):
        """What decisions for each user rest on, a constant first; the mean of xxᵀ over rewards; and the rewards of each user."""
        cdef Py_ssize_t user, p = self.hierarchy.model.size
        out = np.empty((self.n_users, p))
        cdef double *found = <double *> cnp.PyArray_DATA(out)
        with nogil:
            for user in range(self.n_users):
                self.average_preference(self.number_of(user), found + user * p)
        factors = np.append(1.0, self.columns.raw_factors())
        moment = self.hierarchy.model.array("grams").sum(0) / np.outer(factors, factors)
        return out * factors, moment / max(moment[0, 0], LEAST_REWARDS), self.pulls_of_users()

    cdef void average_preference(self, Py_ssize_t user, double *out) noexcept nogil:
        """Write the preference of a user by both models, each by its weight, to `out`."""
        cdef double weight = self.weights.hierarchy_weight()
        cdef Py_ssize_t i
        cdef const double *mean = self.clusters.preference_of(user)
        cdef const double *covariance
        out[0] = (1.0 - weight) * self.prior.offset
        for i in range(self.dim):
            out[1 + i] = (1.0 - weight) * mean[i]
        if weight > 0.0:
            self.hierarchy.look_up(user, &mean, &covariance)
            add_scaled(out, weight, mean, self.hierarchy.model.size)

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return self.arrivals.sums(self.users.array("pulls") + self.array("repeats")).astype(np.int64)

    def learnt_rewards(self):
        """How many of these were no repeats, and so were learnt."""
        return np.append(self.users.array("pulls"), 0)[self.arrivals.of_all()]

    def noise_weights(self):
        """ω of each user: what its rewards count for."""
        return np.append(self.users.array("noise_weights"), 1.0)[self.arrivals.of_all()]

    def estimates(self):
        """Each user's own ridge regression; what it acts on is in `scores`."""
        return self.estimates_of(np.arange(self.n_users))

    def estimates_of(self, users):
        """The same of some users: a regression takes 14 µs, and a service has many users."""
        out, ridge, pulls = np.zeros((len(users), self.dim)), self.ridge * np.eye(self.dim), self.users.array("pulls")
        factors = self.columns.raw_factors()
        for row, user in enumerate(users.tolist()):
            user = self.number_of(user)
            if pulls[user]:
                moment = self.users.array("moments")[user] / factors
                gram = self.users.gram(user) / np.outer(factors, factors)
                out[row] = eliminated(gram + ridge, moment, 0.5 * self.ridge)[2]
        return out
