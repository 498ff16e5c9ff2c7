"""Drawing rounds: distinct arms from uniform numbers, expected rewards from a table."""

from __future__ import annotations

import numpy as np

from coterie.kernels.choice import means
from coterie.kernels.compiling import compiled
from coterie.types import Floats, Ints


@compiled
def distinct(uniforms: Floats, n_items: int) -> Ints:
    """For each row of uniforms, that many distinct items: the start of a Fisher–Yates shuffle."""
    n, width = uniforms.shape
    picks = np.empty((n, width), np.int64)
    deck = np.arange(n_items)
    swaps = np.empty(width, np.int64)
    for t in range(n):
        for k in range(width):
            j = k + int(uniforms[t, k] * (n_items - k))
            swaps[k] = j
            deck[k], deck[j] = deck[j], deck[k]
            picks[t, k] = deck[k]
        for k in range(width - 1, -1, -1):
            j = swaps[k]
            deck[k], deck[j] = deck[j], deck[k]
    return picks


@compiled
def looked_up(table: Floats, rows: Ints, picks: Ints) -> Floats:
    """The entry of the table for each row and pick."""
    found = np.empty(picks.shape)
    for t in range(picks.shape[0]):
        for k in range(picks.shape[1]):
            found[t, k] = table[rows[t], picks[t, k]]
    return found


@compiled
def blurred(
    items: Floats, behind: Ints, normals: Floats, spare: Floats, sigma: float, edge: float, arms: Floats
) -> bool:
    """arms = items + σ·normals, each normal beyond ±edge replaced by the next spare one within.

    False if the spare ones did not suffice.
    """
    used = 0
    for t in range(behind.shape[0]):
        for k in range(behind.shape[1]):
            item = items[behind[t, k]]
            for i in range(item.shape[0]):
                z = normals[t, k, i]
                while abs(z) > edge:
                    if used == spare.shape[0]:
                        return False
                    z = spare[used]
                    used += 1
                arms[t, k, i] = item[i] + sigma * z
    return True


@compiled
def products(arms: Floats, picks: Ints, preferences: Floats, rows: Ints) -> Floats:
    """means[t, k] = xᵀθ for the arms of a round and the preference of its row."""
    found = np.empty(picks.shape)
    for t in range(picks.shape[0]):
        means(preferences[rows[t]], arms, picks[t], found[t])
    return found


@compiled
def adjusted_rand(a: Ints, b: Ints) -> float:
    """The adjusted Rand index of two partitions of the same users; 1 when both are the same."""
    n = a.shape[0]
    table = np.zeros((a.max() + 1, b.max() + 1))
    for i in range(n):
        table[a[i], b[i]] += 1.0
    both = (table * (table - 1.0)).sum() / 2.0
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    left = (rows * (rows - 1.0)).sum() / 2.0
    right = (columns * (columns - 1.0)).sum() / 2.0
    expected = left * right / max(n * (n - 1) / 2.0, 1.0)
    most = (left + right) / 2.0
    if most == expected:
        return 1.0
    return float((both - expected) / (most - expected))
