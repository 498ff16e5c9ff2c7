#include "linalg.h"

#include "elementary.h"

#include <math.h>
#include <stdlib.h>

/* Compiled twice on Linux, for every x86-64 and for those with AVX2; the loader takes the better one. The bits are the
 * same: lanes do not depend on the width, and nothing is contracted (-ffp-contract=off). */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && !defined(COTERIE_ONE_TARGET)
#define FOR_EVERY_TARGET __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EVERY_TARGET
#endif
#define INLINE static inline __attribute__((always_inline))

enum { LANES = 4 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

INLINE lanes load(const double *p) { return *(const lanes *)p; }

/* The last 1 to 3 numbers of a row, zeros behind them */
INLINE lanes load_rest(const double *p, size_t rest) {
    lanes v = {p[0], 0.0, 0.0, 0.0};
    if (rest > 1) v[1] = p[1];
    if (rest > 2) v[2] = p[2];
    return v;
}

INLINE double sum(lanes v) { return (v[0] + v[1]) + (v[2] + v[3]); }

INLINE size_t row_of(const int64_t *rows, size_t k) { return rows ? (size_t)rows[k] : k; }

FOR_EVERY_TARGET
double dot(const double *a, const double *b, size_t d) {
    size_t whole = d - d % LANES;
    lanes s = {0.0, 0.0, 0.0, 0.0};
    for (size_t i = 0; i < whole; i += LANES) s += load(a + i) * load(b + i);
    if (whole < d) s += load_rest(a + whole, d - whole) * load_rest(b + whole, d - whole);
    return sum(s);
}

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

FOR_EVERY_TARGET
void add_scaled(double *restrict out, double scale, const double *restrict x, size_t d) {
    for (size_t i = 0; i < d; i++) out[i] += scale * x[i];
}

FOR_EVERY_TARGET
void apply(const double *restrict matrix, const double *restrict x, double *restrict out, size_t d) {
    size_t whole = d - d % LANES;
    for (size_t i = 0; i < d; i++) out[i] = 0.0;
    for (size_t k = 0; k < whole; k += LANES) {
        const double *m0 = matrix + k * d, *m1 = m0 + d, *m2 = m1 + d, *m3 = m2 + d;
        double x0 = x[k], x1 = x[k + 1], x2 = x[k + 2], x3 = x[k + 3];
        for (size_t i = 0; i < d; i++) out[i] += (m0[i] * x0 + m1[i] * x1) + (m2[i] * x2 + m3[i] * x3);
    }
    for (size_t k = whole; k < d; k++)
        for (size_t i = 0; i < d; i++) out[i] += matrix[k * d + i] * x[k];
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

enum { LONGEST = 512 }; /* longer vectors are taken one by one: eight of them would not fit the stack */

FOR_EVERY_TARGET
void quadratics(const double *matrix, const double *items, const int64_t *rows, size_t n, size_t d, double *out) {
    size_t k = 0;
    eight packed[LONGEST];
    double *side_by_side = (double *)packed;
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

FOR_EVERY_TARGET
void eliminate(double *restrict upper, double *restrict moment, size_t d, double floor, double *restrict logdet,
               double *restrict explained) {
    for (size_t k = 0; k + 1 < d; k += 2) { /* two pivots at a time */
        double *first = upper + k * d, *second = first + d;
        if (!(first[k] > floor)) first[k] = floor;
        double factor = first[k + 1] / first[k];
        moment[k + 1] -= factor * moment[k];
        for (size_t i = k + 1; i < d; i++) second[i] -= factor * first[i];
        if (!(second[k + 1] > floor)) second[k + 1] = floor;
        double inverse = 1.0 / first[k], other = 1.0 / second[k + 1];
        for (size_t j = k + 2; j < d; j++) {
            double one = first[j] * inverse, two = second[j] * other, *row = upper + j * d;
            moment[j] -= one * moment[k] + two * moment[k + 1];
            for (size_t i = j; i < d; i++) row[i] -= one * first[i] + two * second[i];
        }
    }
    if (d % 2 && !(upper[d * d - 1] > floor)) upper[d * d - 1] = floor;
    *logdet = *explained = 0.0;
    for (size_t k = 0; k < d; k++) {
        *logdet += natural_log(upper[k * d + k]);
        *explained += moment[k] * moment[k] / upper[k * d + k];
    }
}

FOR_EVERY_TARGET
void back_substitute(const double *upper, const double *moment, double *out, size_t d) {
    for (size_t k = d; k-- > 0;) {
        double total = moment[k] - dot(upper + k * d + k + 1, out + k + 1, d - k - 1);
        out[k] = total / upper[k * d + k];
    }
}

/* A⁻¹ = Σ rⱼrⱼᵀ/pⱼ with the pivots pⱼ and the rows rⱼ of L⁻¹ */
FOR_EVERY_TARGET
void finish_inverse(const double *upper, double *factor, double *out, size_t d) {
    for (size_t j = 0; j < d; j++) {
        double *own = factor + j * d;
        for (size_t i = 0; i < j; i++) own[i] = 0.0;
        own[j] = 1.0;
        for (size_t k = 0; k < j; k++) {
            double scale = upper[k * d + j] / upper[k * d + k];
            add_scaled(own, -scale, factor + k * d, k + 1);
        }
    }
    for (size_t j = 0; j < d; j++) { /* row j of the sum is not read again once j has been added */
        double pivot = upper[j * d + j], *own = factor + j * d;
        for (size_t i = 0; i <= j; i++) out[j * d + i] = 0.0;
        for (size_t k = 0; k <= j; k++) add_scaled(out + k * d, own[k] / pivot, own, k + 1);
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

FOR_EVERY_TARGET
void cholesky(const double *restrict matrix, double *restrict factor, size_t d) {
    for (size_t j = 0; j < d; j++) {
        double *own = factor + j * d;
        for (size_t k = 0; k <= j; k++) {
            double left = matrix[j * d + k] - dot(own, factor + k * d, k);
            if (k < j)
                own[k] = factor[k * d + k] > 0.0 ? left / factor[k * d + k] : 0.0;
            else
                own[j] = left > 0.0 ? sqrt(left) : 0.0;
        }
    }
}
