"""Protocols of policies: any object with the right methods can be simulated.

`simulate`, experiments and the command line ask for no class. Further methods are used where a policy has
them: `labels()` for clusters and the Rand index, `n_users`, `dim` and `add_users(n)` for users who come
later.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from coterie.types import Floats, Ints

ITEM_PARAMETERS: Mapping[str, str] = MappingProxyType(
    {
        "recommend": "items",
        "recommend_list": "items",
        "recommend_pair": "items",
        "update": "item",
        "update_list": "items",
        "update_pair": "items",
    }
)
"""The parameter of each method that takes ids of items, in policies that know items by name."""


def takes_items(policy: object, method: str) -> bool:
    """Tell whether a method of a policy names the parameter for ids of items in its signature."""
    try:
        return ITEM_PARAMETERS[method] in signature(getattr(policy, method)).parameters
    except (AttributeError, TypeError, ValueError):  # it has no such method, or one without a signature
        return False


@runtime_checkable
class Policy(Protocol):
    """Protocol of a contextual bandit over many users: any object with these two methods.

    Examples
    --------
    >>> class First:
    ...     def recommend(self, user, arms):
    ...         return 0
    ...     def update(self, user, x, reward):
    ...         pass
    >>> isinstance(First(), Policy)
    True
    """

    def recommend(self, user: int, arms: Floats) -> int:
        """Choose an arm for a user.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one per row; as many as you like, other ones in every call.

        Returns
        -------
        int
            Row number of the chosen arm.
        """

    def update(self, user: int, x: Floats, reward: float) -> None:
        """Learn from a reward, which may come late, in any order, and for an arm that somebody else chose.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        x : array_like of shape (dim,)
            Vector of the arm that was shown.
        reward : float
            Reward that the user gave.
        """


@runtime_checkable
class ListPolicy(Protocol):
    """Protocol of a policy that shows ranked lists, which users scan until the first click.

    Examples
    --------
    >>> import coterie
    >>> isinstance(coterie.AutoCLUB(n_users=3, dim=2), ListPolicy)
    True
    """

    def recommend_list(self, user: int, arms: Floats, k: int) -> Ints:
        """Choose k arms for a user, best first.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one per row; as many as you like, other ones in every call.
        k : int
            Number of arms to show, from 1 to K.

        Returns
        -------
        array of int, shape (k,)
            Row numbers of the chosen arms.
        """

    def update_list(self, user: int, xs: Floats, clicked: int | None) -> None:
        """Learn which arm of a list was clicked first.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        xs : array_like of shape (k, dim)
            Vectors of the list that was shown, from the top.
        clicked : int or None
            Position of the first click, from 0; None if nothing was clicked.
        """


@runtime_checkable
class PairPolicy(Protocol):
    """Protocol of a policy that shows two arms and learns which one was preferred.

    Examples
    --------
    >>> class FirstTwo:
    ...     def recommend_pair(self, user, arms):
    ...         return 0, 1
    ...     def update_pair(self, user, winner, loser):
    ...         pass
    >>> isinstance(FirstTwo(), PairPolicy)
    True
    """

    def recommend_pair(self, user: int, arms: Floats) -> tuple[int, int]:
        """Choose two arms for a user.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one per row; as many as you like, other ones in every call.

        Returns
        -------
        tuple of int
            Row numbers of the two arms.
        """

    def update_pair(self, user: int, winner: Floats, loser: Floats) -> None:
        """Learn which of two arms a user preferred.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        winner : array_like of shape (dim,)
            Vector of the preferred arm.
        loser : array_like of shape (dim,)
            Vector of the other arm.
        """
