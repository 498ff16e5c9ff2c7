"""The class of our policies: what all of them do, around a compiled learner."""

from __future__ import annotations

from os import PathLike
from threading import RLock
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.policies._learner import Learner
from coterie.policies.explanations import UserExplanation, explained
from coterie.policies.plans import MOST_USERS, PLANS, checked, frozen, grown
from coterie.policies.plans import Plan as Plan
from coterie.policies.plans import by_appearance as by_appearance
from coterie.policies.plans import too_long as too_long
from coterie.policies.schedule import Schedule
from coterie.seeding import stream
from coterie.types import Floats, Ints, Scores
from coterie.validation import (
    arm_vector,
    arms_matrix,
    counted,
    finite,
    number,
    reals,
    user_index,
    users_array,
    whole,
)


@final
class LinearBandit:
    """A contextual linear bandit over many users: the class of every policy that `CLUB` and others make.

    It has the methods of `Policy` and of `ListPolicy`. Do not construct it; call a maker such as
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

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        """Make a policy without data."""
        self._name = name
        self._arguments = checked(arguments)
        self._rng = stream(self._arguments["seed"], "policy")
        self._n_users: int = self._arguments["n_users"]
        self._dim: int = self._arguments["dim"]
        plan = PLANS[name](**self._arguments)
        self._learner = plan.build(self._n_users, self._dim, self._arguments["ridge"], self._rng)
        self._lock = RLock()

    @property
    def name(self) -> str:
        """Name of the maker, such as 'CLUB'."""
        return self._name

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that the policy was made with, by name; `n_users` is the present number."""
        return dict(self._arguments)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self._n_users

    @property
    def dim(self) -> int:
        """Length d of an arm's vector."""
        return self._dim

    @property
    def rounds(self) -> int:
        """Number of rewards absorbed."""
        return self._learner.rounds

    @property
    def exploring(self) -> bool:
        """Whether the next decision is a uniformly random arm."""
        return bool(self._learner.exploring)

    @property
    def exploration(self) -> Schedule:
        """Schedule of the uniform rounds: `first`, `phase` and `growth`."""
        return self._learner.schedule

    @property
    def estimates(self) -> Floats:
        """Most personal estimate θ̂ of each user, shape (n_users, dim), read-only."""
        with self._lock:
            return frozen(self._learner.estimates())

    @property
    def pulls(self) -> Ints:
        """Number T of rewards of each user, shape (n_users,), read-only."""
        with self._lock:
            return frozen(self._learner.pulls_of_users())

    @property
    def learner(self) -> Learner:
        """Compiled state, for the simulator and snapshots; hold `lock` while using it."""
        return self._learner

    @property
    def lock(self) -> RLock:
        """Lock held by whoever reads or changes the state."""
        return self._lock

    @property
    def generator(self) -> np.random.Generator:
        """Generator of random decisions."""
        return self._rng

    def recommend(self, user: int, arms: ArrayLike) -> int:
        """Choose an arm for a user. This learns nothing; ties go to the first arm.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one a row.

        Returns
        -------
        int
            Row number of the chosen arm.
        """
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

    def recommend_many(self, users: ArrayLike, arms: ArrayLike) -> Ints:
        """Choose an arm for each of several users, by what is known now.

        Parameters
        ----------
        users : array_like of int, shape (n,)
            Users; one may occur several times.
        arms : array_like of shape (K, dim) or (n, K, dim)
            Vectors of the arms on offer: the same for all users, or a set for each.

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
        if n == 0:
            return np.empty(0, np.int64)
        with self._lock:
            if not self._learner.accepts(stack.reshape(-1, d)):
                raise self._too_long("arms", stack)
            chosen = [
                self._learner.recommend(int(u), stack if shared else stack[k]) for k, u in enumerate(served)
            ]
        return np.array(chosen, np.int64)

    def recommend_list(self, user: int, arms: ArrayLike, k: int) -> Ints:
        """Choose k arms for a ranked list, best first; ties go to the lower row number.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one a row.
        k : int
            Length of the list, from 1 to K.

        Returns
        -------
        array of int, shape (k,)
            Row numbers of the chosen arms.
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(arms, self._dim)
        k = whole("k", k, 1, len(matrix))
        with self._lock:
            found = self._learner.recommend_list(user, matrix, k)
        if found is None:
            raise self._too_long("arms", matrix)
        return found

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
            absorbed = self._learner.update_many(served, vectors, values)
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

    def scores(self, user: int, arms: ArrayLike) -> Scores:
        """Tell why an arm is chosen: estimated mean, bonus and their sum for each arm.

        Outside uniform rounds `recommend` takes the arm of the largest sum; LinTS draws a sample instead.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one a row.

        Returns
        -------
        Scores
            `mean`, `width` and `ucb`, each of shape (K,).
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(arms, self._dim)
        with self._lock:
            if not self._learner.accepts(matrix):
                raise self._too_long("arms", matrix)
            mean, width = self._learner.scores(user, matrix)
        return Scores(mean, width, mean + width)

    def explain(self, user: int, arms: ArrayLike | None = None) -> UserExplanation:
        """Tell whom a user learns from, what is known of it, and what scores are made of; of AutoCLUB only.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim), optional
            Arms whose scores are to be taken apart.

        Returns
        -------
        UserExplanation
            Plain data; `print` shows it in a few lines.
        """
        user = user_index(user, self._n_users)
        matrix = None if arms is None else arms_matrix(arms, self._dim)
        with self._lock:
            if matrix is not None and not self._learner.accepts(matrix):
                raise self._too_long("arms", matrix)
            return explained(self, user, matrix)

    def labels(self) -> Ints:
        """Number the cluster of each user, in order of first appearance.

        Returns
        -------
        array of int, shape (n_users,)
            Labels 0, 1, …; where clusters overlap (PhaseUniCLUB), those of the connected components.
        """
        with self._lock:
            return by_appearance(self._learner.labels())

    def cluster_of(self, user: int) -> Ints:
        """List the users whose data counts for a user, itself included.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.

        Returns
        -------
        array of int
            Users, ascending.
        """
        user = user_index(user, self._n_users)
        with self._lock:
            return self._learner.cluster_of(user)

    def suspects(self, delta: float = 0.01, *, noise: float = 1.0) -> Ints:
        """List the users whose rewards seem corrupted (OCCUD); only RCLUBWCU knows.

        Parameters
        ----------
        delta : float, default 0.01
            Probability δ, strictly between 0 and 1, that an honest user is listed.
        noise : float, default 1.0
            Standard deviation σ of the noise of honest rewards, at least 0; 1 as in the source.

        Returns
        -------
        array of int
            Users, ascending.
        """
        from coterie.policies.rclubwcu import find_suspects

        lies = self._arguments.get("threshold", 0.0) * self._arguments.get("corruption", 0.0)
        with self._lock:
            return find_suspects(self._learner, lies=lies, delta=delta, noise=noise)

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
            self._learner.add_users(n, schedule=plan.schedule, **plan.settings)
            self._arguments, self._n_users = arguments, known + n
        return np.arange(known, known + n)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a snapshot, from which `coterie.load` goes on with the very same next decision.

        Parameters
        ----------
        path : str or path
            File to write; it is whole or absent, never half written.
        """
        from coterie.policies.snapshots import save

        save(self, path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the arrays of a snapshot."""
        from coterie.policies.snapshots import captured, revived

        return revived, (captured(self),)

    def __repr__(self) -> str:
        """Show the name, the size and the number of rounds."""
        clusters = len(np.unique(self.labels()))
        size = f"{counted(self.n_users, 'user')} in {counted(clusters, 'cluster')}, dim {self.dim}"
        return f"<{self._name}: {size}, {counted(self.rounds, 'round')}>"

    def _too_long(self, name: str, rows: ArrayLike) -> ArgumentError:
        """Make the error for a vector that is not finite, or too long for the inverse."""
        finite(name, np.asarray(rows, np.float64))
        return too_long(name, self._arguments["ridge"])
