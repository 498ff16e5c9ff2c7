#include "linalg.h"

#include "elementary.h"
#include "targets.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

INLINE size_t row_of(const int64_t *rows, size_t k) { return rows ? (size_t)rows[k] : k; }

FOR_EVERY_TARGET
double dot(const double *a, const double *b, size_t d) { return inner(a, b, d); }

FOR_EVERY_TARGET
double distance2(const double *a, const double *b, size_t d) {
    size_t whole = d - d % LANES;
    lanes s = {0.0, 0.0, 0.0, 0.0};
    for (size_t i = 0; i < whole; i += LANES) {
        lanes apart = load(a + i) - load(b + i);
        s += apart * apart;
    }
    if (whole < d) {
        lanes apart = load_rest(a + whole, d - whole) - load_rest(b + whole, d - whole);
        s += apart * apart;
    }
    return sum(s);
}

typedef float block __attribute__((vector_size(BLOCK * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef int32_t choice __attribute__((vector_size(BLOCK * sizeof(int32_t))));
typedef int64_t pairs __attribute__((vector_size(BLOCK * sizeof(int32_t))));

INLINE int any(choice chosen) {
    pairs v = (pairs)chosen;
    return ((v[0] | v[1]) | (v[2] | v[3])) != 0;
}

FOR_EVERY_TARGET
size_t sketches_within(const float *restrict blocks, const int64_t *restrict rows, size_t n, const float *restrict x,
                       float reach, float factor, int64_t *restrict found) {
    size_t count = 0;
    for (size_t k = 0; k < n; k += BLOCK) {
        const block *numbers = (const block *)(blocks + k * (SKETCH + 1));
        block apart2 = {0.0f}, limit = (numbers[SKETCH] + reach) * factor, limit2 = limit * limit * 1.00001f + FLT_MIN;
        for (size_t i = 0; i < SKETCH; i++) apart2 += (numbers[i] - x[i]) * (numbers[i] - x[i]);
        choice within = ~(apart2 > limit2);
        if (!any(within)) continue;
        for (size_t i = 0; i < BLOCK && k + i < n; i++)
            if (within[i]) found[count++] = rows[k + i];
    }
    return count;
}

FOR_EVERY_TARGET
void add_scaled(double *restrict out, double scale, const double *restrict x, size_t d) {
    for (size_t i = 0; i < d; i++) out[i] += scale * x[i];
}

FOR_EVERY_TARGET
void combine_rows(const double *restrict rows, size_t stride, const double *restrict x, size_t count, size_t n,
                  double *restrict out) {
    size_t whole = count - count % LANES;
    for (size_t i = 0; i < n; i++) out[i] = 0.0;
    for (size_t k = 0; k < whole; k += LANES) {
        const double *r0 = rows + k * stride, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
        double x0 = x[k], x1 = x[k + 1], x2 = x[k + 2], x3 = x[k + 3];
        for (size_t i = 0; i < n; i++) out[i] += (r0[i] * x0 + r1[i] * x1) + (r2[i] * x2 + r3[i] * x3);
    }
    for (size_t k = whole; k < count; k++)
        for (size_t i = 0; i < n; i++) out[i] += rows[k * stride + i] * x[k];
}

FOR_EVERY_TARGET
void apply(const double *restrict matrix, const double *restrict x, double *restrict out, size_t d) {
    combine_rows(matrix, d, x, d, d, out);
}

FOR_EVERY_TARGET
void add_outer(double *restrict gram, const double *restrict x, size_t d) {
    for (size_t k = 0; k < d; k++)
        for (size_t i = 0; i < d; i++) gram[k * d + i] += x[k] * x[i];
}

/* xᵀAx = Σᵢ xᵢ(Aᵢᵢxᵢ + 2aᵢ) with aᵢ = Σ_{j>i} Aⱼᵢxⱼ, both sums from first to last: half the products, and the same order
 * whether one vector is taken or eight side by side. */

enum { PANEL = 256 }; /* rows whose sums aᵢ are held at a time */

FOR_EVERY_TARGET
double quadratic(const double *restrict matrix, const double *restrict x, size_t d) {
    double total = 0.0, above[PANEL];
    for (size_t p = 0; p < d; p += PANEL) {
        size_t width = d - p < PANEL ? d - p : PANEL, j = p + 1;
        for (size_t i = 0; i < width; i++) above[i] = 0.0;
        for (; j % LANES && j < d; j++)
            for (size_t i = 0; i < width && p + i < j; i++) above[i] += matrix[j * d + p + i] * x[j];
        for (; j + LANES <= d; j += LANES) { /* four rows at a time, added one after the other */
            const double *m0 = matrix + j * d + p, *m1 = m0 + d, *m2 = m1 + d, *m3 = m2 + d;
            size_t full = j - p < width ? j - p : width;
            double x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
            for (size_t i = 0; i < full; i++) above[i] = (((above[i] + m0[i] * x0) + m1[i] * x1) + m2[i] * x2) + m3[i] * x3;
            for (size_t i = full; i < width && p + i < j + 3; i++)
                for (size_t k = p + i + 1; k < j + LANES; k++) above[i] += matrix[k * d + p + i] * x[k];
        }
        for (; j < d; j++)
            for (size_t i = 0; i < width && p + i < j; i++) above[i] += matrix[j * d + p + i] * x[j];
        for (size_t i = 0; i < width; i++) total += x[p + i] * (matrix[(p + i) * d + p + i] * x[p + i] + 2.0 * above[i]);
    }
    return total;
}

typedef struct {
    lanes low, high;
} eight;

INLINE eight times(double factor, eight v) { return (eight){factor * v.low, factor * v.high}; }
INLINE void add(eight *sum, eight v) { sum->low += v.low, sum->high += v.high; }

/* Adds the terms of row i of eight vectors side by side, x[i] their i-th numbers */
INLINE void finish_row(eight *total, double diagonal, eight x, eight above) {
    eight term = times(diagonal, x);
    add(&term, times(2.0, above));
    total->low += x.low * term.low;
    total->high += x.high * term.high;
}

INLINE eight quadratics_of_eight(const double *matrix, const eight *x, size_t d) {
    size_t whole = d - d % LANES;
    eight zero = {{0.0}, {0.0}}, total = zero;
    for (size_t i = 0; i < whole; i += LANES) { /* four rows at a time */
        eight a0 = zero, a1 = zero, a2 = zero, a3 = zero;
        const double *m = matrix + i * d + i;
        add(&a0, times(m[d], x[i + 1]));
        add(&a0, times(m[2 * d], x[i + 2]));
        add(&a1, times(m[2 * d + 1], x[i + 2]));
        add(&a0, times(m[3 * d], x[i + 3]));
        add(&a1, times(m[3 * d + 1], x[i + 3]));
        add(&a2, times(m[3 * d + 2], x[i + 3]));
        for (size_t j = i + LANES; j < d; j++) {
            const double *row = matrix + j * d + i;
            add(&a0, times(row[0], x[j]));
            add(&a1, times(row[1], x[j]));
            add(&a2, times(row[2], x[j]));
            add(&a3, times(row[3], x[j]));
        }
        finish_row(&total, m[0], x[i], a0);
        finish_row(&total, m[d + 1], x[i + 1], a1);
        finish_row(&total, m[2 * d + 2], x[i + 2], a2);
        finish_row(&total, m[3 * d + 3], x[i + 3], a3);
    }
    for (size_t i = whole; i < d; i++) {
        eight above = zero;
        for (size_t j = i + 1; j < d; j++) add(&above, times(matrix[j * d + i], x[j]));
        finish_row(&total, matrix[i * d + i], x[i], above);
    }
    return total;
}

/* Are all numbers beside the diagonal 0, as before the first reward? Of other matrices, the first few are read. */
INLINE int is_diagonal(const double *matrix, size_t d) {
    for (size_t j = 1; j < d; j++)
        for (size_t i = 0; i < j; i++)
            if (matrix[j * d + i] != 0.0) return 0;
    return 1;
}

/* xᵀAx of some rows and a diagonal A: the same sum as that of `quadratic` without its zeros */
INLINE void diagonal_quadratics(const double *matrix, const double *items, const int64_t *rows, size_t n, size_t d, double *out) {
    for (size_t k = 0; k < n; k += ARMS_AT_A_TIME) { /* side by side: each sum has to wait for its last term */
        size_t count = n - k < ARMS_AT_A_TIME ? n - k : ARMS_AT_A_TIME;
        const double *x[ARMS_AT_A_TIME];
        double total[ARMS_AT_A_TIME] = {0.0};
        for (size_t a = 0; a < ARMS_AT_A_TIME; a++) x[a] = items + row_of(rows, a < count ? k + a : k) * d;
        for (size_t i = 0; i < d; i++)
            for (size_t a = 0; a < ARMS_AT_A_TIME; a++) total[a] += x[a][i] * (matrix[i * d + i] * x[a][i]);
        for (size_t a = 0; a < count; a++) out[k + a] = total[a];
    }
}

enum { LONGEST = 512 }; /* longer vectors are taken one by one: eight of them would not fit the stack */

FOR_EVERY_TARGET
void quadratics(const double *matrix, const double *items, const int64_t *rows, size_t n, size_t d, double *out) {
    size_t k = 0;
    eight packed[LONGEST];
    double *side_by_side = (double *)packed;
    if (n > 2 && is_diagonal(matrix, d)) {
        diagonal_quadratics(matrix, items, rows, n, d, out);
        return;
    }
    for (; d <= LONGEST && k + 2 < n; k += ARMS_AT_A_TIME) {
        size_t count = n - k < ARMS_AT_A_TIME ? n - k : ARMS_AT_A_TIME;
        for (size_t a = 0; a < ARMS_AT_A_TIME; a++) {
            const double *x = items + row_of(rows, a < count ? k + a : k) * d;
            for (size_t i = 0; i < d; i++) side_by_side[ARMS_AT_A_TIME * i + a] = x[i];
        }
        eight found = quadratics_of_eight(matrix, packed, d);
        for (size_t a = 0; a < count; a++) out[k + a] = a < LANES ? found.low[a] : found.high[a - LANES];
    }
    for (; k < n; k++) out[k] = quadratic(matrix, items + row_of(rows, k) * d, d);
}

FOR_EVERY_TARGET
void means(const double *theta, const double *items, const int64_t *rows, size_t n, size_t d, double *out) {
    size_t whole = d - d % LANES, rest = d - whole, k = 0;
    lanes zero = {0.0, 0.0, 0.0, 0.0}, end = rest ? load_rest(theta + whole, rest) : zero;
    for (; k + 4 <= n; k += 4) {
        const double *x0 = items + row_of(rows, k) * d, *x1 = items + row_of(rows, k + 1) * d;
        const double *x2 = items + row_of(rows, k + 2) * d, *x3 = items + row_of(rows, k + 3) * d;
        lanes s0 = zero, s1 = zero, s2 = zero, s3 = zero;
        for (size_t i = 0; i < whole; i += LANES) {
            lanes t = load(theta + i);
            s0 += load(x0 + i) * t;
            s1 += load(x1 + i) * t;
            s2 += load(x2 + i) * t;
            s3 += load(x3 + i) * t;
        }
        if (rest) {
            s0 += load_rest(x0 + whole, rest) * end;
            s1 += load_rest(x1 + whole, rest) * end;
            s2 += load_rest(x2 + whole, rest) * end;
            s3 += load_rest(x3 + whole, rest) * end;
        }
        out[k] = sum(s0);
        out[k + 1] = sum(s1);
        out[k + 2] = sum(s2);
        out[k + 3] = sum(s3);
    }
    for (; k < n; k++) out[k] = dot(items + row_of(rows, k) * d, theta, d);
}

FOR_EVERY_TARGET
void squares(const double *items, const int64_t *rows, size_t n, size_t d, double *out) {
    for (size_t k = 0; k < n; k++) {
        const double *x = items + row_of(rows, k) * d;
        out[k] = dot(x, x, d);
    }
}

FOR_EVERY_TARGET
double absorb(double *restrict inverse, double *restrict moment, double *restrict estimate, const double *restrict x,
              double reward, double *restrict gain, size_t d) {
    apply(inverse, x, gain, d);
    double width2 = dot(x, gain, d), shrink = 1.0 / (1.0 + width2), root = sqrt(shrink);
    double step = (reward - dot(x, estimate, d)) * shrink;
    for (size_t k = 0; k < d; k++) {
        estimate[k] += step * gain[k];
        moment[k] += reward * x[k];
    }
    for (size_t k = 0; k < d; k++) gain[k] *= root;
    for (size_t k = 0; k < d; k++)
        for (size_t i = 0; i < d; i++) inverse[k * d + i] -= gain[k] * gain[i];
    return width2;
}

/* The lesser of two bounds: the largest sum of absolute values in a row, and μ + s√(d − 1) with the mean μ and the standard
 * deviation s of the eigenvalues, which follow from tr A and tr A² (Wolkowicz and Styan 1980). */
FOR_EVERY_TARGET
double largest_eigenvalue(const double *restrict matrix, double *restrict work, size_t d) {
    const double rounding = 1e-13; /* what a difference of squares may lose, relative to them */
    double *sums = work, *squared = work + d, trace = 0.0, square = 0.0, largest = 0.0;
    for (size_t i = 0; i < d; i++) sums[i] = squared[i] = 0.0;
    for (size_t k = 0; k < d; k++) {
        const double *row = matrix + k * d;
        trace += row[k];
        for (size_t i = 0; i < d; i++) {
            sums[i] += fabs(row[i]);
            squared[i] += row[i] * row[i];
        }
    }
    for (size_t i = 0; i < d; i++) {
        largest = sums[i] > largest ? sums[i] : largest;
        square += squared[i];
    }
    double mean = trace / (double)d, spread2 = square / (double)d - mean * mean;
    spread2 = (spread2 > 0.0 ? spread2 : 0.0) + rounding * square;
    double bound = mean + sqrt(spread2 * (double)(d - 1));
    return bound < largest ? bound : largest;
}

/* out[i] += s₀r₀[i] + s₁r₁[i] + s₂r₂[i] + s₃r₃[i] for first ≤ i < last, with four rows that follow each other */
INLINE void add_four_rows(double *out, const double *rows, size_t stride, const double *scales, size_t first, size_t last) {
    const double *r0 = rows, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
    double s0 = scales[0], s1 = scales[1], s2 = scales[2], s3 = scales[3];
    size_t i = first;
    for (; i + LANES <= last; i += LANES) {
        lanes sum = (s0 * load(r0 + i) + s1 * load(r1 + i)) + (s2 * load(r2 + i) + s3 * load(r3 + i));
        *(lanes *)(out + i) = load(out + i) + sum;
    }
    for (; i < last; i++) out[i] += (s0 * r0[i] + s1 * r1[i]) + (s2 * r2[i] + s3 * r3[i]);
}

INLINE void add_one_row(double *out, const double *row, double scale, size_t first, size_t last) {
    size_t i = first;
    for (; i + LANES <= last; i += LANES) *(lanes *)(out + i) = load(out + i) + scale * load(row + i);
    for (; i < last; i++) out[i] += scale * row[i];
}

/* Where the numbers of a row from j on begin, if they are to fill whole lanes: up to three places left of j */
INLINE size_t in_whole_lanes(size_t j, size_t d) {
    size_t n = (d - j + LANES - 1) / LANES * LANES;
    return n <= d ? d - n : j;
}

/* Entries left of the diagonal are changed too; they are never read */
FOR_EVERY_TARGET
void eliminate(double *upper, double *moment, size_t d, double floor, double *logdet, double *explained) {
    for (size_t k = 0; k < d; k += 4) { /* four pivots at a time */
        size_t end = k + 4 < d ? k + 4 : d;
        double scales[4], inverses[4];
        for (size_t p = k; p < end; p++) { /* among themselves */
            double *pivot = upper + p * d;
            if (!(pivot[p] > floor)) pivot[p] = floor;
            inverses[p - k] = 1.0 / pivot[p];
            for (size_t j = p + 1; j < end; j++) {
                double scale = -(pivot[j] * inverses[p - k]);
                moment[j] += scale * moment[p];
                add_one_row(upper + j * d, pivot, scale, in_whole_lanes(j, d), d);
            }
        }
        for (size_t j = end; j < d; j++) { /* then everything below them; there are four, or nothing is below */
            const double *rows = upper + k * d;
            for (size_t p = 0; p < 4; p++) scales[p] = -(rows[p * d + j] * inverses[p]);
            moment[j] += (scales[0] * moment[k] + scales[1] * moment[k + 1]) +
                         (scales[2] * moment[k + 2] + scales[3] * moment[k + 3]);
            add_four_rows(upper + j * d, rows, d, scales, in_whole_lanes(j, d), d);
        }
    }
    double product = 1.0; /* of pivots, while it is no extreme number: a logarithm costs as much as many of them */
    *logdet = *explained = 0.0;
    for (size_t k = 0; k < d; k++) {
        double pivot = upper[k * d + k], next = product * pivot;
        *explained += moment[k] * moment[k] / pivot;
        if (next > 1e-100 && next < 1e100) product = next;
        else *logdet += natural_log(product) + natural_log(pivot), product = 1.0;
    }
    *logdet += natural_log(product);
}

FOR_EVERY_TARGET
void back_substitute(const double *upper, const double *moment, double *out, size_t d) {
    for (size_t k = d; k-- > 0;) {
        double total = moment[k] - dot(upper + k * d + k + 1, out + k + 1, d - k - 1);
        out[k] = total / upper[k * d + k];
    }
}

/* A⁻¹ = Σ rⱼrⱼᵀ/pⱼ with the pivots pⱼ and the rows rⱼ of L⁻¹, which `factor` takes in, zeros above the diagonal */
FOR_EVERY_TARGET
void finish_inverse(const double *upper, double *factor, double *out, size_t d) {
    double scales[4];
    for (size_t j = 0; j < d; j++) {
        double *own = factor + j * d;
        size_t k = 0;
        for (size_t i = 0; i < d; i++) own[i] = i == j ? 1.0 : 0.0;
        for (; k + 4 <= j; k += 4) {
            for (size_t p = 0; p < 4; p++) scales[p] = -(upper[(k + p) * d + j] / upper[(k + p) * d + k + p]);
            add_four_rows(own, factor + k * d, d, scales, 0, k + 4);
        }
        for (; k < j; k++) add_one_row(own, factor + k * d, -(upper[k * d + j] / upper[k * d + k]), 0, k + 1);
    }
    for (size_t k = 0; k < d; k++) { /* `out` may be `upper`: of row j only the pivot is read, before row j is written */
        double *row = out + k * d;
        size_t j = k;
        double first = factor[k * d + k] / upper[k * d + k];
        for (size_t i = 0; i <= k; i++) row[i] = first * factor[k * d + i];
        for (j = k + 1; j + 4 <= d; j += 4) {
            for (size_t p = 0; p < 4; p++) scales[p] = factor[(j + p) * d + k] / upper[(j + p) * d + j + p];
            add_four_rows(row, factor + j * d, d, scales, 0, k + 1);
        }
        for (; j < d; j++) add_one_row(row, factor + j * d, factor[j * d + k] / upper[j * d + j], 0, k + 1);
    }
    for (size_t k = 0; k < d; k++)
        for (size_t i = 0; i < k; i++) out[i * d + k] = out[k * d + i];
}

FOR_EVERY_TARGET
void invert(double *matrix, double *work, size_t d, double floor) {
    double logdet, explained;
    for (size_t i = 0; i < d; i++) work[i] = 0.0;
    eliminate(matrix, work, d, floor, &logdet, &explained);
    finish_inverse(matrix, work + d, matrix, d);
}

/* From A = L̃PL̃ᵀ: column k of L is √pₖ times that of L̃ */
FOR_EVERY_TARGET
void cholesky(const double *matrix, double *factor, double *work, size_t d) {
    double logdet, explained, *moment = work + d * d;
    for (size_t i = 0; i < d * d; i++) work[i] = matrix[i];
    for (size_t i = 0; i < d; i++) moment[i] = 0.0;
    eliminate(work, moment, d, 1e-200, &logdet, &explained);
    for (size_t k = 0; k < d; k++) {
        double root = work[k * d + k] > 0.0 ? 1.0 / sqrt(work[k * d + k]) : 0.0;
        for (size_t j = k; j < d; j++) factor[j * d + k] = work[k * d + j] * root;
    }
}
