"""RCLUBWCU: CLUB that learns in spite of corrupted users, and OCCUD, which finds them."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.confidence import Confidence, choose_confidence
from coterie.policies.declarations import ALPHAS, Declaration, Grid, Style
from coterie.policies.kernel.learner import Learner
from coterie.policies.robust.weighted_components import WeightedComponents
from coterie.types import Floats, Ints
from coterie.validation import nonnegative, positive, probability


class RCLUBWCU(LinearBandit):
    """CLUB with weighted rewards, for corrupted users (Wang et al. 2023).

    A reward weighs less the less its user's earlier data says about the arm, so that no single lie moves an
    estimate far. `suspects` lists the users whose rewards seem corrupted (OCCUD).

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
    threshold : float, default 0.5
        Width α above which a reward weighs less, positive: one for an arm of width w weighs α/w. With λ = 1
        and unit vectors widths begin at 1, so that with 1 or more all rewards weigh the same. Smaller is
        safer and slower. The source has (√d + √λ)/C.
    corruption : float, default 0.0
        Bound C on the sum of all corruptions |c|, at least 0, in the unit of rewards. It adds αC to β and to
        the test of edges: with a bound as large as the source's no edge is ever cut at practical sizes. 0
        leaves both out, and keeps the weights.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; RCLUBWCU draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    With S̃ᵢ = Σ w xxᵀ, b̃ᵢ = Σ w r x and w = min{1, α/√(xᵀ(λI + S̃ᵢ)⁻¹x)}, S̃ᵢ that of before,
    each round plays the arm of largest xᵀθ̃_V + (β + αC) √(xᵀM̃_V⁻¹x), with V the connected component of the
    user. The edge between the user i and ℓ is cut if ‖θ̃ᵢ − θ̃_ℓ‖ > f(Tᵢ) + f(T_ℓ) + f(0)αC; f(0) is the
    `alpha` of `Tuned`.

    Examples
    --------
    >>> policy = RCLUBWCU(n_users=3, dim=2, alpha=1.5, beta=0.1, threshold=0.3)
    >>> policy.update(0, [1.0, 0.0], 0.8)
    >>> policy.suspects().tolist()
    []
    """

    declared = Declaration(
        summary="CLUB that is robust to corrupted users, and detects them",
        use_when="the feedback of some users may be corrupted",
        style=Style("RCLUB-WCU", "#117733", "X", "--"),
        grid=Grid(alpha=ALPHAS, beta=(0.5, 1.0), threshold=(0.1, 0.5)),
        cost=20.0,
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
        threshold: float = 0.5,
        corruption: float = 0.0,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            threshold=threshold,
            corruption=corruption,
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
        threshold: float,
        corruption: float,
        growing: bool,
        ridge: float,
        seed: int,
    ) -> Plan:
        alpha = positive("threshold", threshold)
        lies = alpha * nonnegative("corruption", corruption)
        shape = confidence.shape(n_users, dim, ridge)
        settings = {
            "beta": confidence.bonus(dim, ridge) + lies,
            "shape": shape._replace(offset=shape.offset + shape.at(0) * lies / 2.0),
            "threshold": alpha,
        }
        return Plan(WeightedComponents, settings, growing=growing)

    def suspects(self, delta: float = 0.01, *, noise: float = 1.0) -> Ints:
        """List the users whose rewards seem corrupted (OCCUD).

        Parameters
        ----------
        delta : float, default 0.01
            Probability δ, strictly between 0 and 1, that an honest user is listed.
        noise : float, default 1.0
            Standard deviation σ of the noise of honest rewards, at least 0; 1 as in the source.

        Returns
        -------
        array of int
            Users, ascending.
        """
        lies = self._arguments["threshold"] * self._arguments["corruption"]
        probability("delta", delta)
        nonnegative("noise", noise)
        with self._lock:
            return find_suspects(self._learner, lies=lies, delta=delta, noise=noise)


def find_suspects(learner: Learner, *, lies: float, delta: float, noise: float) -> Ints:
    """Find users whose plain estimate is too far from the robust one of their component (OCCUD).

    `lies` is αC. A user without data is no suspect.
    """
    arrays, ridge, dim = learner.arrays(), learner.ridge, learner.dim

    def radii(prefix: str, extra: float) -> Floats:
        spread = dim * np.log1p(arrays[f"{prefix}.pulls"] / (ridge * dim)) + 2.0 * log(1.0 / delta)
        least = 1.0 / np.linalg.eigvalsh(arrays[f"{prefix}.inverse"])[:, -1]
        return np.asarray((noise * np.sqrt(spread) + sqrt(ridge) + extra) / np.sqrt(least))

    known = np.flatnonzero(arrays["plain.pulls"])
    used = np.unique(arrays["labels"])
    for name in arrays:
        if name.startswith("plain."):
            arrays[name] = arrays[name][known]
        elif name.startswith("pools."):
            arrays[name] = arrays[name][used]
    rows = np.searchsorted(used, arrays["labels"][known])
    apart = np.linalg.norm(arrays["plain.estimate"] - arrays["pools.estimate"][rows], axis=1)
    return np.asarray(known[apart > radii("plain", 0.0) + radii("pools", lies)[rows]])
