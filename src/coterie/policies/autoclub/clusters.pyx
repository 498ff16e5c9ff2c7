"""AutoCLUB's clusters: who is alike is decided by evidence.

Every now and then, at ever longer intervals, a user is reviewed: is its data better explained by its own cluster without it,
by another cluster, or by a preference of its own? The evidence is that of prior.pyx, the prior of partitions a Chinese
restaurant process in which a user counts as far as it is known.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t

from coterie.policies.autoclub.cluster_sums cimport ClusterSums
from coterie.policies.autoclub.histories cimport UserHistories
from coterie.policies.autoclub.partition cimport MOST_CANDIDATES, Partition
from coterie.policies.autoclub.prior cimport CommonPrior, Regression
from coterie.policies.autoclub.quorums cimport SharedValues
from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.learner cimport View
from coterie.policies.kernel.linalg cimport add_scaled, dot, exponential, log_gamma, means, natural_log, quadratics

from coterie.policies.kernel.arrays import Field

cnp.import_array()


FIRST_REVIEW = 4
"""Pulls after which a user is first reviewed."""
cdef enum:
    OTHERS = 2  # at most this many clusters besides its own are compared in a review
    MOST = 4  # alternatives: its own cluster, the others, and a preference of its own
cdef int64_t SOON = 11, LATER = 13  # the next review comes at this many tenths of the pulls: sooner after a change or in doubt
cdef double SURE = 0.99  # a user is in doubt while the best alternative weighs less than this
cdef double STALE = 0.1  # ω follows when ln ω has moved by more than this
cdef double NEW = 1.0 / 3.0  # a preference never seen before is this many times as likely beforehand as one of those seen
cdef double SAFE = 1e-9  # what rounding may do to a bound, relative to its terms


cdef class Clusters(NamedArrays):
    """Users in clusters, each where the evidence of its data is greatest.

    A user acts on `cluster_weights` times its cluster's estimate plus its `alternatives`, the other places that its last review
    compared, each by its posterior weight; `single_weights` are those of a preference of its own, wherever the user is.
    `next_review` is the pulls at which it is reviewed next.

    Parameters
    ----------
    users, values, prior
        The rewards of users, which of their values many users give, and the estimates that all users share.
    """

    FIELDS = {
        "cluster_weights": Field(("users",)),
        "single_weights": Field(("users",)),
        "alternatives": Field(("users", "dim")),
        "next_review": Field(("users",), "int64"),
    }
    NUMBERS = ()
    PARTS = {"partition": Partition, "sums": ClusterSums}
    IN_PLACE = True

    def __init__(self, UserHistories users, SharedValues values, CommonPrior prior):
        self.users, self.values, self.prior = users, values, prior
        self.partition = Partition(users)
        self.sums = ClusterSums(users, prior, self.partition)
        NamedArrays.__init__(self, users.n_users, users.dim)
        self.init_users(0)

    cdef int bind(self) except -1:
        cdef Py_ssize_t d = self.dim
        self.cluster_weights = <double *> self.pointer("cluster_weights")
        self.single_weights = <double *> self.pointer("single_weights")
        self.alternatives = <double *> self.pointer("alternatives")
        self.next_review = <int64_t *> self.pointer("next_review")
        self.acting = self.workspace("review", (3 + MOST) * d)
        self.around, self.centred, self.fits = self.acting + d, self.acting + 2 * d, self.acting + 3 * d
        self.losses = self.workspace("losses", 3 * MOST_CANDIDATES)
        if "likely" not in self._scratch:
            self._scratch["likely"] = np.empty(MOST_CANDIDATES, np.int64)
        self.likely = <int64_t *> cnp.PyArray_DATA(self._scratch["likely"])
        return NamedArrays.bind(self)

    cdef int make_space(self, int64_t rounds) except -1 nogil:
        """Room for what a reward may change; `rounds` have been played."""
        return self.sums.make_space(rounds)

    cdef int init_users(self, Py_ssize_t known) except -1:
        """Before their first reward users are in no cluster; the first of all opens when the first users are known."""
        cdef Py_ssize_t user
        for user in range(known, self.n_users):
            self.cluster_weights[user], self.next_review[user] = 1.0, FIRST_REVIEW
        if known == 0:
            self.make_space(0)
            self.sums.open_first()
        return 0

    # What clusters say of a user.

    cdef void view(self, Py_ssize_t user, View *seen) noexcept nogil:
        """The mixture as estimate, the width of the cluster, σ̂ as β; usual is d/N, a bound on the mean width². Writes `seen`."""
        cdef Py_ssize_t row = self.partition.row_of[user]
        cdef int64_t pulls = self.sums.pulls[row]
        seen.estimate, seen.inverse = self.preference_of(user), self.sums.inverse_of(row)
        seen.beta, seen.row, seen.ridge = sqrt(self.prior.noise2), row, self.sums.precisions[row]
        seen.usual = <double> self.dim / pulls if pulls > 0 and not self.omits_raise else INFINITY

    cdef const double *preference_of(self, Py_ssize_t user) noexcept nogil:
        """What a user acts on: its cluster's estimate and the alternatives, by their weights; until another's is asked for."""
        cdef Py_ssize_t i, d = self.dim, row = self.partition.row_of[user]
        for i in range(d):
            self.acting[i] = self.cluster_weights[user] * self.sums.estimates[row * d + i] + self.alternatives[user * d + i]
        return self.acting

    cdef void predict(self, Py_ssize_t user, const double *x, Prediction *out) noexcept nogil:
        """Write the mean of a reward, and its variance relative to σ̂², to `out`."""
        out.mean = self.prior.offset + dot(self.preference_of(user), x, self.dim)
        out.variance = 1.0 / self.users.noise_weights[user] + self.sums.width2(self.partition.row_of[user], x)

    # Rewards.

    cdef void absorb(self, Py_ssize_t user, const double *x, double reward, bint whole) noexcept nogil:
        """Add a reward, `whole` or shrunk, to the user's history and to its cluster."""
        if self.users.pulls[user] == 0:
            self.sums.admit(user)
        self.users.add(user, x, reward, whole)
        self.sums.add(user, x, reward)
        if not self.prior.is_fitted():
            self.prior.guess()
        self.sums.solve(self.partition.row_of[user])

    # The review of a user.

    cdef bint is_due(self, Py_ssize_t user) noexcept nogil:
        return self.users.pulls[user] >= self.next_review[user]

    cdef void review(self, Py_ssize_t user) noexcept nogil:
        """Put the user where the evidence is greatest, and merge its cluster with another if that helps."""
        cdef Py_ssize_t d = self.dim, before = self.partition.row_of[user], row, n, k, chosen, second = -1
        cdef int64_t rows[MOST]
        cdef double gains[MOST]
        cdef bint changed
        gains[MOST - 1] = self.regress(user, self.fits + (MOST - 1) * d) + self.log_new_cluster()
        n = self.choose_candidates(user, rows)
        gains[n], chosen = gains[MOST - 1], n
        for k in range(d if n < MOST - 1 else 0):
            self.fits[n * d + k] = self.fits[(MOST - 1) * d + k]
        for k in range(n):
            gains[k] = self.gain(user, rows[k], self.fits + k * d) + natural_log(self.sums.size_without(rows[k], user))
            if gains[k] > gains[chosen]:
                chosen = k
        for k in range(n):
            if k != chosen and rows[k] != before and (second < 0 or gains[k] > gains[second]):
                second = k
        self.mix(user, gains, n + 1, chosen)
        self.prior.update_prior()
        row = self.sums.move(user, rows[chosen] if chosen < n else -1)
        changed = row != before
        if second >= 0 and self.partition.sizes[row] > 1:
            changed = self.merge(row, rows[second]) or changed
        k = SOON if changed or self.cluster_weights[user] <= SURE else LATER
        self.next_review[user] = max(self.users.pulls[user] + 1, (k * self.users.pulls[user] + 9) // 10)

    cdef double regress(self, Py_ssize_t user, double *fit) noexcept nogil:
        """The user's own regression, which also judges its noise and updates the common estimates; returns its evidence.

        Writes the user's own preference to `fit`.
        """
        cdef Regression found
        cdef Py_ssize_t row = self.partition.row_of[user]
        self.prior.regress(user, fit, &found)
        if self.judge_noise(user, &found):
            self.prior.regress(user, fit, &found)
        self.partition.change_size(row, (found.terms.freedom - self.prior.terms[user].freedom) / (1.0 + self.dim))
        self.partition.update_candidate(row)
        self.prior.update_user(user, &found, fit)
        return self.prior.evidence(found.logdet, found.explained)

    cdef bint judge_noise(self, Py_ssize_t user, Regression *found) noexcept nogil:
        """Judge how noisy the user's rewards are beside those of others; returns whether its ω has changed."""
        cdef double weight = self.prior.noise_weight(user, found, self.values.own_share(user))
        if not fabs(natural_log(weight / self.users.noise_weights[user])) > STALE:
            return False
        self.sums.reweigh(user, weight)
        return True

    cdef double gain(self, Py_ssize_t user, Py_ssize_t row, double *fit) noexcept nogil:
        """E(h ∪ i) − E(h): how much better a cluster explains the user than nothing does.

        Writes the preference of the cluster with the user, μ + (λI + S)⁻¹c, to `fit`. ωc of the user is that of `regress`.
        """
        cdef Py_ssize_t d = self.dim
        cdef const double *gram = self.sums.gram_of(row)
        cdef const double *own = self.users.gram_of(user)
        cdef double without, together, weight = self.users.noise_weights[user]
        self.prior.centre(gram, self.sums.moments + row * d, self.sums.vector_sums + row * d, self.around)
        if self.partition.row_of[user] == row:
            add_scaled(self.around, -1.0, self.prior.centred, d)
            without = self.prior.evidence_of(gram, own, -weight, self.around)
            add_scaled(self.around, 1.0, self.prior.centred, d)
            together = self.prior.evidence_of(gram, gram, 0.0, self.around)
        else:
            without = self.prior.evidence_of(gram, gram, 0.0, self.around)
            add_scaled(self.around, 1.0, self.prior.centred, d)
            together = self.prior.evidence_of(gram, own, weight, self.around)
        self.prior.solve_last(fit)
        return together - without

    cdef double log_new_cluster(self) noexcept nogil:
        """ln α of the Chinese restaurant process: a share of all users seen, counted as far as they are known."""
        return natural_log(NEW * self.prior.total_size() / (1.0 + self.dim))

    cdef void mix(self, Py_ssize_t user, const double *gains, Py_ssize_t n, Py_ssize_t chosen) noexcept nogil:
        """What the user acts on as the mixture of all alternatives by their posterior weight."""
        cdef Py_ssize_t k, d = self.dim
        cdef double total = 0.0
        for k in range(n):
            total += exponential(gains[k] - gains[chosen])
        self.cluster_weights[user] = 1.0 / total
        self.single_weights[user] = exponential(gains[n - 1] - gains[chosen]) / total
        for k in range(d):
            self.alternatives[user * d + k] = 0.0
        if self.omits_mixture:
            self.cluster_weights[user] = 1.0
            return
        for k in range(n):
            if k != chosen:
                add_scaled(self.alternatives + user * d, exponential(gains[k] - gains[chosen]) / total, self.fits + k * d, d)

    cdef bint merge(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil:
        """Join two clusters if one preference explains both better than two."""
        cdef Py_ssize_t d = self.dim
        cdef const double *first = self.sums.gram_of(row)
        cdef const double *second = self.sums.gram_of(other)
        cdef double gain, n = self.partition.effective_sizes[row], m = self.partition.effective_sizes[other]
        self.prior.centre(first, self.sums.moments + row * d, self.sums.vector_sums + row * d, self.around)
        self.prior.centre(second, self.sums.moments + other * d, self.sums.vector_sums + other * d, self.centred)
        gain = log_gamma(n + m) - log_gamma(n) - log_gamma(m) - self.log_new_cluster()
        gain -= self.prior.evidence_of(first, first, 0.0, self.around)
        gain -= self.prior.evidence_of(second, second, 0.0, self.centred)
        add_scaled(self.around, 1.0, self.centred, d)
        gain += self.prior.evidence_of(first, second, 1.0, self.around)
        if gain <= 0.0 or self.omits_merging:
            return False
        self.sums.merge(row, other)
        return True

    # Where a user might belong.

    cdef Py_ssize_t choose_candidates(self, Py_ssize_t user, int64_t *rows) noexcept nogil:
        """Write the clusters to compare to `rows`: the user's own if others are in it, and those likeliest if θ̂ were the truth."""
        cdef Py_ssize_t row, k, j, n = 0, own = self.partition.row_of[user]
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
        if self.partition.sizes[own] > 1:
            best[0] = own
        for k in range(OTHERS + 1):
            if best[k] >= 0:
                rows[n] = best[k]
                n += 1
        return n

    cdef Py_ssize_t shortlist(self, Py_ssize_t user) noexcept nogil:
        """The candidates that may be among the likeliest, in `likely`, and their `losses`; returns how many.

        The misfit of most is too great by a bound that takes one product: with e = r − m, ‖Xθ̂‖² ≥ (eᵀXθ̂)²/‖e‖², and
        Xᵀe = b − ms; and ln n ≤ n − 1.
        """
        cdef Py_ssize_t j, k, n = 0, d = self.dim, count = self.partition.n_candidates
        cdef int64_t nearest[OTHERS]
        cdef int64_t row, own = self.partition.row_of[user]
        cdef const int64_t *candidates = self.partition.candidates
        cdef const double *sizes = self.partition.effective_sizes
        cdef double *bounds = self.losses + MOST_CANDIDATES
        cdef double offset = self.prior.offset, total = self.users.reward_sums[user]
        cdef double half = 0.5 * self.users.noise_weights[user] / self.prior.noise2
        cdef double known = fabs(offset) * (fabs(total) + fabs(total - offset * self.users.pulls[user]))
        cdef double energy = self.users.squares_about(user, offset) + SAFE * (self.users.reward_squares[user] + known)
        cdef double product, along, limit = INFINITY
        for k in range(d):
            self.around[k] = self.users.moments[user * d + k] - offset * self.users.vector_sums[user * d + k]
        means(self.around, self.sums.estimates, candidates, count, d, bounds)
        for j in range(count):
            row, product = candidates[j], bounds[j]
            along = product * product / energy if energy > 0.0 else 0.0
            bounds[j] = half * (along - 2.0 * product) + 1.0 - sizes[row]
            bounds[j] -= SAFE * (half * (energy + along + fabs(product)) + sizes[row] + 1.0)
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
                self.likely[k] = candidates[nearest[k]]
            self.misfits(user, OTHERS)
            limit = self.losses[0]
            for k in range(1, OTHERS):
                limit = max(limit, self.losses[k])
        n = 0
        for j in range(count):
            if candidates[j] != own and not bounds[j] > limit:
                self.likely[n] = candidates[j]
                n += 1
        self.misfits(user, n)
        return n

    cdef void misfits(self, Py_ssize_t user, Py_ssize_t count) noexcept nogil:
        """½ω(θ̂ᵀSθ̂ − 2bᵀθ̂)/σ̂² − ln n of so many `likely` clusters, in `losses`: how badly θ̂ fits the user's rewards.

        b − ms of the user is in `around`.
        """
        cdef Py_ssize_t j, d = self.dim
        cdef int64_t at, n
        cdef double *found = self.losses + 2 * MOST_CANDIDATES
        if not self.users.keeps_vectors(user):
            quadratics(self.users.gram_of(user), self.sums.estimates, self.likely, count, d, self.losses)
        else:
            for j in range(count):
                self.losses[j] = 0.0
            at = self.users.places[user]
            for n in range(self.users.pulls[user]):
                means(self.users.next_vector_of(&at), self.sums.estimates, self.likely, count, d, found)
                for j in range(count):
                    self.losses[j] += found[j] * found[j]
        means(self.around, self.sums.estimates, self.likely, count, d, found)
        for j in range(count):
            self.losses[j] = 0.5 * self.users.noise_weights[user] * (self.losses[j] - 2.0 * found[j]) / self.prior.noise2
            self.losses[j] -= natural_log(self.partition.effective_sizes[self.likely[j]])

    # Units of columns.

    def rescale(self, times):
        """All vectors are multiplied by `times`, powers of two; the prior has been rescaled."""
        self.array("alternatives")[...] /= times
        self.sums.rescale(times)

    # What Python calls.

    def learn(self, Py_ssize_t user, double[::1] x, double reward):
        """Learn a reward and review the user if that is due: for whoever uses clusters alone."""
        if self.users.pulls[user] == 0:
            self.partition.place_newcomer(user)
        self.users.make_space()
        self.make_space(self.users.rounds)
        self.users.rounds += 1
        self.absorb(user, &x[0], reward, True)
        if self.is_due(user):
            self.review(user)

    def likeliest(self, Py_ssize_t user):
        """The clusters to compare with the user's own, and how many had to be looked at closely."""
        cdef int64_t rows[MOST]
        cdef Py_ssize_t k, n = self.choose_candidates(user, rows)
        return [rows[k] for k in range(n) if rows[k] != self.partition.row_of[user]], self.shortlist(user)
