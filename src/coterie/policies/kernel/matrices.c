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

FOR_EVERY_TARGET
void add_outers(double *restrict upper, const double *const *vectors, size_t n, size_t d) {
    size_t v = 0;
    for (; v + 4 <= n; v += 4) { /* four at a time, added one after the other */
        const double *x0 = vectors[v], *x1 = vectors[v + 1], *x2 = vectors[v + 2], *x3 = vectors[v + 3];
        for (size_t k = 0; k < d; k++) {
            double *row = upper + k * d;
            double s0 = x0[k], s1 = x1[k], s2 = x2[k], s3 = x3[k];
            for (size_t i = k; i < d; i++) row[i] = (((row[i] + s0 * x0[i]) + s1 * x1[i]) + s2 * x2[i]) + s3 * x3[i];
        }
    }
    for (; v < n; v++)
        for (size_t k = 0; k < d; k++)
            for (size_t i = k; i < d; i++) upper[k * d + i] += vectors[v][k] * vectors[v][i];
}

/* Four columns at a time, so that what is written lies together */
void mirror(double *matrix, size_t d) {
    for (size_t k = 0; k < d; k += 4) {
        size_t end = k + 4 < d ? k + 4 : d;
        for (size_t i = k + 1; i < d; i++)
            for (size_t j = k; j < (i < end ? i : end); j++) matrix[i * d + j] = matrix[j * d + i];
    }
}

FOR_EVERY_TARGET
void combine_upper(const double *restrict first, const double *restrict second, double sign, double weight,
                   double *restrict out, size_t d) {
    for (size_t k = 0; k < d; k++) {
        for (size_t i = k * d + k; i < k * d + d; i++) out[i] = first[i] + sign * second[i];
        out[k * d + k] += weight;
    }
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

/* Copies row k of a symmetric matrix; returns what is on the diagonal */
INLINE lanes take_row(lanes *row, const lanes *lower, size_t k, size_t d) {
    for (size_t j = 0; j < d; j++) row[j] = j < k ? lower[k * d + j] : lower[j * d + k];
    return row[k];
}

INLINE lanes no_less(lanes value, double floor) {
    for (size_t a = 0; a < LANES; a++)
        if (!(value[a] > floor)) value[a] = floor;
    return value;
}

/* Sweeps by pivot k: a_ij ← a_ij − a_ik a_kj/a_kk, a_ik ← a_ik/a_kk, a_kk ← −1/a_kk. All pivots make −A⁻¹ of A. */
INLINE void sweep(lanes *lower, lanes *row, size_t k, double floor, size_t d) {
    lanes own = 1.0 / no_less(take_row(row, lower, k, d), floor);
    for (size_t i = 0; i < d; i++) {
        if (i == k) continue;
        lanes scale = row[i] * own, *entries = lower + i * d;
        for (size_t j = 0; j <= i; j++) entries[j] -= scale * row[j];
        *(i > k ? entries + k : lower + k * d + i) = scale;
    }
    lower[k * d + k] = -own;
}

/* The same by pivots k and l = k + 1 in one pass */
INLINE void sweep_two(lanes *lower, lanes *first, lanes *second, size_t k, double floor, size_t d) {
    size_t l = k + 1;
    lanes one = 1.0 / no_less(take_row(first, lower, k, d), floor), shift = first[l] * one;
    take_row(second, lower, l, d);
    for (size_t j = 0; j < d; j++) second[j] -= shift * first[j];
    second[k] = shift;
    lanes other = 1.0 / no_less(second[l], floor);
    for (size_t i = 0; i < d; i++) {
        if (i == k || i == l) continue;
        lanes s = first[i] * one, t = second[i] * other, *entries = lower + i * d;
        for (size_t j = 0; j <= i; j++) entries[j] = (entries[j] - s * first[j]) - t * second[j];
        *(i > k ? entries + k : lower + k * d + i) = s - t * shift;
        *(i > l ? entries + l : lower + l * d + i) = t;
    }
    lower[k * d + k] = -one - shift * (shift * other);
    lower[l * d + k] = shift * other;
    lower[l * d + l] = -other;
}

FOR_EVERY_TARGET
void invert_sums(const double *common, const double *const *own, double *const *out, double *work, size_t d, double floor) {
    lanes *lower = (lanes *)work, *rows = lower + d * d;
    const double *s0 = own[0], *s1 = own[1], *s2 = own[2], *s3 = own[3];
    double *v0 = out[0], *v1 = out[1], *v2 = out[2], *v3 = out[3];
    size_t k = 0;
    for (size_t i = 0; i < d * d; i++) lower[i] = common[i] + (lanes){s0[i], s1[i], s2[i], s3[i]};
    for (; k + 1 < d; k += 2) sweep_two(lower, rows, rows + d, k, floor, d);
    for (; k < d; k++) sweep(lower, rows, k, floor, d);
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < i; j++) lower[j * d + i] = lower[i * d + j];
    for (size_t i = 0; i < d * d; i++) v0[i] = -lower[i][0], v1[i] = -lower[i][1], v2[i] = -lower[i][2], v3[i] = -lower[i][3];
}

/* (u, v) ← (cu − sv, su + cv) */
INLINE void rotate(double *restrict u, double *restrict v, double c, double s, size_t d) {
    for (size_t i = 0; i < d; i++) {
        double first = u[i], second = v[i];
        u[i] = c * first - s * second;
        v[i] = s * first + c * second;
    }
}

/* y ← y + scale·x */
INLINE void add_multiple(double *restrict y, double scale, const double *restrict x, size_t d) {
    for (size_t i = 0; i < d; i++) y[i] += scale * x[i];
}

