#include "widths.h"

#include "targets.h"

#include <math.h>
#include <string.h>

enum { MOST_FORM = 16383, STEPS = 24, ROW_CODE = 127 };
static const double ROUNDED = 1.0 + 1e-5; /* more than a sum of squares in floats can lose */

/* One step of power iteration: out = Ax; returns xᵀAx / xᵀx */
FOR_EVERY_TARGET
static double iterate(const double *restrict matrix, const double *restrict x, double *restrict out, size_t d) {
    for (size_t i = 0; i < d; i++) out[i] = inner(matrix + i * d, x, d);
    double square = inner(x, x, d);
    return square > 0.0 ? inner(x, out, d) / square : 0.0;
}

FOR_EVERY_TARGET
int factorise(const double *restrict matrix, double *restrict factor, size_t p) {
    memcpy(factor, matrix, p * p * sizeof(double));
    for (size_t j = 0; j < p; j++) {
        double *column = factor + j * p, pivot = column[j];
        if (!(pivot > 0.0)) return 0;
        double root = sqrt(pivot);
        for (size_t i = 0; i < j; i++) column[i] = 0.0;
        for (size_t i = j; i < p; i++) column[i] /= root;
        for (size_t k = j + 1; k < p; k++) {
            double *later = factor + k * p, share = column[k];
            for (size_t i = k; i < p; i++) later[i] -= share * column[i];
        }
    }
    return 1;
}

double sharp_eigenvalue(const double *matrix, double most, double *work, size_t d) {
    static const double guesses[] = {1.02, 1.1, 1.3, 1.7};
    double *x = work + d * d, *next = x + d, quotient = 0.0;
    for (size_t i = 0; i < d; i++) x[i] = 1.0 + 0.5 * (double)(i % 3);
    for (size_t step = 0; step < STEPS; step++) {
        quotient = iterate(matrix, x, next, d);
        double length = sqrt(inner(next, next, d));
        for (size_t i = 0; i < d; i++) x[i] = length > 0.0 ? next[i] / length : 0.0;
    }
    for (size_t g = 0; g < sizeof guesses / sizeof *guesses; g++) {
        double guess = quotient * guesses[g];
        if (!(guess < most)) break;
        /* No eigenvalue is above a guess if guess · I − A is positive definite: power iteration alone proves nothing. */
        double *rest = work;
        for (size_t i = 0; i < d * d; i++) rest[i] = -matrix[i];
        for (size_t i = 0; i < d; i++) rest[i * d + i] += guess;
        size_t j = 0;
        for (; j < d && rest[j * d + j] > 0.0; j++)
            for (size_t k = j + 1; k < d; k++) {
                double share = rest[j * d + k] / rest[j * d + j];
                for (size_t i = k; i < d; i++) rest[k * d + i] -= share * rest[j * d + i];
            }
        if (j == d) return guess;
    }
    return most;
}

double code_forms(const double *factor, size_t p, size_t d, size_t stride, int16_t *codes, double *constant, double *error) {
    size_t wide = (p + FORMS_AT_A_TIME - 1) / FORMS_AT_A_TIME * FORMS_AT_A_TIME, first = p - d;
    double most = 0.0, missed = 0.0, largest = floor((double)INT32_MAX / ((double)ROW_CODE * (double)stride));
    largest = largest < MOST_FORM ? largest : MOST_FORM;
    for (size_t j = 0; j < p; j++)
        for (size_t i = first; i < p; i++) most = fabs(factor[j * p + i]) > most ? fabs(factor[j * p + i]) : most;
    double step = most > 0.0 ? most / largest : 0.0, per = step > 0.0 ? 1.0 / step : 0.0;
    memset(codes, 0, wide * stride * sizeof(int16_t));
    for (size_t j = 0; j < p; j++)
        for (size_t i = first; i < p; i++) {
            double code = nearbyint(factor[j * p + i] * per), left = factor[j * p + i] - step * code;
            size_t place = i - first;
            codes[(place / 2 * wide + j) * 2 + place % 2] = (int16_t)code;
            missed += left * left;
        }
    *constant = first ? factor[0] : 0.0;
    *error = sqrt(missed) * (1.0 + 1e-6);
    return step;
}

/* Sums over all functions of their squares, of a few rows together, in units of the codes; and the first function itself. Function j has nothing to do with numbers before the j-th: the factor is triangular. */
typedef struct {
    const int16_t *pairs;
    size_t stride, end, shift, wide;
    const int16_t *codes;
    float squares[ROWS_TOGETHER];
    int32_t firsts[ROWS_TOGETHER];
} task;

