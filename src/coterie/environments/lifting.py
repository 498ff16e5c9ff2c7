"""Datasets whose expected rewards are probabilities."""

from __future__ import annotations

import numpy as np

from coterie.datasets.dataset import Dataset
from coterie.types import Floats


def lifted(dataset: Dataset) -> Dataset:
    """Add a coordinate to all vectors, so that expected rewards in [−1, 1] become probabilities.

    Parameters
    ----------
    dataset : Dataset
        Vectors of length at most 1, such as those of scale "unit".

    Returns
    -------
    Dataset
        The same users and items with dim + 1 coordinates.

    Notes
    -----
    Every vector is scaled by 1/√2 and gets 1/√2 as its last coordinate: xᵀθ becomes (1 + xᵀθ)/2.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> lifted(data).items.shape
    (100, 6)
    """
    return dataset._replace(users=_lift(dataset.users), items=_lift(dataset.items))


def _lift(vectors: Floats) -> Floats:
    """Add a coordinate to each row."""
    raised: Floats = np.column_stack([vectors, np.ones(len(vectors))]) / np.sqrt(2.0)
    raised.flags.writeable = False
    return raised
