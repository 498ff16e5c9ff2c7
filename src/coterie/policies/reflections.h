/* A few vectors in as many coordinates as they are: V = (L 0)Qᵀ, with Q the product of n reflections of d numbers. */
#ifndef COTERIE_REFLECTIONS_H
#define COTERIE_REFLECTIONS_H

#include <stddef.h>

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
