"""What all users of AutoCLUB share: how noisy rewards are, how much preferences differ, and about which mean and offset.

θ ~ N(μ, σ²/λ·I) and rewards are m + xᵀθ + N(0, σ²/ω). Everything here comes from the users' own regressions, never from
pooled ones: those are biased, since which arms are played depends on the pooled estimate itself. With c = b − ms − Sμ the log
marginal likelihood of data (S, c) is, up to a term that every grouping of the same data shares,

    E(S, c) = ½ (d ln λ − ln|λI + S| + cᵀ(λI + S)⁻¹c / σ²)
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdint cimport int64_t

from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.autoclub.quorums cimport REWARDS, SizeLimits, quorum
from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.linalg cimport (
    add_scaled, apply, back_substitute, combine_upper, dot, eliminate, exponential, finish_inverse, natural_log
)

from coterie.policies.kernel.arrays import Field

cnp.import_array()


FREEDOM, INFORMATION, LOG_PRECISION = 3, 5, 6
"""The place of tr H among the terms of a user."""
cdef double PSEUDO_USERS = 0.2  # the ridge counts towards λ like this many users of whom everything is known
cdef double MOST_STEP = 0.5  # ln λ moves by no more than this at a time
cdef double TINY = 1e-12  # for rounding: λ is no less than this part of Σ‖x‖², and a
# user counts for no less than this in μ
cdef double LEAST_NOISE2 = 1e-100  # σ̂² of rewards that are all zero
cdef double EXACT = 1e-8  # σ̂² is no less than this part of the square of a usual reward
cdef double LEAST_FREEDOM = 1e-100  # below this tr H, nothing is known of a user
cdef double OFFSET_VARIANCES = 16.0  # an offset counts as far as its square exceeds so many times its variance
cdef double PSEUDO_REWARDS = 10.0  # a user's noise is first taken to be the common one, as if so many rewards said so
cdef double MOST_SHARE = 4.0  # a user counts in the noise for at most so many times the mean of others
cdef double NOISIER = 2.0  # a user counts in full up to so many times the variance of the others


cdef class CommonPrior(NamedArrays):
    """Estimates of σ², λ, μ and m, the sums they come from, and each user's last contribution to the sums.

    `votes` are vᵢ = δᵢ + κᵢμ, a user's contribution to the mean preference, `vote_sum` is their sum and `vote_squares` Σ‖vᵢ‖².
    `fitted` counts the users with a regression, in their `order`: sums over users have one order.

    Parameters
    ----------
    users : UserHistories
        Their rewards.
    limits : SizeLimits
        How large rewards are.
    ridge : float
        λ before the first regression, in units of the mean of ‖x‖².
    """

    FIELDS = {
        "sums": Field(("terms",)),
        "mean": Field(("dim",)),
        "vote_sum": Field(("dim",)),
        "terms": Field(("users", "terms")),
        "votes": Field(("users", "dim")),
        "order": Field(("users",), "int64"),
        "shares": Field(("users",)),
    }
    NUMBERS = ("noise2", "precision", "offset", "fitted", "vote_squares")
    IN_PLACE = True

    def __init__(self, UserHistories users, SizeLimits limits, *, ridge):
        self.users, self.limits, self.ridge = users, limits, ridge
        self.noise2, self.precision = 1.0, ridge
        NamedArrays.__init__(self, users.n_users, users.dim)

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "dim": dim, "terms": 10}

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim
        self.sums, self.terms = <Terms *> self.pointer("sums"), <Terms *> self.pointer("terms")
        self.mean, self.vote_sum = <double *> self.pointer("mean"), <double *> self.pointer("vote_sum")
        self.votes, self.order = <double *> self.pointer("votes"), <int64_t *> self.pointer("order")
        self.shares = <double *> self.pointer("shares")
        self.matrix = self.workspace("regression", 3 * d * d + 3 * d)
        self.factor, self.inverse = self.matrix + d * d, self.matrix + 2 * d * d
        self.centred = self.matrix + 3 * d * d
        self.reduced, self.around = self.centred + d, self.centred + 2 * d
        return NamedArrays.bind(self)

    def refresh(self):
        known = list(self.numbers().values())
        if not np.isfinite(known).all() or self.noise2 <= 0 or self.precision <= 0:
            raise ValueError("has estimates of noise and prior that are no numbers above 0")
        fitted = np.flatnonzero(self.array("terms")[:, 0])
        if not np.array_equal(np.sort(self.array("order")[: len(fitted)]), fitted) or self.fitted != len(fitted):
            raise ValueError("has numbers in 'order' that are not its users")
        if self.array("terms")[:, FREEDOM].min() < 0:
            raise ValueError("has users of whom less than nothing is known")

    # What follows from the estimates.

    cdef double usual_precision(self) noexcept nogil:
        """The ridge in the unit of the vectors: times the mean of ‖x‖²."""
        return self.ridge * self.users.square_norms / self.users.rounds if self.users.square_norms > 0.0 else self.ridge

    cdef void predict(self, Py_ssize_t user, const double *x, double *mean, double *variance) noexcept nogil:
        """Write mean and variance of a reward of a user of whom only its noise is known."""
        mean[0] = self.offset + dot(self.mean, x, self.dim)
        variance[0] = self.noise2 * (1.0 / self.users.noise_weights[user] + dot(x, x, self.dim) / self.precision)

    cdef double effective_size(self, Py_ssize_t user) noexcept nogil:
        """What a user counts for among the members of its cluster: (1 + tr H) / (1 + d), as far as it is known."""
        return (1.0 + self.terms[user].freedom) / (1.0 + self.dim)

    cdef double total_size(self) noexcept nogil:
        """The effective sizes of all users with rewards, times 1 + d."""
        return self.users.seen + self.sums.freedom

    # Evidence.

    cdef double evidence(self, double logdet, double explained) noexcept nogil:
        """E(S, c) from ln|λI + S| and cᵀ(λI + S)⁻¹c."""
        return 0.5 * (self.dim * natural_log(self.precision) - logdet + explained / self.noise2)

    cdef double evidence_of(
        self, const double *first, const double *second, double sign, const double *centred
    ) noexcept nogil:
        """E(S₁ ± S₂, c); what `eliminate` leaves behind stays in `matrix` and `reduced`, for `solve_last`."""
        cdef double logdet, explained
        cdef Py_ssize_t i
        for i in range(self.dim):
            self.reduced[i] = centred[i]
        combine_upper(first, second, sign, self.precision, self.matrix, self.dim)
        eliminate(self.matrix, self.reduced, self.dim, 0.5 * self.precision, &logdet, &explained)
        return self.evidence(logdet, explained)

    cdef void solve_last(self, double *out) noexcept nogil:
        """Write μ + (λI + S)⁻¹c, the preference of the data of the last `evidence_of`, to `out`."""
        back_substitute(self.matrix, self.reduced, out, self.dim)
        add_scaled(out, 1.0, self.mean, self.dim)

    cdef void centre(
        self, const double *gram, const double *moment, const double *vector_sum, double *out
    ) noexcept nogil:
        """Write c = b − ms − Sμ, the moment about the offset and the mean preference, to `out`."""
        cdef Py_ssize_t i
        apply(gram, self.mean, out, self.dim)
        for i in range(self.dim):
            out[i] = moment[i] - self.offset * vector_sum[i] - out[i]

    # A user's own regression.

    cdef void regress(self, Py_ssize_t user, double *fit, Regression *found) noexcept nogil:
        """A user's own regression: writes δ to `fit`, and `found`; `centred` is left holding ωc.

        With few rewards it is solved in the span of the user's n vectors; in all other directions λI + S is λI.
        """
        cdef Py_ssize_t i, d = self.dim, n = d
        cdef const double *gram = self.users.gram_of(user)
        cdef const double *moment = self.users.moments + user * d
        cdef const double *total = self.users.vector_sums + user * d
        cdef double pulls = self.users.pulls[user], weight = self.users.noise_weights[user]
        cdef double level = self.users.reward_sums[user] - self.offset * pulls
        cdef double known, around, precision = self.precision
        cdef Terms *terms = &found.terms
        self.centre(gram, moment, total, self.centred)
        around = self.users.squares_about(user, self.offset)
        around -= dot(self.mean, moment, d) - self.offset * dot(self.mean, total, d) + dot(self.mean, self.centred, d)
        for i in range(d):
            self.centred[i] *= weight
            self.reduced[i], self.around[i] = self.centred[i], total[i]
        if self.users.keeps_vectors(user):
            n, gram = self.users.enter_span(user), self.users.span_gram
            self.users.to_span(self.reduced)
            self.users.to_span(self.around)
        combine_upper(gram, gram, weight - 1.0, precision, self.matrix, n)
        eliminate(self.matrix, self.reduced, n, 0.5 * precision, &found.logdet, &found.explained)
        found.logdet += (d - n) * natural_log(precision)
        back_substitute(self.matrix, self.reduced, fit, n)
        finish_inverse(self.matrix, self.factor, self.inverse, n)
        apply(self.inverse, self.around, self.reduced, n)
        terms.offset_weight = weight * (pulls - weight * dot(self.around, self.reduced, n))
        terms.offset_sum = weight * (level - dot(total, self.mean, d) - dot(self.around, fit, n)) + self.offset * terms.offset_weight
        terms.pulls, terms.freedom = pulls, 0.0
        for i in range(n):  # H = I − λA⁻¹, but its diagonal as that of A⁻¹S: nothing cancels where H is next to nothing
            known = weight * dot(self.inverse + i * n, gram + i * n, n)
            terms.freedom += known
            self.inverse[i * n + i] = known / precision
        terms.information = precision * precision * dot(self.inverse, self.inverse, n * n)
        terms.penalty = precision * dot(fit, fit, n)
        found.residual = max(weight * around - found.explained - terms.penalty, 0.0)
        terms.left = max(pulls - terms.freedom, 0.0)
        found.share = self.fair_share(user, terms.left)
        terms.residual, terms.left = found.share * found.residual, found.share * terms.left
        terms.log_precision = terms.information * natural_log(precision)
        terms.mean_weight = min(terms.information / terms.freedom, 1.0) if terms.freedom > LEAST_FREEDOM else 0.0
        if n < d:
            self.users.from_span(fit)

    cdef double fair_share(self, Py_ssize_t user, double left) noexcept nogil:
        """1, or less for a user with many more degrees of freedom than others, and 0 for a noisy one: nobody's rewards alone say
        how noisy all are."""
        cdef double others = self.fitted - (self.terms[user].pulls > 0.0), rest = self.sums.left - self.terms[user].left
        if self.omits_shares:
            return 1.0
        if self.users.noise_weights[user] < 1.0:
            return 0.0
        return MOST_SHARE * rest / (others * left) if MOST_SHARE * rest < others * left else 1.0

    cdef double noise_weight(self, Py_ssize_t user, Regression *found, double own_share) noexcept nogil:
        """ω, what a user's rewards should count for: 1 unless they are much noisier than others'.

        `found` is by today's ω, and `own_share` of its RSS is in values that not everybody gives.
        """
        cdef Terms *own = &self.terms[user]
        cdef double others = self.sums.left - own.left
        cdef double usual, level, pulls = self.sums.pulls - own.pulls
        if not (self.is_fitted() and others > TINY * pulls):
            return 1.0
        usual = max((self.sums.residual - own.residual) / others, self.least_noise())
        level = own_share * found.residual / (self.users.noise_weights[user] * usual) + PSEUDO_REWARDS
        level /= found.terms.pulls - found.terms.freedom + PSEUDO_REWARDS
        return min(1.0, NOISIER / level) if not self.omits_weights else 1.0

    # The estimates.

    cdef bint is_fitted(self) noexcept nogil:
        """Do the estimates rest on regressions of a quorum of users?"""
        return self.fitted >= quorum(self.users.seen)

    cdef double least_noise(self) noexcept nogil:
        """σ̂² of rewards that are explained but for rounding: EXACT times 4^e, if a quorum has sent rewards of size 2^e."""
        cdef double most = self.limits.most[REWARDS]
        return max(EXACT * most * most / 16.0, LEAST_NOISE2) if most < INFINITY else LEAST_NOISE2

    cdef bint is_known(self, Py_ssize_t user) noexcept nogil:
        """Has a user a regression, and have rewards a noise?"""
        return self.terms[user].pulls > 0.0 and self.noise2 > LEAST_NOISE2

    cdef double share_of(self, Py_ssize_t user) noexcept nogil:
        """The fair share of a user, by its last regression."""
        return self.shares[user] if self.terms[user].pulls > 0.0 else 1.0

    cdef void guess(self) noexcept nogil:
        """m, σ̂² and λ before the first regression: mean and variance of rewards, and the ridge in the unit of the vectors."""
        cdef double rewards = max(self.users.whole_rewards, 1), mean = self.users.reward_sum / rewards, square = self.users.reward_square / rewards
        cdef double variance = max(square - mean * mean, TINY * square)
        self.offset = self.shrunk_offset(mean, variance / rewards) if self.users.whole_rewards > 1 else 0.0
        self.noise2 = max(square - self.offset * (2.0 * mean - self.offset), self.least_noise())
        self.precision = self.usual_precision()

    cdef double shrunk_offset(self, double estimate, double variance) noexcept nogil:
        """m, moved towards 0 by what its estimate may owe to chance: an offset that is not there costs more than it gains."""
        cdef double square = estimate * estimate if not self.omits_offset else 0.0
        return estimate * max(0.0, 1.0 - OFFSET_VARIANCES * variance / square) if square > 0.0 else 0.0

    cdef void update_user(self, Py_ssize_t user, Regression *found, double *fit) noexcept nogil:
        """Replace a user's contribution by its new regression, and update σ̂²; `fit` becomes μ + δ."""
        cdef Py_ssize_t i
        for i in range(self.dim):
            self.around[i] = fit[i] + found.terms.mean_weight * self.mean[i]
        self.replace_terms(user, &found.terms, self.around)
        self.shares[user] = found.share
        for i in range(self.dim):
            fit[i] += self.mean[i]
        self.update_noise()

    cdef void replace_terms(self, Py_ssize_t user, Terms *fresh, const double *vote) noexcept nogil:
        """Put a user's new contribution in the place of its last one; sums that it dominated are made anew, for rounding."""
        cdef Py_ssize_t i
        cdef Terms old = self.terms[user]
        cdef double *last = self.votes + user * self.dim
        cdef double before = dot(last, last, self.dim)
        cdef bint anew = 2.0 * old.residual > self.sums.residual or 2.0 * before > self.vote_squares
        if old.pulls == 0.0:
            self.order[<Py_ssize_t> self.fitted] = user
            self.fitted += 1.0
        self.terms[user] = fresh[0]
        self.vote_squares += dot(vote, vote, self.dim) - before
        for i in range(self.dim):
            self.vote_sum[i] += vote[i] - last[i]
            last[i] = vote[i]
        if anew:
            self.sum_terms()
        else:
            self.add_terms(&old, -1.0)
            self.add_terms(fresh, 1.0)

    cdef void add_terms(self, Terms *terms, double sign) noexcept nogil:
        """Add a user's terms to the sums, or subtract them."""
        self.sums.pulls += sign * terms.pulls
        self.sums.residual += sign * terms.residual
        self.sums.left += sign * terms.left
        self.sums.freedom += sign * terms.freedom
        self.sums.penalty += sign * terms.penalty
        self.sums.information += sign * terms.information
        self.sums.log_precision += sign * terms.log_precision
        self.sums.mean_weight += sign * terms.mean_weight
        self.sums.offset_sum += sign * terms.offset_sum
        self.sums.offset_weight += sign * terms.offset_weight

    cdef void sum_terms(self) noexcept nogil:
        """All sums over users, from the beginning."""
        cdef Py_ssize_t user, k, i
        cdef double *vote
        self.sums[0] = Terms(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        self.vote_squares = 0.0
        for i in range(self.dim):
            self.vote_sum[i] = 0.0
        for k in range(<Py_ssize_t> self.fitted):
            user = self.order[k]
            vote = self.votes + user * self.dim
            self.add_terms(&self.terms[user], 1.0)
            self.vote_squares += dot(vote, vote, self.dim)
            for i in range(self.dim):
                self.vote_sum[i] += vote[i]

    cdef void update_noise(self) noexcept nogil:
        """σ̂² = Σ RSS / Σ(T − tr H): residuals per degree of freedom left, each user by its fair share."""
        if self.is_fitted() and self.sums.left > TINY * self.sums.pulls:
            self.noise2 = max(self.sums.residual / self.sums.left, self.least_noise())

    cdef void update_prior(self) noexcept nogil:
        """One step of Fisher scoring for ln λ on the marginal likelihood, and the James–Stein mean of users.

        A user counts in the mean as far as it is known, by κᵢ: μ = (1 − Σ‖vᵢ‖²/‖Σvᵢ‖²)₊ Σvᵢ/Σκᵢ.

        The likelihood's slope in ln λ is ½(tr H − λ‖δ‖²/σ̂²), its information ½ tr H²; each user's share was taken at the λ
        of its last review, hence the sum of tr H² ln λ.
        """
        cdef double known = PSEUDO_USERS * self.dim, before = natural_log(self.precision), length2, keep = 0.0, count
        cdef double slope = self.sums.freedom - self.sums.penalty / self.noise2
        cdef double wanted = self.sums.log_precision + known * natural_log(self.usual_precision()) + slope
        wanted /= self.sums.information + known
        cdef Py_ssize_t i
        if not self.is_fitted():
            return
        if self.sums.offset_weight > TINY * self.sums.pulls:
            self.offset = self.shrunk_offset(
                self.sums.offset_sum / self.sums.offset_weight, self.noise2 / self.sums.offset_weight
            )
        wanted = exponential(before + min(max(wanted - before, -MOST_STEP), MOST_STEP))
        self.precision = max(wanted, TINY * self.users.square_norms)
        length2 = dot(self.vote_sum, self.vote_sum, self.dim)
        if length2 > 0.0:
            keep = max(0.0, 1.0 - self.vote_squares / length2)
        count = max(self.sums.mean_weight, TINY * self.fitted)
        for i in range(self.dim):
            self.mean[i] = keep * self.vote_sum[i] / count

    # Units of columns.

    def rescale(self, times, double growth):
        """All vectors are multiplied by `times`, powers of two, and the mean of ‖x‖² by `growth`; λ follows it."""
        self.array("mean")[...] /= times
        self.array("votes")[...] /= times
        self.precision *= growth
        terms = self.array("terms")
        terms[:, LOG_PRECISION] += terms[:, INFORMATION] * np.log(growth)
        self.sum_terms()

    # What Python calls.

    def fit(self, Py_ssize_t user):
        """Update the estimates by a user's own regression, which is returned: for whoever uses the prior alone."""
        cdef Regression found
        out = np.empty(self.dim)
        cdef double *fit = <double *> cnp.PyArray_DATA(out)
        self.regress(user, fit, &found)
        self.update_user(user, &found, fit)
        self.update_prior()
        return out
