"""The hierarchical model beside AutoCLUB's clusters: its cache of posteriors, and the weight that it gets.

The model is that of policies/hier/hierarchy.pyx. Both models learn from every reward; the predictive densities that they gave
to rewards before they came say which of them to follow.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t

from coterie.policies.autoclub.clusters cimport Prediction
from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.hier.hierarchy cimport UpperBounds
from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.linalg cimport dot, exponential, natural_log, quadratic

from coterie.policies.kernel.arrays import Field

cnp.import_array()


SLOTS = 4096
"""Users whose posteriors are cached; of a million, those who came last."""
cdef double EARLY = 4.0  # after t rewards no more than 1 − 4/t of it: predictions with hardly any data are forgotten soon
cdef double MOST_STEP = 1.0  # one reward changes the log odds by no more than this
cdef double MOST_LOG_ODDS = 50.0  # log odds beyond this are as good as certain; minus this where the hierarchical model overflowed
cdef double NEGLIGIBLE = 0.001  # a model of less weight is left out


cdef class PosteriorCache(NamedArrays):
    """The hierarchical `model` of a bounded number of users. Its σ² is that of the clusters.

    A user has the slot of its number modulo the number of slots, and `cached_users` are those who have theirs. A user who comes
    back has its posterior computed anew from its history. So the prior is learnt from the users who came last.

    Parameters
    ----------
    users : UserHistories
        The rewards of all users.
    slots : int
        How many posteriors are cached.
    settings
        Those of the model that do not depend on users: ridge, schedule and generator.
    """

    FIELDS = {"cached_users": Field(("slots",), "int64")}
    NUMBERS = ()
    PARTS = {"model": UpperBounds}
    IN_PLACE = True

    def __init__(self, UserHistories users, *, slots=SLOTS, **settings):
        given = {"intercept": True, "noise": 1.0, "mean": None, "covariance": None, **settings}
        self.users, self.most_slots = users, slots
        self.model = UpperBounds(min(users.n_users, slots), users.dim, **given)
        self.uncached = UpperBounds(1, users.dim, **given)
        NamedArrays.__init__(self, users.n_users, users.dim)
        self.init_users(0)

    @classmethod
    def extents(cls, n_users, dim, *, slots=SLOTS, **settings):
        return {"slots": min(n_users, slots), "dim": dim}

    def _extents(self):
        return self.extents(self.n_users, self.dim, slots=self.most_slots)

    @classmethod
    def part_shapes(cls, name, n_users, dim, numbers, *, slots=SLOTS):
        return UpperBounds.shapes(min(n_users, slots), dim, numbers, intercept=True)

    def part_users(self, name, n_users):
        return min(n_users, self.most_slots)

    cdef int bind(self) except -1:
        self.cached_users = <int64_t *> self.pointer("cached_users")
        self.uncached_user = -1
        return NamedArrays.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        cdef Py_ssize_t slot
        for slot in range(known, self.model.n_users):
            self.cached_users[slot] = slot
        return 0

    def refresh(self):
        cached = self.array("cached_users")
        self.uncached_user = -1
        if not np.array_equal(cached % self.model.n_users, np.arange(len(cached))) or cached.max() >= self.n_users:
            raise ValueError("has cached users in slots that are not theirs")
        if self.model.rounds != self.users.rounds:
            raise ValueError("has a hierarchical model of other rewards")
        if not np.array_equal(self.model.array("pulls"), self.users.array("pulls")[cached]):
            raise ValueError("has cached users without their rewards")

    def scratch(self):
        """Bytes of the work space, the model beside the cache included."""
        cdef object uncached = self.uncached
        return NamedArrays.scratch(self) + uncached.scratch() + sum(uncached.held().values())

    # Slots.

    cdef bint holds(self, Py_ssize_t user) noexcept nogil:
        """Is the posterior of a user cached?"""
        return self.cached_users[user % self.model.n_users] == user

    cdef Py_ssize_t slot_of(self, Py_ssize_t user) noexcept nogil:
        """The slot of a user, whose posterior is cached from now on."""
        cdef Py_ssize_t slot = user % self.model.n_users
        if self.cached_users[slot] != user:
            if self.uncached_user == user:
                self.model.copy_from(slot, self.uncached, 0)
            else:
                self.fill_slot(self.model, slot, user)
            self.cached_users[slot] = user
        return slot

    cdef void look_up(self, Py_ssize_t user, const double **mean, const double **covariance) noexcept nogil:
        """Point `mean` and `covariance` to a user's posterior; one that is not cached is computed beside the cache, so that
        asking changes nothing."""
        cdef Py_ssize_t slot = user % self.model.n_users
        if self.cached_users[slot] == user:
            mean[0], covariance[0] = self.model.mean_of(slot), self.model.covariance_of(slot)
            return
        if self.uncached_user != user:
            # The prior is that of the model, whose arrays may have been allocated anew
            self.uncached.new_user, self.uncached.centre = self.model.new_user, self.model.centre
            self.fill_slot(self.uncached, 0, user)
            self.uncached_user = user
        mean[0], covariance[0] = self.uncached.mean_of(0), self.uncached.covariance_of(0)

    cdef void forget_uncached(self) noexcept nogil:
        """A reward is coming: a posterior beside the cache is out of date."""
        self.uncached_user = -1

    cdef void fill_slot(self, UpperBounds model, Py_ssize_t slot, Py_ssize_t user) noexcept nogil:
        """The sums of a user with an intercept and its weight ω, and its posterior under today's prior. Writes to `model`."""
        cdef Py_ssize_t i, j, d = self.dim, p = model.size
        cdef double weight = self.users.noise_weights[user]
        cdef const double *own = self.users.gram_of(user)
        cdef double *gram = model.grams + slot * p * p
        cdef double *moment = model.moments + slot * p
        gram[0], moment[0] = weight * self.users.pulls[user], weight * self.users.reward_sums[user]
        for i in range(d):
            gram[1 + i] = gram[(1 + i) * p] = weight * self.users.vector_sums[user * d + i]
            moment[1 + i] = weight * self.users.moments[user * d + i]
            for j in range(d):
                gram[(1 + i) * p + 1 + j] = weight * own[i * d + j]
        model.squared[slot], model.pulls[slot] = weight * self.users.reward_squares[user], self.users.pulls[user]
        if not self.users.keeps_vectors(user):
            model.start_posterior(slot)
        elif self.users.pulls[user] > 0:
            self.replay_vectors(model, slot, user)

    cdef void replay_vectors(self, UpperBounds model, Py_ssize_t slot, Py_ssize_t user) noexcept nogil:
        """A posterior from the prior, by the user's vectors one after another: n d² instead of d³. Writes to `model`."""
        cdef int64_t n, at = self.users.places[user]
        cdef double root = sqrt(self.users.noise_weights[user])
        model.start_covariance(slot)
        for n in range(self.users.pulls[user]):
            model.add_vector(slot, model.with_intercept(self.users.next_vector_of(&at), root))
        model.find_mean(slot)

    # Learning.

    cdef void predict(self, Py_ssize_t user, const double *x, Prediction *out) noexcept nogil:
        """Write the mean of a reward, and its variance relative to σ², to `out`."""
        cdef const double *mean
        cdef const double *covariance
        self.look_up(user, &mean, &covariance)
        x = self.model.with_intercept(x, 1.0)
        out.mean = dot(mean, x, self.model.size)
        out.variance = 1.0 / self.users.noise_weights[user] + max(quadratic(covariance, x, self.model.size), 0.0)

    cdef void absorb(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """Learn a reward, before the user's history has it."""
        self.model.absorb_weighted(self.slot_of(user), x, reward, self.users.noise_weights[user])

    cdef void reweigh(self, Py_ssize_t user, double times) noexcept nogil:
        """ω of a user has been multiplied."""
        if self.holds(user):
            self.model.reweigh(user % self.model.n_users, times)

    def rescale(self, times, double growth):
        """All vectors are multiplied by `times`, powers of two, and the mean of ‖x‖² by `growth`."""
        cdef object model = self.model
        model.rescale(times, growth)
        self.forget_uncached()

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Fit the model if that is due; 1 if its numbers overflowed, so that its prior was reset."""
        cdef double due = self.model.due
        self.model.review(user)
        if self.model.due > due and not self.model.is_finite():
            self.model.reset_prior()
            return 1
        return 0


cdef class ModelWeights(NamedArrays):
    """The weights of clusters and of the hierarchical model, from how well both have predicted rewards.

    `log_odds` are those of the hierarchical model.
    """

    NUMBERS = ("log_odds",)

    def refresh(self):
        if not np.isfinite(self.log_odds):
            raise ValueError("has weights of models that are not finite")

    cdef double hierarchy_weight(self) noexcept nogil:
        """The weight of the hierarchical model, 0 or 1 if nearly so."""
        if self.omits_hierarchy or self.omits_clusters:
            return 1.0 if self.omits_clusters else 0.0
        cdef double weight = 1.0 / (1.0 + exponential(-min(max(self.log_odds, -MOST_LOG_ODDS), MOST_LOG_ODDS)))
        return 0.0 if weight < NEGLIGIBLE else 1.0 if weight > 1.0 - NEGLIGIBLE else weight

    cdef void compare(
        self, double reward, Prediction *clusters, Prediction *hierarchy, int64_t rewards, double share
    ) noexcept nogil:
        """The log odds move by `share` times the difference of the log predictive densities of a reward; `rewards` counts it and those before.
        """
        if rewards < 2:  # nothing was known of the unit of rewards
            return
        cdef double kept = max(0.0, 1.0 - EARLY / rewards), most = MOST_STEP if not self.omits_limit else INFINITY
        cdef double first = clusters.variance, second = hierarchy.variance
        cdef double missed = reward - clusters.mean, other = reward - hierarchy.mean
        cdef double step = natural_log(first) - natural_log(second) + missed * missed / first - other * other / second
        # NaN where the hierarchical model has overflowed
        step = min(max(0.5 * step, -most), most) if step == step else -MOST_STEP
        self.log_odds = kept * self.log_odds + share * step

    cdef void reject_hierarchy(self) noexcept nogil:
        """The hierarchical model has overflowed: follow clusters alone."""
        self.log_odds = -MOST_LOG_ODDS

    # What Python calls.

    def weight(self):
        """The weight of the hierarchical model."""
        return self.hierarchy_weight()

    def update(self, double reward, clusters, hierarchy, int64_t rewards):
        """Compare two predictions, each a mean and a variance, with a reward: for whoever uses the weights alone."""
        cdef Prediction first = Prediction(clusters[0], clusters[1]), second = Prediction(hierarchy[0], hierarchy[1])
        self.compare(reward, &first, &second, rewards, 1.0)
