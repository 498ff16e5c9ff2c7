"""Real feedback: a catalogue of items, and the recorded payoff of each item for each user."""

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
    """Environment of real feedback: a random user and random items, and recorded rewards.

    Only users and arms are random: no noise is added, and regret is relative to the best available arm. Where
    the table has groups of users, these are the true clusters; otherwise there are none, so a trace has no
    Rand index; compare its reward with that of uniformly random decisions instead.

    Parameters
    ----------
    payoffs : PayoffTable, array or sparse array of shape (n_users, n_items)
        Payoffs of items for users: from `coterie.datasets.load_payoffs`, or your own numbers.
    items : array of shape (n_items, dim), optional
        Vectors of the items, if `payoffs` is not a PayoffTable.
    n_arms : int, default 25
        Number of arms in a round, from 1 to the number of items.
    seed : int, default 0
        Seed of users and rounds, at least 0; the rounds are the same for every policy.
    n_users : int, optional
        Number of users, drawn at random among the eligible ones; by default all of these.
    offers : {"all", "known", "one-positive", "window"}, optional
        How the arms of a round are chosen, all of them distinct; by default as the table says, or "all".

        - ``all``: random items of the whole catalogue.
        - ``known``: random items whose payoff for this user is known. Users with fewer than `n_arms` known
          payoffs are not eligible.
        - ``one-positive``: one random item whose payoff for the user exceeds `default`; the others are
          random items whose payoff does not; their order is random.
        - ``window``: items in a random order that is the same for all; round t has the n_arms items from
          number ⌊t/Λ⌋ on, Λ = window/(n_items − n_arms + 1).
    default : float, default 0.0
        Payoff of an item if none is known.
    window : int, default 50_000
        Number of rounds in which the window slides over the catalogue, at least 1.
    connected : bool, default False
        Whether to choose the `n_users` users with the most friends instead of random ones.
    once : bool, default False
        Whether an item that a user has been shown is not shown to this user again. The arms of a round are
        then `n_arms` items among those that are left, or all of these if they are fewer; if none is left, the
        round is skipped, with no reward and no regret. For all offers but "one-positive"; with "window", the
        items of the window that are left.

    Raises
    ------
    ArgumentError
        If there are fewer eligible users than requested, or none.

    Notes
    -----
    Memory: 8·n_items·dim bytes for the vectors and about 100 bytes per known payoff. Simulations cache the
    widths of items only if 8 bytes for each row of statistics and item are at most 64 MiB.

    Examples
    --------
    >>> import coterie
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> items, preferences = rng.normal(size=(40, 3)), rng.normal(size=(6, 3))
    >>> env = Payoffs(preferences @ items.T > 0.5, items, n_arms=5, seed=2)
    >>> trace = coterie.simulate(coterie.LinUCBInd(6, 3, beta=0.2), env, 600)
    >>> bool(trace.relative[-1] > 1.2)
    True
    """

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
        once: bool = False,
    ) -> None:
        """Choose the users."""
        self.table = _as_table(payoffs, items)
        self.seed = check_seed(seed)
        self.n_arms = whole("n_arms", n_arms, 1, len(self.table.items))
        self.offers = offers or self.table.offers
        if self.offers not in OFFERS:
            raise unknown("value of offers", str(self.offers), OFFERS, f"They are {', '.join(OFFERS)}")
        self.default, self.window = number("default", default), whole("window", window, 1)
        self.once = flag("once", once)
        if self.once and self.offers == "one-positive":
            raise ArgumentError(
                "once is for offers of 'all', 'known' or 'window': with 'one-positive', payoffs would run out"
            )
        self._can_be_served = self._servable()
        self.members = self._members(n_users, flag("connected", connected))
        self._earlier: tuple[int, Ints] = (0, np.zeros(len(self.members), np.int64))

    def _servable(self) -> Ints:
        """List the eligible users: those for which rounds with such arms can be generated."""
        every, positive = self.table.payoffs, _above(self.table.payoffs, self.default)
        enough: dict[str, Bools] = {
            "known": every.counts >= self.n_arms,
            "one-positive": (positive.counts >= 1)
            & (positive.counts <= len(self.table.items) - self.n_arms + 1),
        }
        able = np.flatnonzero(enough.get(self.offers, np.ones(self.table.n_users, np.bool_)))
        if not len(able):
            required = f"{self.n_arms} items whose payoff is known"
            if self.offers == "one-positive":
                required = f"an item with a payoff above {self.default:g} and {self.n_arms - 1} others"
            raise ArgumentError(f"no user has {required}: n_arms must be less than {self.n_arms}")
        return able

    @property
    def left_out(self) -> int:
        """Number of users that are not eligible because too few of their payoffs are known."""
        return self.table.n_users - len(self._can_be_served)

    def _members(self, n_users: int | None, connected: bool) -> Ints:
        """Rows of the chosen users in the table, in the order of the users' numbers."""
        able = self._can_be_served
        if n_users is not None and whole("n_users", n_users, 1) > len(able):
            raise ArgumentError(
                f"n_users must be at most {len(able)}, the number of eligible users, got {n_users!r}"
            )
        if not connected:
            return np.asarray(stream(self.seed, "users").permutation(able)[:n_users])
        if self.table.friends is None:
            raise ArgumentError("connected needs a table with friendships, got one without")
        friends = self.table.friends.counts[able]
        return np.asarray(able[np.argsort(-friends, kind="stable")][:n_users])

    @cached_property
    def _known(self) -> SparseTable:
        """The payoffs of the chosen users."""
        return self.table.payoffs.select(self.members)

    @cached_property
    def _positive(self) -> SparseTable:
        """The payoffs above the default."""
        return _above(self._known, self.default)

    @cached_property
    def labels(self) -> Ints | None:
        """Group of each user, where the table has groups; otherwise None."""
        return None if self.table.groups is None else self.table.groups[self.members]

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.members)

    @property
    def dim(self) -> int:
        """Length of an arm's vector."""
        return self.table.dim

    @cached_property
    def graph(self) -> Floats | None:
        """Friendships of the users as a matrix of 0 and 1; None if they are unknown."""
        friends = self.table.friends
        return None if friends is None else friends.select(self.members).dense()[:, self.members]

    def __repr__(self) -> str:
        """The kind, the users, the arms and the seed."""
        arms = f"{self.n_arms:,} of {len(self.table.items):,} items a round ({self.offers}), dim {self.dim}"
        return f"<Payoffs of {self.table.provenance.name}: {self.n_users:,} users, {arms}, seed {self.seed}>"

    def present(self, number: int) -> int:
        """Count the users that may arrive in a block: all of them.

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
        """Generate rounds number·256 to number·256 + 255.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
        rng, users = self._drawn(number)
        picks = OFFERS[self.offers](self, rng, users, number)
        means = self._known.values_at(users, picks, self.default)
        if not self.once:
            return real_block(users, self.table.items, picks, means)
        means = np.where(picks < 0, self.default, means)
        return real_block(users, self.table.items, picks, means)._replace(unseen=self.n_arms)

    def _drawn(self, number: int) -> tuple[np.random.Generator, Ints]:
        """The stream of a block, and the users that were drawn from it first."""
        rng = stream(self.seed, "rounds", str(number))
        return rng, rng.integers(self.n_users, size=BLOCK)

    def _candidates(self, users: Ints, number: int, most: int) -> int:
        """How many candidates a round needs, `most` at most: with `once`, as many more as earlier rounds.

        A user has been shown at most as many items as there were rounds of this user before.
        """
        if not self.once:
            return self.n_arms
        start, counts = self._earlier
        if start > number:
            start, counts = 0, np.zeros(self.n_users, np.int64)
        for block in range(start, number):
            counts = counts + np.bincount(self._drawn(block)[1], minlength=self.n_users)
        self._earlier = number, counts
        return min(most, self.n_arms + int((counts[users] + occurrence(users)).max()))

    def _all(self, rng: np.random.Generator, users: Ints, number: int) -> Ints:
        n_items = len(self.table.items)
        return distinct(rng.random((BLOCK, self._candidates(users, number, n_items))), n_items)

    def _rated(self, rng: np.random.Generator, users: Ints, number: int) -> Ints:
        counts = self._known.counts[users]
        uniforms = rng.random((BLOCK, self._candidates(users, number, int(counts.max()))))
        ranks = distinct_below(uniforms, counts)
        picks = self._known.known(users, np.maximum(ranks, 0))
        return np.where(ranks < 0, -1, picks)

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
"""Methods that choose the arms of a block, by the value of `offers`."""


