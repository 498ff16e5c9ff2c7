"""The items of a policy: the number that it knows each of them by, and the catalogue of those on offer."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from coterie.errors import UnknownName
from coterie.policies.catalogue.item_catalogue import Catalogue
from coterie.types import Floats, Ints
from coterie.validation import shown

Tags = Mapping[str, Sequence[str]]
"""Tags of items, by id."""
MOST_TAGS = 50
"""Tags of one item."""
FEW = 256
"""Numbers that are packed without compression."""
FEW_MARK = "."
"""What the text of few numbers begins with; base64 has no such character."""


class Numbering:
    """Ids and their numbers, in the order of first appearance; a number is never given to another id."""

    def __init__(self, ids: Iterable[str] = (), missing: str = "no {}") -> None:
        """Start with these ids, in order; `missing` is said of an id that is not there."""
        self._ids = list(ids)
        self._numbers = {one: number for number, one in enumerate(self._ids)}
        self._missing = missing
        self.find: Callable[[str], int | None] = self._numbers.get
        """Returns the number of an id, or None for one that was never seen."""

    def __len__(self) -> int:
        """Return how many ids are known."""
        return len(self._ids)

    def __contains__(self, one: str) -> bool:
        """Tell whether an id is known."""
        return one in self._numbers

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids, in the order of their numbers."""
        return tuple(self._ids)

    def add(self, one: str) -> int:
        """Return the number of an id, which gets the next one if it is new."""
        number = self._numbers.get(one)
        if number is None:
            number = self._numbers[one] = len(self._ids)
            self._ids.append(one)
        return number

    def number(self, one: str) -> int:
        """Return the number of a known id."""
        if one not in self._numbers:
            raise UnknownName(self._missing.format(shown(one)))
        return self._numbers[one]

    def numbers(self, ids: Iterable[str]) -> Ints:
        """Return the numbers of ids; −1 for those that were never seen."""
        find = self._numbers.get
        return np.array([find(one, -1) for one in ids], np.int64)

    def named(self, numbers: Iterable[int]) -> list[str]:
        """Return the ids of these numbers."""
        return [self._ids[number] for number in numbers]


class KnownItems:
    """All items that a policy has heard of, by name, and the catalogue of those that may be shown now.

    An item keeps its number, by which the policy knows its effect, when its vector changes, and when it is
    removed and comes back.

    `listed` has the place of each number among all that were ever in the catalogue, in the order in which
    they came. The log names items by their places: they follow from changes of the catalogue alone, while
    numbers change when a user is removed who alone was shown an item that is in no catalogue.
    """

    def __init__(self, dim: int, known: Iterable[str] = ()) -> None:
        """Start with an empty catalogue."""
        self.known = Numbering(known, "no item {}: it was never in the catalogue of this policy")
        self.catalogue = Catalogue(dim=dim)
        self.listed: dict[int, int] = {}

    def __len__(self) -> int:
        """Return how many items the catalogue has."""
        return len(self.catalogue)

    def __contains__(self, item: str) -> bool:
        """Tell whether the catalogue has this item."""
        return self.known.find(item) in self.catalogue

    @property
    def ids(self) -> list[str]:
        """Ids of the catalogue, in the order of its rows."""
        return self.known.named(self.catalogue.ids.tolist())

    def put(self, ids: Sequence[str], vectors: Floats, tags: Tags | None = None) -> None:
        """Add items, or give those that are there another vector; those not in `tags` keep theirs."""
        if not ids:
            return
        numbers = np.array([self.known.add(one) for one in ids], np.int64)
        for number in numbers.tolist():
            self.listed.setdefault(number, len(self.listed))
        given = None if tags is None else [tags.get(one, self.tags_of(one)) for one in ids]
        self.catalogue.put(numbers, vectors, given)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove items from the catalogue."""
        self.catalogue.remove(self.numbers(list(ids)))

    def clear(self) -> None:
        """Remove all items from the catalogue."""
        self.catalogue = Catalogue(dim=self.catalogue.dim)

    def numbers(self, ids: Sequence[str]) -> Ints:
        """Return the numbers of items of the catalogue; UnknownName if one is not there."""
        return self.numbers_and_rows(ids)[0]

    def numbers_and_rows(self, ids: Sequence[str]) -> tuple[Ints, Ints]:
        """Return the numbers of items of the catalogue, and their rows; UnknownName if one is not there."""
        numbers = self.known.numbers(ids)
        rows = self.catalogue.rows_of(numbers)
        if len(rows) and rows.min() < 0:
            missing = ids[int(rows.argmin())]
            raise UnknownName(f"no item {shown(missing)} in the catalogue of this policy")
        return numbers, rows

    def places(self, numbers: Ints) -> str:
        """Return the places of items as the log keeps them; those that were never listed are left out."""
        listed = self.listed
        return packed(np.array([listed[one] for one in numbers.tolist() if one in listed], np.int64))

    def tags_of(self, item: str) -> list[str]:
        """Return the tags of an item, sorted; none for one that is not in the catalogue."""
        if item not in self:
            return []
        return sorted(self.catalogue.tags_of(self.known.number(item)))

    @property
    def tags(self) -> dict[str, list[str]]:
        """Tags of all items of the catalogue that have any."""
        found = ((one, self.tags_of(one)) for one in self.ids)
        return {one: tags for one, tags in found if tags}

    def vectors(self, ids: Sequence[str]) -> Floats:
        """Return the vectors of items of the catalogue, a row each."""
        return self.catalogue.vectors.take(self.numbers_and_rows(ids)[1], axis=0)

    def vectors_by_number(self, numbers: Ints) -> Floats:
        """Return the vectors of items of the catalogue, a row each."""
        return self.catalogue.vectors.take(self.catalogue.rows_of(numbers), axis=0)


def packed(numbers: Ints) -> str:
    """Return a set of numbers as short text: about 1.5 bytes a number if they are close to each other."""
    if len(numbers) <= FEW:
        return FEW_MARK + b64encode(_few_packed(sorted(set(numbers.tolist())))).decode()
    gaps = np.diff(np.unique(numbers), prepend=0).astype("<u4")
    # The bytes of lowest value first, then the next: most of the others are 0 and compress to nothing.
    planes = gaps.view(np.uint8).reshape(-1, 4).T.tobytes()
    return b64encode(zlib.compress(planes, 6)).decode()


def _few_packed(numbers: Sequence[int]) -> bytes:
    """Return gaps between ascending numbers, 7 bits a byte, the low ones first; 128 says that more follow.

    Compressing some bytes takes longer than the decision that they belong to.
    """
    found, last = bytearray(), 0
    for one in numbers:
        gap, last = one - last, one
        while gap > 127:
            found.append(gap & 127 | 128)
            gap >>= 7
        found.append(gap)
    return bytes(found)


def unpacked(text: str) -> Ints:
    """Return the numbers that `packed` wrote, ascending."""
    if text.startswith(FEW_MARK):
        return np.array(_few_unpacked(b64decode(text[1:])), np.int64)
    planes = np.frombuffer(zlib.decompress(b64decode(text)), np.uint8).reshape(4, -1)
    gaps = np.ascontiguousarray(planes.T).view("<u4").ravel()
    return np.cumsum(gaps, dtype=np.int64)


def _few_unpacked(content: bytes) -> list[int]:
    numbers, last, gap, shift = [], 0, 0, 0
    for byte in content:
        gap |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            last += gap
            numbers.append(last)
            gap = shift = 0
    return numbers
