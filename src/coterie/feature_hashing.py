"""Vectors from features in JSON, by signed hashing: of an action alone, and of an action in its context.

Services and logs that describe a context and its actions in words (Azure Personalizer, Vowpal Wabbit) meet
policies that know vectors of one length here, so that a log and a service agree on the vector of an action.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import asinh
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from coterie.errors import ArgumentError
from coterie.types import Floats
from coterie.validation import shown

DEEPEST = 8
"""Levels of objects and lists that features may be nested in."""
MOST_PAIRS = 2**20
"""Pairs of a feature of the context and one of an action, in all actions of a request: about 0.1 s."""
Hashes = NDArray[np.uint64]


class HashedFeatures(NamedTuple):
    """Features by the hash of their names, and their values."""

    hashes: Hashes
    values: Floats

    def __len__(self) -> int:
        """Return how many features there are."""
        return len(self.values)


def hash_features(*described: Any) -> HashedFeatures:
    """Return the features of JSON values.

    A text is a feature of its own for each value (one-hot), `true` counts as 1, a number as asinh(value): a
    price of 400 beside features of 1 would leave nothing else in a vector of length 1. Names within objects
    are joined; those that begin with an underscore are ignored, as is null.

    Raises
    ------
    ArgumentError
        If a number is too large, or objects are nested too deeply.

    Examples
    --------
    >>> hash_features({"type": "hot", "organic": True, "_note": "ignored"}).values.tolist()
    [1.0, 1.0]
    """
    found = [pair for one in described for pair in _flat("", one, 0)]
    names = np.array([crc32(name.encode("utf-8", "surrogatepass")) for name, _ in found], np.uint64)
    return HashedFeatures(names, np.array([value for _, value in found], np.float64))


def _flat(name: str, value: Any, depth: int) -> Iterator[tuple[str, float]]:
    if depth > DEEPEST:
        raise ArgumentError(f"features must be nested at most {DEEPEST} levels deep")
    if isinstance(value, Mapping):
        for key, one in value.items():
            if not key.startswith("_"):
                yield from _flat(f"{name}^{key}" if name else key, one, depth + 1)
    elif isinstance(value, list):
        for place, one in enumerate(value):
            plain = isinstance(one, Mapping | str)  # only numbers are told apart by their place
            yield from _flat(name if plain else f"{name}[{place}]", one, depth + 1)
    elif isinstance(value, str):
        yield f"{name}={value}", 1.0
    elif value is not None:
        yield name, _magnitude(name, value)


def _magnitude(name: str, value: float) -> float:
    try:
        return float(value) if isinstance(value, bool) else asinh(value)
    except OverflowError:
        raise ArgumentError(f"feature {shown(name)} must be a number of ordinary size") from None


def action_vectors(context: HashedFeatures, actions: Sequence[HashedFeatures], dim: int) -> Floats:
    """Return a vector of length 1 for each action: its features, and each of them in this context.

    Parameters
    ----------
    context : HashedFeatures
        What is the same for all actions.
    actions : sequence of HashedFeatures
        What describes each action; its id should be one of the features.
    dim : int
        Length of the vectors. Features that share a place disturb each other less, the more places there are.

    Raises
    ------
    ArgumentError
        If there are more than `MOST_PAIRS` pairs of features.

    Examples
    --------
    >>> morning = hash_features({"time": "morning"})
    >>> tea, coffee = hash_features({"id": "tea"}), hash_features({"id": "coffee"})
    >>> action_vectors(morning, [tea, coffee], 16).shape
    (2, 16)
    """
    check_pairs(context, actions)
    return np.array([_vector(context, action, dim) for action in actions]).reshape(-1, dim)


def check_pairs(context: HashedFeatures, actions: Sequence[HashedFeatures]) -> None:
    """Raise ArgumentError if there are too many pairs of features."""
    pairs = len(context) * sum(map(len, actions))
    if pairs > MOST_PAIRS:
        raise ArgumentError(
            f"there must be at most {MOST_PAIRS:,} pairs of a feature of the context and one of an action, "
            f"got {pairs:,}"
        )


def user_and_context(features: Sequence[Mapping[str, Any]]) -> tuple[str | None, list[dict[str, Any]]]:
    """Return who a context is of, and its other features.

    The feature `user` names the user if it is text or a whole number, or has an `id` that is.

    >>> user_and_context([{"user": {"id": 7, "age": "20-30"}}, {"time": "morning"}])
    ('7', [{'user': {'age': '20-30'}}, {'time': 'morning'}])
    """
    user, context = None, []
    for one in features:
        found, others = one.get("user"), {name: value for name, value in one.items() if name != "user"}
        if isinstance(found, Mapping):
            others["user"] = {name: value for name, value in found.items() if name != "id"}
            found = found.get("id")
        if isinstance(found, str | int) and not isinstance(found, bool):
            user = str(found)
        context.append(others)
    return user, context


def _vector(context: HashedFeatures, action: HashedFeatures, dim: int) -> Floats:
    own = _mixed(action.hashes)
    both = _mixed(np.bitwise_xor.outer(_mixed(context.hashes), own)).ravel()
    keys = np.concatenate([own, both])
    values = np.concatenate([action.values, np.multiply.outer(context.values, action.values).ravel()])
    signs = np.where(keys >> np.uint64(63), -1.0, 1.0)
    places = (keys % np.uint64(dim)).astype(np.int64)
    found: Floats = np.bincount(places, weights=values * signs, minlength=dim).astype(np.float64)
    length = float(np.sqrt(found @ found))
    return found / length if length > 0 else found


def _mixed(keys: Hashes) -> Hashes:
    """Spread bits over whole numbers of 64 bits: the finaliser of MurmurHash3."""
    found: Hashes = keys ^ (keys >> np.uint64(33))
    found = found * np.uint64(0xFF51AFD7ED558CCD)
    found ^= found >> np.uint64(33)
    found = found * np.uint64(0xC4CEB9FE1A85EC53)
    found ^= found >> np.uint64(33)
    return found
