"""What linalg.c offers to compiled modules, and the numbers of many ridge regressions, a row each."""

from libc.stdint cimport int64_t

cdef extern from "linalg.h" nogil:
    enum:
        ARMS_AT_A_TIME
        SKETCH
        BLOCK
    double dot(const double *a, const double *b, size_t d)
    double distance2(const double *a, const double *b, size_t d)
    size_t sketches_within(
        const float *blocks, const int64_t *rows, size_t n, const float *x, float reach, float factor, int64_t *found
    )
    void add_scaled(double *out, double scale, const double *x, size_t d)
    void combine_rows(
        const double *rows, size_t stride, const double *x, size_t count, size_t n, double *out
    )
    void apply(const double *matrix, const double *x, double *out, size_t d)
    void add_outer(double *gram, const double *x, size_t d)
    double quadratic(const double *matrix, const double *x, size_t d)
    void quadratics(
        const double *matrix, const double *items, const int64_t *rows, size_t n, size_t d, double *out
    )
    void means(
        const double *theta, const double *items, const int64_t *rows, size_t n, size_t d, double *out
    )
    void squares(const double *items, const int64_t *rows, size_t n, size_t d, double *out)
    double absorb(
        double *inverse, double *moment, double *estimate, const double *x, double reward, double *gain, size_t d
    )
    double largest_eigenvalue(const double *matrix, double *work, size_t d)
    void eliminate(
        double *upper, double *moment, size_t d, double floor, double *logdet, double *explained
    )
    void back_substitute(const double *upper, const double *moment, double *out, size_t d)
    void finish_inverse(const double *upper, double *factor, double *out, size_t d)
    void invert(double *matrix, double *work, size_t d, double floor)
    void cholesky(const double *matrix, double *factor, double *work, size_t d)


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
