"""Thompson sampling with linear rewards: for all users together, for each alone, or for known clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from coterie.policies._lints import SampledRows
from coterie.policies.base import Plan, by_appearance
from coterie.policies.entries import BUDGET, Grid, Style, geometric, register
from coterie.types import Ints
from coterie.validation import label_vector, nonnegative

GRID = Grid(beta=geometric(0.1, 5.0, BUDGET))
COST = 25.0


def _plan(rows: Ints, beta: float) -> Plan:
    return Plan(SampledRows, {"rows": rows, "beta": nonnegative("beta", beta)})


@register(
    summary="one Thompson sampler for all users",
    use_when="everybody wants the same, and decisions should vary",
    style=Style("LinTS-One", "#7f7f7f", "s", "--"),
    grid=GRID,
    cost=COST,
    clusters=False,
)
def LinTSOne(n_users: int, dim: int, *, beta: float = 1.0, ridge: float = 1.0, seed: int = 0) -> Plan:
    """One Thompson sampler shared by all users   (Agrawal and Goyal 2013).

    Each decision draws θ̃ ~ N(θ̂, β²M⁻¹) and plays the arm of largest xᵀθ̃.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    beta : float
        The spread of the draws; with noise of standard deviation σ, β = σ samples the posterior.
    ridge : float
        λ of the ridge regression.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> policy = LinTSOne(n_users=2, dim=2, beta=0.01)
    >>> policy.update(0, np.array([1.0, 0.0]), 1.0)
    >>> policy.recommend(1, np.eye(2))
    0
    """
    return _plan(np.zeros(n_users, np.int64), beta)


@register(
    summary="a Thompson sampler for each user",
    use_when="nobody resembles anybody, and decisions should vary",
    style=Style("LinTS-Ind", "#000000", "D", "--"),
    grid=GRID,
    cost=COST,
    clusters=False,
)
def LinTSInd(n_users: int, dim: int, *, beta: float = 1.0, ridge: float = 1.0, seed: int = 0) -> Plan:
    """A Thompson sampler for each user   (Agrawal and Goyal 2013).

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    beta : float
        The spread of the draws; with noise of standard deviation σ, β = σ samples the posterior.
    ridge : float
        λ of the ridge regression.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> LinTSInd(n_users=3, dim=2, beta=0.5).labels().tolist()
    [0, 1, 2]
    """
    return _plan(np.arange(n_users), beta)


@register(
    summary="a Thompson sampler for each known cluster",
    use_when="a simulation needs a random yardstick",
    style=Style("LinTS, true clusters", "#b8a200", "*", "--"),
    grid=GRID,
    cost=COST,
    clusters=False,
)
def LinTSOracle(
    n_users: int, dim: int, *, labels: ArrayLike, beta: float = 1.0, ridge: float = 1.0, seed: int = 0
) -> Plan:
    """A Thompson sampler for each known cluster: how well sampling could do at best.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    labels : array_like of int, shape (n_users,)
        The true cluster of each user.
    beta : float
        The spread of the draws; with noise of standard deviation σ, β = σ samples the posterior.
    ridge : float
        λ of the ridge regression.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> LinTSOracle(n_users=4, dim=2, labels=[1, 1, 0, 1]).cluster_of(0).tolist()
    [0, 1, 3]
    """
    return _plan(by_appearance(label_vector(labels, n_users)), beta)
