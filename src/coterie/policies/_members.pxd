"""The users of each row as linked lists in ascending order, so that nothing loops over all users."""

from libc.stdint cimport int64_t


cdef struct Members:
    # head[row] is the lowest user of a row, next[user] the one after; -1 ends a list
    int64_t *head
    int64_t *next


cdef inline void remove_member(Members *m, Py_ssize_t row, int64_t user) noexcept nogil:
    """Take a user out of its row's list."""
    cdef int64_t *at = &m.head[row]
    while at[0] != user:
        at = &m.next[at[0]]
    at[0] = m.next[user]


cdef inline void insert_member(Members *m, Py_ssize_t row, int64_t user) noexcept nogil:
    """Put a user into a row's list."""
    cdef int64_t *at = &m.head[row]
    while at[0] >= 0 and at[0] < user:
        at = &m.next[at[0]]
    m.next[user] = at[0]
    at[0] = user


cdef inline void append_members(
    Members *m, Py_ssize_t row, const int64_t *labels, int64_t first, int64_t last
) noexcept nogil:
    """Put users first to last − 1, who are higher than all before them, at the end of a row's list."""
    cdef int64_t user
    cdef int64_t *at = &m.head[row]
    if first > 0 and labels[first - 1] == row:  # the last newcomer is the end already
        at = &m.next[first - 1]
    while at[0] >= 0:
        at = &m.next[at[0]]
    for user in range(first, last):
        at[0] = user
        at = &m.next[user]
    at[0] = -1


cdef inline void join_members(Members *m, Py_ssize_t row, Py_ssize_t other) noexcept nogil:
    """Merge the list of another row into a row's, and empty the other."""
    cdef int64_t *at = &m.head[row]
    cdef int64_t left = m.head[row], right = m.head[other], least
    while left >= 0 or right >= 0:
        if right < 0 or (left >= 0 and left < right):
            least = left
            left = m.next[left]
        else:
            least = right
            right = m.next[right]
        at[0] = least
        at = &m.next[least]
    at[0] = -1
    m.head[other] = -1


cdef inline void list_members(Members *m, const int64_t *labels, Py_ssize_t n_users, Py_ssize_t n_rows) noexcept nogil:
    """All lists anew from the label of each user."""
    cdef Py_ssize_t row, user
    for row in range(n_rows):
        m.head[row] = -1
    for user in range(n_users - 1, -1, -1):
        m.next[user] = m.head[labels[user]]
        m.head[labels[user]] = user


cdef struct Sets:
    # the same in no order, linked both ways: a user leaves in one step; before[user] is -1 at the head
    int64_t *head
    int64_t *next
    int64_t *before


cdef inline void leave_set(Sets *sets, Py_ssize_t row, int64_t user) noexcept nogil:
    """Take a user out of its row's set."""
    cdef int64_t after = sets.next[user], before = sets.before[user]
    if before < 0:
        sets.head[row] = after
    else:
        sets.next[before] = after
    if after >= 0:
        sets.before[after] = before


cdef inline void enter_set(Sets *sets, Py_ssize_t row, int64_t user) noexcept nogil:
    """Put a user into a row's set."""
    cdef int64_t after = sets.head[row]
    sets.next[user], sets.before[user], sets.head[row] = after, -1, user
    if after >= 0:
        sets.before[after] = user
