"""Feature hashing as its page describes it: name by name, with whole numbers of any length."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import Any

WORD = 2**64


def named(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Each feature with its value."""
    if isinstance(value, dict):
        for key in value:
            if key[:1] != "_":
                yield from named(name + "^" + key if name else key, value[key])
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from named(name if isinstance(one, str | dict) else f"{name}[{place}]", one)
    elif isinstance(value, str):
        yield name + "=" + value, 1.0
    elif isinstance(value, bool):
        yield name, float(value)
    elif value is not None:
        yield name, math.asinh(value)


def mixed(key: int) -> int:
    """The finaliser of MurmurHash3."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        key = ((key ^ (key >> 33)) * factor) % WORD
    return key ^ (key >> 33)


def vector(context: list[Any], action: list[Any], dim: int) -> list[float]:
    """The vector of an action in a context."""
    found = [0.0] * dim

    def add(key: int, value: float) -> None:
        found[key % dim] += -value if key >= WORD // 2 else value

    own = [(mixed(zlib.crc32(name.encode())), value) for one in action for name, value in named("", one)]
    around = [(mixed(zlib.crc32(name.encode())), value) for one in context for name, value in named("", one)]
    for key, value in own:
        add(key, value)
    for other, weight in around:
        for key, value in own:
            add(mixed(other ^ key), weight * value)
    length = math.sqrt(sum(one * one for one in found))
    return [one / length for one in found] if length > 0 else found
