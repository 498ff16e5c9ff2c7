#include "compressed.h"

#include "targets.h"

#include <float.h>
#include <math.h>

enum { MOST_CODE = 127, MOST_WEIGHT = 16383 };
static const double UP = 1.0 + 1e-6; /* more than rounding to a float and a sum of squares can lose */
static const double TINY = 1e-30;    /* below it a float could vanish */

static float rounded_up(double value) { return (float)(value * UP + TINY); }

void compress(const double *x, size_t d, size_t stride, int8_t *codes, float *step, float *error, float *norm) {
    double most = 0.0, square = 0.0, missed = 0.0;
    for (size_t i = 0; i < d; i++) {
        double size = fabs(x[i]);
        most = size > most ? size : most;
    }
    *step = most > TINY ? (float)(most / MOST_CODE) : 0.0f;
    double per = *step > 0.0f ? 1.0 / (double)*step : 0.0;
    for (size_t i = 0; i < d; i++) {
        double code = nearbyint(x[i] * per), left;
        code = code > MOST_CODE ? MOST_CODE : code < -MOST_CODE ? -MOST_CODE : code;
        left = x[i] - (double)*step * code;
        codes[i] = (int8_t)code;
        missed += left * left;
        square += x[i] * x[i];
    }
    for (size_t i = d; i < stride; i++) codes[i] = 0;
    *error = rounded_up(sqrt(missed));
    *norm = rounded_up(sqrt(square));
}

double compress_weights(const double *w, size_t d, size_t stride, int16_t *codes, double *norm, double *error) {
    double most = 0.0, square = 0.0, missed = 0.0;
    double largest = (double)INT32_MAX / ((double)MOST_CODE * (double)stride); /* no sum of products overflows */
    largest = floor(largest < MOST_WEIGHT ? largest : MOST_WEIGHT);
    for (size_t i = 0; i < d; i++) {
        double size = fabs(w[i]);
        most = size > most ? size : most;
    }
    double step = most > TINY && largest >= 1.0 ? most / largest : 0.0, per = step > 0.0 ? 1.0 / step : 0.0;
    for (size_t i = 0; i < d; i++) {
        double code = nearbyint(w[i] * per), left;
        code = code > largest ? largest : code < -largest ? -largest : code;
        left = w[i] - step * code;
        codes[i] = (int16_t)code;
        missed += left * left;
        square += w[i] * w[i];
    }
    for (size_t i = d; i < stride; i++) codes[i] = 0;
    *error = sqrt(missed) * UP + TINY;
    *norm = sqrt(square) * UP + TINY;
    return step;
}

FOR_EVERY_TARGET
void code_products(const int8_t *restrict codes, size_t stride, const int64_t *restrict rows, size_t first, size_t n,
                   const int16_t *restrict weights, int32_t *restrict out) {
    for (size_t k = 0; k < n; k++) {
        const int8_t *row = codes + (rows ? (size_t)rows[k] : first + k) * stride;
        int32_t sum = 0;
        for (size_t b = 0; b < stride; b += CODES_AT_A_TIME)
            for (size_t i = 0; i < CODES_AT_A_TIME; i++) {
                int16_t code = row[b + i];
                sum += (int32_t)code * (int32_t)weights[b + i];
            }
        out[k] = sum;
    }
}

FOR_EVERY_TARGET
void bound_scores(const score_bound *bound, const int32_t *restrict products, const float *restrict steps,
                  const float *restrict errors, const float *restrict norms, const int64_t *restrict rows, size_t first, size_t n,
                  double *restrict linear, double *restrict widths) {
    for (size_t k = 0; k < n; k++) {
        size_t row = rows ? (size_t)rows[k] : first + k;
        linear[k] = bound->constant + bound->per_product * (double)steps[row] * (double)products[k] +
                    bound->per_error * (double)errors[row] + bound->per_norm * (double)norms[row];
        widths[k] = 0.0;
    }
    for (size_t m = 0; m < bound->n_widths; m++) {
        width_bound w = bound->widths[m];
        for (size_t k = 0; k < n; k++) {
            double norm = norms[rows ? (size_t)rows[k] : first + k];
            widths[k] += w.factor * sqrt(w.own + (w.mixed + w.per_norm2 * norm) * norm);
        }
    }
}

FOR_EVERY_TARGET
void finish_bounds(const double *linear, const double *widths, size_t n, double slack, double limit, double *out) {
    for (size_t k = 0; k < n; k++) {
        double bound = linear[k] + widths[k];
        bound += slack * fabs(bound);
        out[k] = bound < limit ? bound : limit;
    }
}
