"""How long the vectors are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from coterie.types import Floats

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
