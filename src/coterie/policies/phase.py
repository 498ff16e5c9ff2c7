"""PhaseUniCLUB: exploration in phases, for when the gap between clusters is not known."""

from __future__ import annotations

from coterie.policies._phase import Neighbourhoods
from coterie.policies.base import Plan
from coterie.policies.confidence import Confidence
from coterie.policies.entries import ALPHAS, Grid, Style, register


@register(
    summary="CLUB that explores in phases",
    use_when="the gap is not known",
    style=Style("PhaseUniCLUB", "#CC79A7", "v", "-."),
    grid=Grid(alpha=ALPHAS, beta=(0.5,), explore=(2.0, 20.0), phase=(1.0, 10.0)),
    cost=40.0,
)
def PhaseUniCLUB(
    n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0
) -> Plan:
    """CLUB that explores at the start of ever longer phases and pools direct neighbours only   (Alg. 2).

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    confidence : Confidence
        β, f(T), T_init and the phases: `Tuned(alpha, beta, explore, phase, growth)`, or `Theory`.
    ridge : float
        λ of all ridge regressions.
    seed : int
        Seed of the uniform rounds.

    Examples
    --------
    >>> from coterie.policies.confidence import Tuned
    >>> policy = PhaseUniCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.0, beta=0.5, explore=10, phase=5))
    >>> policy.cluster_of(1).tolist()
    [0, 1, 2]
    """
    schedule = confidence.phases(n_users, dim)
    settings = {
        "beta": confidence.bonus(dim, ridge),
        "shape": confidence.shape(n_users, dim, ridge),
        "first": schedule.first,
    }
    return Plan(Neighbourhoods, settings, schedule)
