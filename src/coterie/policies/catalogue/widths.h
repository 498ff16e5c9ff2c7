/* Sharper bounds of widths √(zᵀVz), for the items that simple bounds leave over. */
#ifndef COTERIE_WIDTHS_H
#define COTERIE_WIDTHS_H

#include <stddef.h>
#include <stdint.h>

enum { FORMS_AT_A_TIME = 16, ROWS_TOGETHER = 4, LONGEST_ROW = 1024 };

/* A bound of the largest eigenvalue of a positive definite matrix that is a few percent too large at most where possible, and at
 * most `most`, which must be one, too. `work` holds d × d + 2d numbers. */
double sharp_eigenvalue(const double *matrix, double most, double *work, size_t d);

/* V = FFᵀ with a lower triangular F, by columns: column j of F is row j of `factor`. Returns 0 if V is not positive definite. */
int factorise(const double *matrix, double *factor, size_t p);

/* Codes of the p linear functions Fᵀz of d numbers x, where z is (1, x) if p = d + 1: 15 bits each, in pairs of numbers, functions side
 * by side. `codes` holds wide · stride of them, `wide` being p rounded up to FORMS_AT_A_TIME. Returns their step; sets the part of the
 * first function that belongs to the 1, and ‖F − step · codes‖. */
double code_forms(const double *factor, size_t p, size_t d, size_t stride, int16_t *codes, double *constant, double *error);

/* ‖Fᵀz‖² of compressed rows, a little more by rounding and never less; not more than LONGEST_ROW numbers a row */
void form_norms(const int8_t *rows_codes, size_t stride, const float *steps, const int64_t *rows, size_t n, const int16_t *codes,
                size_t p, size_t d, double step, double constant, double *out);

#endif
