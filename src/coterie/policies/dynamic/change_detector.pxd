"""Change detection: have too many of a user's last rewards been outliers under its model?"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint64_t


cdef extern from * nogil:
    """
    #define set_bits(word) __builtin_popcountll(word)
    """
    int set_bits(uint64_t word)  # how many bits of a word are set


cdef struct Detector:
    # The last `window` outcomes count, at most 64, none if it is 0; `usual` is the share of failures that is expected at
    # most, `margin` is ln(1/δ)/2 with the probability δ of a false alarm
    int64_t window
    double usual
    double margin


cdef inline void record(uint64_t *outcomes, int64_t *watched, bint failed) noexcept nogil:
    """Record whether a reward failed its test; the latest outcome is the lowest bit."""
    outcomes[0] = (outcomes[0] << 1) | <uint64_t> failed
    watched[0] += 1


cdef inline bint has_changed(Detector *detector, uint64_t outcomes, int64_t watched) noexcept nogil:
    """Is the mean of the last h outcomes above δ₁ + √(ln(1/δ₂)/(2h))?"""
    cdef int64_t h = min(watched, detector.window)
    if h <= 0:
        return False
    if h < 64:
        outcomes &= ((<uint64_t> 1) << h) - 1
    return set_bits(outcomes) > h * (detector.usual + sqrt(detector.margin / h))
