# optimize: 2
"""Kernels that generate rounds: distinct arms from uniform numbers, perturbed arms, expected rewards."""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int64_t

from coterie.policies.kernel.linalg cimport means as products_of_round


def distinct(const double[:, ::1] uniforms, Py_ssize_t n_items):
    """Draw distinct items for each row of uniforms, one per column: the first steps of a Fisher–Yates shuffle."""
    return distinct_below(uniforms, np.full(uniforms.shape[0], n_items, np.int64))


def distinct_below(const double[:, ::1] uniforms, const int64_t[::1] limits):
    """For each row t of `uniforms`, draw one number per column: distinct numbers below limits[t].

    A row whose limit is less than the number of columns ends with -1.
    """
    cdef Py_ssize_t t, k, j, own, n = uniforms.shape[0], width = uniforms.shape[1]
    found = np.full((n, width), -1, np.int64)
    cdef int64_t[:, ::1] picks = found
    cdef int64_t[::1] deck = np.arange(np.max(limits) if n else 0, dtype=np.int64), swaps = np.empty(width, np.int64)
    with nogil:
        for t in range(n):
            own = min(width, limits[t])
            for k in range(own):
                j = k + <Py_ssize_t> (uniforms[t, k] * (limits[t] - k))
                swaps[k] = j
                deck[k], deck[j] = deck[j], deck[k]
                picks[t, k] = deck[k]
            for k in range(own - 1, -1, -1):  # undo the swaps: the deck is shared by all rows
                j = swaps[k]
                deck[k], deck[j] = deck[j], deck[k]
    return found


def looked_up(const double[:, ::1] table, const int64_t[::1] rows, const int64_t[:, ::1] picks):
    """Look up the entry of the table for each row and pick."""
    cdef Py_ssize_t t, k
    found = np.empty((picks.shape[0], picks.shape[1]))
    cdef double[:, ::1] out = found
    with nogil:
        for t in range(picks.shape[0]):
            for k in range(picks.shape[1]):
                out[t, k] = table[rows[t], picks[t, k]]
    return found


def blurred(
    const double[:, ::1] items,
    const int64_t[:, ::1] behind,
    const double[:, :, ::1] normals,
    const double[::1] spare,
    double sigma,
    double edge,
    double[:, :, ::1] arms,
):
    """Write arms = items + σ·normals, where a normal outside [−edge, edge] is replaced by the next of `spare` inside.

    Returns False if there were too few spare normals.
    """
    cdef Py_ssize_t t, k, i, used = 0
    cdef double z
    with nogil:
        for t in range(behind.shape[0]):
            for k in range(behind.shape[1]):
                for i in range(items.shape[1]):
                    z = normals[t, k, i]
                    while fabs(z) > edge and used < spare.shape[0]:
                        z = spare[used]
                        used += 1
                    arms[t, k, i] = items[behind[t, k], i] + sigma * z
    return used < spare.shape[0]


def products(const double[:, ::1] arms, const int64_t[:, ::1] picks, const double[:, ::1] preferences, const int64_t[::1] rows):
    """Compute means[t, k] = xᵀθ for the arms of round t and the preference rows[t]."""
    cdef Py_ssize_t t
    found = np.empty((picks.shape[0], picks.shape[1]))
    cdef double[:, ::1] out = found
    with nogil:
        for t in range(picks.shape[0]):
            products_of_round(
                &preferences[rows[t], 0], &arms[0, 0], &picks[t, 0], picks.shape[1], arms.shape[1], &out[t, 0]
            )
    return found
