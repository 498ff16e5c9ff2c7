"""A graph over users as rows of bits: edges are cut and neighbours compared 64 at a time."""

from __future__ import annotations

import numpy as np

from coterie.kernels.compiling import compiled
from coterie.types import Ints, Words

ONE = np.uint64(1)
SIX = np.uint64(6)
MASK = np.uint64(63)


@compiled
def has(row: Words, user: int) -> bool:
    """Is this user's bit set?"""
    return bool((row[user >> 6] >> (np.uint64(user) & MASK)) & ONE)


@compiled
def put(row: Words, user: int) -> None:
    """Set this user's bit."""
    row[user >> 6] |= ONE << (np.uint64(user) & MASK)


@compiled
def drop(row: Words, user: int) -> None:
    """Clear this user's bit."""
    row[user >> 6] &= ~(ONE << (np.uint64(user) & MASK))


@compiled
def lowest(word: np.uint64) -> int:
    """The position of the lowest set bit of a word that is not zero."""
    position = 0
    step = 32
    while step:
        low = (ONE << np.uint64(step)) - ONE
        if word & low == 0:
            word >>= np.uint64(step)
            position += step
        step >>= 1
    return position


@compiled
def meet(a: Words, b: Words) -> bool:
    """Do two rows have a bit in common?"""
    for w in range(a.shape[0]):
        if a[w] & b[w]:
            return True
    return False


@compiled
def same(a: Words, b: Words) -> bool:
    """Are two rows equal?"""
    for w in range(a.shape[0]):
        if a[w] != b[w]:
            return False
    return True


@compiled
def listed(row: Words, n: int) -> Ints:
    """The users whose bits are set, ascending."""
    found = np.empty(n, np.int64)
    count = 0
    for w in range(row.shape[0]):
        word = row[w]
        while word:
            found[count] = (w << 6) + lowest(word)
            count += 1
            word &= word - ONE
    return found[:count]


@compiled
def component(edges: Words, start: int) -> Words:
    """The bits of all users that can be reached from one, breadth first   (Alg. 1, line 6)."""
    words = edges.shape[1]
    reached = np.zeros(words, np.uint64)
    put(reached, start)
    frontier = reached.copy()
    growing = True
    while growing:
        growing = False
        nearby = np.zeros(words, np.uint64)
        for w in range(words):
            word = frontier[w]
            while word:
                nearby |= edges[(w << 6) + lowest(word)]
                word &= word - ONE
        for w in range(words):
            frontier[w] = nearby[w] & ~reached[w]
            reached[w] |= nearby[w]
            growing = growing or frontier[w] != 0
    return reached


@compiled
def components(edges: Words, labels: Ints) -> int:
    """Label every user by connected component, in order of its lowest user; returns how many there are."""
    labels[:] = -1
    count = 0
    for user in range(labels.shape[0]):
        if labels[user] < 0:
            for other in listed(component(edges, user), labels.shape[0]):
                labels[other] = count
            count += 1
    return count
