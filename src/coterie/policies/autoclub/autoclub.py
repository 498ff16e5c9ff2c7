"""AutoCLUB: clustering of bandits without constants to set."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.policies.autoclub.adaptive.change_test import ChangeTest
from coterie.policies.autoclub.autoclub_learner import AutoClubLearner
from coterie.policies.autoclub.explanations import UserChanges, UserExplanation, explained
from coterie.policies.base import Plan
from coterie.policies.declarations import Declaration, Style
from coterie.policies.segments import Segmented
from coterie.validation import arms_matrix, item_ids, user_index


class AutoCLUB(Segmented):
    """Clusters by evidence, with no constants to set.

    The policy to start with. It needs no gap, no noise level and no horizon: noise, prior and mean preference
    are estimated from all users. Each user is reviewed at ever longer intervals and put where its data is
    explained best, in a cluster or alone. Beside the clusters a hierarchical model, that of `HierUCB`, learns
    how users differ by degrees; decisions follow each as far as it has predicted rewards. Users whose rewards
    are much noisier than others' count for less, and no single reward can spoil the rest.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    ridge : float, default 1.0
        Initial λ of the ridge regressions, in units of the mean of ‖x‖²; positive. λ itself is estimated.
    seed : int, default 0
        Seed of the policy's own random numbers; AutoCLUB draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    A grouping is judged by the marginal likelihood of its rewards, with (S, c) the sums of a cluster about μ:

        E = ½(d ln λ − ln det(λI + S) + cᵀ(λI + S)⁻¹c/σ̂²)

    Clusters score an arm by xᵀθ̂ + σ̂ √(w² max(1, 2 ln(Nw²/d))), w² = xᵀMx, the hierarchical model by its
    upper bound; the arm of largest weighted sum is played. The method is ours, not the paper's; its page
    among the algorithms has every line.

    Examples
    --------
    >>> policy = AutoCLUB(n_users=3, dim=2)
    >>> policy.update_many([0, 0], [[1.0, 0.0], [0.0, 1.0]], [0.8, 0.1])
    >>> policy.recommend(1, [[1.0, 0.0], [-1.0, 0.0]])
    0
    >>> policy.labels().tolist()
    [0, 0, 0]
    """

    declared = Declaration(
        summary="clusters by marginal likelihood; no constants to set",
        use_when="you have no reason to choose another",
        style=Style("AutoCLUB", "#A5112B", "d", "-"),
        cost=25.0,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, ridge=ridge, seed=seed)

    @staticmethod
    def _plan(n_users: int, dim: int, *, ridge: float, seed: int) -> Plan:
        return Plan(AutoClubLearner, {}, items=True)

    @property
    def changes(self) -> UserChanges:
        """How often users were found to have changed, and the last of them.

        A user who has changed starts again as a new user; what it has taught so far stays with its cluster.
        """
        with self._lock:
            learner: Any = self._learner
            found: ChangeTest = learner.changes
            return UserChanges(found.alarms, *found.recorded())

    def explain(
        self, user: int, arms: ArrayLike | None = None, *, items: ArrayLike | None = None
    ) -> UserExplanation:
        """Explain whom a user learns from, what is known about it, and what scores are made of.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim), optional
            Arms whose scores are to be taken apart.
        items : array_like of int, shape (K,), optional
            Ids of the arms, as for `recommend`; only with `arms`.

        Returns
        -------
        UserExplanation
            Plain data; `print` shows it in a few lines.
        """
        user = user_index(user, self._n_users)
        matrix = None if arms is None else arms_matrix(arms, self._dim)
        if items is not None and matrix is None:
            raise ArgumentError("items are ids of arms: arms must be given, too")
        ids = None if items is None or matrix is None else item_ids(items, (len(matrix),))
        with self._lock:
            if matrix is not None and not self._learner.accepts(matrix):
                raise self._too_long("arms", matrix)
            return explained(self, user, matrix, ids)
