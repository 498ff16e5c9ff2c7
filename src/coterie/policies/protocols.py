"""What a policy is to the rest of the library: any object with the right methods.

`simulate`, experiments and the command line ask for no class. Whatever else a policy has is used where it is
there: `labels()` for clusters and the Rand index, `n_users`, `dim` and `add_users(n)` for users who come
later, `scores`, `save`, `recommend_many` and `update_many`.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from coterie.types import Floats, Ints


@runtime_checkable
class Policy(Protocol):
    """A contextual bandit over many users: any object with these two methods.

    Examples
    --------
    >>> import numpy as np
    >>> class First:
    ...     def recommend(self, user, arms):
    ...         return 0
    ...     def update(self, user, x, reward):
    ...         pass
    >>> isinstance(First(), Policy)
    True
    """

    def recommend(self, user: int, arms: Floats) -> int:
        """Choose an arm for a user now: a row number of `arms`, shape (K, d)."""

    def update(self, user: int, x: Floats, reward: float) -> None:
        """Learn the reward that a user gave for the arm with vector `x`, whenever it comes."""


@runtime_checkable
class ListPolicy(Protocol):
    """A policy that shows ranked lists, scanned from the top until the first click."""

    def recommend_list(self, user: int, arms: Floats, k: int) -> Ints:
        """Choose k arms, best first: row numbers of `arms`."""

    def update_list(self, user: int, xs: Floats, clicked: int | None) -> None:
        """Learn which position of the list `xs`, shape (k, d), was clicked first; None if none was."""


@runtime_checkable
class PairPolicy(Protocol):
    """A policy that shows two arms and learns which one won."""

    def recommend_pair(self, user: int, arms: Floats) -> tuple[int, int]:
        """Choose two arms: row numbers of `arms`."""

    def update_pair(self, user: int, winner: Floats, loser: Floats) -> None:
        """Learn the vector that won and the vector that lost."""
