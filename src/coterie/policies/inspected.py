"""What a policy of ours tells of itself, without learning anything."""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.policies.autoclub.explanations import UserExplanation, explained
from coterie.policies.kernel.learner import Learner
from coterie.policies.memory_use import MemoryUse, memory_use
from coterie.policies.plans import PLANS, by_appearance, checked, frozen, too_long
from coterie.policies.schedule import Schedule
from coterie.seeding import stream
from coterie.types import Floats, Ints, Scores
from coterie.validation import arms_matrix, counted, finite, user_index


class Inspected:
    """A policy as it is made, and what can be read of it; `LinearBandit` adds decisions and learning.

    Parameters
    ----------
    name : str
        Name of the maker.
    arguments : dict
        Arguments of the maker, by name.
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

    def scores(self, user: int, arms: ArrayLike) -> Scores:
        """Tell why an arm is chosen: estimated mean, bonus and their sum for each arm.

        Outside uniform rounds `recommend` takes the arm of the largest sum; LinTS draws a sample instead. The
        sums of CascadeLinUCB and CLUBCascade count as 1 at most.

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
            limit = self._learner.limit
        return Scores(mean, width, np.minimum(mean + width, limit))

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

    def memory(self) -> MemoryUse:
        """Tell how many bytes the policy holds, by part.

        Returns
        -------
        MemoryUse
            `parts`, a dict of bytes, and `total`; `print` shows a line for each part.

        Notes
        -----
        Room for users to come is counted. Pages of it that were never written cost the machine nothing: the
        resident memory of a process may be less.
        """
        with self._lock:
            return memory_use(self._learner, self._arguments)

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
        from coterie.policies.robust.rclubwcu import find_suspects

        lies = self._arguments.get("threshold", 0.0) * self._arguments.get("corruption", 0.0)
        with self._lock:
            return find_suspects(self._learner, lies=lies, delta=delta, noise=noise)

    def __repr__(self) -> str:
        """Show the name, the size and the number of rounds."""
        clusters = len(np.unique(self.labels()))
        size = f"{counted(self.n_users, 'user')} in {counted(clusters, 'cluster')}, dim {self.dim}"
        return f"<{self._name}: {size}, {counted(self.rounds, 'round')}>"

    def _too_long(self, name: str, rows: ArrayLike) -> ArgumentError:
        """Make the error for a vector that is not finite, or too long for the inverse."""
        finite(name, np.asarray(rows, np.float64))
        return too_long(name, self._arguments["ridge"])
