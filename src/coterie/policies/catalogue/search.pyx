# optimize: 2
"""The best items of a catalogue by a policy's own scores, exactly, with few scores computed.

Every score is first bounded from above, by codes of one byte a number and the largest eigenvalue of each matrix. The items with the
largest bounds are scored exactly, by the same functions that score arms of a matrix. Then only items whose bound is above the
k-th best score can be among the best: they are scored, too. Where these are many, their bounds are first made sharper: by a better bound
of the eigenvalues, then by the whole quadratic form in integers.
"""

import numpy as np

cimport cython
cimport numpy as cnp
from libc.math cimport INFINITY, fabs, frexp, sqrt
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.string cimport memcpy

from coterie.policies.catalogue.compressed cimport (
    FORMS_AT_A_TIME, LONGEST_ROW, ROWS_AT_A_TIME, bound_scores, code_forms, code_products, compress_weights, factorise,
    finish_bounds, form_norms, score_bound, sharp_eigenvalue
)
from coterie.policies.catalogue.compressed_rows cimport CompressedRows
from coterie.policies.kernel.learner cimport (
    ALL_KINDS, Learner, Offer, ScoreModel, WidthModel, ids_of, largest, offer_of, raised
)
from coterie.policies.kernel.linalg cimport dot, largest_eigenvalue

cnp.import_array()

cdef double SLACK = 1e-9  # exact scores are above a bound of real numbers by no more than this, relative to their parts
cdef double MOST = 1e30  # numbers beyond it might overflow a bound
cdef enum:
    FEW = 64  # among so few arms all scores are computed
    LEADERS = 16  # exact scores of so many arms more than k come first
    AT_A_TIME = 64  # arms scored exactly at a time
    MANY = 16  # times d arms are too many to be scored before bounds are made sharper
cdef double WORTHWHILE = 0.8  # a bound of an eigenvalue that is less than this times the one before is worth another look at all arms
cdef double FACTORISED = 1e-6  # by which rounding can change √(zᵀVz), relative to the largest


cdef struct Form:
    # Codes of a factor F of a matrix V = FFᵀ, with their step, the part for the intercept and ‖F − F̂‖; `root` is at least ‖F‖ of the
    # numbers of a vector, `whole` at least that with the intercept
    int16_t *codes
    double step
    double constant
    double error
    double root
    double whole


