"""What linalg.c, matrices.c and elementary.c offer to compiled modules."""

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

cdef extern from "matrices.h" nogil:
    void multiply(const double *a, const double *b, double *out, size_t d)
    void multiply_transposed(const double *a, const double *b, double *out, double *work, size_t d)
    void congruent(const double *p, const double *a, double *out, double *work, size_t d)
    void add_outers(double *upper, const double *const *vectors, size_t n, size_t d)
    void mirror(double *matrix, size_t d)
    void combine_upper(
        const double *first, const double *second, double sign, double weight, double *out, size_t d
    )
    void add_gram(double *c, const double *y, double *work, size_t d)
    void invert_sums(
        const double *common, const double *const *own, double *const *out, double *work, size_t d, double floor
    )
    void transpose(const double *a, double *out, size_t d)
    void invert_lower(const double *lower, double *out, size_t d)
    void eigen(double *matrix, double *vectors, size_t d)
    void reduce_rows(double *rows, double *diagonal, double *betas, size_t n, size_t d)
    void reduced_gram(const double *rows, const double *diagonal, double *out, size_t n, size_t d)
    void turn(const double *rows, const double *betas, double *x, size_t n, size_t d)
    void turn_back(const double *rows, const double *betas, double *x, size_t n, size_t d)

cdef extern from "elementary.h" nogil:
    double natural_log(double x)
    double exponential(double x)
    double power_of_two(double x)
    double log_gamma(double x)
