"""GOB.Lin: friends in a given graph share data, and no clusters are formed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.declarations import GRAPH_GRID, Declaration, Style
from coterie.policies.graph.joint_ridge import JointRidge
from coterie.validation import flag, nonnegative, user_graph


class GOBLin(LinearBandit):
    """Friends in a given graph share data (Cesa-Bianchi et al. 2013).

    All users are in one regression of n_users · dim numbers, so memory grows with (n_users · dim)².

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
        Factor α of the bonus, at least 0, in the unit of rewards. Set it to the standard deviation σ of the
        noise; with `growing`, to less.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as the source has it. Leave it off unless you compare
        with the source.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; GOB.Lin draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or `graph` has a wrong shape, sign or diagonal.

    Notes
    -----
    Each round plays the arm of largest xᵀθ̂ᵢ + α √(xᵀ(V⁻¹)ᵢᵢx), times √ln(t + 1) in the bonus if `growing`,
    with

        V = λ(I + D − A) ⊗ I + Σ φφᵀ,   θ̂ = V⁻¹ Σ r φ

    where A is the graph, D its degrees, and φ holds x in the block of the user (Fig. 2 of the source).

    Examples
    --------
    >>> policy = GOBLin(n_users=2, dim=1, graph=[[0, 1], [1, 0]], alpha=0.1)
    >>> policy.update(0, [1.0], 1.0)
    >>> bool(policy.estimates[1, 0] > 0)
    True
    """

    declared = Declaration(
        summary="neighbours in a given graph share what they learn",
        use_when="you have a social graph",
        style=Style("GOB.Lin", "#009E73", "<", "-."),
        grid=GRAPH_GRID,
        cost=250.0,
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
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, graph=graph, alpha=alpha, growing=growing, ridge=ridge, seed=seed)

    @staticmethod
    def _plan(
        n_users: int, dim: int, *, graph: ArrayLike, alpha: float, growing: bool, ridge: float, seed: int
    ) -> Plan:
        friends = user_graph(graph, n_users)
        settings = {
            "penalty": ridge * (np.eye(n_users) + np.diag(friends.sum(axis=1)) - friends),
            "weights": np.ones(n_users),
            "alpha": nonnegative("alpha", alpha),
            "growing": flag("growing", growing),
        }
        return Plan(JointRidge, settings)
