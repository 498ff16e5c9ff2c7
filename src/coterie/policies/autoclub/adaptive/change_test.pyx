"""Has a user changed? A test of each user's rewards, one by one, by what was expected of them.

A user who has changed is predicted worse by what is known of it than by the prior, which knows nothing. The log likelihood ratio
of the two is summed up from its last minimum on (a CUSUM test). A user for whom it exceeds a threshold starts again as a new user;
what it has taught so far stays behind, as of a user who never comes again.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t

from coterie.policies.autoclub.clusters cimport Prediction
from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.linalg cimport natural_log

from coterie.policies.kernel.arrays import Field

cnp.import_array()


cdef enum:
    RECORDED = 32  # changes that are remembered with their users
cdef double MOST_STEP = 2.0  # one reward counts for no more than this: a single outlier is no change
cdef double MOST_ERROR = 100.0  # and its squared error counts for no more than so many times the predictive variance
cdef double PSEUDO_REWARDS = 20.0  # as noisy as expected, beside those by which a user's own noise is judged
cdef double RARE = 13.815510557964274  # ln 10⁶: a false alarm is that rare, and rarer the longer a user has been the same
cdef double RARER = 2.0


cdef class ChangeTest(NamedArrays):
    """The evidence that each user has changed, the sum of its squared errors, and the last changes.

    `evidence` is the log likelihood ratio since its last minimum. `errors` are in units of the predictive variance, of rewards that
    came while there was hardly any evidence: a change must not hide itself as noise. `alarms`
    counts the changes of all users; `recent` has user and round of the last ones, each in the place of its number.
    """

    FIELDS = {
        "evidence": Field(("users",)),
        "errors": Field(("users",)),
        "recent": Field(("recorded", "pair"), "int64"),
    }
    NUMBERS = ("alarms",)
    IN_PLACE = True

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "recorded": RECORDED, "pair": 2}

    cdef int bind(self) except -1:
        self.evidence, self.errors = <double *> self.pointer("evidence"), <double *> self.pointer("errors")
        return NamedArrays.bind(self)

    def refresh(self):
        if self.alarms < 0 or self.array("evidence").min() < 0 or self.array("errors").min() < 0:
            raise ValueError("has evidence of changes that cannot be")

    cdef void add(
        self, Py_ssize_t user, double reward, Prediction *known, Prediction *prior, int64_t pulls
    ) noexcept nogil:
        """Take a reward of a user with so many before it into account, as it was expected by what is known and by the prior.

        Both variances are those of a user who is as noisy as this one has been.
        """
        cdef double missed = reward - known.mean, other = reward - prior.mean
        cdef double noisier = max(1.0, (PSEUDO_REWARDS + self.errors[user]) / (PSEUDO_REWARDS + pulls))
        cdef double step = missed * missed / known.variance - other * other / prior.variance
        step = 0.5 * (natural_log(known.variance / prior.variance) + step / noisier)
        if self.evidence[user] < MOST_STEP:
            self.errors[user] += min(missed * missed / known.variance, MOST_ERROR)
        self.evidence[user] = max(0.0, self.evidence[user] + min(step, MOST_STEP))

    cdef bint has_changed(self, Py_ssize_t user, int64_t pulls) noexcept nogil:
        """Does the evidence exceed its threshold, for a user with so many rewards?"""
        return not self.omitted and self.evidence[user] > RARE + RARER * natural_log(1.0 + pulls)

    # What Python calls.

    def record(self, int64_t user, int64_t rounds):
        """A user has changed after so many rounds of all."""
        self.array("recent")[self.alarms % RECORDED] = user, rounds
        self.alarms += 1

    def recorded(self):
        """The users of the last changes, and the rounds, latest first."""
        kept = min(self.alarms, RECORDED)
        last = self.array("recent")[(self.alarms - 1 - np.arange(kept)) % RECORDED]
        return last[:, 0].copy(), last[:, 1].copy()

    def learn(self, Py_ssize_t user, double reward, known, prior, int64_t pulls):
        """Take a reward into account, with two predictions, each a mean and a variance; has the user changed? For whoever uses the
        test alone."""
        cdef Prediction first = Prediction(known[0], known[1]), second = Prediction(prior[0], prior[1])
        self.add(user, reward, &first, &second, pulls)
        return self.has_changed(user, pulls)
