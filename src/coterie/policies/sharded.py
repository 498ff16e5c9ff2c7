"""Shards in one process: users spread over policies that share nothing, by the hash of the service."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.placement import MOST_SHARDS, user_hash
from coterie.policies.base import MOST_USERS, LinearBandit, by_appearance
from coterie.types import Ints
from coterie.validation import counted, shown, user_index, whole


class Sharded:
    """Users spread over several policies by a hash of their number; no policy knows users of another.

    It shows what a service of several shards costs in regret, before there is one: each policy has its share
    of the users, and decides exactly as it would alone. It can be simulated like any policy, with arms, lists
    or duels.

    Parameters
    ----------
    make : callable
        Called as make(n_users, shard) for each shard; returns its policy, with so many users. Use `shard` for
        the seed if the shards should draw different random numbers.
    shards : int, default 4
        Number of shards. Regret hardly changes as long as each cluster has a few hundred users in each shard.
    n_users : int, default 1
        Number of users, numbered 0 to n_users − 1; `add_users` adds more later.

    Attributes
    ----------
    policies : tuple of LinearBandit
        The policy of each shard. One without users has room for the first.

    Raises
    ------
    ArgumentError
        If `make` returns anything else than a policy with so many users, or the policies differ in `dim`.

    Notes
    -----
    User u is in shard `coterie.placement.shard_of(u, shards)`: the first 32 bits of SHA-256 of its decimal
    digits, modulo the number of shards.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie
    >>> policy = coterie.Sharded(
    ...     lambda n_users, shard: coterie.CLUB(n_users, 2, alpha=1.0, beta=0.1, seed=shard), n_users=100
    ... )
    >>> [one.n_users for one in policy.policies]
    [17, 27, 25, 31]
    >>> policy.recommend(7, np.eye(2))
    0
    >>> policy.update(7, [1.0, 0.0], 1.0)
    >>> shard, number = policy.find(7)
    >>> int(shard.pulls[number])
    1
    """

    def __init__(
        self, make: Callable[[int, int], LinearBandit], shards: int = 4, *, n_users: int = 1
    ) -> None:
        """Make the policies."""
        if not callable(make):
            raise ArgumentError(
                f"make must be a function of (n_users, shard) that returns a policy, got {shown(make)}"
            )
        shards = whole("shards", shards, 1, MOST_SHARDS)
        n_users = whole("n_users", n_users, 1, MOST_USERS)
        self._shards = _shards_of(0, n_users, shards)
        self._numbers = _numbered(self._shards, np.zeros(shards, np.int64))
        counts = np.bincount(self._shards, minlength=shards)
        # A policy cannot have no users: one without any has room for the first, as in the service.
        rooms = np.maximum(counts, 1).tolist()
        self.policies = tuple(_made(make, room, shard) for shard, room in enumerate(rooms))
        if len({one.dim for one in self.policies}) > 1:
            raise ArgumentError("make must return policies of one dim for all shards")

    def find(self, user: int) -> tuple[LinearBandit, int]:
        """Return the policy of a user, and the user's number in it.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.

        Returns
        -------
        tuple of LinearBandit and int
            What they are for: `policy.scores(number, arms)`, and all else that a policy can tell.
        """
        user = user_index(user, len(self._shards))
        return self.policies[self._shards[user]], int(self._numbers[user])

    def recommend(self, user: int, arms: ArrayLike, *, items: ArrayLike | None = None) -> int:
        """Choose an arm for a user, as its policy does.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one per row.
        items : array_like of int, shape (K,), optional
            Ids of the arms, as for `LinearBandit.recommend`.

        Returns
        -------
        int
            Row number of the chosen arm.
        """
        policy, number = self.find(user)
        return policy.recommend(number, arms, items=items)

    def update(self, user: int, x: ArrayLike, reward: float, *, item: int | None = None) -> None:
        """Absorb a reward, which may come late and in any order.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        x : array_like of shape (dim,)
            Vector of the arm that was shown.
        reward : float
            Reward that the user gave.
        item : int, optional
            Id of the arm that was shown.
        """
        policy, number = self.find(user)
        policy.update(number, x, reward, item=item)

    def recommend_list(self, user: int, arms: ArrayLike, k: int, *, items: ArrayLike | None = None) -> Ints:
        """Choose k arms for a ranked list, best first.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one per row.
        k : int
            Length of the list, from 1 to K.
        items : array_like of int, shape (K,), optional
            Ids of the arms, as for `LinearBandit.recommend`.

        Returns
        -------
        array of int, shape (k,)
            Row numbers of the chosen arms.
        """
        policy, number = self.find(user)
        return policy.recommend_list(number, arms, k, items=items)

    def update_list(
        self, user: int, xs: ArrayLike, clicked: int | None, *, items: ArrayLike | None = None
    ) -> None:
        """Absorb the first click on a ranked list.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        xs : array_like of shape (k, dim)
            Vectors of the list that was shown, from the top.
        clicked : int or None
            Position of the first click, from 0; None if nothing was clicked.
        items : array_like of int, shape (k,), optional
            Ids of the arms, as for `LinearBandit.recommend`.
        """
        policy, number = self.find(user)
        policy.update_list(number, xs, clicked, items=items)

    def recommend_pair(
        self, user: int, arms: ArrayLike, *, items: ArrayLike | None = None
    ) -> tuple[int, int]:
        """Choose two arms for a user to compare.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one per row.
        items : array_like of int, shape (K,), optional
            Ids of the arms, as for `LinearBandit.recommend`.

        Returns
        -------
        tuple of int
            Row numbers of the two arms.
        """
        policy, number = self.find(user)
        return policy.recommend_pair(number, arms, items=items)

    def update_pair(
        self, user: int, winner: ArrayLike, loser: ArrayLike, *, items: ArrayLike | None = None
    ) -> None:
        """Absorb which of two arms a user preferred.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        winner : array_like of shape (dim,)
            Vector of the preferred arm.
        loser : array_like of shape (dim,)
            Vector of the other arm.
        items : array_like of int, shape (2,), optional
            Ids of the arms, as for `LinearBandit.recommend`.
        """
        policy, number = self.find(user)
        policy.update_pair(number, winner, loser, items=items)

    def add_users(self, n: int) -> Ints:
        """Add users without data, each to its shard.

        Parameters
        ----------
        n : int
            Number of new users, at least 1.

        Returns
        -------
        array of int, shape (n,)
            Numbers of the new users.
        """
        n = whole("n", n, 1, MOST_USERS)
        with self.policies[0].lock:
            known, shards = len(self._shards), len(self.policies)
            joining = _shards_of(known, n, shards)
            before = np.bincount(self._shards, minlength=shards)
            for policy, count in zip(
                self.policies, before + np.bincount(joining, minlength=shards), strict=True
            ):
                if count > policy.n_users:
                    policy.add_users(int(count) - policy.n_users)
            # Numbers first: `find` knows a user by its shard.
            self._numbers = np.concatenate([self._numbers, _numbered(joining, before)])
            self._shards = np.concatenate([self._shards, joining])
        return np.arange(known, known + n)

    @property
    def name(self) -> str:
        """Name of the policies and the number of shards, such as 'AutoCLUB in 4 shards'."""
        return f"{self.policies[0].name} in {counted(len(self.policies), 'shard')}"

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self._shards)

    @property
    def dim(self) -> int:
        """Length of an arm's vector."""
        return self.policies[0].dim

    @property
    def rounds(self) -> int:
        """Number of rewards absorbed, in all shards."""
        return sum(one.rounds for one in self.policies)

    def labels(self) -> Ints:
        """Return the cluster number of each user; users of different shards are never in one cluster.

        Returns
        -------
        array of int, shape (n_users,)
            Labels 0, 1, … in order of first appearance.
        """
        found, first = np.empty(self.n_users, np.int64), 0
        for shard, policy in enumerate(self.policies):
            members = np.flatnonzero(self._shards == shard)
            labels = policy.labels()
            found[members] = first + labels[: len(members)]
            first += int(labels.max()) + 1
        return by_appearance(found)

    def cluster_of(self, user: int) -> Ints:
        """List the users whose data counts for a user, itself included.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.

        Returns
        -------
        array of int
            Users, ascending; all of them are of the same shard.
        """
        policy, number = self.find(user)
        members = np.flatnonzero(self._shards == self._shards[user])
        return members[policy.cluster_of(number)]

    def __repr__(self) -> str:
        """Name, shards, users and rounds."""
        return (
            f"<Sharded: {self.name}, {counted(self.n_users, 'user')}, dim {self.dim}, {self.rounds} rounds>"
        )


def _shards_of(first: int, n: int, shards: int) -> Ints:
    """Return the shards of users who are numbered on from `first`."""
    return np.array([user_hash(user) for user in range(first, first + n)], np.int64) % shards


def _numbered(shards: Ints, before: Ints) -> Ints:
    """Return the number of each user in its shard, which has `before[shard]` users already."""
    numbers = np.empty(len(shards), np.int64)
    for shard, known in enumerate(before):
        members = np.flatnonzero(shards == shard)
        numbers[members] = known + np.arange(len(members))
    return numbers


def _made(make: Callable[[int, int], LinearBandit], n_users: int, shard: int) -> LinearBandit:
    policy = make(n_users, shard)
    if not isinstance(policy, LinearBandit) or policy.n_users != n_users:
        raise ArgumentError(
            f"make must return a policy with {counted(n_users, 'user')} for shard {shard}, "
            f"got {shown(policy)}"
        )
    return policy
