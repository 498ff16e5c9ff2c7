"""Rounds as an environment hands them to the simulator: drawn beforehand, many at a time."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from coterie.types import Floats, Ints

BLOCK = 256
"""Rounds are drawn this many at a time, each block from a stream of its own."""


class Block(NamedTuple):
    """Rounds drawn beforehand: users (n,), picks (n, K) among items, means (n, K), noise (n,), delays (n,).

    A reward is mean + noise, or with `binary` whether noise lies below the mean. `lasting` items are the same
    in every block. Where `length` > 1 arms are shown as a list, scanned from the top until the first reward
    of 1; noise is then (n, length), a number for each position.
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

    def first(self, rounds: int) -> Block:
        """The same without what comes after so many rounds."""
        if rounds >= len(self.users):
            return self
        return self._replace(
            users=self.users[:rounds],
            picks=self.picks[:rounds],
            means=self.means[:rounds],
            noise=self.noise[:rounds],
            delays=self.delays[:rounds],
        )


class Environment(Protocol):
    """What the simulator asks of a world."""

    @property
    def seed(self) -> int:
        """The seed that its rounds depend on."""

    @property
    def n_users(self) -> int:
        """How many users there are in the end."""

    @property
    def dim(self) -> int:
        """The length of an arm's vector."""

    @property
    def labels(self) -> Ints | None:
        """The true cluster of each user; None where nobody knows it."""

    @property
    def longest_delay(self) -> int:
        """No feedback comes later than so many rounds."""

    def present(self, number: int) -> int:
        """How many users may come in a block: those of the lowest numbers."""

    def block(self, number: int) -> Block:
        """Rounds number·BLOCK to (number + 1)·BLOCK − 1; the same whoever plays them."""
