"""Measures of how well clusters fit the truth."""

from __future__ import annotations

import numpy as np

from coterie.types import Ints


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
    both = np.unique(a * (int(b.max()) + 1) + b, return_counts=True)[1]
    together = _pairs(both)
    left, right = _pairs(np.bincount(a)), _pairs(np.bincount(b))
    expected = left * right / max(n * (n - 1) / 2.0, 1.0)
    most = (left + right) / 2.0
    if most == expected:
        return 1.0
    return float((together - expected) / (most - expected))


def _pairs(counts: Ints) -> float:
    """Count the pairs of users in the same group."""
    return float((counts * (counts - 1)).sum()) / 2.0
