"""Tags of many items: each distinct set of tags has a number, and an item has the number of its set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from coterie.errors import ArgumentError
from coterie.types import Bools, Ints
from coterie.validation import shown

LONGEST_TAG = 100
"""Characters of a tag."""
NO_TAGS = 0
"""Number of the empty set."""

Tags = Sequence[str | Iterable[str]]
"""Tags of several items: a tag or several for each."""


def check_tag(tag: object) -> str:
    """Return a tag: a string that is not empty and not too long."""
    if not isinstance(tag, str) or not 0 < len(tag) <= LONGEST_TAG:
        raise ArgumentError(f"a tag must be a string of 1 to {LONGEST_TAG} characters, got {shown(tag)}")
    return tag


class TagSets:
    """Sets of tags by number; set 0 is empty."""

    def __init__(self) -> None:
        """Start with the empty set alone."""
        self._clear()

    def _clear(self) -> None:
        self._sets: list[frozenset[str]] = [frozenset()]
        self._numbers: dict[frozenset[str], int] = {frozenset(): NO_TAGS}
        self._sets_with: dict[str, list[int]] = {}

    def __len__(self) -> int:
        """Return how many sets are kept."""
        return len(self._sets)

    def keep(self, used: Ints) -> Ints:
        """Forget all sets but these, numbers in ascending order; return the new numbers of all by the old."""
        renumbered = np.zeros(len(self._sets), np.int64)
        kept = [self._sets[number] for number in used.tolist() if number != NO_TAGS]
        renumbered[used[used != NO_TAGS]] = np.arange(1, len(kept) + 1)
        self._clear()
        for one in kept:
            self._number(one)
        return renumbered

    def __getitem__(self, number: int) -> frozenset[str]:
        """Return the set with this number."""
        return self._sets[number]

    def numbers(self, tags: Tags, n: int) -> Ints:
        """Return the numbers of the sets of n items; sets that are new get the next ones."""
        if isinstance(tags, str) or not isinstance(tags, Sequence) or len(tags) != n:
            raise ArgumentError(f"tags must be a sequence of {n}, a tag or several for each item")
        return np.array([self._number(one) for one in [self._checked(one) for one in tags]], np.int64)

    @staticmethod
    def _checked(tags: str | Iterable[str]) -> frozenset[str]:
        """Return the tags of one item."""
        if isinstance(tags, str):
            return frozenset({check_tag(tags)})
        if not isinstance(tags, Iterable):
            raise ArgumentError(f"tags of an item must be a string or several, got {shown(tags)}")
        return frozenset(check_tag(tag) for tag in tags)

    def _number(self, tags: frozenset[str]) -> int:
        """Return the number of a set."""
        number = self._numbers.setdefault(tags, len(self._sets))
        if number == len(self._sets):
            self._sets.append(tags)
            for tag in tags:
                self._sets_with.setdefault(tag, []).append(number)
        return number

    def having(self, tags: Iterable[str]) -> Bools:
        """Tell of each set whether it has any of these tags."""
        found = np.zeros(len(self._sets), np.bool_)
        for tag in tags:
            found[self._sets_with.get(check_tag(tag), [])] = True
        return found
