"""Who is pooled with whom: what every partition answers, and the arrays they start from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from coterie.kernels.radius import Radius, radius
from coterie.kernels.ridge import Ridge
from coterie.types import Floats, Ints, Words


class Partition(Protocol):
    """What a policy asks of the part that pools users; the sole owner of its arrays."""

    @property
    def state(self) -> Any:
        """The arrays and numbers that the kernels work on."""

    def labels(self) -> Ints:
        """A cluster label a user, as the rule numbers them."""

    def cluster_of(self, user: int) -> Ints:
        """The users whose data counts for this one, ascending."""

    def estimates(self) -> Floats:
        """The most personal estimate held for each user."""

    def pulls(self) -> Ints:
        """How many rewards each user has given."""

    def welcome(self, known: int) -> None:
        """Users from number `known` on are new; the statistics of the others are in place."""


def empty(rows: int, dim: int, ridge: float) -> Ridge:
    """Rows without data."""
    inverse = np.zeros((rows, dim, dim))
    inverse[:, np.arange(dim), np.arange(dim)] = 1.0 / ridge
    return Ridge(inverse, np.zeros((rows, dim)), np.zeros((rows, dim)), np.zeros(rows, np.int64))


def complete(n: int) -> Words:
    """The complete graph as rows of bits (Alg. 1, initialisation)."""
    bits = np.zeros((n, 64 * ((n + 63) // 64)), np.uint8)
    bits[:, :n] = 1
    bits[np.arange(n), np.arange(n)] = 0
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def join_all(edges: Words, known: int, n: int) -> None:
    """Newcomers are joined to everybody, as in a complete graph."""
    edges[known:] = complete(n)[known:]
    for user in range(known, n):
        edges[:known, user >> 6] |= np.uint64(1 << (user & 63))


def all_radii(shape: Radius, pulls: Ints) -> Floats:
    """f(T) of every user."""
    return np.array([radius(shape, int(t)) for t in pulls])


def arrays(state: Any, prefix: str = "") -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The arrays of a state by name, those of nested records as `users.inverse` and so on."""
    for name, value in zip(state._fields, state, strict=True):
        if isinstance(value, np.ndarray):
            yield prefix + name, value
        elif hasattr(value, "_fields"):
            yield from arrays(value, f"{prefix}{name}.")


def by_appearance(labels: Ints) -> Ints:
    """The same partition with labels 0, 1, … in order of first appearance.

    >>> by_appearance(np.array([7, 7, 2, 7])).tolist()
    [0, 0, 1, 0]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]
