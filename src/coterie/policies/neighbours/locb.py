"""LOCB: overlapping clusters around seeds."""

from __future__ import annotations

import numpy as np

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.confidence import Confidence, choose_confidence
from coterie.policies.declarations import ALPHAS, Declaration, Grid, Style
from coterie.policies.neighbours.seed_clusters import SeedClusters
from coterie.seeding import stream
from coterie.types import Ints
from coterie.validation import positive, whole


class LOCB(LinearBandit):
    """Local clusters around some of the users (Ban and He 2021).

    Some users are seeds. Around each is a cluster of those who are not known to differ from it; a user may be
    in several clusters, or in none. Each of its clusters proposes an arm, and the one with the largest score
    is played.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence, optional
        A rule for both constants in place of alpha and beta, such as `Theory(...)`; `Tuned(alpha=...,
        beta=...)` is the same as alpha and beta.
    alpha : float, optional
        Factor α of the radius f(T) within which two estimates count as equal, at least 0. Start with 15σ, as
        for `CLUB`, where σ is the standard deviation of the noise. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0. Start with σ, as for `CLUB`.
    n_seeds : int, default 20
        Number of seeds, at least 1; all users if there are fewer. A preference that no seed has gets no
        cluster: set it to several times the number of clusters.
    gamma : float, default 0.2
        Gap γ between preferences that matter, positive: a cluster is final when f(T) of its seed is at most
        γ/4.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the choice of seeds, at least 0.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    The score of an arm is the largest xᵀθ̂_c + β √(xᵀM_c⁻¹x) among the clusters c of the user.
    Then the user i leaves the cluster of seed s if ‖θ̂ᵢ − θ̂_s‖ > f(Tᵢ) + f(T_s), and joins it if the
    distance is less.

    Examples
    --------
    >>> policy = LOCB(n_users=3, dim=2, alpha=0.5, beta=0.1)
    >>> for _ in range(20):
    ...     policy.update(0, [1.0, 0.0], 1.0)
    ...     policy.update(1, [1.0, 0.0], -1.0)
    >>> policy.cluster_of(0).tolist()
    [0, 2]
    """

    declared = Declaration(
        summary="overlapping clusters around seed users; largest bound decides",
        use_when="clusters overlap, and you need a baseline",
        style=Style("LOCB", "#4B6F44", "<", "-."),
        grid=Grid(alpha=ALPHAS, beta=(0.25, 0.5, 1.0, 2.0)),
        cost=150.0,
        figures=("field",),
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        confidence: Confidence | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        n_seeds: int = 20,
        gamma: float = 0.2,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            n_seeds=n_seeds,
            gamma=gamma,
            growing=growing,
            ridge=ridge,
            seed=seed,
        )

    @staticmethod
    def _plan(
        n_users: int,
        dim: int,
        *,
        confidence: Confidence,
        n_seeds: int,
        gamma: float,
        growing: bool,
        ridge: float,
        seed: int,
    ) -> Plan:
        settings = {
            "seeds": _seeds(n_users, whole("n_seeds", n_seeds, 1, 2**20), seed),
            "beta": confidence.bonus(dim, ridge),
            "shape": confidence.shape(n_users, dim, ridge),
            "settled": positive("gamma", gamma) / 4,
        }
        return Plan(SeedClusters, settings, growing=growing)


def _seeds(n_users: int, n_seeds: int, seed: int) -> Ints:
    """Draw different users, ascending; -1 for places that are left over."""
    chosen = np.full(n_seeds, -1, np.int64)
    drawn = np.argsort(stream(seed, "seeds").random(n_users), kind="stable")[:n_seeds]
    chosen[: len(drawn)] = np.sort(drawn)
    return chosen
