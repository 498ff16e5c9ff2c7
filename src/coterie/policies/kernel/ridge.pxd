"""The statistics of many ridge regressions, a row each, and the radius within which an estimate is trusted."""

from libc.math cimport sqrt
from libc.stdint cimport int64_t

from coterie.policies.kernel.linalg cimport absorb, add_scaled, apply, invert, natural_log


cdef struct Ridge:
    # (λI + S)⁻¹, b, θ̂ = (λI + S)⁻¹b and T for many rows   (Alg. 1, line 11)
    double *inverse
    double *moment
    double *estimate
    int64_t *pulls


cdef inline double absorb_row(
    Ridge *rows, Py_ssize_t row, const double *x, double reward, double *gain, Py_ssize_t d
) noexcept nogil:
    """Add (x, reward) to a row; `gain` is scratch; returns xᵀ(λI + S)⁻¹x."""
    rows.pulls[row] += 1
    return absorb(
        rows.inverse + row * d * d, rows.moment + row * d, rows.estimate + row * d, x, reward, gain, d
    )


cdef inline void clear_row(Ridge *rows, Py_ssize_t row, double weight, Py_ssize_t d) noexcept nogil:
    """An empty row: S = 0, b = 0, θ̂ = 0, T = 0."""
    cdef Py_ssize_t i
    cdef double *inverse = rows.inverse + row * d * d
    for i in range(d * d):
        inverse[i] = 0.0
    for i in range(d):
        inverse[i * d + i] = 1.0 / weight
        rows.moment[row * d + i] = 0.0
        rows.estimate[row * d + i] = 0.0
    rows.pulls[row] = 0


cdef inline void copy_row(
    Ridge *source, Py_ssize_t origin, Ridge *target, Py_ssize_t row, Py_ssize_t d
) noexcept nogil:
    """The target's row becomes a copy of the source's; nothing is shared."""
    cdef Py_ssize_t i
    for i in range(d * d):
        target.inverse[row * d * d + i] = source.inverse[origin * d * d + i]
    for i in range(d):
        target.moment[row * d + i] = source.moment[origin * d + i]
        target.estimate[row * d + i] = source.estimate[origin * d + i]
    target.pulls[row] = source.pulls[origin]


cdef inline void start_pool(Ridge *pools, Py_ssize_t row, Py_ssize_t d) noexcept nogil:
    """Begin a sum over members: the row's inverse holds their gram until `finish_pool`."""
    cdef Py_ssize_t i
    for i in range(d * d):
        pools.inverse[row * d * d + i] = 0.0
    for i in range(d):
        pools.moment[row * d + i] = 0.0
    pools.pulls[row] = 0


cdef inline void add_member(
    Ridge *pools, Py_ssize_t row, Ridge *users, const double *grams, Py_ssize_t user, Py_ssize_t d
) noexcept nogil:
    """Add a user's S, b and T to the sum   (Alg. 1, lines 7-8)."""
    add_scaled(pools.inverse + row * d * d, 1.0, grams + user * d * d, d * d)
    add_scaled(pools.moment + row * d, 1.0, users.moment + user * d, d)
    pools.pulls[row] += users.pulls[user]


cdef inline void finish_pool(
    Ridge *pools, Py_ssize_t row, double weight, double *work, Py_ssize_t d
) noexcept nogil:
    """M̄ = λI + Σ Sᵢ, its inverse and θ̂ = M̄⁻¹ Σ bᵢ; `work` holds d × d + d numbers   (Alg. 1, lines 7-8)."""
    cdef Py_ssize_t i
    cdef double *matrix = pools.inverse + row * d * d
    for i in range(d):
        matrix[i * d + i] += weight
    invert(matrix, work, d, 0.5 * weight)
    apply(matrix, pools.moment + row * d, pools.estimate + row * d, d)


cdef inline void pool_from_gram(
    Ridge *pools, Py_ssize_t row, const double *gram, double weight, double *work, Py_ssize_t d
) noexcept nogil:
    """The same where a row's gram is kept beside it."""
    cdef Py_ssize_t i
    for i in range(d * d):
        pools.inverse[row * d * d + i] = gram[i]
    finish_pool(pools, row, weight, work, d)


cdef struct Radius:
    # The seven numbers of `coterie.theory.Radius`: f(T) = (√(base + slope·ln(1 + scale·T)) + shift) / √(floor + growth·T) + offset
    double base
    double slope
    double scale
    double shift
    double floor
    double growth
    double offset


cdef inline double radius(Radius *shape, int64_t pulls) noexcept nogil:
    """f(T) for a user or cluster with T pulls."""
    cdef double top = sqrt(shape.base + shape.slope * natural_log(1.0 + shape.scale * pulls)) + shape.shift
    return top / sqrt(shape.floor + shape.growth * pulls) + shape.offset


cdef inline double arrival_radius(int64_t t) noexcept nogil:
    """F(t) = √((1 + ln(1 + t)) / (1 + t)), by which rates of arrival are compared   (Li et al. 2019)."""
    return sqrt((1.0 + natural_log(1.0 + t)) / (1.0 + t))


cdef inline Radius radius_of(object shape) except *:
    """The seven numbers of f as a record."""
    cdef Radius r
    r.base, r.slope, r.scale, r.shift, r.floor, r.growth, r.offset = shape
    return r