INLINE size_t start_of(const task *t, size_t group) { return group > t->shift ? (group - t->shift) / 2 : 0; }

static void sum_squares(task *t) {
    for (size_t r = 0; r < ROWS_TOGETHER; r++) {
        t->squares[r] = 0.0f;
        for (size_t g = 0; g < t->wide; g += FORMS_AT_A_TIME) {
            int32_t sums[FORMS_AT_A_TIME] = {0};
            for (size_t i = start_of(t, g); i < t->end; i++) {
                const int16_t *x = t->pairs + r * t->stride + 2 * i;
                const int16_t *w = t->codes + (i * t->wide + g) * 2;
                for (size_t j = 0; j < FORMS_AT_A_TIME; j++) sums[j] += (int32_t)x[0] * w[2 * j] + (int32_t)x[1] * w[2 * j + 1];
            }
            if (g == 0) t->firsts[r] = sums[0];
            for (size_t j = 0; j < FORMS_AT_A_TIME; j++) t->squares[r] += (float)sums[j] * (float)sums[j];
        }
    }
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(COTERIE_ONE_TARGET)
#include <immintrin.h>
#define WITH_AVX2 1

/* The compiler does not find the instruction that multiplies pairs and adds both products: twice as fast as anything else. */
__attribute__((target("avx2"))) static void sum_squares_avx2(task *t) {
    __m256 squares[ROWS_TOGETHER];
    for (size_t r = 0; r < ROWS_TOGETHER; r++) squares[r] = _mm256_setzero_ps();
    for (size_t g = 0; g < t->wide; g += FORMS_AT_A_TIME) {
        __m256i low[ROWS_TOGETHER], high[ROWS_TOGETHER];
        for (size_t r = 0; r < ROWS_TOGETHER; r++) low[r] = high[r] = _mm256_setzero_si256();
        for (size_t i = start_of(t, g); i < t->end; i++) {
            const __m256i *w = (const __m256i *)(t->codes + (i * t->wide + g) * 2);
            __m256i w0 = _mm256_loadu_si256(w), w1 = _mm256_loadu_si256(w + 1);
            for (size_t r = 0; r < ROWS_TOGETHER; r++) {
                int32_t pair;
                memcpy(&pair, t->pairs + r * t->stride + 2 * i, sizeof pair);
                __m256i x = _mm256_set1_epi32(pair);
                low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(x, w0));
                high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(x, w1));
            }
        }
        for (size_t r = 0; r < ROWS_TOGETHER; r++) {
            __m256 a = _mm256_cvtepi32_ps(low[r]), b = _mm256_cvtepi32_ps(high[r]);
            if (g == 0) t->firsts[r] = _mm256_extract_epi32(low[r], 0);
            squares[r] = _mm256_add_ps(squares[r], _mm256_add_ps(_mm256_mul_ps(a, a), _mm256_mul_ps(b, b)));
        }
    }
    for (size_t r = 0; r < ROWS_TOGETHER; r++) {
        float s[8];
        _mm256_storeu_ps(s, squares[r]);
        t->squares[r] = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    }
}
#endif

void form_norms(const int8_t *rows_codes, size_t stride, const float *steps, const int64_t *rows, size_t n, const int16_t *codes,
                size_t p, size_t d, double step, double constant, double *out) {
    size_t wide = (p + FORMS_AT_A_TIME - 1) / FORMS_AT_A_TIME * FORMS_AT_A_TIME;
    int16_t pairs[ROWS_TOGETHER * LONGEST_ROW];
    task t = {pairs, stride, (d + 1) / 2, p - d, wide, codes, {0.0f}, {0}};
    void (*run)(task *) = sum_squares;
#ifdef WITH_AVX2
    if (__builtin_cpu_supports("avx2")) run = sum_squares_avx2;
#endif
    for (size_t k = 0; k < n; k += ROWS_TOGETHER) {
        for (size_t r = 0; r < ROWS_TOGETHER; r++) {
            const int8_t *from = rows_codes + (size_t)rows[k + r < n ? k + r : k] * stride;
            for (size_t i = 0; i < stride; i++) pairs[r * stride + i] = from[i];
        }
        run(&t);
        for (size_t r = 0; r < ROWS_TOGETHER && k + r < n; r++) {
            double per = step * (double)steps[rows[k + r]];
            out[k + r] = ROUNDED * per * per * (double)t.squares[r] + constant * (2.0 * per * (double)t.firsts[r] + constant);
        }
    }
}
