/* Products, eigenvectors and reflections of small dense matrices, d × d, rows first. Every sum has one order, from first to last, as in
 * linalg.h, so that numbers do not depend on the compiler's flags.
 */
#ifndef COTERIE_MATRICES_H
#define COTERIE_MATRICES_H

#include <stddef.h>

/* out = AB; `out` is neither of them */
void multiply(const double *a, const double *b, double *out, size_t d);

/* out = ABᵀ; `out` is neither of them; `work` holds d × d numbers */
void multiply_transposed(const double *a, const double *b, double *out, double *work, size_t d);

/* out = PAPᵀ for a symmetric A, made exactly symmetric; `work` holds 2 × d × d numbers */
void congruent(const double *p, const double *a, double *out, double *work, size_t d);

/* C + YYᵀ in the place of C, which is symmetric; `work` holds d × d numbers */
void add_gram(double *c, const double *y, double *work, size_t d);

/* S ← S + Σxxᵀ for n vectors, in the upper half of S alone */
void add_outers(double *upper, const double *const *vectors, size_t n, size_t d);

/* The lower half as the upper */
void mirror(double *matrix, size_t d);

/* The upper half of A ± B + weight·I */
void combine_upper(const double *first, const double *second, double sign, double weight, double *out, size_t d);

/* (P + Sₐ)⁻¹ of four matrices Sₐ at a time, side by side; all are symmetric. No pivot is less than
 * `floor`, which only rounding can bring about. `work` holds 4·d·(d + 2) numbers. */
void invert_sums(const double *common, const double *const *own, double *const *out, double *work, size_t d, double floor);

/* out = Aᵀ */
void transpose(const double *a, double *out, size_t d);

/* L⁻¹ of a lower triangular L; above the diagonal `out` is 0, and L is not read */
void invert_lower(const double *lower, double *out, size_t d);

/* Eigenvalues and eigenvectors of a symmetric matrix by Householder reflections and implicit QL steps: A = QᵀΛQ. The matrix
 * is left holding the values on its diagonal; row k of `vectors` is the eigenvector of value k. */
void eigen(double *matrix, double *vectors, size_t d);

/* A few vectors in as many coordinates as they are: V = (L 0)Qᵀ, with Q the product of n reflections of d numbers. */

/* Turns n ≤ d rows of d numbers in place. Row k keeps L left of its place k and, from there on, the vector w of the
 * reflection I − βwwᵀ; the diagonal of L and the βs are put beside. Rows may be zero or depend on each other. */
void reduce_rows(double *rows, double *diagonal, double *betas, size_t n, size_t d);

/* LᵀL, n × n: the gram matrix of the vectors in their own coordinates */
void reduced_gram(const double *rows, const double *diagonal, double *out, size_t n, size_t d);

/* x ← Qᵀx */
void turn(const double *rows, const double *betas, double *x, size_t n, size_t d);

/* x ← Qx */
void turn_back(const double *rows, const double *betas, double *x, size_t n, size_t d);

#endif
