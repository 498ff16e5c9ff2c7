"""CLUB, UniCLUB and SACLUB: a graph over users loses edges; its components are the clusters."""

from __future__ import annotations

from coterie.policies._club import Components
from coterie.policies.base import Plan
from coterie.policies.confidence import Confidence
from coterie.policies.entries import ALPHAS, Grid, Style, register
from coterie.policies.schedule import Schedule, never, uniform_first

GRID = Grid(alpha=ALPHAS, beta=(0.25, 0.5, 1.0, 2.0))
UNIFORM_GRID = Grid(alpha=ALPHAS, beta=(0.5, 1.0), explore=(2.0, 20.0))


def _plan(n_users: int, dim: int, confidence: Confidence, ridge: float, schedule: Schedule) -> Plan:
    beta, shape = confidence.bonus(dim, ridge), confidence.shape(n_users, dim, ridge)
    return Plan(Components, {"beta": beta, "shape": shape}, schedule)


@register(
    summary="a graph that loses edges; components are clusters",
    use_when="a classic baseline is wanted",
    style=Style("CLUB", "#E69F00", "o", "--"),
    grid=GRID,
)
def CLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """Clustering of bandits by a graph, always UCB   (Gentile et al. 2014).

    All users are joined at the start. When two users' estimates turn out to be too far apart their edge is
    cut; whoever is still connected shares data.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    confidence : Confidence
        β of the bonus and the radius f(T) inside which an estimate is trusted: `Tuned(alpha, beta)`, or
        `Theory`. With noise of standard deviation σ, α ≈ 15σ and β ≈ σ are places to start. A smaller α cuts
        sooner.
    ridge : float
        λ of all ridge regressions.
    seed : int
        Seed of the policy's own random numbers; CLUB draws none.

    Examples
    --------
    >>> from coterie.policies.confidence import Tuned
    >>> CLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.0, beta=0.5)).labels().tolist()
    [0, 0, 0]
    """
    return _plan(n_users, dim, confidence, ridge, never())


@register(
    summary="CLUB after uniform exploration",
    use_when="the gap between clusters is known",
    style=Style("UniCLUB", "#D55E00", "o", "-"),
    grid=UNIFORM_GRID,
)
def UniCLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """CLUB after T0 rounds of uniform exploration   (Alg. 1).

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    confidence : Confidence
        β, f(T) and T0: `Tuned(alpha, beta, explore)`, or `Theory(..., gamma=...)`. 2 to 20 uniform rounds a
        user are places to start; α and β as for `CLUB`.
    ridge : float
        λ of all ridge regressions.
    seed : int
        Seed of the uniform rounds.

    Examples
    --------
    >>> from coterie.policies.confidence import Tuned
    >>> UniCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.0, beta=0.5, explore=10)).exploring
    True
    """
    return _plan(n_users, dim, confidence, ridge, uniform_first(confidence.exploration(n_users, dim)))


@register(
    summary="CLUB for smoothed contexts",
    use_when="an adversary picks the arms, noise blurs them",
    style=Style("SACLUB", "#E69F00", "P", "-"),
    grid=GRID,
)
def SACLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """CLUB for smoothed adversarial contexts: its confidence is `SmoothedTheory`   (Sec. 4.2).

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    confidence : Confidence
        β and f(T): `SmoothedTheory(...)`, or `Tuned(alpha, beta)` as for `CLUB`.
    ridge : float
        λ of all ridge regressions.
    seed : int
        Seed of the policy's own random numbers; SACLUB draws none.

    Examples
    --------
    >>> from coterie.policies.confidence import SmoothedTheory
    >>> confidence = SmoothedTheory(horizon=1000, sigma=0.3, n_arms=10, truncation=1.0)
    >>> SACLUB(n_users=3, dim=2, confidence=confidence).exploring
    False
    """
    return _plan(n_users, dim, confidence, ridge, never())
