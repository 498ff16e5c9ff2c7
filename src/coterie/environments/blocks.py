"""Blocks of rounds, which an environment passes to the simulator."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from coterie.types import Floats, Ints

BLOCK = 256
"""Number of rounds that are generated at a time, each block from its own random stream."""


class Block(NamedTuple):
    """Rounds generated in advance, which an environment passes to the simulator.

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
        Number added to the mean; with `binary`, a uniform number: the reward is 1 if it is below the mean.
        With lists, the shape is (n, length): one number per position.
    delays : array of int, shape (n,)
        Rounds until the feedback arrives.
    binary : bool
        Whether rewards are 0 or 1.
    lasting : bool
        Whether `items` are the same in every block.
    length : int, default 1
        Arms shown in a round; above 1, a list that is scanned from the top until the first reward of 1.
    signs : array of float, shape (n,), optional
        Corruption of each round: the mean of the reward is multiplied by 1 (uncorrupted), −1 (inverted; with
        `binary`, a mean m becomes 1 − m) or 0 (a mean of 0, or ½ with `binary`). None if no round is
        corrupted. Regret is computed from the true means.
    sharpness : float, default 0.0
        If positive, rounds are duels: two arms are shown, and the first is preferred if `noise`, which is
        uniform, is below 1/(1 + exp(−sharpness · difference of means)). If infinite, the arm with the larger
        mean is preferred, and `noise` decides only between equal ones.
    unseen : int, default 0
        If positive, an item is shown to a user once. Each row of `picks` has distinct candidates in order,
        followed by −1, and the arms of the round are the first `unseen` candidates that its user has not been
        shown in the run. If the user has been shown all of them, the round is skipped: it counts, with no
        decision, no reward and no regret. Requires `lasting` items, single arms and no duels.
    ids : array of int, shape (m,), optional
        Ids of the items, each from 0 to 2^62 − 1. By default those of `lasting` items are their row numbers,
        and others have none: a policy then takes equal vectors for one item.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> env = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10)
    >>> env.block(0).first(3).picks.shape
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
    unseen: int = 0
    ids: Ints | None = None

    def first(self, rounds: int) -> Block:
        """Return the first rounds of the block.

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
    >>> env: Environment = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=3)
    >>> env.n_users, env.dim, env.seed
    (8, 5, 3)
    """

    @property
    def seed(self) -> int:
        """Seed of the rounds."""

    @property
    def n_users(self) -> int:
        """Number of users, including those that appear later."""

    @property
    def dim(self) -> int:
        """Length of an arm's vector."""

    @property
    def labels(self) -> Ints | None:
        """True cluster of each user, shape (n_users,); None if unknown."""

    @property
    def longest_delay(self) -> int:
        """Largest delay of feedback, in rounds."""

    def present(self, number: int) -> int:
        """Count the users that may arrive in a block; they have the lowest numbers.

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
        """Generate rounds number·256 to number·256 + 255; they are the same for every policy.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
