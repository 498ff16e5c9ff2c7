# optimize: 2
"""CoDBand: clusters of a Chinese restaurant, drawn by Gibbs steps, and Thompson sampling on them   (Li, Wu and Wang 2021).

With θ ~ N(0, σ²/λ·I) and noise N(0, σ²), data with the sums S and b has, up to a term that every grouping of it shares, the
log-likelihood

    E(S, b) = ½ (d ln λ − ln|λI + S| + bᵀ(λI + S)⁻¹b / σ²)
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from coterie.policies.dynamic.change_detector cimport Detector, has_changed, record
from coterie.policies.kernel.learner cimport Learner, WidthCache, Offer, ScoreModel, View, draw_sample, largest, show_row
from coterie.policies.kernel.linalg cimport (
    add_outer, add_scaled, combine_upper, dot, eliminate, exponential, means, natural_log, quadratic
)
from coterie.policies.kernel.ridge cimport Ridge, absorb_row, clear_row, pool_from_gram

from coterie.policies.kernel.arrays import MOST_COUNTED, Field, ridge_fields

cnp.import_array()

cdef double INTERVAL_FAILURES = 0.01  # δ₁: the fraction of rewards outside their interval that is no sign of a change
cdef double INTERVAL_MARGIN = 1.151292546497023  # ln(1/δ₂)/2 with δ₂ = 0.1
cdef double NOISE_BOUND = 3.0  # η/σ: a bound on the noise in standard deviations


# Random numbers for updates: a short stream for each reward, so that the state depends on the rewards alone.
#
# Decisions draw from the policy's generator, whose state changes with every decision. The update by a reward must not depend on the
# number of decisions before it: its numbers come from SplitMix64, seeded by the policy's key and the number of the reward.

cdef inline uint64_t scrambled(uint64_t z) noexcept nogil:
    """The output function of SplitMix64   (Steele, Lea and Flood 2014)."""
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return z ^ (z >> 31)


cdef inline uint64_t stream_of(uint64_t key, int64_t number) noexcept nogil:
    """The start of the stream of one reward."""
    return scrambled(key ^ scrambled(<uint64_t> number))


cdef inline double uniform(uint64_t *state) noexcept nogil:
    """A number in [0, 1) with 53 random bits."""
    state[0] += <uint64_t> 0x9E3779B97F4A7C15
    return (scrambled(state[0]) >> 11) * (1.0 / 9007199254740992.0)


cdef inline double normal(uint64_t *state) noexcept nogil:
    """A standard normal number, by the polar method; the second one is thrown away."""
    cdef double a, b, s
    while True:
        a, b = 2.0 * uniform(state) - 1.0, 2.0 * uniform(state) - 1.0
        s = a * a + b * b
        if 0.0 < s < 1.0:
            return a * sqrt(-2.0 * natural_log(s) / s)


cdef inline double gamma(uint64_t *state, double shape) noexcept nogil:
    """A number of Gamma(shape, 1), shape ≥ 1   (Marsaglia and Tsang 2000)."""
    cdef double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d), x, v
    while True:
        x = normal(state)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if natural_log(1.0 - uniform(state)) < 0.5 * x * x + d - d * v + d * natural_log(v):
                return d * v


cdef class GibbsClusters(Learner):
    """A row of statistics a cluster; a period is the rewards of one user since the start or since its last change.

    `periods` counts the periods of a cluster, `sizes` its present users. A user without data since its
    last change is in no cluster; its label is -1. `users` are the statistics of its period, `pulls` counts all its rewards.
    """

    FIELDS = {
        **ridge_fields("users", "users"),
        "grams": Field(("users", "dim", "dim")),
        **ridge_fields("pools", "rows"),
        "pools.gram": Field(("rows", "dim", "dim")),
        "evidences": Field(("rows",)),
        "periods": Field(("rows",), "int64"),
        "sizes": Field(("rows",), "int64"),
        "labels": Field(("users",), "int64"),
        "pulls": Field(("users",), "int64"),
        "outcomes": Field(("users",), "uint64"),
        "watched": Field(("users",), "int64"),
    }
    NUMBERS = ("rounds", "concentration")

    cdef Ridge users
    cdef Ridge pools
    cdef double *grams
    cdef double *pool_grams
    cdef double *evidences
    cdef int64_t *periods
    cdef int64_t *sizes
    cdef int64_t *pulls
    cdef uint64_t *outcomes
    cdef int64_t *watched
    cdef Detector detector
    cdef public double concentration
    cdef double noise, beta, shape, rate
    cdef bint learns
    cdef uint64_t key
    cdef Py_ssize_t top
    cdef double *gains
    cdef double *factor
    cdef double *matrix
    cdef double *sample
    cdef double *nothing
    cdef double *reduced

    def __init__(self, n_users, dim, *, noise, scale, concentration, shape, rate, window, key, ridge, schedule, generator):
        self.noise, self.beta, self.key = noise, scale * noise, key
        self.learns, self.shape, self.rate = concentration is None, shape, rate
        self.concentration = 1.0 if concentration is None else concentration
        self.detector = Detector(window, INTERVAL_FAILURES, INTERVAL_MARGIN)
        Learner.__init__(self, n_users, dim, ridge=ridge, schedule=schedule, generator=generator)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        """Rows for as many clusters as users, and as many again for clusters without users, whose data is kept."""
        return {"users": n_users, "rows": 2 * n_users, "dim": dim}

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim, room = len(self._arrays["periods"])
        self.users, self.pools = self.ridge_rows("users"), self.ridge_rows("pools")
        self.grams, self.pool_grams = <double *> self.pointer("grams"), <double *> self.pointer("pools.gram")
        self.evidences, self.pulls = <double *> self.pointer("evidences"), <int64_t *> self.pointer("pulls")
        self.periods, self.sizes = <int64_t *> self.pointer("periods"), <int64_t *> self.pointer("sizes")
        self.outcomes, self.watched = <uint64_t *> self.pointer("outcomes"), <int64_t *> self.pointer("watched")
        if room > len(self._scratch.get("gains", ())):
            self._scratch["gains"] = np.zeros(room)
        if "matrices" not in self._scratch:
            matrices = np.zeros(2 * d * d + 4 * d)
            self._scratch.update(matrices=matrices, nothing=np.eye(d) / self.ridge)
        self.gains = <double *> cnp.PyArray_DATA(self._scratch["gains"])
        self.nothing = <double *> cnp.PyArray_DATA(self._scratch["nothing"])
        self.factor = <double *> cnp.PyArray_DATA(self._scratch["matrices"])
        self.matrix, self.sample = self.factor + d * d, self.factor + 2 * d * d
        self.reduced = self.sample + 2 * d  # the last d numbers are never written: the estimate of no data
        return Learner.bind(self)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """New users are in no cluster."""
        self.array("labels")[known:] = -1
        return 0

    def refresh(self):
        rows, sizes, periods = self.array("labels"), self.array("sizes"), self.array("periods")
        if rows.min() < -1 or rows.max() >= len(sizes):
            raise ValueError("has numbers in 'labels' that are no clusters")
        if not np.array_equal(np.bincount(rows[rows >= 0], minlength=len(sizes)), sizes):
            raise ValueError("has sizes of clusters that are not those of its labels")
        if (periods < sizes).any() or periods.max() > MOST_COUNTED:
            raise ValueError("has numbers in 'periods' that count nothing")
        if self.array("watched").min() < 0 or self.array("watched").max() > MOST_COUNTED:
            raise ValueError("has numbers in 'watched' that count nothing")
        if not self.concentration > 0:
            raise ValueError(f"has the concentration {self.concentration}, which is not above 0")
        self.top = int(np.flatnonzero(periods).max(initial=-1)) + 1

    # Decisions.

    cdef int view_row(self, Py_ssize_t row, View *seen) noexcept nogil:
        """The posterior of a cluster; of a new one, -1, the prior."""
        if row >= 0:
            show_row(seen, &self.pools, row, self.beta, self.ridge, self.dim)
        else:
            seen.estimate, seen.inverse = self.reduced + self.dim, self.nothing
            seen.beta, seen.row, seen.ridge, seen.usual = self.beta, -1, self.ridge, INFINITY
        return 0

    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil:
        return self.view_row(self.row_of[user], seen)

    cdef Py_ssize_t draw_by_size(self, double u) noexcept nogil:
        """A cluster in proportion to its periods, or -1 in proportion to α₀; u is uniform."""
        cdef Py_ssize_t row
        cdef double total = self.concentration, passed = 0.0
        for row in range(self.top):
            total += self.periods[row]
        for row in range(self.top):
            passed += self.periods[row]
            if u * total < passed:
                return row
        return -1

    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil:
        """The first arm of largest xᵀθ̃; -1 if an arm is too long."""
        cdef int64_t arm
        if self.too_long(offer):
            return -1
        self.rank(user, offer, 1, &arm)
        return arm

    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil:
        """Write the k arms of largest xᵀθ̃ of one sample to `out`; a user in no cluster first draws one by its size."""
        cdef View seen
        cdef Py_ssize_t row = self.row_of[user]
        if row < 0:
            row = self.draw_by_size(self.bitgen.next_double(self.bitgen.state))
        self.view_row(row, &seen)
        draw_sample(&seen, self.bitgen, self.factor, self.work, self.sample, self.dim)
        means(self.sample, offer.items, offer.picks, offer.n, self.dim, self.upper)
        largest(self.upper, offer.n, k, out)
        return 0

    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil:
        return False  # scores are drawn

    # Learning.

    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil:
        """Test whether the reward is an outlier; add it to the user's period, and to its cluster."""
        cdef Py_ssize_t row = self.row_of[user], d = self.dim
        if self.users.pulls[user] == 0:
            clear_row(&self.users, user, self.ridge, d)
        if self.detector.window > 0:
            record(&self.outcomes[user], &self.watched[user], self.is_outlier(user, x, reward))
        absorb_row(&self.users, user, x, reward, self.work, d)
        add_outer(self.grams + user * d * d, x, d)
        self.pulls[user] += 1
        if row >= 0:
            absorb_row(&self.pools, row, x, reward, self.work, d)
            add_outer(self.pool_grams + row * d * d, x, d)
        return 0

    cdef bint is_outlier(self, Py_ssize_t user, const double *x, double reward) noexcept nogil:
        """|r − xᵀθ̂ᵢ| > a√(xᵀMᵢ⁻¹x) + η with a = σ√(d ln(1 + n/(dλ)) + 2 ln(1/δ₁)) + √λ, η = 3σ."""
        cdef Py_ssize_t d = self.dim
        cdef double error = fabs(reward - dot(x, self.users.estimate + user * d, d))
        cdef double width = sqrt(max(quadratic(self.users.inverse + user * d * d, x, d), 0.0))
        cdef double grown = d * natural_log(1.0 + self.users.pulls[user] / (d * self.ridge))
        cdef double factor = self.noise * sqrt(grown - 2.0 * natural_log(INTERVAL_FAILURES)) + sqrt(self.ridge)
        return error > factor * width + NOISE_BOUND * self.noise

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """One Gibbs step for the user, one for α₀; then a new period if the user has changed."""
        cdef uint64_t state = stream_of(self.key, self.rounds)
        cdef Py_ssize_t target = self.draw_cluster(user, uniform(&state))
        if target < 0 or target != self.row_of[user]:
            self.move(user, target)
        if self.learns:
            self.draw_concentration(&state)
        if has_changed(&self.detector, self.outcomes[user], self.watched[user]):
            self.end_period(user)
        return 0

    cdef double log_evidence(
        self, const double *gram, const double *moment, double sign, const double *more, const double *further
    ) noexcept nogil:
        """E(S₁ ± S₂, b₁ ± b₂)."""
        cdef Py_ssize_t k, d = self.dim
        cdef double logdet, explained
        combine_upper(gram, more, sign, self.ridge, self.matrix, d)
        for k in range(d):
            self.reduced[k] = moment[k] + sign * further[k]
        eliminate(self.matrix, self.reduced, d, 0.5 * self.ridge, &logdet, &explained)
        return 0.5 * (d * natural_log(self.ridge) - logdet + explained / (self.noise * self.noise))

    cdef double log_evidence_of(self, Py_ssize_t row, double sign, Py_ssize_t user) noexcept nogil:
        """E of a cluster with the user (sign 1), without it (-1), or as it is (0)."""
        cdef Py_ssize_t d = self.dim
        cdef const double *gram = self.pool_grams + row * d * d
        cdef const double *moment = self.pools.moment + row * d
        return self.log_evidence(gram, moment, sign, self.grams + user * d * d, self.users.moment + user * d)

    cdef Py_ssize_t draw_cluster(self, Py_ssize_t user, double u) noexcept nogil:
        """Draw the user's cluster given all others', -1 for a new one; the last of its cluster stays instead."""
        cdef Py_ssize_t row, d = self.dim, source = self.row_of[user], last = -1
        cdef const double *gram = self.grams + user * d * d
        cdef const double *moment = self.users.moment + user * d
        cdef double new = natural_log(self.concentration) + self.log_evidence(gram, moment, 0.0, gram, moment)
        cdef double most = new, total = 0.0, passed = 0.0
        if source >= 0:
            self.evidences[source] = self.log_evidence_of(source, 0.0, user)
            if self.periods[source] == 1:
                last = source
        for row in range(self.top):
            if self.periods[row] == 0 or row == last:
                continue
            if row == source:
                self.gains[row] = self.evidences[row] - self.log_evidence_of(row, -1.0, user)
                self.gains[row] += natural_log(self.periods[row] - 1.0)
            else:
                self.gains[row] = self.log_evidence_of(row, 1.0, user) - self.evidences[row]
                self.gains[row] += natural_log(<double> self.periods[row])
            most = max(most, self.gains[row])
        for row in range(self.top):
            if self.periods[row] and row != last:
                self.gains[row] = exponential(self.gains[row] - most)
                total += self.gains[row]
        total += exponential(new - most)
        for row in range(self.top):
            if self.periods[row] and row != last:
                passed += self.gains[row]
                if u * total < passed:
                    return row
        return last

    cdef void move(self, Py_ssize_t user, Py_ssize_t target) noexcept nogil:
        """Take the user's period out of its cluster and into another; a new one if the target is -1."""
        cdef Py_ssize_t source = self.row_of[user], d = self.dim
        if source >= 0:
            self.periods[source] -= 1
            self.sizes[source] -= 1
            self.shift(user, source, -1.0)
        if target < 0:
            target = self.open_row()
        self.periods[target] += 1
        self.sizes[target] += 1
        self.row_of[user] = target
        self.shift(user, target, 1.0)

    cdef void shift(self, Py_ssize_t user, Py_ssize_t row, double sign) noexcept nogil:
        """Add the user's period to a cluster, or take it away."""
        cdef Py_ssize_t d = self.dim
        if self.periods[row] == 0:  # nothing would be left but rounding
            self.clear_pool(row)
            return
        add_scaled(self.pool_grams + row * d * d, sign, self.grams + user * d * d, d * d)
        add_scaled(self.pools.moment + row * d, sign, self.users.moment + user * d, d)
        self.pools.pulls[row] += <int64_t> sign * self.users.pulls[user]
        pool_from_gram(&self.pools, row, self.pool_grams + row * d * d, self.ridge, self.work, d)
        self.evidences[row] = self.log_evidence_of(row, 0.0, user)

    cdef void clear_pool(self, Py_ssize_t row) noexcept nogil:
        """An empty cluster."""
        clear_row(&self.pools, row, self.ridge, self.dim)
        memset(self.pool_grams + row * self.dim * self.dim, 0, self.dim * self.dim * sizeof(double))
        self.evidences[row] = 0.0

    cdef Py_ssize_t open_row(self) noexcept nogil:
        """The lowest free row; if there is none, that of the cluster without users that has the fewest periods."""
        cdef Py_ssize_t row, found = -1, rows = 2 * self.n_users
        for row in range(rows):
            if self.sizes[row] == 0 and (found < 0 or self.periods[row] < self.periods[found]):
                found = row
                if self.periods[row] == 0:
                    break
        self.periods[found] = 0
        self.clear_pool(found)
        self.top = max(self.top, found + 1)
        return found

    cdef void draw_concentration(self, uint64_t *state) noexcept nogil:
        """Draw α₀ given the numbers of clusters and periods   (Escobar and West 1995)."""
        cdef Py_ssize_t row
        cdef double clusters = 0.0, n = 0.0, first, second, rate, shape
        for row in range(self.top):
            n += self.periods[row]
            clusters += self.periods[row] > 0
        first, second = gamma(state, self.concentration + 1.0), gamma(state, n)
        rate = self.rate - natural_log(first / (first + second))
        shape = self.shape + clusters - 1.0
        if uniform(state) * (shape + n * rate) < shape:
            shape += 1.0
        self.concentration = gamma(state, shape) / rate

    cdef void end_period(self, Py_ssize_t user) noexcept nogil:
        """The user's period ends, and stays in its cluster; the user itself is in none until its next reward."""
        self.sizes[self.row_of[user]] -= 1
        self.row_of[user] = -1
        clear_row(&self.users, user, self.ridge, self.dim)
        memset(self.grams + user * self.dim * self.dim, 0, self.dim * self.dim * sizeof(double))
        self.outcomes[user], self.watched[user] = 0, 0

    cdef int label(self, int64_t *out) except -1 nogil:
        """The cluster; users in none are alone."""
        cdef Py_ssize_t user
        for user in range(self.n_users):
            out[user] = self.row_of[user] if self.row_of[user] >= 0 else 2 * self.n_users + user
        return 0

    def pulls_of_users(self):
        """How many rewards each user has given, all periods together."""
        return self.array("pulls").copy()
