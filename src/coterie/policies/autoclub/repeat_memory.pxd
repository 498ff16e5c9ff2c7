"""What users answered to the very same vector before: a table of fixed size, and how well such answers agree."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy


cdef enum:
    SLOTS = 32768  # rewards that are remembered, a power of two
    WAYS = 4  # slots next to each other that a pair of user and vector may take
    GROUPS = 16  # users fall into so many groups, whose agreement is judged apart
    MOST_COUNTED = 32  # answers count for no more than this in their mean, so that it follows a change


cdef struct Agreement:
    # Of a group of users: how many rewards came for a vector again, Σω, Σω(r − r̄)²n/(n + 1) with r̄ the mean of the n
    # rewards before, and the mean and the sum of squares about it of all these rewards
    double repeats
    double weight
    double squares
    double mean
    double spread


cdef struct Repeats:
    # Of each slot: which pair of user and vector it holds (0 if none), the mean of its rewards and their number
    int64_t *keys
    double *means
    int64_t *counts
    Agreement *groups


cdef inline int64_t key_of(Py_ssize_t user, const double *x, Py_ssize_t d) noexcept nogil:
    """A number for a user and a vector, never 0; that two pairs share one of the 2⁶⁴ is left to chance."""
    cdef uint64_t key = <uint64_t> user, bits
    cdef Py_ssize_t i
    for i in range(d):
        memcpy(&bits, x + i, sizeof(double))
        key = (key ^ bits) * <uint64_t> 0x9E3779B97F4A7C15
        key ^= key >> 29
    key *= <uint64_t> 0xBF58476D1CE4E5B9
    key ^= key >> 32
    return <int64_t> key if key != 0 else 1


cdef inline Py_ssize_t find_slot(Repeats *repeats, int64_t key) noexcept nogil:
    """The slot of a pair, -1 if it has none."""
    cdef Py_ssize_t k, first = <Py_ssize_t> (<uint64_t> key % (SLOTS // WAYS)) * WAYS
    for k in range(first, first + WAYS):
        if repeats.keys[k] == key:
            return k
    return -1


cdef inline void fill_slot(Repeats *repeats, int64_t key, double reward) noexcept nogil:
    """Remember the first reward of a pair, in a free slot or in that of another pair."""
    cdef Py_ssize_t k = 0, first = <Py_ssize_t> (<uint64_t> key % (SLOTS // WAYS)) * WAYS
    while k < WAYS and repeats.keys[first + k] != 0:
        k += 1
    k = first + (k if k < WAYS else <Py_ssize_t> ((<uint64_t> key >> 60) % WAYS))
    repeats.keys[k], repeats.means[k], repeats.counts[k] = key, reward, 1


cdef inline void add_repeat(
    Repeats *repeats, Py_ssize_t slot, Py_ssize_t user, double reward, double weight
) noexcept nogil:
    """Another reward of a pair: what it says of agreement, with so much weight, and the new mean."""
    cdef double n = <double> repeats.counts[slot], off = reward - repeats.means[slot]
    cdef Agreement *group = &repeats.groups[user % GROUPS]
    cdef double about = reward - group.mean
    group.repeats += 1.0
    group.weight += weight
    group.squares += weight * off * off * n / (n + 1.0)
    group.mean += weight * about / group.weight
    group.spread += weight * about * (reward - group.mean)
    repeats.means[slot] += off / (n + 1.0)
    repeats.counts[slot] = min(repeats.counts[slot] + 1, MOST_COUNTED)


cdef inline double disagreement(Repeats *repeats, double noise2, double faith) noexcept nogil:
    """The variance of rewards for the same vector, relative to the noise or to that of all these rewards, if less.

    It is the middle one of the groups' estimates; each starts from 1, as if so many repeats had said so.
    """
    cdef double[GROUPS] found
    cdef double value
    cdef Agreement *group
    cdef Py_ssize_t k, j, n = 0
    for k in range(GROUPS):
        group = &repeats.groups[k]
        if group.repeats == 0.0:
            continue
        value = (group.squares + faith * noise2) / (min(group.spread, group.repeats * noise2) + faith * noise2)
        j = n
        while j > 0 and found[j - 1] > value:
            found[j] = found[j - 1]
            j -= 1
        found[j] = value
        n += 1
    return found[n // 2] if n > 0 else 1.0
