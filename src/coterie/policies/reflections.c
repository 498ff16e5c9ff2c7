#include "reflections.h"

#include "targets.h"

#include <math.h>

static const double NOTHING = 1e-290; /* a vector whose square is less is taken for zero */

/* x ← x − β(wᵀx)w */
INLINE void reflect(double *restrict x, const double *restrict w, double beta, size_t d) {
    double step = beta * inner(x, w, d);
    for (size_t i = 0; i < d; i++) x[i] -= step * w[i];
}

FOR_EVERY_TARGET
void reduce_rows(double *rows, double *diagonal, double *betas, size_t n, size_t d) {
    for (size_t k = 0; k < n; k++) {
        double *w = rows + k * d + k;
        double length2 = inner(w, w, d - k), end = 0.0;
        if (length2 > NOTHING) end = w[0] > 0.0 ? -sqrt(length2) : sqrt(length2);
        diagonal[k] = end;
        betas[k] = length2 > NOTHING ? 1.0 / (length2 - end * w[0]) : 0.0; /* 2/‖w − end·e‖²; nothing cancels */
        w[0] -= end;
        for (size_t j = k + 1; j < n; j++) reflect(rows + j * d + k, w, betas[k], d - k);
    }
}

FOR_EVERY_TARGET
void reduced_gram(const double *rows, const double *diagonal, double *out, size_t n, size_t d) {
    for (size_t i = 0; i < n * n; i++) out[i] = 0.0;
    for (size_t k = 0; k < n; k++) { /* row k of L, whose last number is on the diagonal */
        const double *row = rows + k * d;
        for (size_t i = 0; i < k; i++) {
            for (size_t j = i; j < k; j++) out[i * n + j] += row[i] * row[j];
            out[i * n + k] += row[i] * diagonal[k];
        }
        out[k * n + k] += diagonal[k] * diagonal[k];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) out[i * n + j] = out[j * n + i];
}

FOR_EVERY_TARGET
void turn(const double *rows, const double *betas, double *x, size_t n, size_t d) {
    for (size_t k = 0; k < n; k++) reflect(x + k, rows + k * d + k, betas[k], d - k);
}

FOR_EVERY_TARGET
void turn_back(const double *rows, const double *betas, double *x, size_t n, size_t d) {
    for (size_t k = n; k-- > 0;) reflect(x + k, rows + k * d + k, betas[k], d - k);
}
