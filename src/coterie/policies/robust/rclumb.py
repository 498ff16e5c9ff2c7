"""RCLUMB and RSCLUMB: clusters of users whose mean rewards are not quite linear."""

from __future__ import annotations

from typing import Any

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.confidence import Confidence, choose_confidence
from coterie.policies.declarations import ALPHAS, Declaration, Grid, Style
from coterie.policies.robust.misspecified import RobustNeighbourhoods, RobustSets
from coterie.validation import nonnegative

MISSPECIFIED_GRID = Grid(alpha=ALPHAS, beta=(0.5, 1.0), misspecification=(0.01, 0.1))


def _settings(
    n_users: int,
    dim: int,
    confidence: Confidence,
    ridge: float,
    misspecification: float,
    tolerance: float,
) -> dict[str, Any]:
    """Collect β, ε*, and a radius that allows for half of α₂ε* on either side."""
    epsilon = nonnegative("misspecification", misspecification)
    shape = confidence.shape(n_users, dim, ridge)
    offset = shape.offset + nonnegative("tolerance", tolerance) * epsilon / 2.0
    return {
        "beta": confidence.bonus(dim, ridge),
        "shape": shape._replace(offset=offset),
        "misspecification": epsilon,
    }


class RCLUMB(LinearBandit):
    """CLUB that allows for misspecified user models (Wang et al. 2023).

    Mean rewards may deviate from a linear model by up to ε*. Users are separated later than by `CLUB`, learn
    from direct neighbours only, and the bonus has a part for what the deviations can do to an estimate.

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
    misspecification : float, default 0.1
        Bound ε* on the deviation of a mean reward from a linear one, at least 0, in the unit of rewards. It
        adds about ε*√d to every bonus: if you do not know it, rather too small than too large.
    tolerance : float, default 1.5
        Factor α₂ of ε* in the test of edges, at least 0; larger separates users later. 1.5 is that of the
        published code.
    growing : bool, default False
        Whether β also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; RCLUMB draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    Each round plays the arm of largest

        xᵀθ̂_V + β √(xᵀM_V⁻¹x) + ε* √(T_V · xᵀM_V⁻¹S_V M_V⁻¹x)

    with V the user and its direct neighbours in a graph that is complete at first, S_V and T_V the sums over
    them and M_V = λI + S_V. The last part is an upper bound, by Cauchy and Schwarz, of the source's
    ε* Σ|xᵀM_V⁻¹y| over all vectors y played so far, which would have to be kept. The edge between the user i
    and ℓ is cut if ‖θ̂ᵢ − θ̂_ℓ‖ > f(Tᵢ) + f(T_ℓ) + α₂ε*.

    Examples
    --------
    >>> policy = RCLUMB(n_users=3, dim=2, alpha=1.5, beta=0.1, misspecification=0.05)
    >>> policy.update(0, [1.0, 0.0], 0.8)
    >>> policy.recommend(1, [[1.0, 0.0], [-1.0, 0.0]])
    0
    """

    declared = Declaration(
        summary="CLUB for rewards that are not quite linear",
        use_when="rewards deviate from a linear model by a known bound",
        style=Style("RCLUMB", "#882255", "D", "--"),
        grid=MISSPECIFIED_GRID,
        cost=50.0,
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
        misspecification: float = 0.1,
        tolerance: float = 1.5,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            misspecification=misspecification,
            tolerance=tolerance,
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
        misspecification: float,
        tolerance: float,
        growing: bool,
        ridge: float,
        seed: int,
    ) -> Plan:
        settings = _settings(n_users, dim, confidence, ridge, misspecification, tolerance)
        return Plan(RobustNeighbourhoods, {**settings, "first": 0}, growing=growing)


class RSCLUMB(LinearBandit):
    """SCLUB that allows for misspecified user models (Wang et al. 2023).

    As `RCLUMB`, with sets that split and merge in place of a graph. A user is compared with the present
    estimate of its whole set, and sets merge at half of the distance at which users are split.

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
        for `SCLUB2019`, where σ is the standard deviation of the noise. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0. Start with σ, as for `SCLUB2019`.
    misspecification : float, default 0.1
        Bound ε* on the deviation of a mean reward from a linear one, at least 0, in the unit of rewards. It
        adds about ε*√d to every bonus: if you do not know it, rather too small than too large.
    tolerance : float, default 1.5
        Factor α₂ of ε* in the tests of Split and Merge, at least 0; larger separates users later. 1.5 is that
        of the published code.
    growing : bool, default False
        Whether β also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; RSCLUMB draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    Arms are scored as by `RCLUMB`, with V the user's set. After each reward the user i is split
    off V if ‖θ̂ᵢ − θ̂_V‖ > f(Tᵢ) + f(T_V) + α₂ε*, its own data included in V; two sets whose members were all
    checked in this phase are merged if ‖θ̂¹ − θ̂²‖ < ½(f(T¹) + f(T²) + α₂ε*).

    Examples
    --------
    >>> policy = RSCLUMB(n_users=3, dim=2, alpha=1.5, beta=0.1, misspecification=0.05)
    >>> policy.cluster_of(1).tolist()
    [0, 1, 2]
    """

    declared = Declaration(
        summary="SCLUB for rewards that are not quite linear",
        use_when="rewards deviate as for RCLUMB, and users arrive unevenly",
        style=Style("RSCLUMB", "#AA4499", "D", ":"),
        grid=MISSPECIFIED_GRID,
        cost=40.0,
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
        misspecification: float = 0.1,
        tolerance: float = 1.5,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            misspecification=misspecification,
            tolerance=tolerance,
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
        misspecification: float,
        tolerance: float,
        growing: bool,
        ridge: float,
        seed: int,
    ) -> Plan:
        settings = _settings(n_users, dim, confidence, ridge, misspecification, tolerance)
        return Plan(RobustSets, {**settings, "arrivals": 0.0}, growing=growing)
