/* Compiled twice on Linux, for every x86-64 and for those with AVX2; the loader takes the better one. The bits are the
 * same: lanes do not depend on the width, and nothing is contracted (-ffp-contract=off). */
#ifndef COTERIE_TARGETS_H
#define COTERIE_TARGETS_H

#include <stdint.h> /* says which C library it is */

#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && !defined(COTERIE_ONE_TARGET)
#define FOR_EVERY_TARGET __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EVERY_TARGET
#endif

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 4 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

#endif
