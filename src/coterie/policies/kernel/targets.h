/* Compiled twice on Linux, for every x86-64 and for those with AVX2; the loader takes the better one. The bits are the
 * same: lanes do not depend on the width, and nothing is contracted (-ffp-contract=off). */
#ifndef COTERIE_TARGETS_H
#define COTERIE_TARGETS_H

#include <stddef.h>
#include <stdint.h> /* says which C library it is */

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

/* aᵀb */
INLINE double inner(const double *a, const double *b, size_t d) {
    size_t whole = d - d % LANES;
    lanes s = {0.0, 0.0, 0.0, 0.0};
    for (size_t i = 0; i < whole; i += LANES) s += load(a + i) * load(b + i);
    if (whole < d) s += load_rest(a + whole, d - whole) * load_rest(b + whole, d - whole);
    return sum(s);
}

#endif
