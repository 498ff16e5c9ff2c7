"""Beside the clusters of AutoCLUB a hierarchical model of people, and how far it is trusted.

Both learn from every reward; the densities that they gave to rewards before they came say which of them to follow.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport sqrt
from libc.stdint cimport int64_t

from coterie.policies.autoclub.clusters cimport ByEvidence
from coterie.policies.autoclub.prior cimport Terms
from coterie.policies.hier.hierarchy cimport UpperBounds
from coterie.policies.kernel.linalg cimport add_scaled, dot, exponential, natural_log, quadratic

from coterie.policies.autoclub.clusters import ByEvidence as Clusters
from coterie.policies.hier.hierarchy import UpperBounds as People
from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef double KEPT = 0.9995  # the part of the log odds that a reward leaves: about the last 2,000 rewards count
cdef double EARLY = 4.0  # after t rewards no more than 1 − 4/t of it: what was foretold with hardly any data is forgotten soon
cdef double STEP = 1.0  # one reward changes the log odds by no more than this
cdef double WORST = 100.0  # and its squared error counts for no more than so many times what a model foretold
cdef double DISTRUSTED = 50.0  # minus the log odds of people whose numbers have overflowed
SEATS = 4096
"""Users whose posteriors are kept; of a million, those who came last."""
cdef double LEAST = 1e-100  # the number of rewards is no less, lest it be divided by 0
cdef double NOTHING = 0.001  # a model of less weight is left out


cdef class ClustersAndPeople(ByEvidence):
    """Clusters by evidence and `people` who differ by degrees; `odds` are the log odds of the latter.

    The arrays of both are those of this learner; those of `people` have its name in front. It has a bounded number of
    seats: user i sits on seat i mod their number, `holders` are those who sit, and one who comes back has its posterior made
    anew from its sums. So the prior is learnt from those who came last. `cluster_errors` and `people_errors` are the squared
    errors of both of late, beside what they foretold.
    """

    FIELDS = {
        **Clusters.FIELDS,
        "people.holders": Field(("seats",), "int64"),
        **{
            f"people.{name}": Field(tuple(["seats" if axis == "users" else axis for axis in field.axes]), field.dtype)
            for name, field in People.FIELDS.items()
        },
    }
    NUMBERS = (
        *Clusters.NUMBERS,
        "odds",
        "cluster_errors",
        "people_errors",
        "people.noise2",
        "people.spread2",
        "people.shrinkage",
        "people.due",
    )

    def __init__(self, n_users, dim, *, ridge, schedule, generator, seats=SEATS):
        self.most_seats = seats
        shared = {"ridge": ridge, "schedule": schedule, "generator": generator}
        given = {"intercept": True, "noise": None, "mean": None, "covariance": None}
        self.people, self.guest = People(1, dim, **given, **shared), People(1, dim, **given, **shared)
        ByEvidence.__init__(self, n_users, dim, **shared)

    @classmethod
    def extents(cls, n_users, dim, seats=SEATS):
        return {**Clusters.extents(n_users, dim), "size": dim + 1, "seats": min(n_users, seats)}

    def _extents(self):
        return {**ByEvidence._extents(self), "seats": min(self.n_users, self.most_seats)}

    cdef int bind(self) except -1:
        self.people.n_users = min(self.n_users, self.most_seats)
        self.holders = <int64_t *> self.pointer("people.holders")
        self.people._arrays = {name: self._arrays[f"people.{name}"] for name in People.FIELDS}
        self.people.bind()
        self.guest_of = -1
        self.guest.new_user, self.guest.centre = self.people.new_user, self.people.centre
        return ByEvidence.bind(self)

    cdef int reserve(self, Py_ssize_t n_arms) except -1:
        if n_arms > self.n_arms:
            self.people.reserve_extended(n_arms)
        return ByEvidence.reserve(self, n_arms)

    cdef int init_users(self, Py_ssize_t known) except -1:
        cdef Py_ssize_t seat
        for seat in range(known, self.people.n_users):
            self.holders[seat] = seat
        self.people.init_users(known)
        return ByEvidence.init_users(self, known)

    def refresh(self):
        holders = self.array("people.holders")
        if not np.array_equal(holders % self.people.n_users, np.arange(len(holders))) or holders.max() >= self.n_users:
            raise ValueError("has users on seats that are not theirs")
        self.people.rounds = self.learnt()
        self.people.refresh()
        ByEvidence.refresh(self)
        if not np.array_equal(self.array("people.pulls"), self.array("pulls")[holders]):
            raise ValueError("has people who have not had their rewards")

    # Who sits where.

    cdef bint sits(self, Py_ssize_t user) noexcept nogil:
        return self.holders[user % self.people.n_users] == user

    cdef Py_ssize_t seat_of(self, Py_ssize_t user) noexcept nogil:
        """The seat of a user, who sits down if someone else is there."""
        cdef Py_ssize_t seat = user % self.people.n_users
        if self.holders[seat] != user:
            if self.guest_of == user:
                self.people.copy_from(seat, self.guest, 0)
            else:
                self.fill_seat(self.people, seat, user)
            self.holders[seat] = user
        return seat

    cdef void look_up(self, Py_ssize_t user, const double **mean, const double **covariance) noexcept nogil:
        """The posterior of a user; one who does not sit is a guest, so that asking changes nothing."""
        cdef Py_ssize_t seat = user % self.people.n_users
        if self.holders[seat] == user:
            mean[0], covariance[0] = self.people.mean_of(seat), self.people.covariance_of(seat)
        else:
            if self.guest_of != user:
                self.fill_seat(self.guest, 0, user)
                self.guest_of = user
            mean[0], covariance[0] = self.guest.mean_of(0), self.guest.covariance_of(0)

    cdef void fill_seat(self, UpperBounds people, Py_ssize_t seat, Py_ssize_t user) noexcept nogil:
        """The sums of a user with an intercept and its weight ω, and its posterior under today's prior."""
        cdef Py_ssize_t i, j, d = self.dim, p = people.size
        cdef double weight = self.precisions[user]
        cdef const double *own = self.gram_of(user)
        cdef double *gram = people.grams + seat * p * p
        cdef double *moment = people.moments + seat * p
        gram[0], moment[0] = weight * self.pulls[user], weight * self.levels[user]
        for i in range(d):
            gram[1 + i] = gram[(1 + i) * p] = weight * self.totals[user * d + i]
            moment[1 + i] = weight * self.moments[user * d + i]
            for j in range(d):
                gram[(1 + i) * p + 1 + j] = weight * own[i * d + j]
        people.squared[seat], people.pulls[seat] = weight * self.squared[user], self.pulls[user]
        if self.pulls[user] >= self.light:
            people.start_posterior(seat)
        elif self.pulls[user] > 0:
            self.retell(people, seat, user)

    cdef void retell(self, UpperBounds people, Py_ssize_t seat, Py_ssize_t user) noexcept nogil:
        """A posterior from the prior, by the user's vectors one after another."""
        cdef int64_t n, at = self.places[user]
        cdef double root = sqrt(self.precisions[user])
        people.start_covariance(seat)
        for n in range(self.pulls[user]):
            at = self.next_vector[at]
            people.add_vector(seat, people.with_intercept(self.vectors + at * self.dim, root))
        people.find_mean(seat)

    # Which model to trust.

    cdef double update_slack(self) noexcept nogil:
        """The weight of the hierarchical model, 0 or 1 if nearly so."""
        cdef double weight = 1.0 / (1.0 + exponential(-min(max(self.odds, -50.0), 50.0)))
        return 0.0 if weight < NOTHING else 1.0 if weight > 1.0 - NOTHING else weight

    cdef void foretell(self, Py_ssize_t user, const double *x, Foretold *clusters, Foretold *people) noexcept nogil:
        """Mean and variance of the next reward by both models."""
        cdef Py_ssize_t p = self.people.size, seat = self.seat_of(user)
        cdef const double *full = self.people.with_intercept(x, 1.0)
        cdef double own = 1.0 / self.precisions[user]
        clusters.mean = self.offset + dot(self.mixture_of(user), x, self.dim)
        clusters.variance = self.noise2 * (own + self.width2(self.row_of[user], x))
        people.mean = dot(self.people.mean_of(seat), full, p)
        people.variance = self.people.noise2 * (own + max(quadratic(self.people.covariance_of(seat), full, p), 0.0))

    cdef void compare_models(self, double reward, Foretold *clusters, Foretold *people) noexcept nogil:
        """The log odds move by the difference of the log predictive densities.

        A model whose errors have been greater than it foretold has its variance raised accordingly, lest the one that is more
        sure of itself wins wherever little happens.
        """
        cdef double kept = max(0.0, min(KEPT, 1.0 - EARLY / self.learnt()))
        cdef double first = clusters.variance * max(1.0, self.cluster_errors)
        cdef double second = people.variance * max(1.0, self.people_errors)
        cdef double missed = reward - clusters.mean, other = reward - people.mean
        cdef double step = natural_log(first) - natural_log(second) + missed * missed / first - other * other / second
        self.odds = kept * self.odds + (min(max(0.5 * step, -STEP), STEP) if step == step else -STEP)
        missed, other = missed * missed / clusters.variance, other * other / people.variance
        self.cluster_errors = kept * self.cluster_errors + (1.0 - kept) * (missed if missed < WORST else WORST)
        self.people_errors = kept * self.people_errors + (1.0 - kept) * (other if other < WORST else WORST)

    # What Python asks.

    def known_preferences(self):
        """What decisions for each user rest on, a constant first; the mean of xxᵀ over rewards; and the rewards of each user."""
        cdef Py_ssize_t user, p = self.people.size
        out = np.empty((self.n_users, p))
        cdef double *found = <double *> cnp.PyArray_DATA(out)
        with nogil:
            for user in range(self.n_users):
                self.average_preference(user, found + user * p)
        moment = self.array("people.grams").sum(0)
        return out, moment / max(moment[0, 0], LEAST), self.pulls_of_users()

    cdef void average_preference(self, Py_ssize_t user, double *out) noexcept nogil:
        """The preference of a user by both models, each by its weight."""
        cdef double trust = self.update_slack()
        cdef Py_ssize_t i
        cdef const double *mean
        cdef const double *covariance
        out[0] = (1.0 - trust) * self.offset
        mean = self.mixture_of(user)
        for i in range(self.dim):
            out[1 + i] = (1.0 - trust) * mean[i]
        if trust > 0.0:
            self.look_up(user, &mean, &covariance)
            add_scaled(out, trust, mean, self.people.size)

    # Both learn.

    cdef double restrain(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """What a reward counts for: both models are judged by it, and the hierarchical one learns it.

        While nothing rests on people, only those who sit are asked.
        """
        cdef Foretold clusters, people
        cdef double counted
        self.people.rounds = self.learnt()
        if self.update_slack() == 0.0 and not self.sits(user):
            self.guest_of = -1
            return ByEvidence.restrain(self, user, x, reward)
        self.foretell(user, x, &clusters, &people)
        self.guest_of = -1
        counted = ByEvidence.restrain(self, user, x, reward)
        self.compare_models(counted, &clusters, &people)
        self.people.absorb_weighted(self.seat_of(user), x, counted, self.precisions[user])
        return counted

    cdef void amend(self, double before, double after) noexcept nogil:
        cdef Py_ssize_t seat = self.holder % self.people.n_users
        ByEvidence.amend(self, before, after)
        if self.holders[seat] == self.holder:
            self.people.amend(seat, self.largest, self.precisions[self.holder], before, after)

    cdef bint reassess(self, Py_ssize_t user, Terms *terms) noexcept nogil:
        cdef double before = self.precisions[user]
        cdef bint changed = ByEvidence.reassess(self, user, terms)
        if changed and self.sits(user):
            self.people.reweigh(user % self.people.n_users, self.precisions[user] / before)
        if misled(self.precisions[user], before):
            self.people.due = self.people.rounds
        return changed

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """Review the user's place, and fit the hierarchical model when that is due."""
        cdef double due
        self.guest_of = -1
        ByEvidence.review(self, user)
        due = self.people.due
        self.people.review(user)
        if self.people.due > due and not self.people.is_finite():
            self.people.reset_prior()
            self.odds = -DISTRUSTED
        return 0
