"""The base class of all learners, and the records and inline functions that they decide with; see learner.pyx."""

cimport numpy as cnp
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_normal

from coterie.policies.kernel.arrays cimport NamedArrays
from coterie.policies.kernel.effects cimport Effects, key_of_id, key_of_vector
from coterie.policies.kernel.linalg cimport cholesky, dot, natural_log
from coterie.policies.kernel.ridge cimport Ridge


cdef struct View:
    # The statistics that decide for one user: θ̂, M̄⁻¹ and β. `row` is their row in the `WidthCache`, -1 if widths must not be
    # cached. No eigenvalue of M̄ is less than `ridge`. Arms with xᵀM̄⁻¹x above `usual` get a larger bonus.
    const double *estimate
    const double *inverse
    double beta
    Py_ssize_t row
    double ridge
    double usual


cdef inline void show_row(
    View *seen, Ridge *pools, Py_ssize_t row, double beta, double ridge, Py_ssize_t d
) noexcept nogil:
    """Decide by a row of pooled statistics   (Alg. 1, lines 6-8). Writes `seen`."""
    seen.estimate, seen.inverse = pools.estimate + row * d, pools.inverse + row * d * d
    seen.beta, seen.row, seen.ridge, seen.usual = beta, row, ridge, INFINITY


cdef struct Offer:
    # The arms of a round: rows of `items`, those that `picks` names, or the first n where it is NULL. `ids` are the ids of the
    # n arms; NULL where they have none, so that equal vectors are one item.
    const double *items
    const int64_t *picks
    Py_ssize_t n
    const int64_t *ids


cdef enum:
    ALL_KINDS = 2  # of effects: those of items, and those of pairs
    NO_ITEM = -1  # in the place of an id: a reward that tells nothing of any item


cdef struct WidthCache:
    # For items that stay the same from round to round: the last computed xᵀM̄⁻¹x of every item for every row, the epoch in
    # which it was computed, and ‖x‖². While data only accumulates, a cached width is an upper bound of today's.
    double *bounds
    int64_t *epochs
    const double *squares
    Py_ssize_t n_items


cdef struct WidthModel:
    # A bonus β√(zᵀVz), larger above `usual` as in a `View`; z is x or, with an intercept, (1, x). No eigenvalue of V is above `most`
    # (INFINITY if that is unknown).
    const double *matrix
    bint intercept
    double beta
    double usual
    double most


cdef struct ScoreModel:
    # An arm's score without effects of items: constant + xᵀlinear and the bonuses of one or two models. The doubt about an effect
    # is multiplied by `scale`. `parts` is the size of what `linear` was added up from, by which its rounding is judged; 0 if it was not.
    double constant
    const double *linear
    double parts
    WidthModel widths[2]
    Py_ssize_t n_widths
    double scale


cdef inline double raised(double width2, double usual) noexcept nogil:
    """xᵀM̄⁻¹x, 2 ln q times as much if it is q times `usual`, q > √e."""
    return width2 * max(1.0, 2.0 * natural_log(width2 / usual)) if width2 > usual else width2


cdef inline double bonus(View *seen, double width2) noexcept nogil:
    """β√(xᵀM̄⁻¹x), in Alg. 1, line 9, raised where it is unusually large."""
    return seen.beta * sqrt(raised(width2, seen.usual))


cdef inline const double *row(Offer *offer, Py_ssize_t k, Py_ssize_t d) noexcept nogil:
    """The vector of arm k."""
    return offer.items + (k if offer.picks == NULL else offer.picks[k]) * d


cdef inline int64_t item_key(Offer *offer, Py_ssize_t k, Py_ssize_t d) noexcept nogil:
    """The key of arm k in a table of items."""
    return key_of_vector(row(offer, k, d), d) if offer.ids == NULL else key_of_id(offer.ids[k])


cdef inline void largest(const double *values, Py_ssize_t n, Py_ssize_t k, int64_t *out) noexcept nogil:
    """Write the indices of the k largest values to `out`, largest first, the lower index first on ties; by insertion."""
    cdef Py_ssize_t count = 0, i, j
    for i in range(n):
        if count == k and values[i] <= values[out[k - 1]]:
            continue
        j = count if count < k else k - 1
        while j > 0 and values[i] > values[out[j - 1]]:
            out[j] = out[j - 1]
            j -= 1
        out[j] = i
        count = min(count + 1, k)


cdef inline Offer offer_of(object arms, Py_ssize_t dim) except *:
    """The rows of a contiguous matrix of doubles."""
    cdef Offer offer
    if not (
        cnp.PyArray_CheckExact(arms)  # no subclass: the hidden values of a masked array must not be read
        and cnp.PyArray_TYPE(arms) == cnp.NPY_FLOAT64
        and cnp.PyArray_NDIM(arms) == 2
        and cnp.PyArray_DIM(arms, 0) > 0
        and cnp.PyArray_DIM(arms, 1) == dim
        and cnp.PyArray_ISCARRAY_RO(arms)
    ):
        raise TypeError(f"a contiguous (K, {dim}) matrix of float64 is needed")
    offer.items, offer.picks = <const double *> cnp.PyArray_DATA(arms), NULL
    offer.n, offer.ids = cnp.PyArray_DIM(arms, 0), NULL
    return offer


