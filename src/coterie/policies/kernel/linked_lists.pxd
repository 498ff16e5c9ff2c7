"""Intrusive doubly linked lists of users, with O(1) insertion and removal, and free lists of slots."""

from libc.stdint cimport int64_t


# Slots 0 to `used` − 1 of a table have been in use at some time; `next` chains the released ones, from `free` on.

cdef inline int64_t take_slot(const int64_t *next, int64_t *free, int64_t *used) noexcept nogil:
    """Take the slot that was released last, or one never used before; the table must have room."""
    cdef int64_t found = free[0]
    if found < 0:
        used[0] += 1
        return used[0] - 1
    free[0] = next[found]
    return found


cdef inline void release_slot(int64_t *next, int64_t *free, int64_t place) noexcept nogil:
    next[place], free[0] = free[0], place


cdef inline bint check_free_slots(const int64_t *next, int64_t free, int64_t used, const int64_t *taken) noexcept nogil:
    """Does the free list hold exactly the slots whose count in `taken` is 0?"""
    cdef int64_t place, count = 0, idle = 0
    for place in range(used):
        idle += taken[place] == 0
    place = free
    while place >= 0:
        if place >= used or taken[place] != 0 or count == idle:
            return False
        count += 1
        place = next[place]
    return count == idle


cdef struct Linked:
    # head[row] is some user of a row, next[user] and previous[user] its neighbours in the list; -1 ends a list
    int64_t *head
    int64_t *next
    int64_t *previous


cdef inline void link(Linked *lists, Py_ssize_t row, int64_t user) noexcept nogil:
    """Insert a user into a row's list."""
    cdef int64_t after = lists.head[row]
    lists.next[user], lists.previous[user] = after, -1
    if after >= 0:
        lists.previous[after] = user
    lists.head[row] = user


cdef inline void unlink(Linked *lists, Py_ssize_t row, int64_t user) noexcept nogil:
    """Remove a user from its row's list."""
    cdef int64_t before = lists.previous[user], after = lists.next[user]
    if before >= 0:
        lists.next[before] = after
    else:
        lists.head[row] = after
    if after >= 0:
        lists.previous[after] = before


cdef inline void relink(Linked *lists, Py_ssize_t row, Py_ssize_t other, int64_t *labels) noexcept nogil:
    """Move all users of another row to a row's list, and relabel them."""
    cdef int64_t user = lists.head[other], after
    while user >= 0:
        after = lists.next[user]
        labels[user] = row
        link(lists, row, user)
        user = after
    lists.head[other] = -1
