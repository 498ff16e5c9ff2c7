"""Real feedback: a catalogue of items, and the payoff of each item for each user."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from coterie.datasets.payoff_table import Offers, PayoffTable, Sparse, SparseTable, payoff_table
from coterie.environments._sampling import distinct, distinct_below
from coterie.environments.blocks import BLOCK, Block
from coterie.errors import ArgumentError, unknown
from coterie.seeding import check_seed, stream
from coterie.types import Bools, Floats, Ints
from coterie.validation import flag, number, whole


class Payoffs:
    """Environment of real feedback: a random user, some items, and the user's recorded payoffs as rewards.

    Nothing is drawn but users and arms: no noise is added, and regret is against the best arm offered. There
    are no true clusters, so that a trace has no Rand index; it has the reward of uniform play instead.

    Parameters
    ----------
    payoffs : PayoffTable, array or sparse array of shape (n_users, n_items)
        What items are worth: from `coterie.datasets.load_payoffs`, or your own numbers.
    items : array of shape (n_items, dim), optional
        Vectors of the items, where `payoffs` is not a PayoffTable.
    n_arms : int, default 25
        Number of arms in a round, from 1 to the number of items.
    seed : int, default 0
        Seed of users and rounds, at least 0; rounds are the same whoever plays.
    n_users : int, optional
        Number of users, drawn at random among those who can be served; by default all of them.
    offers : {"all", "known", "one-positive", "window"}, optional
        Which arms a round has, all of them distinct; by default what the table says, or "all".

        - ``all``: items of the whole catalogue at random.
        - ``known``: items at random whose payoff for this user is known. Users who know fewer are left out.
        - ``one-positive``: one item at random that is worth more than `default` to the user, all
          others at random among those that are not; their order is random.
        - ``window``: items in a random order that is the same for all; round t offers the n_arms from
          number ⌊t/Λ⌋ on, Λ = window/(n_items − n_arms + 1).
    default : float, default 0.0
        Payoff of an item where none is known.
    window : int, default 50_000
        Rounds that the window takes through the catalogue, at least 1.
    connected : bool, default False
        Whether to serve the `n_users` users with the most friends instead of random ones.

    Raises
    ------
    ArgumentError
        If fewer users can be served than requested, or none.

    Notes
    -----
    Memory: 8·n_items·dim bytes for the vectors and about 100 bytes a known payoff. Simulations remember
    widths of items only where 8 bytes for each row of statistics and item make at most 64 MiB.

    Examples
    --------
    >>> import coterie
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> items, tastes = rng.normal(size=(40, 3)), rng.normal(size=(6, 3))
    >>> world = Payoffs(tastes @ items.T > 0.5, items, n_arms=5, seed=2)
    >>> trace = coterie.simulate(coterie.LinUCBInd(6, 3, beta=0.2), world, 600)
    >>> bool(trace.relative[-1] > 1.2)
    True
    """

    labels: Ints | None = None
    n_rounds: int | None = None
    longest_delay = 0
    gamma = lambda_x = float("nan")

    def __init__(
        self,
        payoffs: PayoffTable | ArrayLike | Sparse,
        items: ArrayLike | None = None,
        n_arms: int = 25,
        seed: int = 0,
        *,
        n_users: int | None = None,
        offers: Offers | None = None,
        default: float = 0.0,
        window: int = 50_000,
        connected: bool = False,
    ) -> None:
        """Choose who is served."""
        self.table = _as_table(payoffs, items)
        self.seed = check_seed(seed)
        self.n_arms = whole("n_arms", n_arms, 1, len(self.table.items))
        self.offers = offers or self.table.offers
        if self.offers not in OFFERS:
            raise unknown("way to offer arms", str(self.offers), OFFERS, f"They are {', '.join(OFFERS)}")
        self.default, self.window = number("default", default), whole("window", window, 1)
        self._can_be_served = self._servable()
        self.members = self._members(n_users, flag("connected", connected))

    def _servable(self) -> Ints:
        """The users who can be offered such arms."""
        every, positive = self.table.payoffs, _above(self.table.payoffs, self.default)
        enough: dict[str, Bools] = {
            "known": every.counts >= self.n_arms,
            "one-positive": (positive.counts >= 1)
            & (positive.counts <= len(self.table.items) - self.n_arms + 1),
        }
        able = np.flatnonzero(enough.get(self.offers, np.ones(self.table.n_users, np.bool_)))
        if not len(able):
            wanted = f"{self.n_arms} items whose payoff is known"
            if self.offers == "one-positive":
                wanted = f"an item worth more than {self.default:g} and {self.n_arms - 1} others"
            raise ArgumentError(
                f"no user can be served: none has {wanted}; ask for fewer arms than {self.n_arms}"
            )
        return able

    @property
    def left_out(self) -> int:
        """Number of users who cannot be served: too few of their payoffs are known."""
        return self.table.n_users - len(self._can_be_served)

    def _members(self, n_users: int | None, connected: bool) -> Ints:
        """The rows of the table that are served, in the order of the users' numbers."""
        able = self._can_be_served
        if n_users is not None and whole("n_users", n_users, 1) > len(able):
            raise ArgumentError(f"n_users must be at most {len(able)}, who can be served, got {n_users!r}")
        if not connected:
            return np.asarray(stream(self.seed, "users").permutation(able)[:n_users])
        if self.table.friends is None:
            raise ArgumentError("connected: the table has no friendships")
        friends = self.table.friends.counts[able]
        return np.asarray(able[np.argsort(-friends, kind="stable")][:n_users])

    @cached_property
    def _known(self) -> SparseTable:
        """The payoffs of those who are served."""
        return self.table.payoffs.select(self.members)

    @cached_property
    def _positive(self) -> SparseTable:
        """The items with a payoff above the default."""
        return _above(self._known, self.default)

    @property
    def n_users(self) -> int:
        """Number of users who are served."""
        return len(self.members)

    @property
    def dim(self) -> int:
        """Length of an arm's vector."""
        return self.table.dim

    @cached_property
    def graph(self) -> Floats | None:
        """Friendships of those who are served, as a matrix of 0 and 1; None where they are unknown."""
        friends = self.table.friends
        return None if friends is None else friends.select(self.members).dense()[:, self.members]

    def __repr__(self) -> str:
        """The kind, the users, the arms and the seed."""
        arms = f"{self.n_arms:,} of {len(self.table.items):,} items a round ({self.offers}), dim {self.dim}"
        return f"<Payoffs of {self.table.provenance.name}: {self.n_users:,} users, {arms}, seed {self.seed}>"

    def present(self, number: int) -> int:
        """Count the users who may come in a block: all of them.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        int
            Number of users.
        """
        return self.n_users

    def block(self, number: int) -> Block:
        """Draw rounds number·256 to number·256 + 255.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
        rng = stream(self.seed, "rounds", str(number))
        users = rng.integers(self.n_users, size=BLOCK)
        picks = OFFERS[self.offers](self, rng, users, number)
        means = self._known.values_at(users, picks, self.default)
        return real_block(users, self.table.items, picks, means)

    def _all(self, rng: np.random.Generator, users: Ints, number: int) -> Ints:
        return distinct(rng.random((BLOCK, self.n_arms)), len(self.table.items))

    def _rated(self, rng: np.random.Generator, users: Ints, number: int) -> Ints:
        ranks = distinct_below(rng.random((BLOCK, self.n_arms)), self._known.counts[users])
        return self._known.known(users, ranks)

    def _one_positive(self, rng: np.random.Generator, users: Ints, number: int) -> Ints:
        ranks = (rng.random(len(users)) * self._positive.counts[users]).astype(np.int64)
        items = self._positive.known(users, ranks[:, None])[:, 0]
        return among_others(rng, self._positive, users, items, self.n_arms)

    def _window(self, rng: np.random.Generator, users: Ints, number: int) -> Ints:
        n_items = len(self.table.items)
        order = stream(self.seed, "window").permutation(n_items)
        places = n_items - self.n_arms + 1
        rounds = number * BLOCK + np.arange(BLOCK)
        first = np.minimum(rounds * places // self.window, places - 1)
        return np.asarray(order[first[:, None] + np.arange(self.n_arms)])


OFFERS: dict[str, Callable[[Payoffs, np.random.Generator, Ints, int], Ints]] = {
    "all": Payoffs._all,
    "known": Payoffs._rated,
    "one-positive": Payoffs._one_positive,
    "window": Payoffs._window,
}
"""Ways to offer arms."""


def among_others(
    rng: np.random.Generator, touched: SparseTable, users: Ints, items: Ints, n_arms: int
) -> Ints:
    """One item a round at a random place among items that its user never touched, all distinct."""
    free = touched.shape[1] - touched.counts[users]
    others = touched.others(users, distinct_below(rng.random((len(users), n_arms - 1)), free))
    picks = np.column_stack([others, items])
    rows, places = np.arange(len(users)), rng.integers(n_arms, size=len(users))
    picks[rows, -1] = picks[rows, places]
    picks[rows, places] = items
    return picks


def real_block(users: Ints, items: Floats, picks: Ints, means: Floats, *, lasting: bool = True) -> Block:
    """Rounds with exact rewards: no noise, no delay."""
    n = len(users)
    return Block(
        users=np.ascontiguousarray(users, np.int64),
        items=items,
        picks=np.ascontiguousarray(picks, np.int64),
        means=np.ascontiguousarray(means, np.float64),
        noise=np.zeros(n),
        delays=np.zeros(n, np.int64),
        binary=False,
        lasting=lasting,
    )


def _above(payoffs: SparseTable, least: float) -> SparseTable:
    """The stored entries above a number."""
    return payoffs.where(payoffs.values > least)


def _as_table(payoffs: PayoffTable | ArrayLike | Sparse, items: ArrayLike | None) -> PayoffTable:
    if isinstance(payoffs, PayoffTable):
        if items is not None:
            raise ArgumentError("a PayoffTable has vectors of its own: items must not be given")
        return payoffs
    if items is None:
        raise ArgumentError("payoffs need vectors of the items: items must be an (n_items, dim) array")
    return payoff_table(payoffs, items)
