"""What all users of AutoCLUB together say: how noisy rewards are, how much preferences differ, and about which mean.

Everything here comes from the users' own regressions, never from pooled ones: those are biased, since which arms are
played depends on the pooled estimate itself.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport frexp, ldexp, sqrt
from libc.stdint cimport int64_t

from coterie.policies.kernel.learner cimport Learner
from coterie.policies.kernel.linalg cimport dot, exponential, natural_log

from coterie.policies.kernel.arrays import Field


cdef double PSEUDO = 0.2  # the ridge counts towards λ like this many users of whom everything is known
cdef double STRIDE = 0.5  # ln λ moves by no more than this at a time
cdef double TINY = 1e-12  # for rounding: σ̂² is no less than this part of the mean of r², λ than this part of Σ‖x‖², and a
# user counts for no less than this in μ
cdef double LEAST = 1e-100  # σ̂² of rewards that are all zero
cdef double CAUTION = 3.0  # clusters act with a ridge of at most so many times λ
cdef double MATTERS = 2.1  # an offset counts if its square is so many times the variance of the noise
cdef double FAITH = 20.0  # a user's noise is first taken to be the common one, as if so many rewards said so
cdef double NOISIER = 2.0  # a user counts in full up to so many times the variance of the others


cdef enum:
    EXPONENTS = 1024  # sizes of rewards are told apart by their power of two, between 2^-512 and 2^512

cnp.import_array()


cdef inline Py_ssize_t place_of(double size) noexcept nogil:
    """Where a size is counted: by its power of two."""
    cdef int exponent
    frexp(size, &exponent)
    return min(max(exponent - 1 + EXPONENTS // 2, 0), EXPONENTS - 1)


cdef class Prior(Learner):
    """Estimates of σ², λ and μ, the sums they come from, and each user's last contribution to the sums.

    `votes` are vᵢ = δᵢ + κᵢμ, what a user says of the mean preference, and `total` their sum. `squares` is Σr², `reach`
    Σ‖x‖²; `peaks` are the largest sizes of users' rewards; `seen` counts the users with rewards, `fitted` those with a regression,
    in their `order`, and `length2` is Σ‖vᵢ‖² over the latter. `skipped` counts rewards that were not learnt.
    """

    FIELDS = {
        "prior.sums": Field(("terms",)),
        "prior.mean": Field(("dim",)),
        "prior.total": Field(("dim",)),
        "prior.terms": Field(("users", "terms")),
        "prior.votes": Field(("users", "dim")),
        "prior.order": Field(("users",), "int64"),
        "peaks": Field(("users",)),
    }
    NUMBERS = ("rounds", "skipped", "noise2", "weight", "offset", "level", "squares", "reach", "seen", "fitted", "length2")

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "rows": n_users, "dim": dim, "terms": 10}

    cdef int bind(self) except -1:
        self.sums, self.terms = <Terms *> self.pointer("prior.sums"), <Terms *> self.pointer("prior.terms")
        self.mean, self.total = <double *> self.pointer("prior.mean"), <double *> self.pointer("prior.total")
        self.votes, self.peaks = <double *> self.pointer("prior.votes"), <double *> self.pointer("peaks")
        self.order = <int64_t *> self.pointer("prior.order")
        if "sizes" not in self._scratch:
            self._scratch["sizes"] = np.zeros(EXPONENTS, np.int64)
        self.users_of_size = <int64_t *> cnp.PyArray_DATA(self._scratch["sizes"])
        return Learner.bind(self)

    def refresh(self):
        known = list(self.numbers().values())
        if not np.isfinite(known).all() or self.noise2 <= 0 or self.weight <= 0:
            raise ValueError("has estimates of noise and prior that are no numbers above 0")
        fitted = np.flatnonzero(self.array("prior.terms")[:, 0])
        if not np.array_equal(np.sort(self.array("prior.order")[: len(fitted)]), fitted) or self.fitted != len(fitted):
            raise ValueError("has numbers in 'prior.order' that are not its users")
        self._scratch["sizes"][...] = 0
        peaks = self.array("peaks")
        for size in peaks[peaks > 0].tolist():
            self.users_of_size[place_of(size)] += 1

    cdef int64_t learnt(self) noexcept nogil:
        """How many rewards estimates rest on."""
        return self.rounds - self.skipped

    cdef double acting_weight(self) noexcept nogil:
        """Λ, which clusters act with: λ, or the ridge if that is more, but no more than so many times λ."""
        return max(min(self.usual_weight(), CAUTION * self.weight), self.weight)

    cdef double usual_weight(self) noexcept nogil:
        """The ridge in the unit of the vectors: times the mean of ‖x‖²."""
        return self.ridge * self.reach / self.learnt() if self.reach > 0.0 else self.ridge

    cdef void replace_terms(self, Py_ssize_t user, Terms *fresh, const double *vote) noexcept nogil:
        """Put a user's new contribution in the place of its last one; sums that it dominated are made anew, for rounding."""
        cdef Py_ssize_t i
        cdef Terms old = self.terms[user]
        cdef double *last = self.votes + user * self.dim
        cdef double before = dot(last, last, self.dim)
        cdef bint anew = 2.0 * old.residual > self.sums.residual or 2.0 * old.square > self.sums.square or 2.0 * before > self.length2
        if old.pulls == 0.0:
            self.order[<Py_ssize_t> self.fitted] = user
            self.fitted += 1.0
        self.terms[user] = fresh[0]
        self.length2 += dot(vote, vote, self.dim) - before
        for i in range(self.dim):
            self.total[i] += vote[i] - last[i]
            last[i] = vote[i]
        if anew:
            self.sum_terms()
        else:
            self.add_terms(&old, -1.0)
            self.add_terms(fresh, 1.0)

    cdef void add_terms(self, Terms *terms, double sign) noexcept nogil:
        """Add a user's terms to the sums, or subtract them."""
        self.sums.pulls += sign * terms.pulls
        self.sums.square += sign * terms.square
        self.sums.residual += sign * terms.residual
        self.sums.freedom += sign * terms.freedom
        self.sums.penalty += sign * terms.penalty
        self.sums.information += sign * terms.information
        self.sums.level += sign * terms.level
        self.sums.say += sign * terms.say
        self.sums.shift += sign * terms.shift
        self.sums.ground += sign * terms.ground

    cdef void sum_terms(self) noexcept nogil:
        """All sums over users, from the beginning."""
        cdef Py_ssize_t user, k, i
        cdef double *vote
        self.sums[0] = Terms(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        self.length2 = 0.0
        for i in range(self.dim):
            self.total[i] = 0.0
        for k in range(<Py_ssize_t> self.fitted):
            user = self.order[k]
            vote = self.votes + user * self.dim
            self.add_terms(&self.terms[user], 1.0)
            self.length2 += dot(vote, vote, self.dim)
            for i in range(self.dim):
                self.total[i] += vote[i]

    cdef void guess(self) noexcept nogil:
        """m, σ̂² and λ before the first regression: mean and variance of rewards, and the ridge in the unit of the vectors."""
        self.offset = self.level / self.learnt()
        self.noise2 = self.squares / self.learnt()
        if self.learnt() > 1 and self.offset * self.offset * (1.0 + MATTERS) > MATTERS * self.noise2:
            self.noise2 = max(self.noise2 - self.offset * self.offset, TINY * self.noise2)
        else:
            self.offset = 0.0
        self.noise2 = max(self.noise2, LEAST)
        self.weight = self.usual_weight()

    cdef void update_noise(self) noexcept nogil:
        """σ̂² = Σ RSS / Σ(T − tr H): residuals per degree of freedom left."""
        cdef double left = self.sums.pulls - self.sums.freedom
        self.noise2 = self.sums.residual / max(left, TINY)
        self.noise2 = max(self.noise2, max(TINY * self.sums.square / self.sums.pulls, LEAST))

    cdef double precision_of(self, Py_ssize_t user, Terms *fresh, double precision) noexcept nogil:
        """ω, what a user's rewards count for: 1 unless they are much noisier than others'. `precision` is that of `fresh`."""
        cdef Terms *own = &self.terms[user]
        cdef double others = self.sums.pulls - self.sums.freedom - (own.pulls - own.freedom)
        cdef double usual, level, pulls = self.sums.pulls - own.pulls
        if not others > TINY * pulls:
            return 1.0
        usual = (self.sums.residual - own.residual) / others
        usual = max(usual, max(TINY * (self.sums.square - own.square) / pulls, self.least_noise()))
        level = (fresh.residual / (precision * usual) + FAITH) / (fresh.pulls - fresh.freedom + FAITH)
        return min(1.0, NOISIER / level)

    cdef void raise_peak(self, Py_ssize_t user, double size) noexcept nogil:
        """A user has had a reward of this size."""
        if size > self.peaks[user]:
            if self.peaks[user] > 0.0:
                self.users_of_size[place_of(self.peaks[user])] -= 1
            self.users_of_size[place_of(size)] += 1
            self.peaks[user] = size

    cdef double least_noise(self) noexcept nogil:
        """A variance that nobody is blamed for: 4^e/2¹⁴, if 2 + √n of the n users have had a reward of size 2^e."""
        cdef Py_ssize_t k, found = 0, wanted = 2 + <Py_ssize_t> sqrt(self.n_users)
        for k in range(EXPONENTS - 1, -1, -1):
            found += self.users_of_size[k]
            if found >= wanted:
                return max(ldexp(1.0, 2 * (<int> k - EXPONENTS // 2) - 14), LEAST)
        return LEAST

    cdef void settle_prior(self) noexcept nogil:
        """One step of Fisher scoring for ln λ on the marginal likelihood, and the James–Stein mean of users.

        A user counts in the mean as far as it is known, by κᵢ: μ = (1 − Σ‖vᵢ‖²/‖Σvᵢ‖²)₊ Σvᵢ/Σκᵢ.

        The likelihood's slope in ln λ is ½(tr H − λ‖δ‖²/σ̂²), its information ½ tr H²; each user's share was taken at the λ
        of its day, hence the sum of tr H² ln λ.
        """
        cdef double known = PSEUDO * self.dim, before = natural_log(self.weight), length2, keep = 0.0, count
        cdef double slope = self.sums.freedom - self.sums.penalty / self.noise2
        cdef double wanted = self.sums.level + known * natural_log(self.usual_weight()) + slope
        wanted /= self.sums.information + known
        cdef Py_ssize_t i
        if self.sums.ground > TINY * self.sums.pulls:
            self.offset = self.sums.shift / self.sums.ground
            if self.offset * self.offset < MATTERS * self.noise2:
                self.offset = 0.0
        self.weight = max(exponential(before + min(max(wanted - before, -STRIDE), STRIDE)), TINY * self.reach)
        length2 = dot(self.total, self.total, self.dim)
        if length2 > 0.0:
            keep = max(0.0, 1.0 - self.length2 / length2)
        count = max(self.sums.say, TINY * self.fitted)
        for i in range(self.dim):
            self.mean[i] = keep * self.total[i] / count
