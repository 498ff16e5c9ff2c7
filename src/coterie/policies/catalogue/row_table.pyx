"""Where the item with an id is: a hash table of row numbers."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint64_t

cnp.import_array()

cdef enum:
    FIRST_SLOTS = 16  # a power of two, as every later size
    FREE = -1


cdef class RowTable:
    """Rows by the hash of their ids, with linear probing; ids stay in the caller's array, so that a slot is 4 bytes.

    At least half of all slots are free. `ids` is always the array of ids by row.
    """

    cdef int32_t[::1] slots
    cdef Py_ssize_t used

    def __init__(self):
        self.slots = np.full(FIRST_SLOTS, FREE, np.int32)

    @property
    def nbytes(self):
        """Bytes of the table."""
        return self.slots.nbytes

    cdef Py_ssize_t home(self, int64_t item) noexcept nogil:
        """The slot where the search for an id begins."""
        cdef uint64_t mixed = <uint64_t> item
        mixed = (mixed ^ (mixed >> 32)) * <uint64_t> 0xD6E8FEB86659FD93
        mixed ^= mixed >> 32
        return <Py_ssize_t> (mixed & <uint64_t> (self.slots.shape[0] - 1))

    cdef Py_ssize_t slot_of(self, const int64_t[::1] ids, int64_t item) noexcept nogil:
        """The slot of an id, or the free one where it belongs."""
        cdef Py_ssize_t slot = self.home(item), mask = self.slots.shape[0] - 1
        while self.slots[slot] != FREE and ids[self.slots[slot]] != item:
            slot = (slot + 1) & mask
        return slot

    def row(self, const int64_t[::1] ids, int64_t item):
        """The row of an id, -1 if it is not there."""
        return self.slots[self.slot_of(ids, item)]

    def rows(self, const int64_t[::1] ids, const int64_t[::1] items):
        """The row of each of these ids, -1 where one is not there."""
        found = np.empty(items.shape[0], np.int64)
        cdef int64_t[::1] out = found
        cdef Py_ssize_t k
        for k in range(items.shape[0]):
            out[k] = self.slots[self.slot_of(ids, items[k])]
        return found

    def add(self, const int64_t[::1] ids, const int64_t[::1] rows):
        """Add rows whose ids are not there yet."""
        cdef Py_ssize_t k, slots = self.slots.shape[0]
        cdef int32_t[::1] before = self.slots
        while slots < 2 * (self.used + rows.shape[0]):
            slots *= 2
        if slots > before.shape[0]:
            self.slots = np.full(slots, FREE, np.int32)
            for k in range(before.shape[0]):
                if before[k] != FREE:
                    self.slots[self.slot_of(ids, ids[before[k]])] = before[k]
        for k in range(rows.shape[0]):
            self.slots[self.slot_of(ids, ids[rows[k]])] = <int32_t> rows[k]
        self.used += rows.shape[0]

    def discard(self, const int64_t[::1] ids, const int64_t[::1] rows):
        """Forget rows; later ones of the same run move up, so that no search ends too early."""
        cdef Py_ssize_t k, hole, slot, mask = self.slots.shape[0] - 1
        for k in range(rows.shape[0]):
            hole = slot = self.slot_of(ids, ids[rows[k]])
            while True:
                slot = (slot + 1) & mask
                if self.slots[slot] == FREE:
                    break
                # The row in `slot` may fill the hole unless its home lies behind the hole.
                if ((slot - self.home(ids[self.slots[slot]])) & mask) >= ((slot - hole) & mask):
                    self.slots[hole] = self.slots[slot]
                    hole = slot
            self.slots[hole] = FREE
        self.used -= rows.shape[0]
