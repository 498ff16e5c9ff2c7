"""Scalars and arrays are checked here, once, at the edge: what was wrong, what came, what would do."""

from __future__ import annotations

from math import inf, nan
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.types import Floats, Ints

LARGEST = 1e100
"""Beyond this a square overflows; nothing that means anything is that large."""
SMALLEST = 1e-100
"""Below this a square vanishes."""


def shown(value: object) -> str:
    """A value as it appears in a sentence: on one line, and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"


def counted(n: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "cluster"), counted(1500, "user")
    ('1 cluster', '1,500 users')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def whole(name: str, value: int, least: int, most: int | None = None) -> int:
    """A whole number of at least `least` and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ArgumentError(f"{name} must be a whole number of at least {least}, got {shown(value)}")
    if most is not None and value > most:
        raise ArgumentError(f"{name} must be at most {most}, got {shown(value)}")
    return int(value)


def positive(name: str, value: float) -> float:
    """A finite number above zero."""
    given = _float(value)
    if not SMALLEST <= given < LARGEST:
        wanted = f"from {SMALLEST:g} to {LARGEST:g}" if given > 0 else "positive"
        raise ArgumentError(f"{name} must be {wanted}, got {shown(value)}")
    return float(value)


def nonnegative(name: str, value: float) -> float:
    """A finite number of at least zero."""
    given = _float(value)
    if not 0 <= given < LARGEST:
        wanted = f"at most {LARGEST:g}" if given > 0 else "at least 0"
        raise ArgumentError(f"{name} must be {wanted}, got {shown(value)}")
    return float(value)


def probability(name: str, value: float) -> float:
    """A number strictly between 0 and 1."""
    if not SMALLEST <= _float(value) < 1:
        raise ArgumentError(f"{name} must lie strictly between 0 and 1, got {shown(value)}")
    return float(value)


def number(name: str, value: float) -> float:
    """A finite number; True and False are 1 and 0."""
    if type(value) is float and abs(value) < LARGEST:
        return value
    if isinstance(value, bool | np.bool_):
        return float(value)
    given = _float(value)
    if LARGEST <= abs(given) < inf:
        raise ArgumentError(f"{name} must be less than {LARGEST:g} in size, got {shown(value)}")
    if not abs(given) < inf:
        raise ArgumentError(f"{name} must be a finite number, got {shown(value)}")
    return given


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


def user_index(user: int, n_users: int) -> int:
    """A user that the policy knows."""
    if type(user) is int and 0 <= user < n_users:
        return user
    if isinstance(user, bool) or not isinstance(user, Integral):
        raise ArgumentError(f"user must be a whole number from 0 to {n_users - 1}, got {shown(user)}")
    if not 0 <= user < n_users:
        raise ArgumentError(
            f"user must be from 0 to {n_users - 1}, got {user}; add_users makes room for more"
        )
    return int(user)


def users_array(users: ArrayLike, n_users: int) -> Ints:
    """A vector of users that the policy knows."""
    array = whole_numbers("users", users, "a vector of whole numbers")
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ArgumentError(
            f"users must be a vector of whole numbers, got {array.dtype} of shape {array.shape}"
        )
    if array.min() < 0 or array.max() >= n_users:
        wrong = array[(array < 0) | (array >= n_users)][0]
        raise ArgumentError(
            f"users must be from 0 to {n_users - 1}, got {wrong}; add_users makes room for more"
        )
    return np.ascontiguousarray(array, np.int64)


MOST_ITEMS = 2**62
"""Ids of items are whole numbers below this."""


def item_id(item: int) -> int:
    """The id of an item: any whole number from 0 on."""
    if isinstance(item, bool) or not isinstance(item, Integral) or not 0 <= item < MOST_ITEMS:
        raise ArgumentError(f"item must be a whole number from 0 to 2^62 − 1, got {shown(item)}")
    return int(item)


def item_ids(items: ArrayLike, shape: tuple[int, ...], *, distinct: bool = True, name: str = "items") -> Ints:
    """Ids of items in an array of this shape; `distinct`: each occurs once in an offer, which is a row."""
    array = whole_numbers(name, items, "whole numbers, one an arm")
    if array.size == 0 and shape == (0,) and array.ndim == 1:
        return np.empty(0, np.int64)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise ArgumentError(
            f"{name} must be whole numbers of shape {shape}, got {array.dtype} of shape {array.shape}"
        )
    if array.min() < 0 or array.max() >= MOST_ITEMS:
        wrong = array[(array < 0) | (array >= MOST_ITEMS)].flat[0]
        raise ArgumentError(f"{name} must be from 0 to 2^62 − 1, got {wrong}")
    ids = np.ascontiguousarray(array, np.int64)
    if distinct:
        ordered = np.sort(ids, axis=-1)
        twice = ordered[..., 1:][ordered[..., 1:] == ordered[..., :-1]]
        if len(twice):
            raise ArgumentError(f"{name} must be different from each other, got {twice[0]} twice")
    return ids


