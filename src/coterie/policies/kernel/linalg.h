/* Arithmetic on contiguous rows of doubles.
 *
 * Every sum is taken in one fixed order, written out here, whatever the vector width of the machine: four
 * interleaved sums ("lanes"), element i in lane i mod 4, added as (s0 + s1) + (s2 + s3) at the end. So a number does
 * not depend on the compiler's flags, on how rounds are cut into calls, nor on which other arms are scored with it.
 * Matrices are symmetric, d × d, rows first.
 */
#ifndef COTERIE_LINALG_H
#define COTERIE_LINALG_H

#include <stddef.h>
#include <stdint.h>

enum { ARMS_AT_A_TIME = 8, SKETCH = 8, BLOCK = 8 };

/* aᵀb */
double dot(const double *a, const double *b, size_t d);

/* ‖a − b‖² */
double distance2(const double *a, const double *b, size_t d);

/* Write to `found` those of n rows that can be within factor·(reach + reach of the row) of a sketch x; returns how many.
 *
 * Blocks of BLOCK rows have the first number of each sketch, then the second and so on, and at last the reach of each: n rows in
 * ⌈n / BLOCK⌉ blocks of (SKETCH + 1) · BLOCK floats. The distance may be too long by 1 part in 200,000. */
size_t sketches_within(const float *blocks, const int64_t *rows, size_t n, const float *x, float reach, float factor,
                       int64_t *found);

/* out ← out + scale·x */
void add_scaled(double *out, double scale, const double *x, size_t d);

/* out = Σₖ xₖrₖ with `count` rows of n numbers, a stride apart */
void combine_rows(const double *rows, size_t stride, const double *x, size_t count, size_t n, double *out);

/* out = Ax */
void apply(const double *matrix, const double *x, double *out, size_t d);

/* S ← S + xxᵀ */
void add_outer(double *gram, const double *x, size_t d);

/* xᵀAx of one vector, from the upper half of A */
double quadratic(const double *matrix, const double *x, size_t d);

/* xᵀAx of n rows of `items`, several at a time; out[k] belongs to row rows[k] (or k, if rows is NULL) */
void quadratics(const double *matrix, const double *items, const int64_t *rows, size_t n, size_t d, double *out);

/* xᵀθ of n rows of `items`, several at a time */
void means(const double *theta, const double *items, const int64_t *rows, size_t n, size_t d, double *out);

/* ‖x‖² of n rows of `items` */
void squares(const double *items, const int64_t *rows, size_t n, size_t d, double *out);

/* Add (x, reward) to a ridge regression by Sherman–Morrison; `gain` is left holding u; returns xᵀA⁻¹x.
 *
 *   A⁻¹ ← A⁻¹ − uuᵀ with u = A⁻¹x / √(1 + xᵀA⁻¹x),   θ̂ ← θ̂ + A⁻¹x (r − xᵀθ̂) / (1 + xᵀA⁻¹x),   b ← b + rx
 */
double absorb(double *inverse, double *moment, double *estimate, const double *x, double reward, double *gain, size_t d);

/* An upper bound of the largest eigenvalue of A in O(d²); `work` holds 2d numbers */
double largest_eigenvalue(const double *matrix, double *work, size_t d);

/* Gauss elimination of a positive definite matrix given by its upper half, in place: A = LPLᵀ, row j of the upper half
 * becomes pⱼ times column j of L; the lower half holds nothing of use then. `moment` is left as the reduced right-hand side. No pivot is less than `floor`, which
 * only rounding can bring about. Sets ln|A| and bᵀA⁻¹b. */
void eliminate(double *upper, double *moment, size_t d, double floor, double *logdet, double *explained);

/* A⁻¹b from what `eliminate` left behind */
void back_substitute(const double *upper, const double *moment, double *out, size_t d);

/* A⁻¹ from what `eliminate` left behind; `factor` holds d × d numbers of scratch; `out` may be `upper` itself */
void finish_inverse(const double *upper, double *factor, double *out, size_t d);

/* Replace a positive definite matrix by its inverse; `work` holds d × d + d numbers */
void invert(double *matrix, double *work, size_t d, double floor);

/* The lower Cholesky factor of a positive definite matrix: A = LLᵀ; entries above the diagonal are not touched;
 * `work` holds d × d + d numbers */
void cholesky(const double *matrix, double *factor, double *work, size_t d);

#endif
