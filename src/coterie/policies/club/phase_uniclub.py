"""PhaseUniCLUB: exploration in phases, for when the gap is not known."""

from __future__ import annotations

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.club.neighbourhoods import Neighbourhoods
from coterie.policies.confidence import Confidence, choose_confidence
from coterie.policies.declarations import ALPHAS, Declaration, Grid, Style


class PhaseUniCLUB(LinearBandit):
    """CLUB that explores in ever longer phases (Li et al. 2025, Alg. 2).

    It does not need to know the gap between clusters, and pools direct neighbours only.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence, optional
        A rule for all constants in place of alpha, beta, explore, phase and growth. `Theory(...)` has the
        paper's constants and needs no gamma here, but with the paper's numbers of users and dimensions its
        first phase has 10⁹ uniform rounds.
    alpha : float, optional
        Factor α of the radius f(T) within which two estimates count as equal, at least 0. Start with 15σ, as
        for `CLUB`, where σ is the standard deviation of the noise. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0. Start with σ, as for `CLUB`.
    explore : int, optional
        Number T_init of uniform rounds at the start, summed over all users. Start with 10 times the number of
        users. One of explore and phase is needed with alpha and beta.
    phase : int, optional
        Number T⁽⁰⁾ of uniform rounds in the first phase; phase s has 2ˢ times as many. Start with 4 times the
        number of users; with 0 there are no phases.
    growth : float, optional
        Growth of the phases, positive; the paper's α in "phase s lasts 2^(αs)·T⁽ˢ⁾ rounds". 2 by default, the
        case of Theorem 3.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the uniform rounds, at least 0.

    Raises
    ------
    ArgumentError
        If a value is outside its range, if both or neither of `confidence` and the constants are given, or if
        neither `explore` nor `phase` is given with the constants.

    Notes
    -----
    After T_init uniform rounds come phases s = 0, 1, …: phase s lasts 2^(αs)·T⁽ˢ⁾ rounds, of which the first
    T⁽ˢ⁾ = 2ˢ·T⁽⁰⁾ are uniform (lines 7–10); α is the `growth` of `Tuned`, not its `alpha`. No edge is cut
    during T_init. In all other rounds the policy plays the arm with the largest xᵀθ̂_V + β √(xᵀM_V⁻¹x), with
    V the user and its direct neighbours (lines 13–16), and cuts edges as `CLUB` does (line 19).

    Examples
    --------
    >>> policy = PhaseUniCLUB(n_users=3, dim=2, alpha=1.5, beta=0.1, explore=30, phase=12)
    >>> policy.cluster_of(1).tolist()
    [0, 1, 2]
    """

    declared = Declaration(
        summary="CLUB that explores in phases",
        use_when="the gap is not known",
        style=Style("PhaseUniCLUB", "#CC79A7", "v", "-."),
        grid=Grid(alpha=ALPHAS, beta=(0.5,), explore=(2.0, 20.0), phase=(1.0, 10.0)),
        cost=40.0,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        confidence: Confidence | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        explore: int | None = None,
        phase: int | None = None,
        growth: float | None = None,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(
                self.name, confidence, alpha=alpha, beta=beta, explore=explore, phase=phase, growth=growth
            ),
            growing=growing,
            ridge=ridge,
            seed=seed,
        )

    @staticmethod
    def _plan(
        n_users: int, dim: int, *, confidence: Confidence, growing: bool, ridge: float, seed: int
    ) -> Plan:
        schedule = confidence.phases(n_users, dim)
        settings = {
            "beta": confidence.bonus(dim, ridge),
            "shape": confidence.shape(n_users, dim, ridge),
            "first": schedule.first,
        }
        return Plan(Neighbourhoods, settings, schedule, growing=growing)
