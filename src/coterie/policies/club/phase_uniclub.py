"""PhaseUniCLUB: exploration in phases, for when the gap is not known."""

from __future__ import annotations

from coterie.policies.club.neighbourhoods import Neighbourhoods
from coterie.policies.confidence import Confidence
from coterie.policies.entries import ALPHAS, Grid, Style, register
from coterie.policies.plans import Plan


@register(
    summary="CLUB that explores in phases",
    use_when="the gap is not known",
    style=Style("PhaseUniCLUB", "#CC79A7", "v", "-."),
    grid=Grid(alpha=ALPHAS, beta=(0.5,), explore=(2.0, 20.0), phase=(1.0, 10.0)),
    cost=40.0,
)
def PhaseUniCLUB(
    n_users: int,
    dim: int,
    *,
    confidence: Confidence,
    growing: bool = False,
    ridge: float = 1.0,
    seed: int = 0,
) -> Plan:
    """Make a PhaseUniCLUB policy: CLUB that explores in ever longer phases   (Li et al. 2025, Alg. 2).

    It does not need to know the gap between clusters, and pools direct neighbours only.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence
        β, f(T), T_init and the phases. Use `Tuned(alpha=15σ, beta=σ, explore=10 * n_users, phase=4 *
        n_users)` with σ the standard deviation of the noise; alpha and beta are as for `CLUB`. `Theory` needs
        no gamma here, but its first phase explores for 10⁹ rounds at the paper's size.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the uniform rounds, at least 0.

    Returns
    -------
    LinearBandit
        The policy, before its first round.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or `confidence` has no phases.

    Notes
    -----
    After T_init uniform rounds come phases s = 0, 1, …: phase s lasts 2^(αs)·T⁽ˢ⁾ rounds, of which the first
    T⁽ˢ⁾ = 2ˢ·T⁽⁰⁾ are uniform (lines 7–10); α is the `growth` of `Tuned`, not its `alpha`. No edge is cut
    during T_init. Otherwise it plays the arm of largest xᵀθ̂_V + β √(xᵀM_V⁻¹x), with V the user and its
    direct neighbours (lines 13–16), and cuts edges as `CLUB` does (line 19).

    Examples
    --------
    >>> from coterie import Tuned
    >>> policy = PhaseUniCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.5, beta=0.1, explore=30, phase=12))
    >>> policy.cluster_of(1).tolist()
    [0, 1, 2]
    """
    schedule = confidence.phases(n_users, dim)
    settings = {
        "beta": confidence.bonus(dim, ridge),
        "shape": confidence.shape(n_users, dim, ridge),
        "first": schedule.first,
    }
    return Plan(Neighbourhoods, settings, schedule, growing=growing)
