# optimize: 2
"""The base of all compiled policies: how an arm is chosen, and how a reward is absorbed.

A family subclasses `Learner` and gives bodies to `view` (whose data counts for a user), `absorb` (add a reward to the
statistics), `review` (let the rule act) and `label`. Loops over rounds know nothing else. An arm's score is xᵀθ̂ plus a bonus.
"""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, ceil, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.effects cimport Effect, Effects, key_of_item
from coterie.policies.kernel.linalg cimport (
    ARMS_AT_A_TIME, dot, largest_eigenvalue, means, natural_log, power_of_two, quadratic, quadratics, squares
)

cnp.import_array()

cdef double EXPLORED = 0.25  # a quarter of a standard deviation of an item's effect is explored: more costs clicks on Last.fm
cdef double SLACK = 1.0 + 1e-9  # a width cached in an earlier round bounds today's only up to rounding
LONGEST2 = 1e12
"""Largest ‖x‖² relative to the ridge: beyond it, rounding destroys the inverse."""


cdef class Learner(NamedArrays):
    """The compiled side of a policy: named arrays, decisions by them, and the steps that change them.

    Parameters
    ----------
    n_users, dim : int
        Users known at the start, and the length d of an arm's vector.
    ridge : float
        λ; no eigenvalue of any M is less.
    schedule : Schedule
        Which rounds are uniform.
    generator : numpy.random.Generator
        Source of random decisions; shared with the policy.
    """

    DUEL_REWARDS = (-0.5, 0.5)  # rewards of a lost and a won duel
    EFFECTS = ("items.",)  # what the names of the arrays and numbers of its effects begin with, where it has any
    ITEM_EFFECTS = {"explored": EXPLORED}  # parameters of its effects of items
    FITS = False  # whether `fit` may review each user once, after all rewards, instead of after every reward

    def __init__(self, Py_ssize_t n_users, Py_ssize_t dim, *, double ridge, schedule, generator):
        self.ridge, self.longest2, self.limit = ridge, LONGEST2 * ridge, INFINITY
        self.generator = generator
        self.set_schedule(schedule)
        self.bitgen = <bitgen_t *> PyCapsule_GetPointer(generator.bit_generator.capsule, "BitGenerator")
        self.work = self.workspace("work", 2 * dim * dim + 4 * dim)
        self.reserve(1)
        NamedArrays.__init__(self, n_users, dim)
        self.init_users(0)

    # Defined by the families.

    cdef Py_ssize_t number_of(self, Py_ssize_t user) noexcept nogil:
        """The number of a user inside: its own, unless a family numbers users as they come. All below have this number."""
        return user

    cdef Py_ssize_t admit(self, Py_ssize_t user) noexcept nogil:
        """The number of a user who gives a reward."""
        return user

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """The statistics that decide for this user, written to `seen`   (Alg. 1, lines 6-8)."""
        return 0

    cdef int init_users(self, Py_ssize_t known) except -1:
        """Initialise the users from number `known` on; 0 when the learner is made."""
        return 0

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Add one reward to the statistics   (Alg. 1, line 11); `rounds` counts it already."""
        return 0

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Let the rule act on a user whose statistics have changed   (Alg. 1, line 12)."""
        return 0

    cdef int label(self, int64_t *out) except -1 nogil:
        """Write each user's cluster label: those that are kept, unless a family says otherwise."""
        memcpy(out, self.row_of, self.n_users * sizeof(int64_t))
        return 0

    def estimates(self):
        """The estimate θ̂ of each user: that of its own data, unless a family overrides this method."""
        return self.array("users.estimate").copy()

    def estimates_of(self, users):
        """The estimates of some users, a row each; learners that compute each one compute no others."""
        return self.estimates()[users]

    def label_array(self):
        """The labels that are kept, in the learner's own memory, until there are more users; None if none are kept."""
        return self.array("labels") if "labels" in self.FIELDS else None

    def pulls_of_users(self):
        """How many rewards each user has given."""
        return self.array("users.pulls").copy()

    def first_member(self, Py_ssize_t user):
        """The lowest user of the same cluster."""
        labels = self.labels()
        return int(np.argmax(labels == labels[user]))

    def cluster_of(self, Py_ssize_t user):
        """The users whose data counts for this one, ascending."""
        labels = self.labels()
        return np.flatnonzero(labels == labels[user])

    # The choice of an arm.

    cdef int set_schedule(self, schedule) except -1:
        """Set which rounds are uniform."""
        self.schedule = schedule
        self.first, self.phase, self.growth = schedule
        return 0

    @cython.final
    cdef int scaled_view(self, Py_ssize_t user, View *seen) except -1 nogil:
        """`view`, with a β that grows with time if the policy is so configured."""
        self.view(user, seen)
        seen.beta *= self.time_factor()
        return 0

    @cython.final
    cdef double time_factor(self) noexcept nogil:
        """√ln(t + 1) if the bonus grows, else 1; t is the round to be played."""
        return sqrt(natural_log(self.rounds + 2.0)) if self.grows else 1.0

    cdef int reserve(self, Py_ssize_t n_arms) except -1:
        """Allocate work space for decisions among so many arms."""
        if n_arms <= self.n_arms:
            return 0
        scratch = np.empty((3, n_arms))
        waiting = np.empty(n_arms, np.int64)
        self._scratch.update(scores=scratch, waiting=waiting)
        if self.items is not None:
            self._scratch["effects"] = np.empty((2, n_arms))
            self.item_means = <double *> cnp.PyArray_DATA(self._scratch["effects"])
            self.item_widths2 = self.item_means + n_arms
        self.bounds = <double *> cnp.PyArray_DATA(scratch)
        self.upper = self.bounds + n_arms
        self.widths = self.upper + n_arms
        self.waiting = <int64_t *> cnp.PyArray_DATA(waiting)
        self.n_arms = n_arms
        return 0

    cdef bint explores(self) noexcept nogil:
        """Is the next round uniform?

        The first `first` rounds are; then the first T⁽ˢ⁾ = ⌈2ˢ·phase⌉ of each phase s, which lasts ⌈2^(growth·s)·T⁽ˢ⁾⌉ rounds
        (Alg. 2, lines 7-10).
        """
        if self.rounds < self.first:
            return True
        if self.phase <= 0.0:
            return False
        cdef double left = <double> (self.rounds - self.first), uniform, length, s = 0.0
        while True:
            uniform = ceil(self.phase * power_of_two(s))
            length = ceil(power_of_two(self.growth * s) * uniform)
            if left < length:
                return left < uniform
            left -= length
            s += 1.0

    cdef int choose(
        self, Py_ssize_t user, Offer *offer, WidthCache *cache, Py_ssize_t k, int64_t *out
    ) except -1 nogil:
        """The arm to play, or the k best in order; 1 if some arm is too long for its width."""
        cdef Py_ssize_t i, j
        user = self.number_of(user)
        self.explored = self.explores()
        if self.explored:
            for j in range(offer.n):
                self.waiting[j] = j
            for j in range(k):  # the start of a Fisher–Yates shuffle
                i = j + <Py_ssize_t> (self.bitgen.next_double(self.bitgen.state) * (offer.n - j))
                self.waiting[j], self.waiting[i] = self.waiting[i], self.waiting[j]
                out[j] = self.waiting[j]
            return 0
        self.look_up_effects(offer, ALL_KINDS)
        if k > 1:
            return self.rank(user, offer, k, out)
        out[0] = self.decide(user, offer, cache)
        return 1 if out[0] < 0 else 0

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil:
        """argmax of xᵀθ̂ plus its bonus, the first on ties   (Alg. 1, line 9); -1 if an arm is too long."""
        cdef View seen
        cdef int64_t arm
        self.scaled_view(user, &seen)
        if seen.beta < 0.0:  # OffCLUB: an upper bound on a width is no upper bound on the score then
            return -1 if self.too_long(offer) or self.rank(user, offer, 1, &arm) else arm
        if not self.bound_widths(&seen, offer, cache):
            return -1
        arm = self.best(&seen, offer)
        self.cache_widths(&seen, offer, cache)
        return arm

    @cython.final
    cdef bint bound_widths(self, View *seen, Offer *offer, WidthCache *cache) noexcept nogil:
        """Fill `bounds` with upper bounds of xᵀM̄⁻¹x; returns False if an arm is too long.

        A bound is ‖x‖² times the largest eigenvalue of M̄⁻¹, or the width² of an earlier round: while data only
        accumulates no width grows.
        """
        cdef Py_ssize_t k
        cdef double most = 1.0 / seen.ridge
        cdef double *remembered
        if cache == NULL or seen.row < 0:
            if self.too_long(offer):
                return False
            most = min(largest_eigenvalue(seen.inverse, self.work, self.dim), most)
            for k in range(offer.n):
                self.bounds[k] *= most
            return True
        remembered = cache.bounds + seen.row * cache.n_items
        if cache.epochs[seen.row] != self.epochs[seen.row]:
            for k in range(cache.n_items):
                remembered[k] = most * cache.squares[k]
            cache.epochs[seen.row] = self.epochs[seen.row]
        for k in range(offer.n):
            self.bounds[k] = remembered[offer.picks[k]]
        return True

    @cython.final
    cdef void cache_widths(self, View *seen, Offer *offer, WidthCache *cache) noexcept nogil:
        """Cache the bounds of this round for later ones."""
        cdef Py_ssize_t k
        if cache != NULL and seen.row >= 0:
            for k in range(offer.n):
                cache.bounds[seen.row * cache.n_items + offer.picks[k]] = self.bounds[k]

    cdef bint too_long(self, Offer *offer) noexcept nogil:
        """Is ‖x‖² of an arm too large for the inverse? Writes ‖x‖² to `bounds`."""
        cdef Py_ssize_t k
        squares(offer.items, offer.picks, offer.n, self.dim, self.bounds)
        for k in range(offer.n):
            if not self.bounds[k] <= self.longest2:
                return True
        return False

    cdef Py_ssize_t best(self, View *seen, Offer *offer) noexcept nogil:
        """The best arm exactly, from the bounds of widths in `bounds`, which exact widths replace."""
        cdef Py_ssize_t k, n = offer.n
        cdef double ucb
        cdef double *mean = self.widths
        self.seen = seen[0]
        means(seen.estimate, offer.items, offer.picks, n, self.dim, mean)
        for k in range(n if self.effective else 0):
            mean[k] += self.item_means[k]
        for k in range(n):
            ucb = mean[k] + self.with_effect(bonus(seen, self.bounds[k] * SLACK), seen.beta, k)
            self.upper[k] = min(ucb, self.limit)
        return self.search(offer)

    @cython.final
    cdef Py_ssize_t search(self, Offer *offer) noexcept nogil:
        """The first arm of largest score, from upper bounds of all scores in `upper`, computing few of the scores.

        The arm on top gets its exact score first. Then only arms whose bound is above the best exact score can be better: they
        are taken several at a time.
        """
        cdef Py_ssize_t k, j, best = 0, count = 0, n = offer.n
        cdef double score
        cdef double found[ARMS_AT_A_TIME]
        for k in range(1, n):
            if self.upper[k] > self.upper[best]:
                best = k
        self.waiting[0] = best
        self.exact_scores(offer, self.waiting, 1, &score)
        self.upper[best] = -INFINITY
        for k in range(n + 1):
            if k < n and (self.upper[k] > score or (self.upper[k] == score and k < best)):
                self.waiting[count] = k
                count += 1
            if count == ARMS_AT_A_TIME or (k == n and count):
                self.exact_scores(offer, self.waiting, count, found)
                for j in range(count):
                    if found[j] > score or (found[j] == score and self.waiting[j] < best):
                        best, score = self.waiting[j], found[j]
                count = 0
        return best

    cdef void exact_scores(self, Offer *offer, const int64_t *arms, Py_ssize_t n, double *out) noexcept nogil:
        """Write the scores of up to ARMS_AT_A_TIME arms to `out`; their widths² replace the bounds in `bounds`."""
        cdef Py_ssize_t j
        cdef int64_t k
        cdef int64_t rows[ARMS_AT_A_TIME]
        for j in range(n):
            rows[j] = arms[j] if offer.picks == NULL else offer.picks[arms[j]]
        quadratics(self.seen.inverse, offer.items, rows, n, self.dim, out)
        for j in range(n):
            k = arms[j]
            self.bounds[k] = max(out[j], 0.0)
            out[j] = min(self.widths[k] + self.with_effect(bonus(&self.seen, self.bounds[k]), self.seen.beta, k), self.limit)

    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil:
        """Write the k arms with the largest scores to `out`, largest first, ties to the lower index."""
        self.final_scores(user, offer, k, self.upper)
        largest(self.upper, offer.n, k, out)
        return 0

    cdef int final_scores(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, double *out) except -1 nogil:
        """Write the scores by which a list of k arms is ranked, or one arm is chosen; `out` may be `upper`."""
        cdef Py_ssize_t j
        self.score_all(user, offer, out, self.widths)
        for j in range(offer.n):
            out[j] = min(out[j] + self.widths[j], self.limit)
        return 0

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        """The formula that `final_scores` computes for the same k, for a search that bounds it; False if it is not of this form."""
        cdef View seen
        self.scaled_view(user, &seen)
        model.constant, model.linear, model.parts = 0.0, seen.estimate, 0.0
        model.n_widths, model.scale = 1, seen.beta
        model.widths[0] = WidthModel(seen.inverse, False, seen.beta, seen.usual, 1.0 / seen.ridge)
        return seen.beta >= 0.0  # OffCLUB: a bound of its width is no bound of its score

    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil:
        """Write xᵀθ̂ of every arm to `mean` and its bonus to `width`."""
        cdef View seen
        cdef Py_ssize_t k
        self.scaled_view(user, &seen)
        means(seen.estimate, offer.items, offer.picks, offer.n, self.dim, mean)
        quadratics(seen.inverse, offer.items, offer.picks, offer.n, self.dim, width)
        for k in range(offer.n):
            if self.effective:
                mean[k] += self.item_means[k]
            width[k] = self.with_effect(bonus(&seen, max(width[k], 0.0)), seen.beta, k)
        return 0

    # The effects of items, where they are learnt; while τ² is 0 nothing below changes a score by a single bit.

    cdef void look_up_effects(self, Offer *offer, int kinds) noexcept nogil:
        """Fill `item_means` and `item_widths2` for a decision; `effective` says whether there are any effects, if wanted."""
        cdef Py_ssize_t k
        cdef Effect effect
        self.effective = kinds > 0 and self.items is not None and self.items.variance > 0.0
        for k in range(offer.n if self.effective else 0):
            effect = self.items.look(item_key(offer, k, self.dim), 0.0)
            self.item_means[k], self.item_widths2[k] = effect.mean, effect.width2

    @cython.final
    cdef double with_effect(self, double width, double scale, Py_ssize_t k) noexcept nogil:
        """A bonus with the doubt about the effect of arm k; grows with the bonus, so that bounds stay bounds."""
        return sqrt(width * width + scale * scale * self.item_widths2[k]) if self.effective else width

    @cython.final
    cdef void sample_effects(self, double scale, Py_ssize_t n, double *scores) noexcept nogil:
        """Add a sample of every arm's effect to its score; no random number is drawn without effects."""
        cdef Py_ssize_t k
        for k in range(n if self.effective else 0):
            scores[k] += self.item_means[k] + scale * sqrt(self.item_widths2[k]) * random_standard_normal(self.bitgen)

    cdef int predict(self, Py_ssize_t user, const double *x, double *mean, double *variance) except -1 nogil:
        """The mean of a reward without effects, and its variance relative to σ²: 1 for the noise and xᵀM̄⁻¹x."""
        cdef View seen
        self.view(user, &seen)
        mean[0] = dot(seen.estimate, x, self.dim)
        variance[0] = 1.0 + max(quadratic(seen.inverse, x, self.dim), 0.0)
        return 0

    cdef double absorb_effect(
        self, Py_ssize_t user, const double *x, double reward, const int64_t *item
    ) except? -1.0 nogil:
        """Learn what a reward tells of its item, before the model has learnt it; returns b̂ as it was."""
        cdef double mean = 0.0, variance = 1.0, effect
        cdef int64_t key
        if self.items is None or (item != NULL and item[0] == NO_ITEM):
            return 0.0
        self.predict(user, x, &mean, &variance)
        key = key_of_item(item, x, self.dim)
        effect = self.items.effect_of(key)
        self.items.add(key, reward - mean, 0.0, 1.0 / variance)
        return effect

    def know_items(self):
        """Learn effects of items from now on."""
        self.items = Effects(**self.ITEM_EFFECTS)
        self.n_arms = 0  # so that the work space is made again, with room for effects
        self.reserve(1)

    # Called by the loops over rounds.

    cdef int learn(
        self,
        Py_ssize_t user,
        const double *xs,
        const double *rewards,
        const int64_t *ids,
        Py_ssize_t n,
        Py_ssize_t shown,
    ) except -1 nogil:
        """Absorb the n rewards observed in a round in which `shown` arms were shown, then review the user once."""
        cdef Py_ssize_t j
        if n == 0:
            return 0
        user = self.admit(user)
        for j in range(n):
            self.learn_one(user, xs + j * self.dim, rewards[j], NULL if ids == NULL else ids + j)
        return self.review(user)

    @cython.final
    cdef int learn_one(self, Py_ssize_t user, const double *x, double reward, const int64_t *item) except -1 nogil:
        """Absorb a reward; the model learns what the effect of the item does not explain."""
        reward -= self.absorb_effect(user, x, reward, item)
        self.rounds += 1
        return self.absorb(user, x, reward)

    # Called from Python, which has checked users and shapes; lengths are checked here, where they are computed anyway.

    def add_users(self, Py_ssize_t n, *, schedule, **settings):
        """Add n users, initialised as the algorithm says; all or nothing.

        `schedule` and `settings` are those of a learner made with as many users from the start.
        """
        cdef Py_ssize_t known = self.n_users
        before = self.adjust(**settings)
        try:
            self.make_room(known + n)
            self.init_users(known)
        except BaseException:
            self.set_users(known)
            self.adjust(**before)
            raise
        self.set_schedule(schedule)

    def adjust(self, **settings):
        """Change settings that may depend on the number of users; returns the previous ones."""
        return settings

    @property
    def exploring(self):
        """Is the next round uniform?"""
        return self.explores()

    def recommend(self, Py_ssize_t user, arms, ids=None):
        """The arm to play; -1 if one is too long."""
        cdef int64_t arm = 0
        cdef int failed
        cdef Offer offer = offer_of(arms, self.dim)
        offer.ids = ids_of(ids, offer.n)
        self.reserve(offer.n)
        if self.explores() and self.too_long(&offer):
            return -1
        with nogil:
            failed = self.choose(user, &offer, NULL, 1, &arm)
        return -1 if failed else arm

    def recommend_list(self, Py_ssize_t user, arms, Py_ssize_t k, ids=None):
        """The k best arms in order; None if one is too long."""
        out = np.empty(k, np.int64)
        cdef int failed
        cdef Offer offer = offer_of(arms, self.dim)
        offer.ids = ids_of(ids, offer.n)
        cdef int64_t *found = <int64_t *> cnp.PyArray_DATA(out)
        self.reserve(offer.n)
        if k > offer.n or self.too_long(&offer):
            return None
        with nogil:
            failed = self.choose(user, &offer, NULL, k, found)
        return None if failed else out

    def accepts(self, rows):
        """Are all vectors short enough for the inverse?"""
        cdef Offer offer = offer_of(rows, self.dim)
        self.reserve(offer.n)
        return not self.too_long(&offer)

    def scores(self, Py_ssize_t user, arms, ids=None, int effects=ALL_KINDS):
        """The expected reward and the bonus of every arm; without effects, with those of items, or also of pairs (0, 1, 2)."""
        cdef Offer offer = offer_of(arms, self.dim)
        offer.ids = ids_of(ids, offer.n)
        mean, width = np.empty(offer.n), np.empty(offer.n)
        cdef double *first = <double *> cnp.PyArray_DATA(mean)
        cdef double *second = <double *> cnp.PyArray_DATA(width)
        self.reserve(offer.n)
        with nogil:
            self.look_up_effects(&offer, effects)
            self.score_all(self.number_of(user), &offer, first, second)
        return mean, width

    # The state by name: its own arrays and numbers, and those of its parts; effects are parts where they are learnt.

    def parts(self):
        """The parts of this learner, by what their names begin with."""
        effects = self.EFFECTS if self.items is not None else ()
        return {**NamedArrays.parts(self), **{prefix: getattr(self, prefix.removesuffix(".")) for prefix in effects}}

    @property
    def n_rows(self):
        """Number of rows of statistics."""
        return self._extents()["rows"]

    def labels(self):
        """A cluster label a user, as the rule numbers them."""
        out = np.empty(self.n_users, np.int64)
        self.label(<int64_t *> cnp.PyArray_DATA(out))
        return out

    def update(self, Py_ssize_t user, x, double reward, item=None):
        """Absorb one reward, of an item known by this id or by its vector; False, and nothing changes, if it is too long."""
        cdef const double *vector = vector_of(x, self.dim)
        cdef int64_t number = 0 if item is None else item
        cdef const int64_t *ids = NULL if item is None else &number
        if not dot(vector, vector, self.dim) <= self.longest2:
            return False
        with nogil:
            self.learn(user, vector, &reward, ids, 1, 1)
        return True

    def update_list(self, Py_ssize_t user, xs, rewards, ids=None):
        """Absorb what was observed in a list; False, and nothing changes, if a vector is too long."""
        cdef Offer offer = offer_of(xs, self.dim)
        offer.ids = ids_of(ids, offer.n)
        cdef const double *values = vector_of(rewards, offer.n)
        self.reserve(offer.n)
        if self.too_long(&offer):
            return False
        with nogil:
            self.learn(user, offer.items, values, offer.ids, offer.n, offer.n)
        return True

    def update_many(self, users, xs, rewards, bint fitting=False, ids=None):
        """Absorb rewards in order; when fitting, review all users once, at the end; False if a vector is too long."""
        cdef Offer offer = offer_of(xs, self.dim)
        offer.ids = ids_of(ids, offer.n)
        cdef const int64_t *item = NULL
        cdef const double *values = vector_of(rewards, offer.n)
        cdef const int64_t[::1] served = users
        cdef Py_ssize_t k
        if served.shape[0] != offer.n:
            raise ValueError("users and xs differ in length")
        self.reserve(offer.n)
        if self.too_long(&offer):
            return False
        with nogil:
            for k in range(offer.n):
                item = NULL if offer.ids == NULL else offer.ids + k
                if fitting:
                    self.learn_one(self.admit(served[k]), offer.items + k * self.dim, values[k], item)
                else:
                    self.learn(served[k], offer.items + k * self.dim, values + k, item, 1, 1)
            for k in range(self.n_users if fitting else 0):
                self.review(k)
        return True
