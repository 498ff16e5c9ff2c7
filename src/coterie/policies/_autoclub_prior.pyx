"""What all users of AutoCLUB together say: how noisy rewards are, how much preferences differ, and about which mean.

Everything here comes from the users' own regressions, never from pooled ones: those are biased, since which arms are
played depends on the pooled estimate itself.
"""

import numpy as np


from coterie.policies._elementary cimport exponential, natural_log
from coterie.policies._learner cimport Learner
from coterie.policies._linalg cimport dot

from coterie.policies._arrays import Field

cdef double PSEUDO = 0.2  # the ridge counts towards λ like this many users of whom everything is known
cdef double STRIDE = 0.5  # ln λ moves by no more than this at a time
cdef double TINY = 1e-12  # for rounding: σ̂² is no less than this part of the mean of r², λ than this part of Σ‖x‖², and a
# user counts for no less than this in μ
cdef double LEAST = 1e-100  # σ̂² of rewards that are all zero


cdef class Prior(Learner):
    """Estimates of σ², λ and μ, the sums they come from, and each user's last contribution to the sums.

    `votes` are vᵢ = δᵢ + κᵢμ, what a user says of the mean preference, and `total` their sum. `squares` is Σr², `reach`
    Σ‖x‖²; `seen` counts the users with rewards, `fitted` those with a regression, and `length2` is Σ‖vᵢ‖² over the latter.
    """

    FIELDS = {
        "prior.sums": Field(("terms",)),
        "prior.mean": Field(("dim",)),
        "prior.total": Field(("dim",)),
        "prior.terms": Field(("users", "terms")),
        "prior.votes": Field(("users", "dim")),
    }
    NUMBERS = ("rounds", "noise2", "weight", "squares", "reach", "seen", "fitted", "length2")

    @classmethod
    def extents(cls, n_users, dim, **settings):
        return {"users": n_users, "rows": n_users, "dim": dim, "terms": 7}

    cdef int bind(self) except -1:
        self.sums, self.terms = <Terms *> self.pointer("prior.sums"), <Terms *> self.pointer("prior.terms")
        self.mean, self.total = <double *> self.pointer("prior.mean"), <double *> self.pointer("prior.total")
        self.votes = <double *> self.pointer("prior.votes")
        return Learner.bind(self)

    def refresh(self):
        known = [getattr(self, name) for name in self.NUMBERS]
        if not np.isfinite(known).all() or self.noise2 <= 0 or self.weight <= 0:
            raise ValueError("has estimates of noise and prior that are no numbers above 0")

    cdef double acting_weight(self) noexcept nogil:
        """Λ: the λ that clusters act with, at least the ridge."""
        return max(self.ridge, self.weight)

    cdef void replace_terms(self, Py_ssize_t user, Terms *fresh, const double *vote) noexcept nogil:
        """Put a user's new contribution in the place of its last one."""
        cdef Py_ssize_t i
        cdef Terms *old = &self.terms[user]
        cdef double *last = self.votes + user * self.dim
        if old.pulls == 0.0:
            self.fitted += 1.0
        self.sums.pulls += fresh.pulls - old.pulls
        self.sums.residual += fresh.residual - old.residual
        self.sums.freedom += fresh.freedom - old.freedom
        self.sums.penalty += fresh.penalty - old.penalty
        self.sums.information += fresh.information - old.information
        self.sums.level += fresh.level - old.level
        self.sums.say += fresh.say - old.say
        self.terms[user] = fresh[0]
        self.length2 += dot(vote, vote, self.dim) - dot(last, last, self.dim)
        for i in range(self.dim):
            self.total[i] += vote[i] - last[i]
            last[i] = vote[i]

    cdef void guess_noise(self) noexcept nogil:
        """σ̂² before the first regression: the mean square of rewards."""
        self.noise2 = max(self.squares / self.rounds, LEAST)

    cdef void settle_noise(self) noexcept nogil:
        """σ̂² = Σ RSS / Σ(T − tr H): residuals per degree of freedom left."""
        cdef double left = self.sums.pulls - self.sums.freedom
        self.noise2 = max(self.sums.residual / max(left, TINY), max(TINY * self.squares / self.rounds, LEAST))

    cdef void settle_prior(self) noexcept nogil:
        """One step of Fisher scoring for ln λ on the marginal likelihood, and the James–Stein mean of users.

        A user counts in the mean as far as it is known, by κᵢ: μ = (1 − Σ‖vᵢ‖²/‖Σvᵢ‖²)₊ Σvᵢ/Σκᵢ.

        The likelihood's slope in ln λ is ½(tr H − λ‖δ‖²/σ̂²), its information ½ tr H²; each user's share was taken at the λ
        of its day, hence the sum of tr H² ln λ.
        """
        cdef double known = PSEUDO * self.dim, before = natural_log(self.weight), length2, keep = 0.0, count
        cdef double slope = self.sums.freedom - self.sums.penalty / self.noise2
        cdef double wanted = (self.sums.level + known * natural_log(self.ridge) + slope) / (self.sums.information + known)
        cdef Py_ssize_t i
        self.weight = max(exponential(before + min(max(wanted - before, -STRIDE), STRIDE)), TINY * self.reach)
        length2 = dot(self.total, self.total, self.dim)
        if length2 > 0.0:
            keep = max(0.0, 1.0 - self.length2 / length2)
        count = max(self.sums.say, TINY * self.fitted)
        for i in range(self.dim):
            self.mean[i] = keep * self.total[i] / count
