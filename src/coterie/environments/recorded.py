"""Recorded rounds in their original order: timestamped events, or your own sets of arms."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from coterie.datasets.payoff_table import PayoffTable, SparseTable
from coterie.environments.blocks import BLOCK, Block
from coterie.environments.payoffs import among_others, occurrence, real_block
from coterie.errors import ArgumentError
from coterie.seeding import check_seed, stream
from coterie.types import Floats, Ints
from coterie.validation import as_array, finite, flag, reals, shown, users_array, whole


class Stream:
    """Environment of recorded events in chronological order; users appear with their first event.

    A round is an event. Its arms are the item of the event and `n_arms` − 1 items for which the user has no
    event, before or after; the payoff is 1 for the item of the event and 0 for the others. Users are numbered
    in the order of their first events. Regret is relative to the item of the event.

    Parameters
    ----------
    table : PayoffTable
        From `coterie.datasets.load_payoffs` with `setting="stream"`.
    n_arms : int, default 25
        Number of arms in a round, from 1 to the number of items.
    seed : int, default 0
        Seed of the other arms and their order, at least 0; the events are the same for all seeds.
    n_users : int, optional
        Number of users, those that appear first; by default all of them.
    once : bool, default False
        Whether an item that a user has been shown is not shown to this user again: other items take the place
        of those. Only the first event of a user with an item is then a round.

    Raises
    ------
    ArgumentError
        If the table has no events, or a value is outside its range.

    Examples
    --------
    >>> import pandas as pd
    >>> from coterie.datasets import load_payoffs
    >>> rng = np.random.default_rng(1)
    >>> met = {"user": rng.integers(40, size=900), "item": rng.integers(30, size=900), "time": range(900)}
    >>> table = load_payoffs("interactions", pd.DataFrame(met), setting="stream", dim=5)
    >>> env = Stream(table, n_arms=4)
    >>> env.block(0).means.sum(axis=1)[:5].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """

    labels: Ints | None = None
    longest_delay = 0
    gamma = lambda_x = float("nan")
    graph: Floats | None = None

    def __init__(
        self,
        table: PayoffTable,
        n_arms: int = 25,
        seed: int = 0,
        *,
        n_users: int | None = None,
        once: bool = False,
    ) -> None:
        """Number the users in the order of their first events."""
        if not isinstance(table, PayoffTable) or table.events is None:
            raise ArgumentError(
                f"table must come from load_payoffs(..., setting='stream'), got {shown(table)}"
            )
        self.table, self.seed, self.once = table, check_seed(seed), flag("once", once)
        self.n_arms = whole("n_arms", n_arms, 1, len(table.items))
        rows, items = table.events[:, 0], table.events[:, 1]
        if self.once:
            firsts = np.sort(np.unique(rows * len(table.items) + items, return_index=True)[1])
            rows, items = rows[firsts], items[firsts]
        free = len(table.items) - table.payoffs.counts
        fits = free[rows] >= self.n_arms - 1
        _, first, numbers = np.unique(rows[fits], return_index=True, return_inverse=True)
        appeared = np.argsort(np.argsort(first))[numbers]
        most = len(first) if n_users is None else whole("n_users", n_users, 1, len(first))
        served = appeared < most
        if not served.any():
            raise ArgumentError(f"no user has {self.n_arms - 1} items without an event: n_arms must be lower")
        self.users: Ints = appeared[served]
        self.events: Ints = items[fits][served]
        self.members: Ints = rows[fits][np.sort(first)][:most]

    @cached_property
    def _earlier(self) -> Ints:
        """How many rounds the user of each round has had before."""
        return occurrence(self.users)

    @cached_property
    def _touched(self) -> SparseTable:
        return self.table.payoffs.select(self.members)

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.users)

    @property
    def n_users(self) -> int:
        """Number of users, including those that appear later."""
        return len(self.members)

    @property
    def dim(self) -> int:
        """Length of an arm's vector."""
        return self.table.dim

    @property
    def left_out(self) -> int:
        """Number of users of the table that have no round."""
        return self.table.n_users - self.n_users

    def __repr__(self) -> str:
        """Show the events, the users, the arms and the seed."""
        who = f"{self.n_rounds:,} events of {self.n_users:,} users"
        arms = f"{self.n_arms:,} of {len(self.table.items):,} items a round, dim {self.dim}"
        return f"<Stream of {self.table.provenance.name}: {who}, {arms}, seed {self.seed}>"

    def present(self, number: int) -> int:
        """Count the users that have appeared by the end of a block.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        int
            Number of users.
        """
        return int(self.users[: (number + 1) * BLOCK].max()) + 1

    def block(self, number: int) -> Block:
        """Return rounds number·256 to number·256 + 255, or fewer at the end.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
        part = slice(number * BLOCK, (number + 1) * BLOCK)
        users, items = self.users[part], self.events[part]
        rng = stream(self.seed, "rounds", str(number))
        # Of the items that a user has been shown, those of earlier rounds at most are candidates here.
        more = min(int(self._earlier[part].max()), len(self.table.items)) if self.once else 0
        picks = among_others(rng, self._touched, users, items, self.n_arms, more)
        means = (picks == items[:, None]).astype(np.float64)
        block = real_block(users, self.table.items, picks, means)
        return block._replace(unseen=self.n_arms) if self.once else block


class Rounds:
    """Environment of your own rounds: the user, the arms and their payoffs.

    Parameters
    ----------
    users : array of int, shape (n,)
        User of each round, at least 0.
    arms : array of float, shape (n, K, dim), or of int, shape (n, K)
        Vectors of the arms; if `items` is given, their row numbers in it.
    payoffs : array of float, shape (n, K)
        Payoff of each arm.
    items : array of float, shape (n_items, dim), optional
        Vectors of a catalogue.
    seed : int, default 0
        Seed that a trace reports, at least 0; the rounds do not depend on it.

    Raises
    ------
    ArgumentError
        If the shapes are inconsistent or a number is not finite.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> env = Rounds([0, 1, 0], rng.normal(size=(3, 4, 2)), rng.random((3, 4)))
    >>> env
    <Rounds: 3 rounds of 2 users, 4 arms a round, dim 2>
    """

    labels: Ints | None = None
    longest_delay = 0
    gamma = lambda_x = float("nan")
    graph: Floats | None = None

    def __init__(
        self,
        users: ArrayLike,
        arms: ArrayLike,
        payoffs: ArrayLike,
        items: ArrayLike | None = None,
        *,
        seed: int = 0,
    ) -> None:
        """Check the rounds."""
        self.users = users_array(users, np.iinfo(np.int64).max)
        self.payoffs = finite("payoffs", reals("payoffs", payoffs, "an (n, K) array", kinds="fiub"))
        self.seed = check_seed(seed)
        if self.payoffs.ndim != 2 or 0 in self.payoffs.shape or len(self.payoffs) != len(self.users):
            raise ArgumentError(
                f"payoffs must have one row per round and one column per arm, got {self.payoffs.shape} "
                f"for {len(self.users)} rounds"
            )
        self.items, self.picks = _catalogue(arms, items, self.payoffs.shape)

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.users)

    @property
    def n_users(self) -> int:
        """Number of users, including those that appear later."""
        return int(self.users.max()) + 1

    @property
    def n_arms(self) -> int:
        """Number of arms in a round."""
        return int(self.payoffs.shape[1])

    @property
    def dim(self) -> int:
        """Length of an arm's vector."""
        return int(self.items.shape[-1])

    def __repr__(self) -> str:
        """Show the numbers of rounds, users and arms, and the dimension."""
        who = f"{self.n_rounds:,} rounds of {self.n_users:,} users"
        return f"<Rounds: {who}, {self.n_arms:,} arms a round, dim {self.dim}>"

    def present(self, number: int) -> int:
        """Count the users that have appeared by the end of a block: up to the largest number so far.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        int
            Number of users.
        """
        return int(self.users[: (number + 1) * BLOCK].max()) + 1

    def block(self, number: int) -> Block:
        """Return rounds number·256 to number·256 + 255, or fewer at the end.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
        part = slice(number * BLOCK, (number + 1) * BLOCK)
        users, means = self.users[part], self.payoffs[part]
        if self.picks is not None:
            return real_block(users, self.items, self.picks[part], means)
        arms = self.items[part].reshape(-1, self.dim)
        picks = np.arange(means.size).reshape(means.shape)
        return real_block(users, np.ascontiguousarray(arms), picks, means, lasting=False)


def _catalogue(
    arms: ArrayLike, items: ArrayLike | None, shape: tuple[int, ...]
) -> tuple[Floats, Ints | None]:
    """Check the arms; return their vectors, or those of the catalogue and the row numbers of the arms."""
    if items is None:
        vectors = finite("arms", reals("arms", arms, "an (n, K, dim) array"))
        if vectors.ndim != 3 or vectors.shape[:2] != shape or vectors.shape[2] < 1:
            raise ArgumentError(
                f"arms must have shape {(*shape, 'dim')} to match payoffs, got {vectors.shape}"
            )
        return vectors, None
    catalogue = finite("items", reals("items", items, "an (n_items, dim) array"))
    if catalogue.ndim != 2 or catalogue.shape[1] < 1:
        raise ArgumentError(f"items must be a matrix with one row per item, got shape {catalogue.shape}")
    picks = as_array("arms", arms, "an (n, K) array of integers")
    if picks.shape != shape or picks.dtype.kind not in "iu":
        raise ArgumentError(
            f"arms must be integers of shape {shape}, got {picks.dtype} of shape {picks.shape}"
        )
    if picks.min() < 0 or picks.max() >= len(catalogue):
        raise ArgumentError(f"arms must be from 0 to {len(catalogue) - 1}, rows of items")
    return catalogue, np.ascontiguousarray(picks, np.int64)
