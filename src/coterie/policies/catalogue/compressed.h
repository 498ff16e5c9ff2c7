/* Vectors in one byte a number, with what that leaves out: enough to bound a score from above at an eighth of the memory.
 *
 * Row k is x ≈ steps[k] · codes, with ‖x − steps[k] · codes‖ ≤ errors[k] and ‖x‖ ≤ norms[k]. Rows of codes are `stride` bytes
 * apart, a multiple of CODES_AT_A_TIME; those behind the last number are 0. A linear function of x is given by codes, too, of 15 bits
 * each, so that a product needs integers alone.
 */
#ifndef COTERIE_COMPRESSED_H
#define COTERIE_COMPRESSED_H

#include <stddef.h>
#include <stdint.h>

enum { CODES_AT_A_TIME = 16, ROWS_AT_A_TIME = 256 };

/* Compress one vector of d numbers. Numbers must be less than 10^30 in size for what is written to be finite. */
void compress(const double *x, size_t d, size_t stride, int8_t *codes, float *step, float *error, float *norm);

/* Codes of a linear function w of d numbers; returns their step, and sets ‖w‖ and ‖w − step · codes‖, rounded up. */
double compress_weights(const double *w, size_t d, size_t stride, int16_t *codes, double *norm, double *error);

/* The product of codes of n rows with those of a linear function; rows are rows[k], or `first` + k where rows is NULL. */
void code_products(const int8_t *codes, size_t stride, const int64_t *rows, size_t first, size_t n, const int16_t *weights,
                   int32_t *out);

/* A bound of the score of every arm with an intercept and up to two models of its width:
 *
 *   constant + per_product · step · product + per_error · error + per_norm · norm + Σ factor · √(own + mixed · norm + per_norm2 · norm²)
 */
typedef struct {
    double factor, own, mixed, per_norm2;
} width_bound;

typedef struct {
    double constant, per_product, per_error, per_norm;
    width_bound widths[2];
    size_t n_widths;
} score_bound;

/* Both parts of the bounds of n rows, so that effects of items can be added to each */
void bound_scores(const score_bound *bound, const int32_t *products, const float *steps, const float *errors, const float *norms,
                  const int64_t *rows, size_t first, size_t n, double *linear, double *widths);

/* The sums of both parts, raised by what rounding can add, and at most `limit`; `out` may be `linear` */
void finish_bounds(const double *linear, const double *widths, size_t n, double slack, double limit, double *out);

#endif