@cython.final
cdef class Search:
    """One decision: the arms, their bounds, and the best so far."""

    cdef Learner learner
    cdef CompressedRows compressed
    cdef Offer offer
    cdef Py_ssize_t user, k, found
    cdef ScoreModel model
    cdef score_bound bound
    cdef Form forms[2]
    cdef bint sharp, has_forms
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
        if self.too_many():
            self.sharpen()
        with nogil:
            self.score_rest()
            for j in range(self.k):
                found[j] = self.row_of(self.best[j])
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
        if not self.learner.describe(self.learner.number_of(self.user), self.k, &self.model):
            return False
        room = np.empty(self.compressed.stride, np.int16)
        rest = np.empty((2 * self.compressed.dim + 2, self.compressed.dim))
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
            self.bound_width(m, sharply=False)
            largest_term += self.bound.widths[m].factor + self.bound.widths[m].own + self.bound.widths[m].per_norm2
            if self.model.widths[m].beta < 0.0:
                return False
        return norm + self.model.parts + largest_term < MOST  # false for what is no number, too

    cdef void bound_width(self, Py_ssize_t m, bint sharply) noexcept nogil:
        """zᵀVz ≤ v₀₀ + 2‖v₀‖‖x‖ + λ‖x‖², with λ at least the largest eigenvalue of V without the intercept."""
        cdef WidthModel *width = &self.model.widths[m]
        cdef const double *matrix = width.matrix
        cdef Py_ssize_t i, j, d = self.compressed.dim, first = width.intercept
        cdef double norm = self.compressed.most_norm, largest_value, largest_width2, own = 0.0, mixed = 0.0
        if first:
            for i in range(d):
                for j in range(d):
                    self.rest[i * d + j] = matrix[(i + 1) * (d + 1) + j + 1]
            own, mixed = max(matrix[0], 0.0), 2.0 * sqrt(dot(matrix + 1, matrix + 1, d))
            matrix = self.rest
        self.bound.widths[m].own, self.bound.widths[m].mixed = own, mixed
        largest_value = min(largest_eigenvalue(matrix, self.rest + d * d, d), width.most)
        if sharply:
            largest_value = sharp_eigenvalue(matrix, largest_value, self.rest + d * d, d)
        self.bound.widths[m].per_norm2 = (1.0 + SLACK) * largest_value
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

    cdef int sharpen(self) except -1:
        """Bound the eigenvalues more sharply, and find the quadratic forms."""
        cdef Py_ssize_t m
        cdef double before
        self.has_forms = self.find_forms()
        for m in range(self.model.n_widths):
            before = self.bound.widths[m].per_norm2
            self.bound_width(m, sharply=True)
            self.sharp = self.sharp or self.bound.widths[m].per_norm2 < WORTHWHILE * before
        return 0

    cdef bint find_forms(self) except -1:
        """Factorise the matrices; False if vectors are too long, a matrix is not positive definite, or all are diagonal.

        Of a diagonal matrix, before the first reward, the exact form is as fast.
        """
        cdef Py_ssize_t m, p, d = self.compressed.dim, stride = self.compressed.stride
        cdef Form *form
        if stride > LONGEST_ROW or self.all_diagonal():
            return False
        codes = np.empty((2, d + FORMS_AT_A_TIME, stride), np.int16)
        factor = np.empty((d + 1, d + 1))
        self._arrays.update(forms=codes)
        for m in range(self.model.n_widths):
            form, p = &self.forms[m], d + self.model.widths[m].intercept
            if not factorise(self.model.widths[m].matrix, <double *> cnp.PyArray_DATA(factor), p):
                return False
            form.codes = <int16_t *> cnp.PyArray_DATA(codes[m])
            form.step = code_forms(<double *> cnp.PyArray_DATA(factor), p, d, stride, form.codes, &form.constant, &form.error)
            form.root = sqrt(self.bound.widths[m].per_norm2)
            form.whole = sqrt(self.bound.widths[m].own + self.bound.widths[m].per_norm2)
        return True

    cdef bint all_diagonal(self) noexcept nogil:
        """Are all numbers beside the diagonals 0?"""
        cdef Py_ssize_t m, i, p
        for m in range(self.model.n_widths):
            p = self.compressed.dim + self.model.widths[m].intercept
            for i in range(p * p):
                if i % (p + 1) and self.model.widths[m].matrix[i] != 0.0:
                    return False
        return True

    cdef bint knows_nothing(self) noexcept nogil:
        """Is the score β√(zᵀz/λ), as before the first reward, with a λ that is a power of two?

        Then it follows from the stored zᵀz, to the last bit. Without this, all vectors of the same length would be equally good up
        to rounding, and all of them scored to find the best.
        """
        cdef WidthModel *width = &self.model.widths[0]
        cdef Py_ssize_t i, p = self.compressed.dim + width.intercept
        cdef double value = width.matrix[0]
        cdef int exponent
        if self.model.n_widths != 1 or self.model.constant != 0.0 or frexp(value, &exponent) != 0.5:
            return False
        if abs(exponent) > 500 or (self.learner.items is not None and self.learner.items.variance > 0.0):
            return False
        for i in range(self.compressed.dim):
            if self.model.linear[i] != 0.0:
                return False
        for i in range(p * p):
            if width.matrix[i] != (0.0 if i % (p + 1) else value):
                return False
        return True

    cdef void score_without_data(self) noexcept nogil:
        """Fill `upper` with the exact scores of a policy that knows nothing."""
        cdef WidthModel *width = &self.model.widths[0]
        cdef Py_ssize_t j
        cdef double width2
        for j in range(self.offer.n):
            width2 = width.matrix[0] * self.compressed.squares[2 * self.row_of(j) + width.intercept]
            self.upper[j] = min(width.beta * sqrt(raised(width2, width.usual)), self.learner.limit)

    cdef void bound_all(self) noexcept nogil:
        """Fill `upper` with a bound of the score of every arm."""
        cdef Py_ssize_t first = 0
        if self.knows_nothing():
            self.score_without_data()
            return
        while first < self.offer.n:
            self.bound_some(NULL, first, min(<Py_ssize_t> ROWS_AT_A_TIME, self.offer.n - first), by_forms=False)
            first += ROWS_AT_A_TIME

    cdef Py_ssize_t narrow(self, int64_t *arms, Py_ssize_t n, bint by_forms) noexcept nogil:
        """Bound some arms more sharply, and keep those that can still be among the best; returns how many."""
        cdef Py_ssize_t j, count = 0
        self.bound_some(arms, 0, n, by_forms)
        for j in range(n):
            if self.can_win(self.upper[arms[j]], arms[j]):
                arms[count] = arms[j]
                count += 1
        return count

    cdef void bound_some(self, const int64_t *arms, Py_ssize_t first, Py_ssize_t n, bint by_forms) noexcept nogil:
        """Fill `upper` for these arms; for n of them from `first` on where `arms` is NULL."""
        cdef Offer offer
        cdef Py_ssize_t j
        cdef int32_t products[ROWS_AT_A_TIME]
        cdef int64_t ids[ROWS_AT_A_TIME]
        cdef int64_t chosen[ROWS_AT_A_TIME]
        cdef double linear[ROWS_AT_A_TIME]
        cdef double widths[ROWS_AT_A_TIME]
        cdef const int64_t *rows = NULL if self.offer.picks == NULL else self.offer.picks + first
        if arms != NULL:
            for j in range(n):
                chosen[j] = self.row_of(arms[j])
            rows = chosen
        code_products(self.compressed.codes, self.compressed.stride, rows, first, n, self.weights, products)
        bound_scores(
            &self.bound, products, self.compressed.steps, self.compressed.errors, self.compressed.norms,
            rows, first, n, linear, widths
        )
        if by_forms:
            self.form_widths(rows, n, widths)
        if self.learner.items is not None and self.learner.items.variance > 0.0:
            offer.items, offer.picks, offer.n, offer.ids = self.offer.items, rows, n, ids
            for j in range(n):
                ids[j] = self.offer.ids[first + j if rows == NULL else rows[j]]
            self.learner.look_up_effects(&offer, ALL_KINDS)
            for j in range(n):
                linear[j] += self.learner.item_means[j] + SLACK * fabs(self.learner.item_means[j])
                widths[j] = self.learner.with_effect(widths[j], self.model.scale, j)
        finish_bounds(linear, widths, n, SLACK, self.learner.limit, linear)
        if arms == NULL:
            memcpy(self.upper + first, linear, n * sizeof(double))
        else:
            for j in range(n):
                self.upper[arms[j]] = linear[j]

    cdef void form_widths(self, const int64_t *rows, Py_ssize_t n, double *out) noexcept nogil:
        """Bounds of the bonuses: √(zᵀVz) = ‖Fᵀz‖, which is no more than that of both codes and what they leave out."""
        cdef Py_ssize_t j, m, d = self.compressed.dim
        cdef double norm, error, width
        cdef double squares[ROWS_AT_A_TIME]
        cdef Form *form
        for j in range(n):
            out[j] = 0.0
        for m in range(self.model.n_widths):
            form = &self.forms[m]
            form_norms(
                self.compressed.codes, self.compressed.stride, self.compressed.steps, rows, n, form.codes,
                d + self.model.widths[m].intercept, d, form.step, form.constant, squares
            )
            for j in range(n):
                norm, error = self.compressed.norms[rows[j]], self.compressed.errors[rows[j]]
                width = sqrt(max(squares[j], 0.0)) + form.root * error + form.error * (norm + error)
                width += FACTORISED * form.whole * (1.0 + norm)
                out[j] += (1.0 + SLACK) * self.model.widths[m].beta * sqrt(raised(width * width, self.model.widths[m].usual))

    cdef int64_t row_of(self, int64_t arm) noexcept nogil:
        """The row of an arm in the catalogue."""
        return arm if self.offer.picks == NULL else self.offer.picks[arm]

    # Exact scores.

    cdef bint can_win(self, double score, int64_t arm) noexcept nogil:
        """Would an arm with this score be among the k best so far?"""
        cdef int64_t worst
        if self.found < self.k:
            return True
        worst = self.best[self.k - 1]
        return score > self.scores[self.k - 1] or (score == self.scores[self.k - 1] and arm < worst)

    cdef bint too_many(self) noexcept nogil:
        """Can so many arms still be among the best that sharper bounds are worth their price?"""
        cdef Py_ssize_t j, count = 0
        cdef double least = self.scores[self.k - 1]
        for j in range(self.offer.n):
            count += self.upper[j] > least
        return count > MANY * self.compressed.dim

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
            picks[j] = self.row_of(arms[j])
            ids[j] = self.offer.ids[picks[j]]
        offer.items, offer.picks, offer.n, offer.ids = self.offer.items, picks, n, ids
        self.learner.look_up_effects(&offer, ALL_KINDS)
        self.learner.final_scores(self.learner.number_of(self.user), &offer, self.k, scores)
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
        cdef int64_t arms[ROWS_AT_A_TIME]
        for j in range(self.offer.n):
            if self.upper[j] < self.scores[self.k - 1]:  # nearly always
                continue
            if self.can_win(self.upper[j], j):
                arms[count] = j
                count += 1
                if count == ROWS_AT_A_TIME:
                    self.score_some(arms, count)
                    count = 0
        return self.score_some(arms, count)

    cdef int score_some(self, int64_t *arms, Py_ssize_t n) except -1 nogil:
        """Score those of some arms that sharper bounds leave over. Overwrites `arms`."""
        cdef Py_ssize_t j = 0
        if self.sharp:
            n = self.narrow(arms, n, by_forms=False)
        if self.has_forms:
            n = self.narrow(arms, n, by_forms=True)
        while j < n:
            self.score(arms + j, min(<Py_ssize_t> AT_A_TIME, n - j))
            j += AT_A_TIME
        return 0


def score_bounds(learner, user, compressed, vectors, ids, bint sharply=False):
    """A bound of each item's score in lists, as it is at first or, `sharply`, where many are close; None if there is none."""
    cdef Search search = Search(learner, user, compressed, vectors, ids, None, 2)
    cdef int64_t arm
    if not search.bounded():
        return None
    search.learner.reserve(ROWS_AT_A_TIME)
    search.reserve()
    search.bound_all()
    if sharply:
        search.sharpen()
        search.bound_all()
        for arm in range(search.offer.n if search.has_forms else 0):
            search.bound_some(&arm, 0, 1, by_forms=True)
    return search.learner._scratch["upper bounds"][: search.offer.n].copy()


def best_rows(learner, user, compressed, vectors, ids, rows, k):
    """The rows of a catalogue with the k best scores, in order; None if an arm is too long.

    `rows` are those that are eligible, ascending; None for all.
    """
    return Search(learner, user, compressed, vectors, ids, rows, k).run()
