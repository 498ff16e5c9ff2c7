"""SCLUB, UniSCLUB and SASCLUB: clusters are sets of users that split and merge."""

from __future__ import annotations

from coterie.policies.confidence import FOREVER, Confidence
from coterie.policies.entries import ALPHAS, Grid, Style, register
from coterie.policies.plans import Plan
from coterie.policies.schedule import Schedule, never, uniform_first
from coterie.policies.sclub.split_merge import SplitMerge
from coterie.validation import positive

GRID = Grid(alpha=ALPHAS, beta=(0.25, 0.5, 1.0, 2.0))
UNIFORM_GRID = Grid(alpha=ALPHAS, beta=(0.5, 1.0), explore=(2.0, 20.0))
COST = 25.0


def _plan(
    n_users: int, dim: int, confidence: Confidence, ridge: float, schedule: Schedule, arrivals: float = 0.0
) -> Plan:
    """Plan a policy that clusters by sets."""
    beta, shape = confidence.bonus(dim, ridge), confidence.shape(n_users, dim, ridge)
    return Plan(SplitMerge, {"beta": beta, "shape": shape, "arrivals": arrivals}, schedule)


@register(
    summary="sets of users that split and merge",
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
    growing: bool = False,
    ridge: float = 1.0,
    seed: int = 0,
    arrivals: float | None = None,
) -> Plan:
    """Make an SCLUB policy: clusters are sets that split and merge   (Li et al. 2019).

    All users start in one set. A user whose estimate differs too much from a member's is split off; two sets
    whose estimates are close are merged again.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence
        β of the bonus and the radius f(T) within which estimates count as equal. Use
        `Tuned(alpha=15σ, beta=σ)` with σ the standard deviation of the noise: `Tuned(alpha=1.5, beta=0.1)`
        for σ = 0.1, `Tuned(alpha=7.5, beta=0.5)` for clicks. A smaller alpha separates users
        sooner: too small and every user ends up alone, too large and all stay together. Try several on a
        simulation of your size. `Theory` has the paper's constants; at the paper's size they separate
        two users only after about 10⁶ pulls each.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; SCLUB draws none.
    arrivals : float, optional
        Factor α_p of the test on arrival frequencies, positive: users who come at different rates are
        separated too. Leave it None (no test) if all users come about equally often; 2 is a place to start
        otherwise, and smaller separates sooner.

    Returns
    -------
    LinearBandit
        The policy, before its first round.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or `confidence` is no `Confidence`.

    Notes
    -----
    Alg. 3 of the paper (Li, Liu, Dai and Lui, ICLR 2025) without its uniform rounds. Each round plays the arm
    of largest xᵀθ̂_V + β √(xᵀM_V⁻¹x), with V the user's cluster (lines 6–7). The user i is split off V if
    (line 13)

        ‖θ̂ᵢ − θ̂_ℓ‖ > f(Tᵢ) + f(T_ℓ)   for some ℓ in V

    and two clusters whose members were all checked in this phase are merged if ‖θ̂¹ − θ̂²‖ < f(T¹) + f(T²)
    (line 15). With `Tuned`, f(T) = α √((1 + ln(1 + T))/(1 + T)); α is the `alpha` of `Tuned`.

    Examples
    --------
    >>> from coterie import Tuned
    >>> policy = SCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.5, beta=0.1))
    >>> policy.cluster_of(1).tolist()
    [0, 1, 2]
    """
    alpha_p = 0.0 if arrivals is None else positive("arrivals", arrivals)
    return _plan(n_users, dim, confidence, ridge, never(), alpha_p)._replace(growing=growing)


@register(
    summary="SCLUB after uniform exploration",
    use_when="the gap is known, and users arrive unevenly",
    style=Style("UniSCLUB", "#0072B2", "^", "-"),
    grid=UNIFORM_GRID,
    cost=COST,
)
def UniSCLUB(
    n_users: int,
    dim: int,
    *,
    confidence: Confidence,
    growing: bool = False,
    ridge: float = 1.0,
    seed: int = 0,
) -> Plan:
    """Make a UniSCLUB policy: SCLUB after 2·T0 rounds of uniform exploration   (Li et al. 2025, Alg. 3).

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence
        β, f(T) and the length T0 of exploration. Use `Tuned(alpha=15σ, beta=σ, explore=10 * n_users)` with σ
        the standard deviation of the noise: 2 to 20 uniform rounds a user are usual; alpha and beta are as
        for `SCLUB`. `Theory(..., gamma=...)` has the paper's T0, about 10¹⁰ rounds at the paper's size.
        The policy explores twice as long as `explore` says.
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
        If a value is outside its range, or `confidence` has no exploration length.

    Notes
    -----
    The first 2·T0 rounds play a uniformly random arm (Alg. 3, line 9; Lemma 6), with T0 as for `UniCLUB`.
    Sets split and merge from the first round on. Afterwards it plays as `SCLUB` does.

    Examples
    --------
    >>> from coterie import Tuned
    >>> policy = UniSCLUB(n_users=3, dim=2, confidence=Tuned(alpha=1.5, beta=0.1, explore=15))
    >>> policy.exploring, policy.exploration.first
    (True, 30)
    """
    length = min(2 * confidence.exploration(n_users, dim), FOREVER)
    return _plan(n_users, dim, confidence, ridge, uniform_first(length))._replace(growing=growing)


@register(
    summary="SCLUB for smoothed contexts",
    use_when="arms are as for SACLUB, and users arrive unevenly",
    style=Style("SASCLUB", "#0072B2", "X", "-"),
    grid=GRID,
    cost=COST,
)
def SASCLUB(
    n_users: int,
    dim: int,
    *,
    confidence: Confidence,
    growing: bool = False,
    ridge: float = 1.0,
    seed: int = 0,
) -> Plan:
    """Make a SASCLUB policy: SCLUB for smoothed adversarial contexts   (Li et al. 2025, Sec. 4.2).

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence
        β and f(T). `SmoothedTheory(...)` has the paper's constants, which at the paper's size separate two
        users only after about 10⁶ pulls each. In practice use `Tuned(alpha=15σ, beta=σ)`, with σ the standard
        deviation of the noise of rewards, as for `SCLUB`.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; SASCLUB draws none.

    Returns
    -------
    LinearBandit
        The policy, before its first round.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or `confidence` is no `Confidence`.

    Notes
    -----
    SCLUB with λ̃_x = c₁σ²/ln K in place of λ_x and 1 + √d R in place of L in f (Sec. 4.2, Theorem 4); that is
    what `SmoothedTheory` computes. With any other `confidence` it is `SCLUB` without the test on arrivals.

    Examples
    --------
    >>> from coterie import SmoothedTheory
    >>> confidence = SmoothedTheory(horizon=1000, sigma=0.3, n_arms=10, truncation=1.0)
    >>> SASCLUB(n_users=3, dim=2, confidence=confidence).exploring
    False
    """
    return _plan(n_users, dim, confidence, ridge, never())._replace(growing=growing)
