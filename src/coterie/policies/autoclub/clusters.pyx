"""AutoCLUB: who is alike is decided by evidence, with noise and prior estimated on the way.

Every now and then, at ever longer intervals, a user is reviewed: is its data better explained by its own cluster without it,
by another cluster, or by a preference of its own? With θ ~ N(μ, σ²/λ·I) and noise N(0, σ²), and c = b − Sμ, up to a term that
every grouping of the same data shares,

    E(S, c) = ½ (d ln λ − ln|λI + S| + cᵀ(λI + S)⁻¹c / σ²)
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t

from coterie.policies.autoclub.members cimport MOST_LISTED
from coterie.policies.autoclub.prior cimport Terms
from coterie.policies.autoclub.rows cimport MOST, OTHERS, EvidenceRows
from coterie.policies.kernel.linalg cimport (
    add_scaled, apply, back_substitute, combine_upper, dot, eliminate, exponential, finish_inverse, log_gamma,
    means, natural_log, quadratics
)


cdef int64_t SOON = 11, LATER = 13  # the next review comes at this many tenths of the pulls: sooner after a change or in doubt
cdef double SURE = 0.99  # a user is in doubt while the best alternative weighs less than this
cdef double STALE = 0.1  # a cluster is rebuilt when ln λ has moved by more than this since it was built
cdef double NEW = 1.0 / 3.0  # a preference never seen before is this many times as likely beforehand as one of those seen
cdef double SAFE = 1e-9  # what rounding may do to a bound, relative to its terms
cdef double LEAST = 1e-100  # below this, nothing is known of a user


cdef class ByEvidence(EvidenceRows):
    """A user is where the evidence of its data is greatest."""

    cdef int review(self, Py_ssize_t user) except -1 nogil:
        """When the user is due, put it where the evidence is greatest, and merge its cluster if that helps."""
        cdef Py_ssize_t d = self.dim, before = self.row_of[user], row, n, k, chosen, second = -1
        cdef int64_t rows[MOST]
        cdef double gains[MOST]
        cdef bint changed
        if self.pulls[user] < self.due[user]:
            return 0
        gains[MOST - 1] = self.tell(user, self.fits + (MOST - 1) * d) + self.novelty()
        n = self.screen(user, rows)
        gains[n], chosen = gains[MOST - 1], n
        for k in range(d if n < MOST - 1 else 0):
            self.fits[n * d + k] = self.fits[(MOST - 1) * d + k]
        for k in range(n):
            gains[k] = self.weigh(user, rows[k], self.fits + k * d) + natural_log(self.crowd(rows[k], user))
            if gains[k] > gains[chosen]:
                chosen = k
        for k in range(n):
            if k != chosen and rows[k] != before and (second < 0 or gains[k] > gains[second]):
                second = k
        self.mix(user, gains, n + 1, chosen)
        self.settle_prior()
        row = self.move(user, rows[chosen] if chosen < n else -1)
        changed = row != before
        if second >= 0 and self.sizes[row] > 1:
            changed = self.merge(row, rows[second]) or changed
        k = SOON if changed or self.shares[user] <= SURE else LATER
        self.due[user] = max(self.pulls[user] + 1, (k * self.pulls[user] + 9) // 10)
        return 0

    # How well data is explained.

    cdef double evidence(self, double logdet, double explained) noexcept nogil:
        """E(S, c) from ln|λI + S| and cᵀ(λI + S)⁻¹c."""
        return 0.5 * (self.dim * natural_log(self.weight) - logdet + explained / self.noise2)

    cdef double explain(
        self, const double *first, const double *second, double sign, const double *centred
    ) noexcept nogil:
        """E(S₁ ± S₂, c); what `eliminate` leaves behind stays in `matrix` and `reduced`."""
        cdef double logdet, explained
        cdef Py_ssize_t i
        for i in range(self.dim):
            self.reduced[i] = centred[i]
        combine_upper(first, second, sign, self.weight, self.matrix, self.dim)
        eliminate(self.matrix, self.reduced, self.dim, 0.5 * self.weight, &logdet, &explained)
        return self.evidence(logdet, explained)

    cdef void centre(
        self, const double *gram, const double *moment, const double *total, double *out
    ) noexcept nogil:
        """c = b − ms − Sμ: the moment about the offset and the mean preference."""
        cdef Py_ssize_t i
        apply(gram, self.mean, out, self.dim)
        for i in range(self.dim):
            out[i] = moment[i] - self.offset * total[i] - out[i]

    cdef double tell(self, Py_ssize_t user, double *fit) noexcept nogil:
        """What the user's own regression tells the common estimates; returns its evidence."""
        cdef Py_ssize_t i, d = self.dim
        cdef Terms terms
        cdef double logdet, explained
        self.regress(user, fit, &terms, &logdet, &explained)
        if self.reassess(user, &terms):
            self.regress(user, fit, &terms, &logdet, &explained)
        for i in range(d):
            self.around[i] = fit[i] + terms.say * self.mean[i]
        self.counts[self.row_of[user]] += (terms.freedom - self.terms[user].freedom) / (1.0 + d)
        self.enlist(self.row_of[user])
        self.replace_terms(user, &terms, self.around)
        for i in range(d):
            fit[i] += self.mean[i]
        self.update_noise()
        return self.evidence(logdet, explained)

    cdef void regress(
        self, Py_ssize_t user, double *fit, Terms *terms, double *logdet, double *explained
    ) noexcept nogil:
        """A user's own regression; `fit` is left holding δ, `centred` ωc.

        With few rewards it is solved in the coordinates of the user's n vectors; in all others A is λ.
        """
        cdef Py_ssize_t i, d = self.dim, n = d
        cdef const double *gram = self.gram_of(user)
        cdef const double *moment = self.moments + user * d
        cdef double around, known, weight = self.weight, precision = self.precisions[user]
        cdef const double *total = self.totals + user * d
        cdef double level = self.levels[user] - self.offset * self.pulls[user]
        self.centre(gram, moment, total, self.centred)
        around = self.squared_about_offset(user)
        around -= dot(self.mean, moment, d) - self.offset * dot(self.mean, total, d) + dot(self.mean, self.centred, d)
        for i in range(d):
            self.centred[i] *= precision
            self.reduced[i], self.around[i] = self.centred[i], total[i]
        if self.pulls[user] < self.light:
            n, gram = self.fold(user), self.small
            self.turn(self.reduced)
            self.turn(self.around)
        combine_upper(gram, gram, precision - 1.0, weight, self.matrix, n)
        eliminate(self.matrix, self.reduced, n, 0.5 * weight, logdet, explained)
        logdet[0] += (d - n) * natural_log(weight)
        back_substitute(self.matrix, self.reduced, fit, n)
        finish_inverse(self.matrix, self.factor, self.inverse, n)
        apply(self.inverse, self.around, self.reduced, n)
        terms.ground = precision * (self.pulls[user] - precision * dot(self.around, self.reduced, n))
        terms.shift = precision * (level - dot(total, self.mean, d) - dot(self.around, fit, n)) + self.offset * terms.ground
        terms.pulls, terms.square, terms.freedom = self.pulls[user], precision * self.squared[user], 0.0
        for i in range(n):  # H = I − λA⁻¹, but its diagonal as that of A⁻¹S: nothing cancels where H is next to nothing
            known = precision * dot(self.inverse + i * n, gram + i * n, n)
            terms.freedom += known
            self.inverse[i * n + i] = known / weight
        terms.information = weight * weight * dot(self.inverse, self.inverse, n * n)
        terms.penalty = weight * dot(fit, fit, n)
        terms.residual = max(precision * around - explained[0] - terms.penalty, 0.0)
        terms.level = terms.information * natural_log(weight)
        terms.say = min(terms.information / terms.freedom, 1.0) if terms.freedom > LEAST else 0.0
        if n < d:
            self.unfold(fit)

    cdef bint reassess(self, Py_ssize_t user, Terms *terms) noexcept nogil:
        """Judge how noisy the user's rewards are beside those of others; returns whether it counts differently now."""
        cdef double precision = self.precision_of(user, terms, self.precisions[user])
        if not fabs(natural_log(precision / self.precisions[user])) > STALE:
            return False
        cdef Py_ssize_t row = self.row_of[user]
        if not self.few(row, user):
            self.add_sums(row, user, precision - self.precisions[user])
        self.precisions[user] = precision
        if self.few(row, user):
            self.sum_members(row)
        self.epochs[row] += 1
        self.rebuild(row)
        return True

    cdef double weigh(self, Py_ssize_t user, Py_ssize_t row, double *fit) noexcept nogil:
        """E(h ∪ i) − E(h): how much better a cluster explains the user than nothing does.

        `fit` is left holding the preference of the cluster with the user, μ + (λI + S)⁻¹c.
        """
        cdef Py_ssize_t d = self.dim
        cdef const double *gram = self.pool_gram(row)
        cdef const double *own = self.gram_of(user)
        cdef double without, together
        self.centre(gram, self.pools.moment + row * d, self.pool_totals + row * d, self.around)
        if self.row_of[user] == row:
            add_scaled(self.around, -1.0, self.centred, d)
            without = self.explain(gram, own, -self.precisions[user], self.around)
            add_scaled(self.around, 1.0, self.centred, d)
            together = self.explain(gram, gram, 0.0, self.around)
        else:
            without = self.explain(gram, gram, 0.0, self.around)
            add_scaled(self.around, 1.0, self.centred, d)
            together = self.explain(gram, own, self.precisions[user], self.around)
        back_substitute(self.matrix, self.reduced, fit, d)
        add_scaled(fit, 1.0, self.mean, d)
        return together - without

    # Where a user might belong.

    cdef double crowd(self, Py_ssize_t row, Py_ssize_t but) noexcept nogil:
        """The members of a cluster but one user, each counted as far as it is known."""
        cdef Py_ssize_t k, n
        cdef double count
        if self.row_of[but] != row:
            return self.counts[row]
        if not self.few(row, but):
            return self.counts[row] - self.crowd_of(but)
        n = self.gather(row)
        count = (self.sizes[row] - n) / (1.0 + self.dim)
        for k in range(n):
            count += self.crowd_of(self.gathered[k]) if self.gathered[k] != but else 0.0
        return count

    cdef double novelty(self) noexcept nogil:
        """ln α of the Chinese restaurant: a share of all users seen, counted as far as they are known."""
        return natural_log(NEW * (self.seen + self.sums.freedom) / (1.0 + self.dim))

    cdef Py_ssize_t screen(self, Py_ssize_t user, int64_t *rows) noexcept nogil:
        """The clusters to weigh: the user's own if others are in it, and those likeliest if θ̂ were the truth."""
        cdef Py_ssize_t row, k, j, n = 0, own = self.row_of[user]
        cdef double losses[OTHERS + 1]
        cdef int64_t best[OTHERS + 1]
        cdef double loss
        for k in range(OTHERS + 1):
            losses[k], best[k] = INFINITY, -1
        for j in range(self.shortlist(user)):
            row, loss = self.likely[j], self.losses[j]
            k = OTHERS
            while k > 0 and loss < losses[k]:
                if k < OTHERS:
                    losses[k + 1], best[k + 1] = losses[k], best[k]
                losses[k], best[k] = loss, row
                k -= 1
        if self.sizes[own] > 1:
            best[0] = own
        for k in range(OTHERS + 1):
            if best[k] >= 0:
                rows[n] = best[k]
                n += 1
        return n

    cdef Py_ssize_t shortlist(self, Py_ssize_t user) noexcept nogil:
        """The clusters of the list that may be among the likeliest, in `likely`, and their `losses`; returns how many.

        The misfit of most is too great by a bound that takes one product: with e = r − m, ‖Xθ̂‖² ≥ (eᵀXθ̂)²/‖e‖², and
        Xᵀe = b − ms; and ln n ≤ n − 1.
        """
        cdef Py_ssize_t j, k, n = 0
        cdef int64_t nearest[OTHERS]
        cdef int64_t row, own = self.row_of[user]
        cdef double *bounds = self.losses + MOST_LISTED
        cdef double level = self.levels[user] - self.offset * self.pulls[user], half = 0.5 * self.precisions[user] / self.noise2
        cdef double known = self.squared[user] + fabs(self.offset) * (fabs(self.levels[user]) + fabs(level))
        cdef double energy = self.squared_about_offset(user) + SAFE * known
        cdef double product, along, limit = INFINITY
        self.centred_moment(user)
        means(self.around, self.centres, NULL, self.n_listed, self.dim, bounds)
        for j in range(self.n_listed):
            row, product = self.listed[j], bounds[j]
            along = product * product / energy if energy > 0.0 else 0.0
            bounds[j] = half * (along - 2.0 * product) + 1.0 - self.counts[row]
            bounds[j] -= SAFE * (half * (energy + along + fabs(product)) + self.counts[row] + 1.0)
            if row == own:
                continue
            k = min(n, OTHERS - 1)
            if n < OTHERS or bounds[j] < bounds[nearest[k]]:
                n = min(n + 1, OTHERS)
                while k > 0 and bounds[j] < bounds[nearest[k - 1]]:
                    nearest[k] = nearest[k - 1]
                    k -= 1
                nearest[k] = j
        if n == OTHERS:
            for k in range(OTHERS):
                self.likely[k] = self.listed[nearest[k]]
            self.misfits(user, OTHERS)
            limit = self.losses[0]
            for k in range(1, OTHERS):
                limit = max(limit, self.losses[k])
        n = 0
        for j in range(self.n_listed):
            if self.listed[j] != own and not bounds[j] > limit:
                self.likely[n] = self.listed[j]
                n += 1
        self.misfits(user, n)
        return n

    def likeliest(self, Py_ssize_t user):
        """The clusters to weigh beside the user's own, and how many had to be looked at closely."""
        cdef int64_t rows[MOST]
        cdef Py_ssize_t k, n = self.screen(user, rows)
        return [rows[k] for k in range(n) if rows[k] != self.row_of[user]], self.shortlist(user)

    cdef void centred_moment(self, Py_ssize_t user) noexcept nogil:
        """b − ms of a user, in `around`."""
        cdef Py_ssize_t k, d = self.dim
        for k in range(d):
            self.around[k] = self.moments[user * d + k] - self.offset * self.totals[user * d + k]

    cdef void misfits(self, Py_ssize_t user, Py_ssize_t count) noexcept nogil:
        """½ω(θ̂ᵀSθ̂ − 2bᵀθ̂)/σ̂² − ln n of so many `likely` clusters, in `losses`: how badly θ̂ fits the user's rewards."""
        cdef Py_ssize_t j, d = self.dim
        cdef int64_t at = self.places[user], n
        cdef double *found = self.losses + 2 * MOST_LISTED
        if self.pulls[user] >= self.light:
            quadratics(self.gram_of(user), self.pools.estimate, self.likely, count, d, self.losses)
        else:
            for j in range(count):
                self.losses[j] = 0.0
            for n in range(self.pulls[user]):
                at = self.next_vector[at]
                means(self.vectors + at * d, self.pools.estimate, self.likely, count, d, found)
                for j in range(count):
                    self.losses[j] += found[j] * found[j]
        means(self.around, self.pools.estimate, self.likely, count, d, found)
        for j in range(count):
            self.losses[j] = 0.5 * self.precisions[user] * (self.losses[j] - 2.0 * found[j]) / self.noise2
            self.losses[j] -= natural_log(self.counts[self.likely[j]])

    cdef void mix(self, Py_ssize_t user, const double *gains, Py_ssize_t n, Py_ssize_t chosen) noexcept nogil:
        """The user's estimate as the mixture of all alternatives by their posterior weight."""
        cdef Py_ssize_t k, d = self.dim
        cdef double total = 0.0
        for k in range(n):
            total += exponential(gains[k] - gains[chosen])
        self.shares[user] = 1.0 / total
        self.alone[user] = exponential(gains[n - 1] - gains[chosen]) / total
        for k in range(d):
            self.mixtures[user * d + k] = 0.0
        for k in range(n):
            if k != chosen:
                add_scaled(self.mixtures + user * d, exponential(gains[k] - gains[chosen]) / total, self.fits + k * d, d)

    # Clusters.

    cdef Py_ssize_t move(self, Py_ssize_t user, Py_ssize_t target) noexcept nogil:
        """Take the user out of its cluster and into another, or a new one if target is -1; returns its row."""
        cdef Py_ssize_t source = self.row_of[user]
        if target < 0:
            target = source if self.sizes[source] == 1 else self.open_row()
        if target == source:
            if fabs(natural_log(self.weights[source] / self.acting_weight())) > STALE:
                self.rebuild(source)
            return source
        self.leave(user)
        self.enter(target, user)
        if self.sizes[source] > 0:
            self.epochs[source] += 1
            self.join(source, user, -1)
        else:
            self.close_row(source)
        self.join(target, user, 1)
        return target

    cdef bint merge(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil:
        """Join two clusters if one preference explains both better than two."""
        cdef Py_ssize_t d = self.dim
        cdef const double *first = self.pool_gram(row)
        cdef const double *second = self.pool_gram(other)
        cdef double gain, n, m
        n, m = self.counts[row], self.counts[other]
        self.centre(first, self.pools.moment + row * d, self.pool_totals + row * d, self.around)
        self.centre(second, self.pools.moment + other * d, self.pool_totals + other * d, self.centred)
        gain = log_gamma(n + m) - log_gamma(n) - log_gamma(m) - self.novelty()
        gain -= self.explain(first, first, 0.0, self.around)
        gain -= self.explain(second, second, 0.0, self.centred)
        add_scaled(self.around, 1.0, self.centred, d)
        gain += self.explain(first, second, 1.0, self.around)
        if gain <= 0.0:
            return False
        self.unite(row, other)
        self.close_row(other)
        add_scaled(self.pool_grams + self.matrices[row] * d * d, 1.0, second, d * d)
        add_scaled(self.pools.moment + row * d, 1.0, self.pools.moment + other * d, d)
        add_scaled(self.pool_totals + row * d, 1.0, self.pool_totals + other * d, d)
        self.pools.pulls[row] += self.pools.pulls[other]
        self.counts[row] += self.counts[other]
        self.enlist(row)
        self.rebuild(row)
        return True
