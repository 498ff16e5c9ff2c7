"""Where a user lives when there are several shards: one hash of its id, the same everywhere.

Clients, services, `coterie.Sharded` and load balancers must agree on it for as long as a store exists, so it
is a hash that every language has: the first 32 bits of SHA-256 of the id in UTF-8, modulo the number of
shards. In a shell:

    echo $((0x$(printf %s "$user" | sha256sum | cut -c1-8) % 4))
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from coterie.validation import whole

MOST_SHARDS = 4_096
"""Shards that there may be; the hash is even to 1 in a million for as many."""


def user_hash(user: str | int) -> int:
    """Return the first 32 bits of SHA-256 of a user's id; a number is hashed as its decimal digits.

    >>> f"{user_hash('ada'):08x}"
    'fdee430d'
    """
    return int.from_bytes(sha256(str(user).encode("utf-8", "surrogatepass")).digest()[:4], "big")


def shard_of(user: str | int, shards: int) -> int:
    """Return the shard of a user, from 0 to shards − 1.

    >>> [shard_of(user, 4) for user in ("ada", "grace", 7)]
    [1, 0, 3]
    """
    return user_hash(user) % whole("shards", shards, 1, MOST_SHARDS)


class Placement(NamedTuple):
    """Which of how many shards a service is; shards are numbered from 0."""

    shard: int
    shards: int

    def owns(self, user: str) -> bool:
        """Tell whether a user lives in this shard."""
        return user_hash(user) % self.shards == self.shard

    def __str__(self) -> str:
        """Say it in words."""
        return f"shard {self.shard} of {self.shards}"