def whole_numbers(name: str, value: ArrayLike, wanted: str) -> np.ndarray[Any, Any]:
    """Anything that NumPy can make an array of, without True and False among whole numbers."""
    array = as_array(name, value, wanted)
    # NumPy makes 1 of a True beside other numbers; only lists and tuples can hold both.
    if array.dtype.kind in "iu" and isinstance(value, list | tuple):
        for one in np.array(value, object).flat:
            if isinstance(one, bool | np.bool_):
                raise ArgumentError(f"{name} must be {wanted}, got {one} among them")
    return array


def as_array(name: str, value: ArrayLike, wanted: str) -> np.ndarray[Any, Any]:
    """Anything that NumPy can make an array of."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(f"{name} must be {wanted}, got a masked array; fill it or leave masked rows out")
    try:
        return np.asarray(value)
    except ValueError:
        raise ArgumentError(f"{name} must be {wanted}, got rows of unequal length") from None


def reals(name: str, value: ArrayLike, wanted: str, kinds: str = "fiu") -> Floats:
    """An array of real numbers as float64, rows first; `kinds` are the kinds of dtype that will do."""
    if (
        type(value) is np.ndarray
        and value.dtype == np.float64
        and value.flags.c_contiguous
        and value.flags.aligned
    ):
        return value
    array = as_array(name, value, wanted)
    if array.dtype.kind not in kinds:
        raise ArgumentError(f"{name} must be {wanted} of real numbers, got dtype {array.dtype}")
    return np.require(array, np.float64, ["C", "A"])


def finite(name: str, array: Floats) -> Floats:
    """An array of finite numbers."""
    wrong = ~(np.abs(array) < LARGEST)
    if wrong.any():
        first = float(array[wrong].flat[0])
        wanted = f"numbers below {LARGEST:g} in size" if abs(first) < inf else "finite numbers only"
        raise ArgumentError(f"{name} must hold {wanted}, got {first!r}")
    return array


def arms_matrix(arms: ArrayLike, dim: int, name: str = "arms") -> Floats:
    """At least one arm, a row each; whether all numbers are finite is for the caller to see."""
    matrix = reals(name, arms, f"a (K, {dim}) array")
    if matrix.ndim != 2 or matrix.shape[1] != dim:
        raise ArgumentError(f"{name} must have shape (K, {dim}), got {matrix.shape}")
    if matrix.shape[0] == 0:
        raise ArgumentError(f"{name} must hold at least one arm, got shape {matrix.shape}")
    return matrix


def arm_vector(x: ArrayLike, dim: int, *, name: str = "x") -> Floats:
    """One arm's vector; whether all numbers are finite is for the caller to see."""
    if isinstance(x, np.ndarray) and x.shape != (dim,):  # before anything is copied
        raise ArgumentError(f"{name} must have shape ({dim},), got {x.shape}")
    vector = reals(name, x, f"a vector of length {dim}")
    if vector.shape != (dim,):
        raise ArgumentError(f"{name} must have shape ({dim},), got {vector.shape}")
    return vector


def label_vector(labels: ArrayLike, n_users: int) -> Ints:
    """A whole number a user."""
    array = as_array("labels", labels, f"{n_users} whole numbers")
    if array.shape != (n_users,) or array.dtype.kind not in "iu":
        raise ArgumentError(
            f"labels must be {n_users} whole numbers, one a user, got {array.dtype} of shape {array.shape}"
        )
    return np.ascontiguousarray(array, np.int64)


def user_graph(graph: ArrayLike, n_users: int) -> Floats:
    """A symmetric matrix of weights of at least zero with an empty diagonal."""
    dense = graph.toarray() if hasattr(graph, "toarray") else graph
    matrix = finite("graph", reals("graph", dense, f"a ({n_users}, {n_users}) array", kinds="fiub"))
    if matrix.shape != (n_users, n_users):
        raise ArgumentError(f"graph must have shape ({n_users}, {n_users}), got {matrix.shape}")
    if not np.array_equal(matrix, matrix.T):
        i, j = np.argwhere(matrix != matrix.T)[0]
        raise ArgumentError(
            f"graph must be symmetric, got {matrix[i, j]} at ({i}, {j}), {matrix[j, i]} at ({j}, {i})"
        )
    if np.any(matrix < 0) or np.any(np.diag(matrix)):
        raise ArgumentError("graph must hold weights of at least 0 with zeros on the diagonal")
    return matrix
