"""Blocks of rounds, as an environment hands them to the simulator."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from coterie.types import Floats, Ints

BLOCK = 256
"""Rounds are drawn this many at a time, each block from a stream of its own."""


class Block(NamedTuple):
    """Rounds drawn beforehand, as an environment hands them to the simulator.

    Parameters
    ----------
    users : array of int, shape (n,)
        User of each round.
    items : array of float, shape (m, dim)
        Vectors of all items.
    picks : array of int, shape (n, K)
        Row numbers in `items` of the arms of each round.
    means : array of float, shape (n, K)
        Expected reward of each arm.
    noise : array of float, shape (n,)
        What is added to the mean; with `binary`, a uniform number that a reward of 1 lies below. With lists,
        shape (n, length): a number for each position.
    delays : array of int, shape (n,)
        Rounds until the feedback arrives.
    binary : bool
        Whether rewards are 0 or 1.
    lasting : bool
        Whether `items` are the same in every block.
    length : int, default 1
        Arms shown in a round; above 1, a list that is scanned from the top until the first reward of 1.
    signs : array of float, shape (n,), optional
        Sign of the mean in each round's reward: 1 for an honest user; −1 for the opposite (with `binary`, a
        mean m becomes 1 − m); 0 for a reward without information (0 or ½). None if all are honest.
        Regret is that of the true means.
    sharpness : float, default 0.0
        Above 0, rounds are duels: two arms are shown, and the first is preferred if `noise`, uniform, lies
        below 1/(1 + exp(−sharpness · difference of means)).

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> world = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10)
    >>> world.block(0).first(3).picks.shape
    (3, 10)
    """

    users: Ints
    items: Floats
    picks: Ints
    means: Floats
    noise: Floats
    delays: Ints
    binary: bool
    lasting: bool
    length: int = 1
    signs: Floats | None = None
    sharpness: float = 0.0

    def first(self, rounds: int) -> Block:
        """Leave out what comes after some rounds.

        Parameters
        ----------
        rounds : int
            Number of rounds to keep.

        Returns
        -------
        Block
            The first rounds of the block.
        """
        if rounds >= len(self.users):
            return self
        return self._replace(
            users=self.users[:rounds],
            picks=self.picks[:rounds],
            means=self.means[:rounds],
            noise=self.noise[:rounds],
            delays=self.delays[:rounds],
            signs=None if self.signs is None else self.signs[:rounds],
        )


class Environment(Protocol):
    """Protocol of an environment: any object with these members can be simulated.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> world: Environment = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=3)
    >>> world.n_users, world.dim, world.seed
    (8, 5, 3)
    """

    @property
    def seed(self) -> int:
        """Seed of the rounds."""

    @property
    def n_users(self) -> int:
        """Number of users, those who appear later included."""

    @property
    def dim(self) -> int:
        """Length of an arm's vector."""

    @property
    def labels(self) -> Ints | None:
        """True cluster of each user, shape (n_users,); None where it is unknown."""

    @property
    def longest_delay(self) -> int:
        """Most rounds that feedback takes to arrive."""

    def present(self, number: int) -> int:
        """Count the users who may come in a block: those of the lowest numbers.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        int
            Number of users.
        """

    def block(self, number: int) -> Block:
        """Draw rounds number·256 to number·256 + 255; they are the same for every policy.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
