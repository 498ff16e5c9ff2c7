"""LinUCB for all users together, for each alone, or for known clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from coterie.policies._rows import FixedRows
from coterie.policies.base import Plan, by_appearance
from coterie.policies.entries import BUDGET, Grid, Style, geometric, register
from coterie.types import Ints
from coterie.validation import label_vector, nonnegative

GRID = Grid(beta=geometric(0.1, 5.0, BUDGET))


def _plan(rows: Ints, beta: float) -> Plan:
    return Plan(FixedRows, {"rows": rows, "beta": nonnegative("beta", beta)})


@register(
    summary="one LinUCB for all users",
    use_when="everybody wants the same",
    style=Style("LinUCB-One", "#7f7f7f", "s", ":"),
    grid=GRID,
    clusters=False,
)
def LinUCBOne(n_users: int, dim: int, *, beta: float = 1.0, ridge: float = 1.0, seed: int = 0) -> Plan:
    """One LinUCB shared by all users: right when everybody wants the same.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    beta : float
        The factor β of the bonus. With noise of standard deviation σ, β ≈ σ is a place to start.
    ridge : float
        λ of the ridge regression.
    seed : int
        Seed of the policy's own random numbers; LinUCB draws none.

    Examples
    --------
    >>> import numpy as np
    >>> policy = LinUCBOne(n_users=2, dim=2, beta=0.5)
    >>> policy.update(0, np.array([1.0, 0.0]), 1.0)
    >>> policy.recommend(1, np.eye(2))
    0
    """
    return _plan(np.zeros(n_users, np.int64), beta)


@register(
    summary="a LinUCB for each user",
    use_when="nobody resembles anybody, or data is plenty",
    style=Style("LinUCB-Ind", "#000000", "D", ":"),
    grid=GRID,
    clusters=False,
)
def LinUCBInd(n_users: int, dim: int, *, beta: float = 1.0, ridge: float = 1.0, seed: int = 0) -> Plan:
    """A LinUCB for each user: right when nobody resembles anybody.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    beta : float
        The factor β of the bonus. With noise of standard deviation σ, β ≈ σ is a place to start.
    ridge : float
        λ of the ridge regression.
    seed : int
        Seed of the policy's own random numbers; LinUCB draws none.

    Examples
    --------
    >>> LinUCBInd(n_users=3, dim=2, beta=0.5).labels().tolist()
    [0, 1, 2]
    """
    return _plan(np.arange(n_users), beta)


@register(
    summary="a LinUCB for each known cluster",
    use_when="a simulation needs a yardstick",
    style=Style("LinUCB, true clusters", "#b8a200", "*", ":"),
    grid=GRID,
    clusters=False,
)
def LinUCBOracle(
    n_users: int, dim: int, *, labels: ArrayLike, beta: float = 1.0, ridge: float = 1.0, seed: int = 0
) -> Plan:
    """A LinUCB for each known cluster: how well clustering could do at best.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    labels : array_like of int, shape (n_users,)
        The true cluster of each user.
    beta : float
        The factor β of the bonus. With noise of standard deviation σ, β ≈ σ is a place to start.
    ridge : float
        λ of the ridge regression.
    seed : int
        Seed of the policy's own random numbers; LinUCB draws none.

    Examples
    --------
    >>> LinUCBOracle(n_users=4, dim=2, labels=[1, 1, 0, 1]).cluster_of(0).tolist()
    [0, 1, 3]
    """
    return _plan(by_appearance(label_vector(labels, n_users)), beta)
