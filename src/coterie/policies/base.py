"""The class of our policies: what all of them do, around a compiled learner."""

from __future__ import annotations

from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.policies.array_files import ByteProgress
from coterie.policies.memory_use import check_graph
from coterie.policies.pairs import Paired
from coterie.policies.plans import MOST_USERS, PLANS, grown
from coterie.policies.plans import Plan as Plan
from coterie.policies.plans import by_appearance as by_appearance
from coterie.policies.plans import too_long as too_long
from coterie.types import Floats, Ints
from coterie.validation import (
    arm_vector,
    arms_matrix,
    finite,
    flag,
    number,
    reals,
    user_index,
    users_array,
    whole,
)


@final
class LinearBandit(Paired):
    """A contextual linear bandit over many users: the class of every policy that `CLUB` and others make.

    It has the methods of `Policy`, `ListPolicy` and `PairPolicy`. Do not construct it; call a maker such as
    `coterie.AutoCLUB`. The same seed, calls and rewards give the same arms, bit for bit. Any number of
    threads may use one policy; they take turns. Different policies run in parallel.

    Parameters
    ----------
    name : str
        Name of the maker.
    arguments : dict
        Arguments of the maker, by name.

    Raises
    ------
    ArgumentError
        By every method: if a user is unknown, a shape is wrong, a number is not finite, or a vector is longer
        than 10⁶ √ridge. Nothing has changed then.

    Examples
    --------
    >>> import coterie
    >>> policy = coterie.AutoCLUB(n_users=3, dim=2)
    >>> arm = policy.recommend(0, [[1.0, 0.0], [0.0, 1.0]])
    >>> policy.update(0, [1.0, 0.0], 0.8)
    >>> policy.rounds, policy.pulls.tolist()
    (1, [1, 0, 0])
    """

    def recommend(self, user: int, arms: ArrayLike, *, cautious: bool = False) -> int:
        """Choose an arm for a user. This learns nothing; ties go to the first arm.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one a row.
        cautious : bool, default False
            Whether to take the arm of the largest lower confidence bound, `mean` − `width` of `scores`: the
            safe choice if nothing will be learnt from it, such as a single decision after `fit`. No random
            number is drawn then, also in uniform rounds.

        Returns
        -------
        int
            Row number of the chosen arm.
        """
        if flag("cautious", cautious):
            return int(self.recommend_list(user, arms, 1, cautious=True)[0])
        user = user_index(user, self._n_users)
        try:
            with self._lock:
                arm = self._learner.recommend(user, arms)
        except TypeError:  # no contiguous matrix of float64
            arms = arms_matrix(arms, self._dim)
            with self._lock:
                arm = self._learner.recommend(user, arms)
        if arm < 0:
            raise self._too_long("arms", arms)
        return arm

    def recommend_many(self, users: ArrayLike, arms: ArrayLike, *, cautious: bool = False) -> Ints:
        """Choose an arm for each of several users, by what is known now.

        Parameters
        ----------
        users : array_like of int, shape (n,)
            Users; one may occur several times.
        arms : array_like of shape (K, dim) or (n, K, dim)
            Vectors of the arms on offer: the same for all users, or a set for each.
        cautious : bool, default False
            As for `recommend`.

        Returns
        -------
        array of int, shape (n,)
            Row numbers of the chosen arms.
        """
        served = users_array(users, self._n_users)
        stack = finite("arms", reals("arms", arms, "an array"))
        n, d = len(served), self._dim
        shared = stack.ndim == 2
        if (
            stack.ndim not in (2, 3)
            or stack.shape[-1] != d
            or stack.shape[-2] == 0
            or (not shared and len(stack) != n)
        ):
            raise ArgumentError(f"arms must have shape (K, {d}) or ({n}, K, {d}), got {stack.shape}")
        careful = flag("cautious", cautious)
        if n == 0:
            return np.empty(0, np.int64)
        with self._lock:
            if not self._learner.accepts(stack.reshape(-1, d)):
                raise self._too_long("arms", stack)
            choose = self._safest if careful else self._learner.recommend
            chosen = [choose(int(u), stack if shared else stack[k]) for k, u in enumerate(served)]
        return np.array(chosen, np.int64)

    def recommend_list(self, user: int, arms: ArrayLike, k: int, *, cautious: bool = False) -> Ints:
        """Choose k arms for a ranked list, best first; ties go to the lower row number.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one a row.
        k : int
            Length of the list, from 1 to K.
        cautious : bool, default False
            Whether to rank by lower confidence bounds, as for `recommend`.

        Returns
        -------
        array of int, shape (k,)
            Row numbers of the chosen arms.
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(arms, self._dim)
        k = whole("k", k, 1, len(matrix))
        with self._lock:
            if flag("cautious", cautious) and self._learner.accepts(matrix):
                return self._safest_first(user, matrix)[:k]
            found = None if cautious else self._learner.recommend_list(user, matrix, k)
        if found is None:
            raise self._too_long("arms", matrix)
        return found

    def _safest(self, user: int, arms: Floats) -> int:
        """Choose the arm of the largest lower confidence bound."""
        return int(self._safest_first(user, arms)[0])

    def _safest_first(self, user: int, arms: Floats) -> Ints:
        """Rank arms by their lower confidence bounds; the width of a cautious policy is negative already."""
        mean, width = self._learner.scores(user, arms)
        return np.argsort(np.abs(width) - mean, kind="stable")

    def update(self, user: int, x: ArrayLike, reward: float) -> None:
        """Absorb a reward, which may come late and in any order.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        x : array_like of shape (dim,)
            Vector of the arm that was shown.
        reward : float
            Reward that the user gave; True and False are 1 and 0. The defaults are meant for [−1, 1].
        """
        user, value = user_index(user, self._n_users), number("reward", reward)
        try:
            with self._lock:
                absorbed = self._learner.update(user, x, value)
        except TypeError:  # no contiguous vector of float64
            x = arm_vector(x, self._dim)
            with self._lock:
                absorbed = self._learner.update(user, x, value)
        if not absorbed:
            raise self._too_long("x", x)

    def update_many(self, users: ArrayLike, xs: ArrayLike, rewards: ArrayLike) -> None:
        """Absorb rewards row by row, exactly as single updates would; if a row is wrong, none is absorbed.

        Parameters
        ----------
        users : array_like of int, shape (n,)
            Users, in the order of their rewards.
        xs : array_like of shape (n, dim)
            Vectors of the arms that were shown.
        rewards : array_like of shape (n,)
            Rewards that the users gave.
        """
        self._absorb(users, xs, rewards, fitting=False)

    def fit(self, users: ArrayLike, xs: ArrayLike, rewards: ArrayLike) -> LinearBandit:
        """Absorb a log: all rewards first, then the rule acts once for every user.

        A warm start from rewards that somebody else's decisions brought. `update_many` lets the rule act
        after every reward, on what was known then; here it sees the whole log. What was learnt before stays.
        If a row is wrong, none is absorbed.

        Parameters
        ----------
        users : array_like of int, shape (n,)
            Users, in the order of their rewards.
        xs : array_like of shape (n, dim)
            Vectors of the arms that were shown.
        rewards : array_like of shape (n,)
            Rewards that the users gave.

        Returns
        -------
        LinearBandit
            The policy itself.

        Raises
        ------
        ArgumentError
            Also by policies whose rule follows the order of rewards: AutoCLUB, HierUCB, HierTS, CoDBand,
            DyClu, LOCB and CAB. `update_many` is their warm start.
        """
        if not self._learner.FITS:
            raise ArgumentError(
                f"{self._name} learns in the order of rewards and cannot be fitted at once: use update_many"
            )
        self._absorb(users, xs, rewards, fitting=True)
        return self

    def _absorb(self, users: ArrayLike, xs: ArrayLike, rewards: ArrayLike, *, fitting: bool) -> None:
        """Absorb rewards, and let the rule act after each of them or, when fitting, at the end."""
        served = users_array(users, self._n_users)
        n, d = len(served), self._dim
        vectors = finite("xs", reals("xs", xs, f"an (n, {d}) array"))
        values = finite("rewards", reals("rewards", rewards, "a vector", kinds="fiub"))
        if n == 0 and vectors.size == 0 and values.size == 0:
            return
        if vectors.shape != (n, d) or values.shape != (n,):
            raise ArgumentError(
                f"users, xs and rewards must have shapes ({n},), ({n}, {d}) and ({n},), "
                f"got {served.shape}, {vectors.shape} and {values.shape}"
            )
        with self._lock:
            absorbed = self._learner.update_many(served, vectors, values, fitting)
        if not absorbed:
            raise self._too_long("xs", vectors)

    def update_list(self, user: int, xs: ArrayLike, clicked: int | None) -> None:
        """Absorb the first click on a ranked list.

        Positions up to the click count as seen: they are absorbed as rewards 0, …, 0, 1 (all 0 without a
        click), and the clusters are reviewed once.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        xs : array_like of shape (k, dim)
            Vectors of the list that was shown, from the top.
        clicked : int or None
            Position of the first click, from 0; None if nothing was clicked.
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(xs, self._dim, name="xs")
        seen = len(matrix) if clicked is None else whole("clicked", clicked, 0, len(matrix) - 1) + 1
        rewards = np.zeros(seen)
        rewards[seen - 1] = clicked is not None
        with self._lock:
            absorbed = self._learner.update_list(user, matrix[:seen], rewards)
        if not absorbed:
            raise self._too_long("xs", matrix)

    def add_users(self, n: int, *, labels: ArrayLike | None = None) -> Ints:
        """Add users, who start as the algorithm's users do.

        Parameters
        ----------
        n : int
            Number of new users, at least 1.
        labels : array_like of int, shape (n,), optional
            True clusters of the new users; required by the oracles, refused by others.

        Returns
        -------
        array of int, shape (n,)
            Numbers of the new users.
        """
        n = whole("n", n, 1, MOST_USERS)
        with self._lock:
            known = self._n_users
            arguments = grown(self._arguments, n, labels)
            plan = PLANS[self._name](**arguments)
            check_graph(plan.learner, known + n, self._dim, plan.settings)
            self._learner.add_users(n, schedule=plan.schedule, **plan.settings)
            self._arguments, self._n_users = arguments, known + n
        return np.arange(known, known + n)

    def save(self, path: str | PathLike[str], *, progress: ByteProgress | None = None) -> None:
        """Write a snapshot, from which `coterie.load` goes on with the very same next decision.

        Parameters
        ----------
        path : str or path
            File to write; it is whole or absent, never half written.
        progress : callable, optional
            Called as progress(done, total) with the bytes written so far and those there are in all.

        Notes
        -----
        Arrays are written straight from the policy's memory, a few megabytes at a time: saving takes no copy
        of them, and other threads wait for it.
        """
        from coterie.policies.snapshots import save

        save(self, path, progress=progress)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the arrays of a snapshot."""
        from coterie.policies.snapshots import captured, revived

        return revived, (captured(self),)
