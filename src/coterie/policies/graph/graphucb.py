"""GraphUCB: estimates are smooth over a given graph, and no clusters are formed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.declarations import GRAPH_GRID, Declaration, Style
from coterie.policies.graph.joint_ridge import WalkRidge
from coterie.validation import flag, nonnegative, probability, user_graph

WALK_FLOOR = 0.01
"""Added to the random-walk Laplacian, which is singular by itself."""


class GraphUCB(LinearBandit):
    """Estimates are smooth over a given graph (Yang et al. 2020).

    As `GOBLin`, with the random-walk Laplacian: a user with many friends is pulled no harder than one with
    few. Memory grows with (n_users · dim)².

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    graph : array_like or sparse matrix, shape (n_users, n_users)
        Weight of the friendship between two users: symmetric, at least 0, zeros on the diagonal. A larger
        weight pulls the two estimates closer together; 1 for friends and 0 for others is usual.
    alpha : float, default 1.0
        Factor α of the bonus, at least 0, in the unit of rewards; with `growing`, the σ in the source's β.
        Set it to the standard deviation σ of the noise in both cases.
    growing : bool, default False
        Whether to use the source's time-dependent β instead of the constant α. Leave it off unless you
        compare with the source.
    delta : float, default 0.01
        Probability δ, strictly between 0 and 1, that the growing bonus fails; without `growing` it has no
        effect.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; GraphUCB draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or `graph` has a wrong shape, sign or diagonal.

    Notes
    -----
    Each round plays the arm of largest xᵀθ̂ᵢ + α √(xᵀΛᵢ⁻¹x), with βᵢ in place of α if `growing`, where

        (λ(ℒ + 0.01·I) ⊗ I + Σ φφᵀ) θ̂ = Σ r φ,   Λᵢ = Aᵢ + 2λℒᵢᵢI + λ² Σ_{j≠i} ℒᵢⱼ²Aⱼ⁻¹,   Aᵢ = Sᵢ + λI
        βᵢ = σ √(2 ln(|Aᵢ|^½ |λI|^−½ / δ)) + √λ ‖Σⱼ ℒᵢⱼθ̂ⱼ‖

    and ℒ = I − D⁻¹A is the random-walk Laplacian of the graph. The 0.01 is ours: ℒ alone is singular.

    Examples
    --------
    >>> policy = GraphUCB(n_users=2, dim=1, graph=[[0, 1], [1, 0]], alpha=0.1)
    >>> policy.update(0, [1.0], 1.0)
    >>> bool(policy.estimates[1, 0] > 0)
    True
    """

    declared = Declaration(
        summary="estimates are smoothed over a given graph",
        use_when="you have a social graph, and its degrees differ",
        style=Style("GraphUCB", "#4B0092", ">", "-."),
        grid=GRAPH_GRID,
        cost=400.0,
        clusters=False,
        figures=(),
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        graph: ArrayLike,
        alpha: float = 1.0,
        growing: bool = False,
        delta: float = 0.01,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users, dim, graph=graph, alpha=alpha, growing=growing, delta=delta, ridge=ridge, seed=seed
        )

    @staticmethod
    def _plan(
        n_users: int,
        dim: int,
        *,
        graph: ArrayLike,
        alpha: float,
        growing: bool,
        delta: float,
        ridge: float,
        seed: int,
    ) -> Plan:
        friends = user_graph(graph, n_users)
        totals = friends.sum(axis=1)
        degrees = np.where(totals > 0, totals, 1.0)
        laplacian = np.diag(totals) - friends
        settings = {
            "penalty": ridge * (laplacian + WALK_FLOOR * np.diag(degrees)),
            "weights": degrees,
            "walk": laplacian / degrees[:, None],
            "alpha": nonnegative("alpha", alpha),
            "growing": flag("growing", growing),
            "delta": probability("delta", delta),
        }
        return Plan(WalkRidge, settings)
