"""A log of decisions: the user, the arms offered, the arm played and its probability, and the reward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from coterie.atomic_files import atomic_write
from coterie.errors import ArgumentError, DataError
from coterie.evaluation.arms import ItemId, Offers, renumbered
from coterie.extras import need
from coterie.policies.base import by_appearance, frozen
from coterie.types import Bools, Floats, Ints
from coterie.validation import LARGEST, reals

if TYPE_CHECKING:
    import polars as pl

UserId: TypeAlias = int | str

FORMAT_KEY, FORMAT_VERSION = "coterie-log", "1"
"""Entry of a Parquet file's metadata that marks it as written by `Log.save`."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Log:
    """Events of a logged bandit, oldest first; made by `read_log` or by a `LoggingPolicy`.

    Event t offered the rows `offers[starts[t]:starts[t + 1]]` of `items`, so that a vector need not be kept
    more than once. Arrays are copied and read-only.

    Parameters
    ----------
    user_ids : sequence of int or str
        The id of each user.
    users : array of int, shape (n,)
        The user of each event, as a position in `user_ids`.
    items : array, shape (N, dim)
        The vectors of all arms.
    offers, starts : array of int, shape (Σ K,) and (n + 1,)
        The rows of `items` that were offered, event after event, and where each event begins.
    chosen : array of int, shape (n,)
        The arm that was played: a position among those that the event offered.
    propensities : array, shape (n,)
        The probability with which that arm was played, above 0 and at most 1; empty where it is unknown.
    rewards, times : array, shape (n,)
        The reward and the time of each event; times ascend.
    item_ids : sequence of int or str, optional
        The id of each item that has one.
    item_of : array of int, shape (N,), optional
        The item of each row of `items`, as a position in `item_ids`, or −1 if it has no id; several rows may
        be one item whose vector has changed. Policies that take ids are given these positions where all arms
        of an event have ids; without ids, equal vectors are one item.
    estimated : bool, optional
        Whether the propensities are estimates of a model and were not recorded.
    catalogue_size : int, optional
        Of a log that does not say what was offered: the number of items that offers were drawn from, else 0.

    Raises
    ------
    DataError
        If an event cannot be used; the sentence names the first such event, counted from 0.

    Examples
    --------
    >>> log = Log(["ann"], [0, 0], np.eye(2), [0, 1, 0, 1], [0, 2, 4], [1, 0], [0.5, 0.5], [1.0, 0.0], [1, 2])
    >>> log
    <Log: 2 events of 1 user, 2 arms of dim 2 a round, propensities 0.5>
    >>> log.x(0).tolist()
    [0.0, 1.0]
    """

    user_ids: Sequence[UserId]
    users: Ints
    items: Floats
    offers: Ints
    starts: Ints
    chosen: Ints
    propensities: Floats
    rewards: Floats
    times: Floats
    item_ids: Sequence[ItemId] = ()
    item_of: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    estimated: bool = False
    catalogue_size: int = 0

    def __post_init__(self) -> None:
        """Copy and check everything once."""
        object.__setattr__(self, "user_ids", tuple(self.user_ids))
        object.__setattr__(self, "item_ids", tuple(self.item_ids))
        for name in ("users", "offers", "starts", "chosen", "item_of"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name), np.int64)))
        for name in ("items", "propensities", "rewards", "times"):
            values = reals(name, getattr(self, name), "an array", kinds="fiub")
            # A copy, because estimates must not change when the caller writes to its arrays.
            object.__setattr__(self, name, frozen(values.copy()))
        self._check_shapes()
        self._check_values()
        self._check_ids()

    def _check_shapes(self) -> None:
        n, columns = len(self.users), [self.chosen, self.rewards, self.times]
        columns += [self.propensities] if self.has_propensities else []
        if n == 0:
            raise DataError("the log has no events")
        if self.items.ndim != 2 or 0 in self.items.shape:
            raise ArgumentError(f"items must have shape (N, dim), got {self.items.shape}")
        if any(column.shape != (n,) for column in columns) or self.starts.shape != (n + 1,):
            raise ArgumentError(f"the arrays of a log must have a value for each of its {n} events")
        if self.item_of.shape not in ((0,), (len(self.items),)):
            raise ArgumentError(f"item_of must have a value for each of the {len(self.items)} rows of items")
        if self.starts[0] != 0 or self.starts[-1] != len(self.offers) or np.any(np.diff(self.starts) < 0):
            raise ArgumentError("starts must ascend from 0 to the number of offers")
        for name, numbers, low, limit in (
            ("users", self.users, 0, len(self.user_ids)),
            ("offers", self.offers, 0, len(self.items)),
            ("item_of", self.item_of, -1, len(self.item_ids)),
        ):
            if numbers.size and not (numbers.min() >= low and numbers.max() < limit):
                raise ArgumentError(f"{name} must be from {low} to {limit - 1}")

    def _check_values(self) -> None:
        sizes = self.sizes
        refuse_first(sizes < 1, lambda t: "arms must hold at least one arm, got none")
        wrong = (self.chosen < 0) | (self.chosen >= sizes)
        refuse_first(wrong, lambda t: f"arm must be from 0 to {sizes[t] - 1}, got {self.chosen[t]}")
        p = self.propensities
        refuse_first(
            ~((p > 0) & (p <= 1)), lambda t: f"propensity must be above 0 and at most 1, got {p[t]:g}"
        )
        for name, values in (("reward", self.rewards), ("time", self.times)):
            _refuse_unknown(name, values)
        unusable = ~np.all(np.abs(self.items) < LARGEST, axis=1)
        wrong = unusable[self.offers]  # a flag for each arm that was offered: these may be many millions
        if wrong.any():
            event = int(np.searchsorted(self.starts, int(np.argmax(wrong)), "right")) - 1
            raise DataError(f"event {event} (from 0): arms must hold finite numbers only")

    def _check_ids(self) -> None:
        """Refuse an event that offers an item twice, as policies do."""
        place = np.empty(len(self.item_ids), np.int64)
        for event in range(len(self) if self.item_ids else 0):
            items = self.item_of[self.offers[self.starts[event] : self.starts[event + 1]]]
            items = items[items >= 0]
            order = np.arange(len(items))
            place[items] = order  # of an item that is there twice, the later place remains
            twice = place[items] != order
            if twice.any():
                item = self.item_ids[items[np.argmax(twice)]]
                raise DataError(f"event {event} (from 0): item {item!r} is offered twice")

    def __len__(self) -> int:
        """The number of events."""
        return len(self.users)

    @property
    def has_propensities(self) -> bool:
        """Whether it is known with which probability each arm was played."""
        return self.propensities.size > 0

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.user_ids)

    @property
    def dim(self) -> int:
        """The length of an arm's vector."""
        return int(self.items.shape[1])

    @property
    def sizes(self) -> Ints:
        """The number of arms that each event offered, (n,)."""
        return np.diff(self.starts)

    def arms(self, event: int) -> Floats:
        """The vectors that an event offered, (K, dim), as a copy."""
        return self.items[self.offers[self.starts[event] : self.starts[event + 1]]]

    def x(self, event: int) -> Floats:
        """The vector of the arm that was played, as a copy."""
        vector: Floats = self.items[self.offers[self.starts[event] + self.chosen[event]]].copy()
        return vector

    def ids(self, event: int) -> Ints | None:
        """The items that an event offered, (K,), as positions in `item_ids`; None if one has no id."""
        if not self.item_ids:
            return None
        found: Ints = self.item_of[self.offers[self.starts[event] : self.starts[event + 1]]]
        return None if found.min() < 0 else found

    def ordered(self) -> Log:
        """The same events by time, those of one time as they stand; users are numbered as they appear."""
        order = np.argsort(self.times, kind="stable")
        users, sizes = self.users[order], self.sizes[order]
        numbers = by_appearance(users)
        _, first = np.unique(users, return_index=True)
        ids = [self.user_ids[users[t]] for t in np.sort(first)]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.starts[:-1][order] - starts[:-1], sizes) + np.arange(starts[-1])
        columns = {n: getattr(self, n)[order] for n in ("chosen", "rewards", "times")}
        columns |= {"propensities": self.propensities[order]} if self.has_propensities else {}
        return replace(
            self, user_ids=ids, users=numbers, offers=self.offers[places], starts=starts, **columns
        )

    def with_intercept(self) -> Log:
        """The same with a feature that is 1 for every arm, for rewards whose mean is far from 0."""
        return replace(self, items=np.column_stack([self.items, np.ones(len(self.items))]))

    @property
    def has_intercept(self) -> bool:
        """Whether there is a feature that is the same for all arms, and not 0."""
        return bool(np.any((np.ptp(self.items, axis=0) == 0) & (self.items[0] != 0)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file that `read_log` reads, whole or not at all: a row for each event.

        `items` are the numbers of the arms that were offered, numbered as they appear; `vectors` and `ids`
        are those of the arms that appear for the first time. A number takes about two bytes, a vector 8·dim,
        once. A log whose offers or propensities were not recorded is refused: keep the table that it is from.
        """
        import polars as pl

        if self.estimated or self.catalogue_size or not self.has_propensities:
            raise ArgumentError(
                "only a log with recorded offers and propensities can be saved; keep the table it is from"
            )

        need("polars", "a log")
        names = self._names()
        found = renumbered(Offers(self.items, self.offers, self.starts, names))
        frame = pl.DataFrame(
            [
                pl.Series("user", [self.user_ids[user] for user in self.users]),
                found.item_lists(),
                found.first_lists("vectors", found.items),
                *([found.first_lists("ids", found.ids)] if names else ()),
                pl.Series("arm", self.chosen, pl.UInt32),
                pl.Series("propensity", self.propensities),
                pl.Series("reward", self.rewards),
                pl.Series("time", self.times),
            ]
        )
        file = BytesIO()
        frame.write_parquet(file, compression="zstd", metadata={FORMAT_KEY: FORMAT_VERSION})
        atomic_write(Path(path).expanduser(), file.getvalue())

    def _names(self) -> list[ItemId | None]:
        """The id of each row of `items`, None for one that has none; empty without ids."""
        named = self.item_of if self.item_ids else ()
        return [self.item_ids[item] if item >= 0 else None for item in named]

    def to_frame(self) -> pl.DataFrame:
        """The table that `read_log` takes, in polars: a row for each event; `arms` holds its vectors.

        `ids` holds the ids of these arms, if there are any.
        """
        import polars as pl

        found = Offers(self.items, self.offers, self.starts, self._names())
        lists = [found.vector_rows(), *([found.id_lists()] if found.ids else ())]
        users = pl.Series("user", [self.user_ids[user] for user in self.users])
        rest = {
            "arm": self.chosen,
            "propensity": self.propensities,
            "reward": self.rewards,
            "time": self.times,
        }
        if not self.has_propensities:
            del rest["propensity"]
        return pl.DataFrame([users, *lists, *(pl.Series(name, values) for name, values in rest.items())])

    def __repr__(self) -> str:
        """The size, and how it was logged."""
        users = "1 user" if self.n_users == 1 else f"{self.n_users:,} users"
        known = self.propensities if self.has_propensities else np.full(1, np.nan)
        ends = [f"{value:.3g}" for value in (known.min(), known.max())]
        sizes = [f"{value:,}" for value in (self.sizes.min(), self.sizes.max())]
        arms, chances = (" to ".join(dict.fromkeys(pair)) for pair in (sizes, ends))
        return (
            f"<Log: {len(self):,} events of {users}, {arms} arms of dim {self.dim} a round, "
            f"propensities {chances if self.has_propensities else 'unknown'}>"
        )


def _refuse_unknown(name: str, values: Floats) -> None:
    """Refuse a value that is missing, infinite or too large to be squared."""
    wrong = ~(np.abs(values) < LARGEST)
    refuse_first(wrong, lambda t: f"{name} must be a finite number, got {values[t]:g}")


def refuse_first(wrong: Bools, fault: Callable[[int], str]) -> None:
    """Refuse the first event that is wrong."""
    if wrong.any():
        event = int(np.argmax(wrong))
        raise DataError(f"event {event} (from 0): {fault(event)}")