cdef inline const int64_t *ids_of(object ids, Py_ssize_t n) except? NULL:
    """A contiguous vector of n ids; NULL for None."""
    if ids is None:
        return NULL
    if not (
        cnp.PyArray_CheckExact(ids)
        and cnp.PyArray_TYPE(ids) == cnp.NPY_INT64
        and cnp.PyArray_NDIM(ids) == 1
        and cnp.PyArray_DIM(ids, 0) == n
        and cnp.PyArray_ISCARRAY_RO(ids)
    ):
        raise ValueError(f"a contiguous vector of {n} int64 is needed")
    return <const int64_t *> cnp.PyArray_DATA(ids)


cdef inline const double *vector_of(object x, Py_ssize_t n) except NULL:
    """A contiguous vector of doubles."""
    if not (
        cnp.PyArray_CheckExact(x)
        and cnp.PyArray_TYPE(x) == cnp.NPY_FLOAT64
        and cnp.PyArray_NDIM(x) == 1
        and cnp.PyArray_DIM(x, 0) == n
        and cnp.PyArray_ISCARRAY_RO(x)
    ):
        raise TypeError(f"a contiguous vector of {n} float64 is needed")
    return <const double *> cnp.PyArray_DATA(x)


cdef inline void draw_sample(
    View *seen, bitgen_t *bitgen, double *factor, double *work, double *sample, Py_ssize_t d
) noexcept nogil:
    """θ̃ = θ̂ + βLz with LLᵀ = M⁻¹ and z standard normal; `sample` has room for z behind θ̃."""
    cdef Py_ssize_t i
    cdef double *normals = sample + d
    cholesky(seen.inverse, factor, work, d)
    for i in range(d):
        normals[i] = random_standard_normal(bitgen)
    for i in range(d):
        sample[i] = seen.estimate[i] + seen.beta * dot(factor + i * d, normals, i + 1)


cdef class Learner(NamedArrays):
    cdef readonly double ridge
    cdef readonly bint explored
    cdef public bint grows
    cdef public double limit
    cdef readonly object schedule
    cdef readonly object generator
    cdef bitgen_t *bitgen
    cdef int64_t first
    cdef double phase
    cdef double growth
    cdef double longest2
    cdef double *work
    cdef Py_ssize_t n_arms
    cdef double *bounds
    cdef double *upper
    cdef double *widths
    cdef int64_t *waiting
    cdef View seen
    cdef readonly Effects items
    cdef bint effective
    cdef double *item_means
    cdef double *item_widths2

    cdef int set_schedule(self, schedule) except -1
    cdef int reserve(self, Py_ssize_t n_arms) except -1
    cdef bint explores(self) noexcept nogil

    cdef Py_ssize_t number_of(self, Py_ssize_t user) noexcept nogil
    cdef Py_ssize_t admit(self, Py_ssize_t user) noexcept nogil
    cdef int view(self, Py_ssize_t user, View *seen) except -1 nogil  # OUT: seen
    cdef int scaled_view(self, Py_ssize_t user, View *seen) except -1 nogil  # OUT: seen
    cdef double time_factor(self) noexcept nogil

    cdef int choose(
        self, Py_ssize_t user, Offer *offer, WidthCache *cache, Py_ssize_t k, int64_t *out
    ) except -1 nogil  # OUT: cache, out
    cdef Py_ssize_t decide(self, Py_ssize_t user, Offer *offer, WidthCache *cache) except -2 nogil  # OUT: cache
    cdef bint bound_widths(self, View *seen, Offer *offer, WidthCache *cache) noexcept nogil  # OUT: cache
    cdef void cache_widths(self, View *seen, Offer *offer, WidthCache *cache) noexcept nogil  # OUT: cache
    cdef bint too_long(self, Offer *offer) noexcept nogil
    cdef Py_ssize_t best(self, View *seen, Offer *offer) noexcept nogil
    cdef Py_ssize_t search(self, Offer *offer) noexcept nogil
    cdef void exact_scores(self, Offer *offer, const int64_t *arms, Py_ssize_t n, double *out) noexcept nogil  # OUT: out
    cdef int rank(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, int64_t *out) except -1 nogil  # OUT: out
    cdef int score_all(self, Py_ssize_t user, Offer *offer, double *mean, double *width) except -1 nogil  # OUT: mean, width
    cdef int final_scores(self, Py_ssize_t user, Offer *offer, Py_ssize_t k, double *out) except -1 nogil  # OUT: out
    cdef bint describe(self, Py_ssize_t user, Py_ssize_t k, ScoreModel *model) except -1 nogil  # OUT: model
    cdef void look_up_effects(self, Offer *offer, int kinds) noexcept nogil
    cdef double with_effect(self, double width, double scale, Py_ssize_t k) noexcept nogil
    cdef void sample_effects(self, double scale, Py_ssize_t n, double *scores) noexcept nogil

    cdef int predict(self, Py_ssize_t user, const double *x, double *mean, double *variance) except -1 nogil
    cdef double absorb_effect(
        self, Py_ssize_t user, const double *x, double reward, const int64_t *item
    ) except? -1.0 nogil
    cdef int learn_one(self, Py_ssize_t user, const double *x, double reward, const int64_t *item) except -1 nogil
    cdef int init_users(self, Py_ssize_t known) except -1
    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil
    cdef int review(self, Py_ssize_t user) except -1 nogil
    cdef int label(self, int64_t *out) except -1 nogil  # OUT: out
    cdef int learn(
        self,
        Py_ssize_t user,
        const double *xs,
        const double *rewards,
        const int64_t *ids,
        Py_ssize_t n,
        Py_ssize_t shown,
    ) except -1 nogil
