"""Vectors in one byte a number, and bounds of scores by them; see compressed.h and widths.h."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t


cdef extern from "compressed.h":
    enum:
        CODES_AT_A_TIME
        ROWS_AT_A_TIME

    ctypedef struct width_bound:
        double factor, own, mixed, per_norm2

    ctypedef struct score_bound:
        double constant, per_product, per_error, per_norm
        width_bound widths[2]
        size_t n_widths

    void compress(
        const double *x, size_t d, size_t stride, int8_t *codes, float *step, float *error, float *norm
    ) noexcept nogil
    double compress_weights(
        const double *w, size_t d, size_t stride, int16_t *codes, double *norm, double *error
    ) noexcept nogil
    void code_products(
        const int8_t *codes, size_t stride, const int64_t *rows, size_t first, size_t n, const int16_t *weights, int32_t *out
    ) noexcept nogil
    void bound_scores(
        const score_bound *bound, const int32_t *products, const float *steps, const float *errors, const float *norms,
        const int64_t *rows, size_t first, size_t n, double *linear, double *widths
    ) noexcept nogil
    void finish_bounds(
        const double *linear, const double *widths, size_t n, double slack, double limit, double *out
    ) noexcept nogil


cdef extern from "widths.h":
    enum:
        FORMS_AT_A_TIME
        LONGEST_ROW

    double sharp_eigenvalue(const double *matrix, double most, double *work, size_t d) noexcept nogil
    bint factorise(const double *matrix, double *factor, size_t p) noexcept nogil
    double code_forms(
        const double *factor, size_t p, size_t d, size_t stride, int16_t *codes, double *constant, double *error
    ) noexcept nogil
    void form_norms(
        const int8_t *rows_codes, size_t stride, const float *steps, const int64_t *rows, size_t n, const int16_t *codes,
        size_t p, size_t d, double step, double constant, double *out
    ) noexcept nogil
