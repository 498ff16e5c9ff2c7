"""Scalars are checked here, once, at the edge: what was wrong, what came, what would do."""

from __future__ import annotations

from math import nan
from numbers import Integral, Real

import numpy as np

from coterie.errors import ArgumentError

LARGEST = 1e100
"""Beyond this a square overflows; nothing that means anything is that large."""
SMALLEST = 1e-100
"""Below this a square vanishes."""


def shown(value: object) -> str:
    """A value as it appears in a sentence: on one line, and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"


def whole(name: str, value: int, least: int, most: int | None = None) -> int:
    """A whole number of at least `least` and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ArgumentError(f"{name} must be a whole number of at least {least}, got {shown(value)}")
    if most is not None and value > most:
        raise ArgumentError(f"{name} must be at most {most}, got {shown(value)}")
    return int(value)


def positive(name: str, value: float) -> float:
    """A finite number above zero."""
    if not SMALLEST <= _float(value) < LARGEST:
        raise ArgumentError(f"{name} must be positive, got {shown(value)}")
    return float(value)


def nonnegative(name: str, value: float) -> float:
    """A finite number of at least zero."""
    if not 0 <= _float(value) < LARGEST:
        raise ArgumentError(f"{name} must be at least 0, got {shown(value)}")
    return float(value)


def probability(name: str, value: float) -> float:
    """A number strictly between 0 and 1."""
    if not SMALLEST <= _float(value) < 1:
        raise ArgumentError(f"{name} must lie strictly between 0 and 1, got {shown(value)}")
    return float(value)


def number(name: str, value: float) -> float:
    """A finite number."""
    if type(value) is float and abs(value) < LARGEST:
        return value
    if not abs(_float(value)) < LARGEST:
        raise ArgumentError(f"{name} must be a finite number, got {shown(value)}")
    return float(value)


def flag(name: str, value: bool) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def _float(value: object) -> float:
    """The value as a float; NaN, which no comparison accepts, if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return nan
    try:
        return float(value)
    except OverflowError:
        return nan
