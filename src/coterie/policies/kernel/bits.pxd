"""Sets of users as rows of bits, 64 users a word, so that sets are compared a word at a time."""

from libc.stdint cimport uint64_t


cdef extern from * nogil:
    """
    #define lowest_bit(word) ((Py_ssize_t)__builtin_ctzll(word))
    #define count_bits(word) ((Py_ssize_t)__builtin_popcountll(word))
    """
    Py_ssize_t lowest_bit(uint64_t word)  # the position of the lowest set bit of a word that is not zero
    Py_ssize_t count_bits(uint64_t word)


cdef inline bint has(const uint64_t *row, Py_ssize_t user) noexcept nogil:
    """Is this user's bit set?"""
    return (row[user >> 6] >> (user & 63)) & 1


cdef inline void put(uint64_t *row, Py_ssize_t user) noexcept nogil:
    """Set this user's bit."""
    row[user >> 6] |= (<uint64_t> 1) << (user & 63)


cdef inline void drop(uint64_t *row, Py_ssize_t user) noexcept nogil:
    """Clear this user's bit."""
    row[user >> 6] &= ~((<uint64_t> 1) << (user & 63))


cdef inline bint meet(const uint64_t *a, const uint64_t *b, Py_ssize_t words) noexcept nogil:
    """Do two rows have a bit in common?"""
    cdef Py_ssize_t w
    for w in range(words):
        if a[w] & b[w]:
            return True
    return False


cdef inline bint same(const uint64_t *a, const uint64_t *b, Py_ssize_t words) noexcept nogil:
    """Are two rows equal?"""
    cdef Py_ssize_t w
    for w in range(words):
        if a[w] != b[w]:
            return False
    return True


cdef inline uint64_t checksum(const uint64_t *row, Py_ssize_t words) noexcept nogil:
    """A hash of a row."""
    cdef uint64_t found = 0
    cdef Py_ssize_t w
    for w in range(words):
        found = (found ^ row[w]) * <uint64_t> 0x9E3779B97F4A7C15
        found ^= found >> 29
    return found


cdef inline void put_range(uint64_t *row, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Set the bits of users first to last − 1."""
    cdef Py_ssize_t user = first
    while user < last:
        if user & 63 == 0 and user + 64 <= last:
            row[user >> 6] = ~(<uint64_t> 0)
            user += 64
        else:
            put(row, user)
            user += 1


cdef inline void transpose(uint64_t *square) noexcept nogil:
    """Transpose a 64 × 64 bit matrix in place: swap halves, then quarters and so on   (Hacker's Delight, Sec. 7-3)."""
    cdef uint64_t mask = 0xFFFFFFFF, moved
    cdef Py_ssize_t width = 32, k
    while width:
        k = 0
        while k < 64:
            moved = ((square[k] >> width) ^ square[k + width]) & mask
            square[k] ^= moved << width
            square[k + width] ^= moved
            k = (k + width + 1) & ~width
        width >>= 1
        mask ^= mask << width
