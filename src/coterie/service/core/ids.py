"""Who is who: the ids of users as numbers of a policy, and the items of a catalogue as rows of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from coterie.errors import ArgumentError, UnknownName
from coterie.types import Floats
from coterie.validation import shown

LONGEST_ID = 256
"""Characters that an id may have."""


def checked_id(name: str, value: object) -> str:
    """An id: text of 1 to 256 characters, none of them a control character."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be text, got {shown(value)}")
    if not 0 < len(value) <= LONGEST_ID:
        raise ArgumentError(f"{name} must have 1 to {LONGEST_ID} characters, got {len(value)}")
    if not value.isprintable() and not _storable(value):
        raise ArgumentError(f"{name} must be without control characters, got {shown(value)}")
    return value


def _storable(value: str) -> bool:
    """Can every store keep this text? Not if it is no Unicode text, or has control characters."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return not any(ord(one) < 32 or ord(one) == 127 for one in value)


class Users:
    """The ids of a policy's users; the place in the list is the number that the policy knows."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        """The users known at the start, in order."""
        self._ids = list(ids)
        self._numbers = {one: number for number, one in enumerate(self._ids)}
        self.find: Callable[[str], int | None] = self._numbers.get
        """The number of a user, or None for a stranger."""

    def __len__(self) -> int:
        """How many users are known."""
        return len(self._ids)

    def __contains__(self, user: str) -> bool:
        """Is this user known?"""
        return user in self._numbers

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids, in the order of their numbers."""
        return tuple(self._ids)

    def add(self, user: str) -> int:
        """The number of a user who is new."""
        number = self._numbers[user] = len(self._ids)
        self._ids.append(user)
        return number

    def number(self, user: str) -> int:
        """The number of a known user."""
        if user not in self._numbers:
            raise UnknownName(f"no user {shown(user)}: it has not been seen, or was removed")
        return self._numbers[user]

    def named(self, numbers: Iterable[int]) -> list[str]:
        """The ids of these numbers."""
        return [self._ids[number] for number in numbers]


class Catalogue:
    """Items with a vector each, kept as bytes: a matrix of some of them is joined from those."""

    def __init__(self, dim: int, ids: Sequence[str] = (), vectors: Floats | None = None) -> None:
        """The items at the start, a row of `vectors` each."""
        self._dim = dim
        self._rows: dict[str, bytes] = {}
        if vectors is not None:
            self.put(ids, vectors)

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._rows)

    def __contains__(self, item: str) -> bool:
        """Is there such an item?"""
        return item in self._rows

    @property
    def ids(self) -> list[str]:
        """All ids, in the order in which the items came."""
        return list(self._rows)

    def put(self, ids: Sequence[str], vectors: Floats) -> None:
        """Add items, or give those that are there another vector."""
        for item, vector in zip(ids, vectors, strict=True):
            self._rows[item] = vector.tobytes()

    def remove(self, ids: Iterable[str]) -> None:
        """Remove items; the rest keeps its order."""
        for item in ids:
            self._rows.pop(item, None)

    def vectors(self, ids: Sequence[str]) -> Floats:
        """The vectors of these items, a row each, read-only."""
        try:
            content = b"".join(map(self._rows.__getitem__, ids))
        except KeyError as missing:
            raise UnknownName(f"no item {shown(missing.args[0])} in the catalogue of this policy") from None
        return np.frombuffer(content).reshape(len(ids), self._dim)
