"""Parameters of a policy as plain values: what JSON can hold, in alphabetical order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np

from coterie.errors import ArgumentError
from coterie.validation import shown

Value: TypeAlias = bool | int | float | str


class Params(Mapping[str, Value]):
    """Parameters by name: immutable, hashable, in alphabetical order."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        """Copy the values; what JSON cannot hold is refused."""
        self._values = {name: _plain(name, values[name]) for name in sorted(values)}

    def __getitem__(self, name: str) -> Value:
        """The value of a parameter."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """The names in order."""
        return iter(self._values)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._values)

    def __hash__(self) -> int:
        """Equal parameters have equal hashes."""
        return hash(tuple(self._values.items()))

    def __str__(self) -> str:
        """Names and values, as in a table."""
        return ", ".join(f"{name} {format_value(value)}" for name, value in self.items())

    def __repr__(self) -> str:
        """As a dict."""
        return repr(self._values)


def format_value(value: Value) -> str:
    """Format a value for people: numbers to six digits."""
    return str(value) if isinstance(value, str | bool) else f"{value:g}"


def _plain(name: str, value: object) -> Value:
    """Convert a value to a bool, int, float or str."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and isfinite(value):
        return float(value)
    raise ArgumentError(f"{name} must be a finite number, text, true or false, got {shown(value)}")
