"""Declarations of linalg.c, matrices.c and elementary.c for compiled modules; the headers document them.

`OUT` names the arguments that are written, scratch space included.
"""

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
    )  # OUT: found
    void add_scaled(double *out, double scale, const double *x, size_t d)  # OUT: out
    void combine_rows(
        const double *rows, size_t stride, const double *x, size_t count, size_t n, double *out
    )  # OUT: out
    void apply(const double *matrix, const double *x, double *out, size_t d)  # OUT: out
    void add_outer(double *gram, const double *x, size_t d)  # OUT: gram
    double quadratic(const double *matrix, const double *x, size_t d)
    void quadratics(
        const double *matrix, const double *items, const int64_t *rows, size_t n, size_t d, double *out
    )  # OUT: out
    void means(
        const double *theta, const double *items, const int64_t *rows, size_t n, size_t d, double *out
    )  # OUT: out
    void squares(const double *items, const int64_t *rows, size_t n, size_t d, double *out)  # OUT: out
    double absorb(
        double *inverse, double *moment, double *estimate, const double *x, double reward, double *gain, size_t d
    )  # OUT: inverse, moment, estimate, gain
    double largest_eigenvalue(const double *matrix, double *work, size_t d)  # OUT: work
    void eliminate(
        double *upper, double *moment, size_t d, double floor, double *logdet, double *explained
    )  # OUT: upper, moment, logdet, explained
    void back_substitute(const double *upper, const double *moment, double *out, size_t d)  # OUT: out
    void finish_inverse(const double *upper, double *factor, double *out, size_t d)  # OUT: factor, out
    void invert(double *matrix, double *work, size_t d, double floor)  # OUT: matrix, work
    void cholesky(const double *matrix, double *factor, double *work, size_t d)  # OUT: factor, work

cdef extern from "matrices.h" nogil:
    void multiply(const double *a, const double *b, double *out, size_t d)  # OUT: out
    void multiply_transposed(const double *a, const double *b, double *out, double *work, size_t d)  # OUT: out, work
    void congruent(const double *p, const double *a, double *out, double *work, size_t d)  # OUT: out, work
    void add_outers(double *upper, const double *const *vectors, size_t n, size_t d)  # OUT: upper
    void mirror(double *matrix, size_t d)  # OUT: matrix
    void combine_upper(
        const double *first, const double *second, double sign, double weight, double *out, size_t d
    )  # OUT: out
    void add_gram(double *c, const double *y, double *work, size_t d)  # OUT: c, work
    void invert_sums(
        const double *common, const double *const *own, double *const *out, double *work, size_t d, double floor
    )  # OUT: out, work
    void transpose(const double *a, double *out, size_t d)  # OUT: out
    void invert_lower(const double *lower, double *out, size_t d)  # OUT: out
    void eigen(double *matrix, double *vectors, size_t d)  # OUT: matrix, vectors
    void reduce_rows(double *rows, double *diagonal, double *betas, size_t n, size_t d)  # OUT: rows, diagonal, betas
    void reduced_gram(const double *rows, const double *diagonal, double *out, size_t n, size_t d)  # OUT: out
    void turn(const double *rows, const double *betas, double *x, size_t n, size_t d)  # OUT: x
    void turn_back(const double *rows, const double *betas, double *x, size_t n, size_t d)  # OUT: x

cdef extern from "elementary.h" nogil:
    double natural_log(double x)
    double exponential(double x)
    double power_of_two(double x)
    double log_gamma(double x)
