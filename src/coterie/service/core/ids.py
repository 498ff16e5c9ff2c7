"""Ids of users, items, decisions and feedback: which texts may be one, and new ones."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from coterie.errors import ArgumentError
from coterie.placement import user_hash
from coterie.validation import shown

LONGEST_ID = 256
"""Characters that an id may have."""


def checked_id(name: str, value: object) -> str:
    """Return an id: text of 1 to 256 characters, none of them a control character."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be text, got {shown(value)}")
    if not 0 < len(value) <= LONGEST_ID:
        raise ArgumentError(f"{name} must have 1 to {LONGEST_ID} characters, got {len(value)}")
    if not value.isprintable() and not _storable(value):
        raise ArgumentError(f"{name} must be without control characters, got {shown(value)}")
    return value


def listed(name: str, values: object, wanted: str = "ids") -> list[Any]:
    """Return a list of ids or tags; a single text would be taken for a list of its characters."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name} must be a list of {wanted}, got {shown(values)}")
    if isinstance(values, np.ndarray) and values.dtype.kind == "U" and values.ndim == 1:
        return [*values.tolist()]  # texts of Python: those of NumPy print otherwise
    return values if isinstance(values, list) else list(values)


def _storable(value: str) -> bool:
    """Tell whether every store can keep this text: not if it is not Unicode, or has control characters."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return not any(ord(one) < 32 or ord(one) == 127 for one in value)


_RANDOM = bytearray()
"""Random bytes that no id has used yet: asking the system for a few at a time is slow."""
if hasattr(os, "register_at_fork"):  # parent and child must not use the same bytes
    os.register_at_fork(after_in_child=_RANDOM.clear)


MADE_FOR_USER = re.compile("[0-9a-f]{28}u([0-9a-f]{8})")
"""An id that `new_id` has made for a user; it ends with the user's hash."""


def new_id(user: str | None = None) -> str:
    """Return a unique id; later ones sort after earlier ones.

    That of a decision for a user ends with the user's hash, so that its reward, which names no user, finds
    the shard of the user.
    """
    if len(_RANDOM) < 8:
        _RANDOM.extend(os.urandom(4096))
    drawn = _RANDOM[-8:]
    del _RANDOM[-8:]
    # Time first: new entries of the index on decisions are next to each other, on a few pages.
    found = f"{time.time_ns() // 1_000_000:012x}{drawn.hex()}"
    return found if user is None else f"{found}u{user_hash(user):08x}"


def hash_in_id(decision_id: str) -> int | None:
    """Return the hash of the user that an id was made for; None if somebody else has made it."""
    found = MADE_FOR_USER.fullmatch(decision_id)
    return None if found is None else int(found[1], 16)
