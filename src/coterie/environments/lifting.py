"""Datasets whose expected rewards are probabilities."""

from __future__ import annotations

import numpy as np

from coterie.datasets.dataset import Dataset
from coterie.errors import ArgumentError
from coterie.types import Floats
from coterie.validation import positive


def lifted(dataset: Dataset, attraction: float = 1.0) -> Dataset:
    """Add a coordinate to all vectors, so that expected rewards in [−1, 1] become probabilities.

    Parameters
    ----------
    dataset : Dataset
        Vectors of length at most 1, such as those of scale "unit".
    attraction : float, default 1.0
        Largest probability that there may be, above 0 and at most 1: all are multiplied by it. Few people
        click: with lists of several items something like 0.3 is more lifelike than 1.

    Returns
    -------
    Dataset
        The same users and items with dim + 1 coordinates.

    Raises
    ------
    ArgumentError
        If `attraction` is outside its range.

    Notes
    -----
    Every vector is scaled by 1/√2 and gets 1/√2 as its last coordinate: xᵀθ becomes (1 + xᵀθ)/2. Vectors of
    users are multiplied by `attraction`.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> lifted(data).items.shape
    (100, 6)
    """
    if positive("attraction", attraction) > 1:
        raise ArgumentError(f"attraction must be above 0 and at most 1, got {attraction!r}")
    return dataset._replace(users=_lift(dataset.users, attraction), items=_lift(dataset.items))


def _lift(vectors: Floats, factor: float = 1.0) -> Floats:
    """Add a coordinate to each row, and multiply it."""
    raised: Floats = np.column_stack([vectors, np.ones(len(vectors))]) / np.sqrt(2.0) * factor
    raised.flags.writeable = False
    return raised