INLINE double in_order(const double *x, const double *y, size_t d) {
    double sum = 0.0;
    for (size_t i = 0; i < d; i++) sum += x[i] * y[i];
    return sum;
}

/* What is left of a matrix A whose first k rows and columns are tridiagonal: the reflection I − βvvᵀ that makes row k so, and
 * A ← A − vwᵀ − wvᵀ behind it. v stays in row k behind the diagonal, the entry beside the diagonal below it, β below that. */
INLINE void reflect(double *matrix, double *w, size_t k, size_t d) {
    size_t n = d - k - 1;
    double *v = matrix + k * d + k + 1, *below = matrix + (k + 1) * d + k, *rest = below + 1;
    double length2 = in_order(v, v, n), beside = v[0] > 0.0 ? -sqrt(length2) : sqrt(length2);
    double scale = length2 > v[0] * v[0] ? 1.0 / (length2 - beside * v[0]) : 0.0;
    if (scale == 0.0) beside = v[0];
    else v[0] -= beside;
    for (size_t i = 0; i < n; i++) w[i] = 0.0;
    for (size_t i = 0; scale > 0.0 && i < n; i++) add_multiple(w, scale * v[i], rest + i * d, n);
    add_multiple(w, -0.5 * scale * in_order(v, w, n), v, n);
    for (size_t i = 0; scale > 0.0 && i < n; i++) {
        add_multiple(rest + i * d, -v[i], w, n);
        add_multiple(rest + i * d, -w[i], v, n);
    }
    below[0] = beside, below[d] = scale;
}

/* The product Q of all reflections, from what `reflect` left; its transpose in `vectors` */
INLINE void gather_reflections(const double *matrix, double *vectors, size_t d) {
    for (size_t i = 0; i < d * d; i++) vectors[i] = 0.0;
    for (size_t i = 0; i < d; i++) vectors[i * d + i] = 1.0;
    for (size_t k = d - 2; k-- > 0;) {
        size_t n = d - k - 1;
        const double *v = matrix + k * d + k + 1;
        double scale = matrix[(k + 2) * d + k], *rest = vectors + (k + 1) * d + k + 1, *sums = vectors + k + 1;
        for (size_t i = 0; scale > 0.0 && i < n; i++) add_multiple(sums, scale * v[i], rest + i * d, n);
        for (size_t i = 0; scale > 0.0 && i < n; i++) add_multiple(rest + i * d, -v[i], sums, n);
        for (size_t i = 0; i < n; i++) sums[i] = 0.0;
    }
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < i; j++) {
            double kept = vectors[i * d + j];
            vectors[i * d + j] = vectors[j * d + i], vectors[j * d + i] = kept;
        }
}

/* Entries of a tridiagonal matrix: on the diagonal, and below it */
#define AT(i) matrix[(i) * (d + 1)]
#define BESIDE(i) matrix[(i) * (d + 1) + d]

/* One implicit QL step with Wilkinson's shift on rows first to last of a tridiagonal matrix; rows of `vectors` turn along */
INLINE void chase(double *matrix, double *vectors, size_t first, size_t last, size_t d) {
    double half = 0.5 * (AT(first + 1) - AT(first)) / BESIDE(first), root = sqrt(half * half + 1.0);
    double ahead = AT(last) - AT(first) + BESIDE(first) / (half + (half < 0.0 ? -root : root));
    double c = 1.0, s = 1.0, shift = 0.0;
    for (size_t i = last; i-- > first;) {
        double turned = s * BESIDE(i), kept = c * BESIDE(i), length = sqrt(turned * turned + ahead * ahead), rise;
        if (i + 1 < last) BESIDE(i + 1) = length;
        if (length == 0.0) { /* it has split here */
            AT(i + 1) -= shift;
            return;
        }
        s = turned / length, c = ahead / length;
        ahead = AT(i + 1) - shift;
        rise = (AT(i) - ahead) * s + 2.0 * c * kept;
        shift = s * rise;
        AT(i + 1) = ahead + shift;
        ahead = c * rise - kept;
        rotate(vectors + i * d, vectors + (i + 1) * d, c, s, d);
    }
    AT(first) -= shift;
    BESIDE(first) = ahead;
}

enum { MOST_STEPS = 60 };

FOR_EVERY_TARGET
void eigen(double *matrix, double *vectors, size_t d) {
    const double rounding = 1e-16; /* what may be beside the diagonal, relative to it */
    for (size_t k = 0; k + 2 < d; k++) reflect(matrix, vectors, k, d);
    if (d > 1) gather_reflections(matrix, vectors, d);
    else vectors[0] = 1.0;
    for (size_t first = 0; first < d; first++)
        for (int step = 0; step < MOST_STEPS; step++) {
            size_t last = first;
            while (last + 1 < d && fabs(BESIDE(last)) > rounding * (fabs(AT(last)) + fabs(AT(last + 1)))) last++;
            if (last == first) break;
            chase(matrix, vectors, first, last, d);
        }
}

/* Vectors in as many coordinates as they are */

static const double NOTHING = 1e-290; /* a vector whose square is less is taken for zero */

/* x ← x − β(wᵀx)w */
INLINE void reflect_vector(double *restrict x, const double *restrict w, double beta, size_t d) {
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
        for (size_t j = k + 1; j < n; j++) reflect_vector(rows + j * d + k, w, betas[k], d - k);
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
    for (size_t k = 0; k < n; k++) reflect_vector(x + k, rows + k * d + k, betas[k], d - k);
}

FOR_EVERY_TARGET
void turn_back(const double *rows, const double *betas, double *x, size_t n, size_t d) {
    for (size_t k = n; k-- > 0;) reflect_vector(x + k, rows + k * d + k, betas[k], d - k);
}
