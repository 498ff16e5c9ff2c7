"""The paper's preprocessing in plain Python, to be compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from coterie.types import Floats

Id: TypeAlias = int | str


class Naive(NamedTuple):
    users: list[Id]
    items: list[Id]
    matrix: Floats
    tied_items: int


def busiest(ids: Sequence[Id], count: int) -> list[Id]:
    """Most rows first; `sorted` is stable, so ids that tie stay ascending."""
    counts = Counter(ids)
    ascending: list[Id] = sorted(counts, key=lambda i: (isinstance(i, str), i))
    return sorted(ascending, key=lambda i: -counts[i])[:count]


def gather(table: Sequence[tuple[Id, Id, bool]], n_users: int, n_items: int) -> Naive:
    users = busiest([user for user, _, _ in table], n_users)
    items = busiest([item for _, item, _ in table], n_items)
    matrix = np.zeros((len(users), len(items)))
    for user, item, liked in table:
        if liked and user in users and item in items:
            matrix[users.index(user), items.index(item)] = 1.0
    return Naive(users, items, matrix, _tied([item for _, item, _ in table], items))


def _tied(ids: Sequence[Id], kept: Sequence[Id]) -> int:
    counts = Counter(ids)
    tied = [i for i in counts if counts[i] == counts[kept[-1]]]
    return len(tied) if any(i not in kept for i in tied) else 0