def occurrence(users: Ints) -> Ints:
    """How many earlier entries are the same, for each entry.

    >>> occurrence(np.array([7, 2, 7, 7, 2])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(users, kind="stable")
    ordered, found = users[order], np.empty(len(users), np.int64)
    found[order] = np.arange(len(users)) - np.searchsorted(ordered, ordered)
    return found


def among_others(
    rng: np.random.Generator, touched: SparseTable, users: Ints, items: Ints, n_arms: int, more: int = 0
) -> Ints:
    """Place a given item per round at a random position among distinct items unknown to the user.

    With `more`, that many items follow the first `n_arms`; the row of a user without as many ends in −1.
    """
    free = touched.shape[1] - touched.counts[users]
    ranks = distinct_below(rng.random((len(users), n_arms - 1 + more)), free)
    others = np.where(ranks < 0, -1, touched.others(users, ranks))
    picks = np.insert(others, n_arms - 1, items, axis=1)
    rows, places = np.arange(len(users)), rng.integers(n_arms, size=len(users))
    picks[rows, n_arms - 1] = picks[rows, places]
    picks[rows, places] = items
    return picks


def real_block(users: Ints, items: Floats, picks: Ints, means: Floats, *, lasting: bool = True) -> Block:
    """Build a block of recorded rewards, without noise and delay."""
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
    """Select the stored entries above a number."""
    return payoffs.where(payoffs.values > least)


def _as_table(payoffs: PayoffTable | ArrayLike | Sparse, items: ArrayLike | None) -> PayoffTable:
    if isinstance(payoffs, PayoffTable):
        if items is not None:
            raise ArgumentError("a PayoffTable has vectors of its own: items must not be given")
        return payoffs
    if items is None:
        raise ArgumentError("payoffs need vectors of the items: items must be an (n_items, dim) array")
    return payoff_table(payoffs, items)
