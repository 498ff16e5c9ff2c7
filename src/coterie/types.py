"""The array types and the small records that travel between rooms."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Bools: TypeAlias = NDArray[np.bool_]


class Scores(NamedTuple):
    """Why an arm was chosen: estimated mean, width of the bonus, and their sum, for each arm."""

    mean: Floats
    width: Floats
    ucb: Floats
