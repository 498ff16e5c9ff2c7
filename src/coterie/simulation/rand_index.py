"""Adjusted Rand index between estimated and true clusters, and the number of clusters."""

from __future__ import annotations

import numpy as np

from coterie.types import Ints

ROOM = 4
"""Maximal size of a counting table, in entries per user; with more entries, labels are sorted instead."""


def adjusted_rand(a: Ints, b: Ints) -> float:
    """Compute the adjusted Rand index of two partitions of the same users.

    Parameters
    ----------
    a : array of int, shape (n,)
        Label of each user, at least 0.
    b : array of int, shape (n,)
        Label of each user in the other partition, at least 0.

    Returns
    -------
    float
        1 for equal partitions, about 0 for unrelated ones.

    Examples
    --------
    >>> adjusted_rand(np.array([0, 0, 1, 1]), np.array([5, 5, 2, 2]))
    1.0
    """
    n = len(a)
    a, b = _compact(a), _compact(b)
    together, left, right = _pairs(_counts_of_both(a, b)), _pairs(np.bincount(a)), _pairs(np.bincount(b))
    expected = left * right / max(n * (n - 1) / 2.0, 1.0)
    most = (left + right) / 2.0
    if most == expected:
        return 1.0
    return float((together - expected) / (most - expected))


def n_labels(labels: Ints) -> int:
    """Count the distinct labels."""
    return int(np.count_nonzero(np.bincount(_compact(labels))))


def _compact(labels: Ints) -> Ints:
    """Relabel a partition so that a counting table over its labels has at most ROOM entries per user."""
    if len(labels) == 0 or labels.max() < ROOM * len(labels):
        return labels
    return np.asarray(np.unique(labels, return_inverse=True)[1], np.int64)


def _counts_of_both(a: Ints, b: Ints) -> Ints:
    """Count the users of each pair of labels; by a table if it is small enough, otherwise by sorting."""
    if len(a) == 0:
        return np.empty(0, np.int64)
    width = int(b.max()) + 1
    both = a * width + b
    if (int(a.max()) + 1) * width <= ROOM * len(a):
        return np.asarray(np.bincount(both), np.int64)
    return np.asarray(np.unique(both, return_counts=True)[1], np.int64)


def _pairs(counts: Ints) -> float:
    """Count the pairs of users in the same group."""
    return float((counts * (counts - 1)).sum()) / 2.0
