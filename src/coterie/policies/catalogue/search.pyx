# optimize: 2
"""The best items of a catalogue by a policy's own scores, exactly, with few scores computed.

Every score is first bounded from above, by codes of one byte a number and the largest eigenvalue of each matrix. The items with the
largest bounds are scored exactly, by the same functions that score arms of a matrix. Then only items whose bound is above the
k-th best score can be among the best: they are scored, too.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int16_t, int32_t, int64_t

from coterie.policies.catalogue.compressed cimport (
    ROWS_AT_A_TIME, bound_scores, code_products, compress_weights, score_bound
)
from coterie.policies.catalogue.compressed_rows cimport CompressedRows
from coterie.policies.kernel.learner cimport (
    Learner, Offer, ScoreModel, WidthModel, ids_of, largest, offer_of, raised
)
from coterie.policies.kernel.linalg cimport dot, largest_eigenvalue

cnp.import_array()

cdef double SLACK = 1e-9  # exact scores are above a bound of real numbers by no more than this, relative to their parts
cdef double MOST = 1e30  # numbers beyond it might overflow a bound
cdef enum:
    FEW = 64  # among so few arms all scores are computed
    LEADERS = 16  # exact scores of so many arms more than k come first
    AT_A_TIME = 64  # arms scored exactly at a time


cdef class Search:
    """One decision: the arms, their bounds, and the best so far."""

    cdef Learner learner
    cdef CompressedRows compressed
    cdef Offer offer
    cdef Py_ssize_t user, k, found
    cdef ScoreModel model
    cdef score_bound bound
    cdef object _arrays  # keeps the arrays below alive
    cdef int16_t *weights
    cdef double *rest
    cdef double *upper
    cdef double *scores
    cdef int64_t *best
    cdef int64_t *leaders

    def __init__(self, Learner learner, Py_ssize_t user, CompressedRows compressed, vectors, ids, rows, Py_ssize_t k):
        self.learner, self.user, self.compressed, self.k = learner, user, compressed, k
        self.offer = offer_of(vectors, compressed.dim)
        self.offer.ids = ids_of(ids, self.offer.n)
        if rows is not None:
            self.offer.picks, self.offer.n = ids_of(rows, len(rows)), len(rows)
        self._arrays = {"rows": rows}

    def run(self):
        """The rows of the k best arms in order, ties to the lower row; None if an arm is too long."""
        out = np.empty(self.k, np.int64)
        cdef int64_t *found = <int64_t *> cnp.PyArray_DATA(out)
        cdef Py_ssize_t j
        if not self.bounded():
            return self.score_all_arms(out)
        self.learner.reserve(ROWS_AT_A_TIME)
        self.learner.explored = False
        self.reserve()
        with nogil:
            self.bound_all()
            self.score_leaders()
            self.score_rest()
            for j in range(self.k):
                found[j] = self.best[j] if self.offer.picks == NULL else self.offer.picks[self.best[j]]
        return out

    cdef object score_all_arms(self, out):
        """The same by the learner's own choice among all arms."""
        cdef int64_t *found = <int64_t *> cnp.PyArray_DATA(out)
        cdef Offer offer = self.offer
        cdef int failed
        if offer.picks != NULL:
            ids = np.empty(offer.n, np.int64)
            self._arrays["ids"] = ids
            offer.ids = <int64_t *> cnp.PyArray_DATA(ids)
            for j in range(offer.n):
                (<int64_t *> offer.ids)[j] = self.offer.ids[offer.picks[j]]
        self.learner.reserve(offer.n)
        if (self.k > 1 or self.learner.explores()) and not self.short_enough() and self.learner.too_long(&offer):
            return None
        with nogil:
            failed = self.learner.choose(self.user, &offer, NULL, self.k, found)
        if failed:
            return None
        return out if self._arrays["rows"] is None else self._arrays["rows"][out]

    cdef bint short_enough(self) noexcept nogil:
        """Are all vectors of the catalogue certainly short enough for the inverse?"""
        cdef double norm = self.compressed.most_norm
        return norm * norm <= self.learner.longest2

    # Bounds.

    cdef bint bounded(self) except -1:
        """Find the formula of the bounds; False if there is none, or it is no use."""
        cdef Py_ssize_t n = self.offer.n
        if n <= FEW or 4 * self.k > n or self.learner.explores() or not self.short_enough() or not self.compressed.most_norm < MOST:
            return False
        if not self.learner.describe(self.user, self.k, &self.model):
            return False
        room = np.empty(self.compressed.stride, np.int16)
        rest = np.empty((self.compressed.dim + 2, self.compressed.dim))
        self._arrays.update(weights=room, rest=rest)
        self.weights, self.rest = <int16_t *> cnp.PyArray_DATA(room), <double *> cnp.PyArray_DATA(rest)
        with nogil:
            return self.find_bound()

    cdef bint find_bound(self) noexcept nogil:
        """score ≤ `bound`, whose numbers follow from the model and the errors of both codes; False if one may overflow."""
        cdef double norm, error, step
        cdef Py_ssize_t m
        cdef double largest_term = fabs(self.model.constant) + self.model.scale
        step = compress_weights(self.model.linear, self.compressed.dim, self.compressed.stride, self.weights, &norm, &error)
        self.bound.constant = self.model.constant + SLACK * fabs(self.model.constant)
        self.bound.per_product = step
        # xᵀw ≤ x̂ᵀŵ + ‖x − x̂‖‖w‖ + ‖x̂‖‖w − ŵ‖, and ‖x̂‖ ≤ ‖x‖ + ‖x − x̂‖
        self.bound.per_error, self.bound.per_norm = norm + error, error + SLACK * (norm + self.model.parts)
        self.bound.n_widths = self.model.n_widths
        for m in range(self.model.n_widths):
            self.bound_width(m)
            largest_term += self.bound.widths[m].factor + self.bound.widths[m].own + self.bound.widths[m].per_norm2
            if self.model.widths[m].beta < 0.0:
                return False
        return norm + self.model.parts + largest_term < MOST  # false for what is no number, too

    cdef void bound_width(self, Py_ssize_t m) noexcept nogil:
        """zᵀVz ≤ v₀₀ + 2‖v₀‖‖x‖ + λ‖x‖², with λ at least the largest eigenvalue of V without the intercept."""
        cdef WidthModel *width = &self.model.widths[m]
        cdef const double *matrix = width.matrix
        cdef Py_ssize_t i, j, d = self.compressed.dim, first = width.intercept
        cdef double norm = self.compressed.most_norm, largest_width2, own = 0.0, mixed = 0.0
        if first:
            for i in range(d):
                for j in range(d):
                    self.rest[i * d + j] = matrix[(i + 1) * (d + 1) + j + 1]
            own, mixed = max(matrix[0], 0.0), 2.0 * sqrt(dot(matrix + 1, matrix + 1, d))
            matrix = self.rest
        self.bound.widths[m].own, self.bound.widths[m].mixed = own, mixed
        self.bound.widths[m].per_norm2 = (1.0 + SLACK) * min(
            largest_eigenvalue(matrix, self.rest + d * d, d), width.most
        )
        # Widths above `usual` are raised by a factor that grows with them: that of the largest is taken for all.
        largest_width2 = own + (mixed + self.bound.widths[m].per_norm2 * norm) * norm
        self.bound.widths[m].factor = width.beta * (1.0 + SLACK)
        if largest_width2 > width.usual:
            self.bound.widths[m].factor *= sqrt(raised(largest_width2, width.usual) / largest_width2)

    cdef int reserve(self) except -1:
        """Room for bounds, in the learner's work space: it is there for the next decision."""
        cdef Py_ssize_t leaders = self.k + LEADERS
        cdef object scratch = self.learner._scratch
        if "upper bounds" not in scratch or len(scratch["upper bounds"]) < self.offer.n:
            scratch["upper bounds"] = np.empty(self.offer.n)
        self._arrays.update(scores=np.empty(self.k), best=np.empty(self.k, np.int64), leaders=np.empty(leaders, np.int64))
        self.upper = <double *> cnp.PyArray_DATA(scratch["upper bounds"])
        self.scores, self.best = <double *> cnp.PyArray_DATA(self._arrays["scores"]), <int64_t *> cnp.PyArray_DATA(self._arrays["best"])
        self.leaders = <int64_t *> cnp.PyArray_DATA(self._arrays["leaders"])
        return 0

    cdef void bound_all(self) noexcept nogil:
        """Fill `upper` with a bound of the score of every arm."""
        cdef Py_ssize_t first = 0
        while first < self.offer.n:
            self.bound_some(first, min(<Py_ssize_t> ROWS_AT_A_TIME, self.offer.n - first))
            first += ROWS_AT_A_TIME

    cdef void bound_some(self, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
        """The same of n arms from `first` on."""
        cdef Offer offer
        cdef Py_ssize_t j
        cdef double limit = self.learner.limit
        cdef int32_t products[ROWS_AT_A_TIME]
        cdef int64_t ids[ROWS_AT_A_TIME]
        cdef double linear[ROWS_AT_A_TIME]
        cdef double widths[ROWS_AT_A_TIME]
        cdef const int64_t *picks = NULL if self.offer.picks == NULL else self.offer.picks + first
        cdef double *upper = self.upper + first
        code_products(self.compressed.codes, self.compressed.stride, picks, first, n, self.weights, products)
        bound_scores(
            &self.bound, products, self.compressed.steps, self.compressed.errors, self.compressed.norms,
            picks, first, n, linear, widths
        )
        if self.learner.items is not None and self.learner.items.variance > 0.0:
            offer.items, offer.picks, offer.n, offer.ids = self.offer.items, picks, n, ids
            for j in range(n):
                ids[j] = self.offer.ids[first + j if picks == NULL else picks[j]]
            self.learner.look_up_effects(&offer)
            for j in range(n):
                linear[j] += self.learner.item_means[j] + SLACK * fabs(self.learner.item_means[j])
                widths[j] = self.learner.with_effect(widths[j], self.model.scale, j)
        for j in range(n):
            upper[j] = linear[j] + widths[j]
            upper[j] = min(upper[j] + SLACK * fabs(upper[j]), limit)

    # Exact scores.

    cdef bint can_win(self, double score, int64_t arm) noexcept nogil:
        """Would an arm with this score be among the k best so far?"""
        cdef int64_t worst
        if self.found < self.k:
            return True
        worst = self.best[self.k - 1]
        return score > self.scores[self.k - 1] or (score == self.scores[self.k - 1] and arm < worst)

    cdef void insert(self, double score, int64_t arm) noexcept nogil:
        """Put an arm in its place among the best: larger scores first, then lower rows."""
        cdef Py_ssize_t j
        if not self.can_win(score, arm):
            return
        j = min(self.found, self.k - 1)
        self.found = min(self.found + 1, self.k)
        while j > 0 and (score > self.scores[j - 1] or (score == self.scores[j - 1] and arm < self.best[j - 1])):
            self.scores[j], self.best[j] = self.scores[j - 1], self.best[j - 1]
            j -= 1
        self.scores[j], self.best[j] = score, arm

    cdef int score(self, const int64_t *arms, Py_ssize_t n) except -1 nogil:
        """Score at most AT_A_TIME arms exactly, and keep the best."""
        cdef Offer offer
        cdef int64_t picks[AT_A_TIME]
        cdef int64_t ids[AT_A_TIME]
        cdef double scores[AT_A_TIME]
        cdef Py_ssize_t j
        for j in range(n):
            picks[j] = arms[j] if self.offer.picks == NULL else self.offer.picks[arms[j]]
            ids[j] = self.offer.ids[picks[j]]
        offer.items, offer.picks, offer.n, offer.ids = self.offer.items, picks, n, ids
        self.learner.look_up_effects(&offer)
        self.learner.score_items(self.user, &offer, self.k, scores)
        for j in range(n):
            self.insert(scores[j], arms[j])
        return 0

    cdef int score_leaders(self) except -1 nogil:
        """Score the arms with the largest bounds; they need no bound any more."""
        cdef Py_ssize_t j = 0, n = min(self.k + LEADERS, self.offer.n)
        largest(self.upper, self.offer.n, n, self.leaders)
        while j < n:
            self.score(self.leaders + j, min(<Py_ssize_t> AT_A_TIME, n - j))
            j += AT_A_TIME
        for j in range(n):
            self.upper[self.leaders[j]] = -INFINITY
        return 0

    cdef int score_rest(self) except -1 nogil:
        """Score all arms that can still be among the best."""
        cdef Py_ssize_t j, count = 0
        cdef int64_t arms[AT_A_TIME]
        for j in range(self.offer.n):
            if self.can_win(self.upper[j], j):
                arms[count] = j
                count += 1
                if count == AT_A_TIME:
                    self.score(arms, count)
                    count = 0
        if count:
            self.score(arms, count)
        return 0


def best_rows(learner, user, compressed, vectors, ids, rows, k):
    """The rows of a catalogue with the k best scores, in order; None if an arm is too long.

    `rows` are those that are eligible, ascending; None for all.
    """
    return Search(learner, user, compressed, vectors, ids, rows, k).run()
