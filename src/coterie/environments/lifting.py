"""A dataset whose expected rewards are probabilities."""

from __future__ import annotations

import numpy as np

from coterie.datasets.dataset import Dataset
from coterie.types import Floats


def lifted(dataset: Dataset) -> Dataset:
    """The dataset with one more coordinate, so that xᵀθ in [−1, 1] becomes (1 + xᵀθ)/2 in [0, 1].

    Every vector is scaled by 1/√2 and gets 1/√2 as its last coordinate.
    """
    return dataset._replace(users=_lift(dataset.users), items=_lift(dataset.items))


def _lift(vectors: Floats) -> Floats:
    raised: Floats = np.column_stack([vectors, np.ones(len(vectors))]) / np.sqrt(2.0)
    raised.flags.writeable = False
    return raised
