"""R = U S Vᵀ, cut to its strongest directions, with signs that do not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from coterie.errors import ArgumentError, DataError
from coterie.types import Bools, Floats

Scale: TypeAlias = Callable[[Floats, Floats], Floats]


def unit(vectors: Floats, singular: Floats) -> Floats:
    """Each row divided by its length; the lengths must not be zero."""
    scaled: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


def raw(vectors: Floats, singular: Floats) -> Floats:
    """The rows as the decomposition gives them."""
    return vectors


def sqrt_s(vectors: Floats, singular: Floats) -> Floats:
    """Each direction weighed by √S, so that users · itemsᵀ ≈ R."""
    return vectors * np.sqrt(singular)


SCALES: Mapping[str, Scale] = MappingProxyType({"unit": unit, "raw": raw, "sqrt-s": sqrt_s})


NOISE = 1e-10  # a row of U or V shorter than this is rounding, not a vector
NEARLY = 1e-6  # magnitudes this close, relatively, count as equal when signs are fixed
EQUAL = 1e-9  # singular values this close, relative to the first, leave their directions open


class Factors(NamedTuple):
    """The first `dim` columns of U and V, and all singular values."""

    users: Floats
    items: Floats
    singular: Floats

    def scaled(self, scale: str) -> tuple[Floats, Floats, Bools, Bools]:
        """Vectors of users and items, and which of them are not zero: only those have a vector."""
        lengthen, top = SCALES[scale], self.singular[: self.users.shape[1]]
        users, items = has_length(self.users), has_length(self.items)
        return lengthen(self.users[users], top), lengthen(self.items[items], top), users, items

    def notes(self) -> tuple[str, ...]:
        """A warning where the data leaves a direction open, which no rule for signs can mend."""
        dim = self.users.shape[1]
        gaps = -np.diff(self.singular[: dim + 1])
        return tuple(
            f"singular values {k + 1} and {k + 2} are equal: another machine may turn their directions"
            for k in np.flatnonzero(gaps <= EQUAL * self.singular[0])
        )


def factorise(matrix: Floats, dim: int) -> Factors:
    """The top `dim` directions of R = Θ S Aᵀ   (Sec. 6.2)."""
    if not matrix.any():
        raise DataError("the feedback matrix is all zero: no kept user gave feedback 1 to a kept item")
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    useful = int(np.sum(singular > singular[0] * max(matrix.shape) * np.finfo(np.float64).eps))
    if dim > useful:
        raise ArgumentError(f"dim must be at most {useful}, the number of directions in the data, got {dim}")
    users, items = left[:, :dim], right[:dim].T
    signs = signs_of(items)
    return Factors(users * signs, items * signs, singular)


def signs_of(directions: Floats) -> Floats:
    """+1 or -1 for each column, so that its entry of largest magnitude becomes positive, the first on ties.

    Magnitudes that differ by rounding only are ties: which of them is the largest may differ by machine.
    """
    sizes = np.abs(directions)
    largest = np.argmax(sizes >= (1.0 - NEARLY) * sizes.max(axis=0), axis=0)
    return np.where(directions[largest, np.arange(directions.shape[1])] < 0.0, -1.0, 1.0)


def has_length(vectors: Floats) -> Bools:
    """Which rows are vectors, and not zero up to rounding."""
    present: Bools = np.linalg.norm(vectors, axis=1) > NOISE
    return present
