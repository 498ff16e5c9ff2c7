"""Arrays are checked here, once; the kernels then trust them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coterie.checks import LARGEST, shown
from coterie.errors import ArgumentError
from coterie.types import Floats, Ints


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
    array = as_array("users", users, "a vector of whole numbers")
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


def as_array(name: str, value: ArrayLike, wanted: str) -> np.ndarray[Any, Any]:
    """Anything that NumPy can make an array of."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ArgumentError(f"{name} must be {wanted}, got rows of unequal length") from None


def reals(name: str, value: ArrayLike, wanted: str) -> Floats:
    """An array of real numbers as float64, rows first."""
    if type(value) is np.ndarray and value.dtype == np.float64 and value.flags.carray:
        return value
    array = as_array(name, value, wanted)
    if array.dtype.kind not in "fiu":
        raise ArgumentError(f"{name} must be {wanted} of real numbers, got dtype {array.dtype}")
    rows = np.ascontiguousarray(array, np.float64)
    return rows if rows.flags.writeable else rows.copy()  # a read-only array is another type to the kernels


def finite(name: str, array: Floats) -> Floats:
    """An array of finite numbers."""
    if not bool(np.all(np.abs(array) < LARGEST)):
        raise ArgumentError(f"{name} must hold finite numbers only, got {_first_bad(array)!r}")
    return array


def _first_bad(array: Floats) -> float:
    return float(array[~(np.abs(array) < LARGEST)].flat[0])


def arms_matrix(arms: ArrayLike, dim: int) -> Floats:
    """At least one arm, a row each; whether all numbers are finite is for the caller to see."""
    matrix = reals("arms", arms, f"a (K, {dim}) array")
    if matrix.ndim != 2 or matrix.shape[1] != dim:
        raise ArgumentError(f"arms must have shape (K, {dim}), got {matrix.shape}")
    if matrix.shape[0] == 0:
        raise ArgumentError(f"arms must hold at least one arm, got shape {matrix.shape}")
    return matrix


def arm_vector(x: ArrayLike, dim: int) -> Floats:
    """One arm's vector; whether all numbers are finite is for the caller to see."""
    vector = reals("x", x, f"a vector of length {dim}")
    if vector.shape != (dim,):
        raise ArgumentError(f"x must have shape ({dim},), got {vector.shape}")
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
    if isinstance(dense, np.ndarray) and dense.dtype == bool:
        dense = dense.astype(np.float64)
    matrix = finite("graph", reals("graph", dense, f"a ({n_users}, {n_users}) array"))
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
