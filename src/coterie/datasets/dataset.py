"""A dataset, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.types import Floats
from coterie.validation import counted

Ids: TypeAlias = NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Everything that decided the vectors; plain values, so that two of them can be compared.

    `n_users` and `n_items` are what was asked, `users_found` and `items_found` what the file has, and
    `tied_*` how many share the row count of the last one kept when some of them had to stay out.
    """

    name: str
    feedback: str
    file: str | None
    sha256: str | None
    rows: int
    users_found: int
    items_found: int
    n_users: int
    n_items: int
    tied_users: int
    tied_items: int
    dropped_users: int
    dropped_items: int
    density: float
    singular_values: tuple[float, ...]
    dim: int
    scale: str
    seed: int | None
    notes: tuple[str, ...]

    @property
    def users_kept(self) -> int:
        """How many users have a vector."""
        return min(self.n_users, self.users_found) - self.dropped_users

    @property
    def items_kept(self) -> int:
        """How many items have a vector."""
        return min(self.n_items, self.items_found) - self.dropped_items

    def describe(self) -> str:
        """All of it, one fact a line."""
        vectors = f"{self.users_kept:,} users and {self.items_kept:,} items of {self.dim} dimensions"
        facts = [("vectors", vectors), ("scale", self.scale), ("feedback", self.feedback)]
        facts += self._of_a_file() if self.file is not None else [("seed", str(self.seed))]
        facts += [("note", note) for note in self.notes]
        return "\n".join([self.name, *(f"  {title:<10}{text}" for title, text in facts)])

    def _of_a_file(self) -> list[tuple[str, str]]:
        """The facts that only a dataset read from a table has."""
        ends = [k for k in (1, 2, 10, self.dim, len(self.singular_values)) if k <= len(self.singular_values)]
        singular = ", ".join(f"no. {k}: {self.singular_values[k - 1]:.4g}" for k in sorted(set(ends)))
        found = f"{self.users_found:,} users and {self.items_found:,} items"
        return [
            ("file", str(self.file)),
            ("sha256", str(self.sha256)),
            ("rows", f"{self.rows:,} by {found}"),
            ("asked", f"the {self.n_users:,} users and {self.n_items:,} items with the most rows"),
            ("ties", f"{self.tied_users:,} users and {self.tied_items:,} items at the cut, lower ids first"),
            ("dropped", f"{self.dropped_users:,} users and {self.dropped_items:,} items with a zero vector"),
            ("density", f"{self.density:.4f} of the feedback matrix is 1"),
            ("singular", singular),
        ]


class Dataset(NamedTuple):
    """Vectors of users (n × dim) and items (m × dim), read-only, with their ids and their provenance."""

    name: str
    users: Floats
    items: Floats
    user_ids: Ids
    item_ids: Ids
    provenance: Provenance

    def __repr__(self) -> str:
        """The name and the sizes."""
        sizes = f"{counted(len(self.users), 'user')} and {counted(len(self.items), 'item')}"
        return f"<Dataset {self.name}: {sizes} of {counted(self.items.shape[1], 'dimension')}>"


def sealed(users: Floats, items: Floats, *, user_ids: Ids, item_ids: Ids, provenance: Provenance) -> Dataset:
    """A dataset whose arrays are contiguous and can no longer be written."""
    users, items = np.ascontiguousarray(users), np.ascontiguousarray(items)
    for array in (users, items, user_ids, item_ids):
        array.setflags(write=False)
    return Dataset(provenance.name, users, items, user_ids, item_ids, provenance)
