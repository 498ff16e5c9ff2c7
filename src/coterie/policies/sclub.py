"""SCLUB, UniSCLUB and SASCLUB: clusters are sets of users that split and merge."""

from __future__ import annotations

from coterie.policies._sclub import SplitMerge
from coterie.policies.base import Plan
from coterie.policies.confidence import FOREVER, Confidence
from coterie.policies.entries import ALPHAS, Grid, Style, register
from coterie.policies.schedule import Schedule, never, uniform_first
from coterie.validation import positive

GRID = Grid(alpha=ALPHAS, beta=(0.25, 0.5, 1.0, 2.0))
UNIFORM_GRID = Grid(alpha=ALPHAS, beta=(0.5, 1.0), explore=(2.0, 20.0))
COST = 25.0


def _plan(
    n_users: int, dim: int, confidence: Confidence, ridge: float, schedule: Schedule, arrivals: float = 0.0
) -> Plan:
    beta, shape = confidence.bonus(dim, ridge), confidence.shape(n_users, dim, ridge)
    return Plan(SplitMerge, {"beta": beta, "shape": shape, "arrivals": arrivals}, schedule)


@register(
    summary="sets that split and merge",
    use_when="users arrive unevenly",
    style=Style("SCLUB", "#56B4E9", "^", "--"),
    grid=GRID,
    cost=COST,
)
def SCLUB(
    n_users: int,
    dim: int,
    *,
    confidence: Confidence,
    ridge: float = 1.0,
    seed: int = 0,
    arrivals: float | None = None,
) -> Plan:
    """Clustering of bandits by sets, always UCB   (Li et al. 2019).

    A user who no longer fits is split off its cluster; clusters that turn out to be alike are merged again.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    confidence : Confidence
        β of the bonus and the radius f(T) inside which an estimate is trusted: `Tuned(alpha, beta)`, or
        `Theory`. With noise of standard deviation σ, α ≈ 15σ and β ≈ σ are places to start.
    ridge : float
        λ of all ridge regressions.
    seed : int
        Seed of the policy's own random numbers; SCLUB draws none.
    arrivals : float, optional
        α_p of the arrival-frequency test, for users who do not arrive uniformly; None leaves the test out.

    Examples
    --------
    >>> from coterie.policies.confidence import Tuned
    >>> SCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.0, beta=0.5)).cluster_of(1).tolist()
    [0, 1, 2]
    """
    alpha_p = 0.0 if arrivals is None else positive("arrivals", arrivals)
    return _plan(n_users, dim, confidence, ridge, never(), alpha_p)


@register(
    summary="SCLUB after uniform exploration",
    use_when="the gap is known, and users come and go",
    style=Style("UniSCLUB", "#0072B2", "^", "-"),
    grid=UNIFORM_GRID,
    cost=COST,
)
def UniSCLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """SCLUB after 2·T0 rounds of uniform exploration   (Alg. 3).

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    confidence : Confidence
        β, f(T) and T0: `Tuned(alpha, beta, explore)`, or `Theory(..., gamma=...)`.
    ridge : float
        λ of all ridge regressions.
    seed : int
        Seed of the uniform rounds.

    Examples
    --------
    >>> from coterie.policies.confidence import Tuned
    >>> UniSCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.0, beta=0.5, explore=10)).exploring
    True
    """
    length = min(2 * confidence.exploration(n_users, dim), FOREVER)
    return _plan(n_users, dim, confidence, ridge, uniform_first(length))


@register(
    summary="SCLUB for smoothed contexts",
    use_when="arms as for SACLUB, and users come and go",
    style=Style("SASCLUB", "#0072B2", "X", "-"),
    grid=GRID,
    cost=COST,
)
def SASCLUB(n_users: int, dim: int, *, confidence: Confidence, ridge: float = 1.0, seed: int = 0) -> Plan:
    """SCLUB for smoothed adversarial contexts: its confidence is `SmoothedTheory`   (Sec. 4.2).

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    confidence : Confidence
        β and f(T): `SmoothedTheory(...)`, or `Tuned(alpha, beta)` as for `SCLUB`.
    ridge : float
        λ of all ridge regressions.
    seed : int
        Seed of the policy's own random numbers; SASCLUB draws none.

    Examples
    --------
    >>> from coterie.policies.confidence import SmoothedTheory
    >>> confidence = SmoothedTheory(horizon=1000, sigma=0.3, n_arms=10, truncation=1.0)
    >>> SASCLUB(n_users=3, dim=2, confidence=confidence).exploring
    False
    """
    return _plan(n_users, dim, confidence, ridge, never())
