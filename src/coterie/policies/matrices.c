#include "matrices.h"

#include "targets.h"

#include <math.h>

FOR_EVERY_TARGET
void multiply(const double *restrict a, const double *restrict b, double *restrict out, size_t d) {
    for (size_t i = 0; i < d; i++) {
        double *row = out + i * d;
        size_t k = 0;
        for (size_t j = 0; j < d; j++) row[j] = 0.0;
        for (; k + 4 <= d; k += 4) { /* four rows of b at a time, in a tree of sums */
            const double *b0 = b + k * d, *b1 = b0 + d, *b2 = b1 + d, *b3 = b2 + d;
            double a0 = a[i * d + k], a1 = a[i * d + k + 1], a2 = a[i * d + k + 2], a3 = a[i * d + k + 3];
            for (size_t j = 0; j < d; j++) row[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
        }
        for (; k < d; k++)
            for (size_t j = 0; j < d; j++) row[j] += a[i * d + k] * b[k * d + j];
    }
}

void transpose(const double *restrict a, double *restrict out, size_t d) {
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) out[j * d + i] = a[i * d + j];
}

void multiply_transposed(const double *a, const double *b, double *out, double *work, size_t d) {
    transpose(b, work, d);
    multiply(a, work, out, d);
}

void congruent(const double *p, const double *a, double *out, double *work, size_t d) {
    multiply(p, a, work, d);
    multiply_transposed(work, p, out, work + d * d, d);
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < i; j++) out[i * d + j] = out[j * d + i] = 0.5 * (out[i * d + j] + out[j * d + i]);
}

/* Row i of YYᵀ up to the diagonal: Σₖ yᵢₖ times row k of Yᵀ */
FOR_EVERY_TARGET
void add_gram(double *restrict c, const double *restrict y, double *restrict work, size_t d) {
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) work[j * d + i] = y[i * d + j];
    for (size_t i = 0; i < d; i++) {
        double *row = c + i * d;
        size_t k = 0, end = i + 1;
        for (; k + 4 <= d; k += 4) {
            const double *t0 = work + k * d, *t1 = t0 + d, *t2 = t1 + d, *t3 = t2 + d;
            double y0 = y[i * d + k], y1 = y[i * d + k + 1], y2 = y[i * d + k + 2], y3 = y[i * d + k + 3];
            for (size_t j = 0; j < end; j++) row[j] += (y0 * t0[j] + y1 * t1[j]) + (y2 * t2[j] + y3 * t3[j]);
        }
        for (; k < d; k++)
            for (size_t j = 0; j < end; j++) row[j] += y[i * d + k] * work[k * d + j];
    }
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < i; j++) c[j * d + i] = c[i * d + j];
}

void invert_lower(const double *lower, double *out, size_t d) {
    for (size_t i = 0; i < d * d; i++) out[i] = 0.0;
    for (size_t i = 0; i < d; i++) {
        double own = 1.0 / lower[i * d + i];
        for (size_t k = 0; k < i; k++)
            for (size_t j = 0; j <= k; j++) out[i * d + j] -= lower[i * d + k] * out[k * d + j];
        for (size_t j = 0; j < i; j++) out[i * d + j] *= own;
        out[i * d + i] = own;
    }
}

/* (u, v) ← (cu − sv, su + cv) */
static inline void rotate(double *restrict u, double *restrict v, double c, double s, size_t d) {
    for (size_t i = 0; i < d; i++) {
        double first = u[i], second = v[i];
        u[i] = c * first - s * second;
        v[i] = s * first + c * second;
    }
}

static void annihilate(double *matrix, double *vectors, size_t p, size_t q, size_t d) {
    double apart = matrix[q * d + q] - matrix[p * d + p], off = matrix[p * d + q];
    double ratio = 0.5 * apart / off;
    double t = (ratio < 0.0 ? -1.0 : 1.0) / (fabs(ratio) + sqrt(1.0 + ratio * ratio));
    double c = 1.0 / sqrt(1.0 + t * t), s = t * c;
    for (size_t i = 0; i < d; i++) {
        double first = matrix[i * d + p], second = matrix[i * d + q];
        matrix[i * d + p] = c * first - s * second;
        matrix[i * d + q] = s * first + c * second;
    }
    rotate(matrix + p * d, matrix + q * d, c, s, d);
    rotate(vectors + p * d, vectors + q * d, c, s, d);
}

enum { MOST_SWEEPS = 30 };

FOR_EVERY_TARGET
void eigen(double *matrix, double *vectors, size_t d) {
    const double rounding = 1e-15; /* what is left off the diagonal, relative to it */
    for (size_t i = 0; i < d * d; i++) vectors[i] = 0.0;
    for (size_t i = 0; i < d; i++) vectors[i * d + i] = 1.0;
    for (int sweep = 0, turned = 1; turned && sweep < MOST_SWEEPS; sweep++) {
        double scale = 0.0;
        turned = 0;
        for (size_t i = 0; i < d; i++) scale = fmax(scale, fabs(matrix[i * d + i]));
        for (size_t p = 0; p < d; p++)
            for (size_t q = p + 1; q < d; q++)
                if (fabs(matrix[p * d + q]) > rounding * scale) {
                    annihilate(matrix, vectors, p, q, d);
                    turned = 1;
                }
    }
}
