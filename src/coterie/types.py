"""Array types, and small records that several packages share."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Bools: TypeAlias = NDArray[np.bool_]


class Scores(NamedTuple):
    """Why an arm is chosen: mean, bonus and their sum for each arm, as `LinearBandit.scores` returns them.

    Parameters
    ----------
    mean : array of float, shape (K,)
        Estimated reward xᵀθ̂ of each arm.
    width : array of float, shape (K,)
        Bonus of each arm, such as β √(xᵀM⁻¹x); of OffCLUB, which is cautious, −β √(xᵀM⁻¹x).
    ucb : array of float, shape (K,)
        Their sum, the upper confidence bound; of OffCLUB the lower one.

    Examples
    --------
    >>> import coterie
    >>> scores = coterie.LinUCBInd(n_users=1, dim=2, beta=0.5).scores(0, [[1.0, 0.0]])
    >>> scores.ucb.tolist()
    [0.5]
    """

    mean: Floats
    width: Floats
    ucb: Floats
