"""Random numbers for learning: a short stream for each reward, so that state follows from the rewards alone.

Decisions draw from the policy's generator, which moves with every question. What a reward teaches must not depend on how
often was asked before it: its numbers come from SplitMix64, started by the policy's key and the number of the reward.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint64_t

from coterie.policies._elementary cimport natural_log


cdef inline uint64_t scrambled(uint64_t z) noexcept nogil:
    """The output function of SplitMix64   (Steele, Lea and Flood 2014)."""
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return z ^ (z >> 31)


cdef inline uint64_t stream_of(uint64_t key, int64_t number) noexcept nogil:
    """The start of the stream of one reward."""
    return scrambled(key ^ scrambled(<uint64_t> number))


cdef inline double uniform(uint64_t *state) noexcept nogil:
    """A number in [0, 1) with 53 random bits."""
    state[0] += <uint64_t> 0x9E3779B97F4A7C15
    return (scrambled(state[0]) >> 11) * (1.0 / 9007199254740992.0)


cdef inline double normal(uint64_t *state) noexcept nogil:
    """A standard normal number, by the polar method; the second one is thrown away."""
    cdef double a, b, s
    while True:
        a, b = 2.0 * uniform(state) - 1.0, 2.0 * uniform(state) - 1.0
        s = a * a + b * b
        if 0.0 < s < 1.0:
            return a * sqrt(-2.0 * natural_log(s) / s)


cdef inline double gamma(uint64_t *state, double shape) noexcept nogil:
    """A number of Gamma(shape, 1), shape ≥ 1   (Marsaglia and Tsang 2000)."""
    cdef double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d), x, v
    while True:
        x = normal(state)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if natural_log(1.0 - uniform(state)) < 0.5 * x * x + d - d * v + d * natural_log(v):
                return d * v
