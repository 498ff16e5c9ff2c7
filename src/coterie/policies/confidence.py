"""The numbers that decide how sure a policy is: β, the radius f(T), and lengths of exploration.

`Theory` and `SmoothedTheory` are the constants of the paper's proofs; `Tuned` is for use. At the paper's own
size (d = u = 50, γ ≈ 0.5, λ_x ≈ 0.017) the theory asks for about 10¹⁰ rounds of exploration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from coterie import theory
from coterie.errors import ArgumentError
from coterie.theory import Radius
from coterie.validation import nonnegative, positive, probability, whole

FOREVER = 2**62
"""More rounds than anyone plays; keeps lengths inside 64 bits."""


class Schedule(NamedTuple):
    """When a policy plays uniformly: `first` rounds, then the start of each phase.

    Parameters
    ----------
    first : int, default 0
        Uniform rounds at the start.
    phase : float, default 0.0
        Uniform rounds T⁽⁰⁾ of phase 0; 0 for no phases.
    growth : float, default 2.0
        Growth α of the phases.

    Notes
    -----
    Phase s = 0, 1, … lasts ⌈2^(αs)·T⁽ˢ⁾⌉ rounds, of which the first T⁽ˢ⁾ = ⌈2ˢ·T⁽⁰⁾⌉ are uniform (Alg. 2,
    lines 7–10).

    Examples
    --------
    >>> Schedule(first=100).ever
    True
    """

    first: int = 0
    phase: float = 0.0
    growth: float = 2.0

    @property
    def ever(self) -> bool:
        """Whether there are uniform rounds at all."""
        return self.first > 0 or self.phase > 0


@runtime_checkable
class Confidence(Protocol):
    """Protocol of the `confidence` argument: any object with these four methods.

    A policy calls the methods that it needs when it is made, and again when users are added. `Tuned`,
    `Theory` and `SmoothedTheory` have them all.

    Examples
    --------
    >>> from coterie import Tuned
    >>> isinstance(Tuned(alpha=1.5, beta=0.1), Confidence)
    True
    """

    def bonus(self, dim: int, ridge: float) -> float:
        """Compute the factor β of the bonus.

        Parameters
        ----------
        dim : int
            Length d of an arm's vector.
        ridge : float
            λ of the ridge regressions.

        Returns
        -------
        float
            β, in the unit of rewards.
        """

    def shape(self, n_users: int, dim: int, ridge: float) -> Radius:
        """Compute the radius f of a user's estimate.

        Parameters
        ----------
        n_users : int
            Number of users u.
        dim : int
            Length d of an arm's vector.
        ridge : float
            λ of the ridge regressions.

        Returns
        -------
        Radius
            f(T) as seven numbers; `at(pulls)` evaluates it.
        """

    def exploration(self, n_users: int, dim: int) -> int:
        """Compute the number T0 of uniform rounds at the start.

        Parameters
        ----------
        n_users : int
            Number of users u.
        dim : int
            Length d of an arm's vector.

        Returns
        -------
        int
            T0, in whole rounds.
        """

    def phases(self, n_users: int, dim: int) -> Schedule:
        """Compute the uniform rounds of PhaseUniCLUB.

        Parameters
        ----------
        n_users : int
            Number of users u.
        dim : int
            Length d of an arm's vector.

        Returns
        -------
        Schedule
            T_init, T⁽⁰⁾ and the growth α of the phases.
        """


@dataclass(frozen=True, slots=True)
class Theory:
    """Constants as the paper proves with them: β, f, T0, T_init and T⁽ˢ⁾.

    For studying the theorems. At practical horizons these constants explore for the whole of a run and
    separate no users; use `Tuned` in practice.

    Parameters
    ----------
    horizon : int
        Number T of rounds to be played, at least 2.
    lambda_x : float
        Least eigenvalue λ_x of E[XXᵀ], positive, at most norm²/dim (Assumption 3). `environment.lambda_x`
        is that of an environment.
    gamma : float, optional
        Gap γ, the least distance between the preferences of two clusters (Assumption 2), positive. Only
        UniCLUB and UniSCLUB need it, for T0; `environment.gamma` is the true one.
    delta : float, optional
        Probability δ that a confidence set fails, strictly between 0 and 1; 1/horizon by default, as in the
        proofs.
    norm : float, default 1.0
        Bound L on the length of an arm's vector, positive.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    β is Lemma 4, f Eq. 4, T0 Eq. 3, T_init and T⁽ˢ⁾ Sec. 3.4 of Li, Liu, Dai and Lui (ICLR 2025). The
    formulas are those of `coterie.theory`.

    Examples
    --------
    >>> Theory(horizon=100_000, lambda_x=0.02, gamma=0.5).exploration(50, 50)
    15795159574
    """

    horizon: int
    lambda_x: float
    gamma: float | None = None
    delta: float | None = None
    norm: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        whole("horizon", self.horizon, 2, FOREVER)
        positive("lambda_x", self.lambda_x)
        positive("norm", self.norm)
        if self.gamma is not None:
            positive("gamma", self.gamma)
        if self.delta is not None:
            probability("delta", self.delta)

    @property
    def _delta(self) -> float:
        """δ as given, or 1/horizon."""
        return 1.0 / self.horizon if self.delta is None else self.delta

    def bonus(self, dim: int, ridge: float) -> float:
        """β = √(d ln(1 + TL²/(dλ)) + 2 ln(1/δ)) + √λ   (Lemma 4)."""
        return theory.beta(self.horizon, dim, ridge=ridge, delta=self._delta, norm=self.norm)

    def shape(self, n_users: int, dim: int, ridge: float) -> Radius:
        """f(T) = (√(2 ln(u/δ) + d ln(1 + TL²/(λd))) + √λ) / √(λ + Tλ_x/2)   (Alg. 1; Eq. 4)."""
        return theory.radius_shape(
            n_users, dim, ridge, lambda_x=self.lambda_x, delta=self._delta, norm=self.norm
        )

    def exploration(self, n_users: int, dim: int) -> int:
        """T0 = 16u ln(u/δ) + 4u max{8L²/λ_x ln(ud/δ), 512d/(γ²λ_x) ln(u/δ)}, rounded up   (Eq. 3)."""
        if self.gamma is None:
            raise ArgumentError(
                "T0 needs the gap between clusters: give Theory(..., gamma=...), e.g. gamma=0.5"
            )
        length = theory.t0(
            n_users, dim, gamma=self.gamma, lambda_x=self.lambda_x, delta=self._delta, norm=self.norm
        )
        return theory.whole(min(length, FOREVER))

    def phases(self, n_users: int, dim: int) -> Schedule:
        """T_init = 16u ln(u/δ) + 32uL²/λ_x ln(ud/δ), T⁽⁰⁾ = 2048ud/λ_x ln(u/δ), α = 2   (Sec. 3.4)."""
        first = theory.t_init(n_users, dim, lambda_x=self.lambda_x, delta=self._delta, norm=self.norm)
        phase = theory.t_phase(0, n_users=n_users, dim=dim, lambda_x=self.lambda_x, delta=self._delta)
        return Schedule(theory.whole(min(first, FOREVER)), phase, 2.0)


@dataclass(frozen=True, slots=True)
class SmoothedTheory:
    """Constants as the paper proves with them for smoothed adversarial contexts.

    For studying Theorem 4 with SACLUB and SASCLUB; use `Tuned` in practice.

    Parameters
    ----------
    horizon : int
        Number T of rounds to be played, at least 2.
    sigma : float
        Standard deviation σ of the perturbation of each coordinate of an arm, positive; the `sigma` of the
        environment `Smoothed`, not the noise of rewards.
    n_arms : int
        Number K of arms in a round, at least 1.
    truncation : float
        Bound R on the perturbation of each coordinate, positive; the `truncation` of `Smoothed`.
    c1 : float, default 1.0
        Constant c₁ of Lemma 10, positive. The paper leaves it open; 1 is ours.
    delta : float, optional
        Probability δ that a confidence set fails, strictly between 0 and 1; 1/horizon by default.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    The formulas of `Theory` with λ̃_x = c₁σ²/ln K in place of λ_x and 1 + √d R in place of L (Assumption 4,
    Theorem 4, Sec. 4.2).

    Examples
    --------
    >>> round(SmoothedTheory(horizon=100_000, sigma=0.3, n_arms=100, truncation=1.0).bonus(50, 1.0), 2)
    25.74
    """

    horizon: int
    sigma: float
    n_arms: int
    truncation: float
    c1: float = 1.0
    delta: float | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        whole("horizon", self.horizon, 2, FOREVER)
        whole("n_arms", self.n_arms, 1, FOREVER)
        positive("sigma", self.sigma)
        positive("truncation", self.truncation)
        positive("c1", self.c1)
        if self.delta is not None:
            probability("delta", self.delta)

    @property
    def _delta(self) -> float:
        """δ as given, or 1/horizon."""
        return 1.0 / self.horizon if self.delta is None else self.delta

    def bonus(self, dim: int, ridge: float) -> float:
        """β of `Theory` with L = 1 + √d R, the bound that smoothed arms obey   (Sec. 4.2)."""
        norm = theory.norm_tilde(dim, self.truncation)
        return theory.beta(self.horizon, dim, ridge=ridge, delta=self._delta, norm=norm)

    def shape(self, n_users: int, dim: int, ridge: float) -> Radius:
        """f of `Theory` with λ̃_x in place of λ_x and L = 1 + √d R   (Sec. 4.2)."""
        eigenvalue = theory.lambda_tilde(self.sigma, self.n_arms, c1=self.c1)
        norm = theory.norm_tilde(dim, self.truncation)
        return theory.radius_shape(n_users, dim, ridge, lambda_x=eigenvalue, delta=self._delta, norm=norm)

    def exploration(self, n_users: int, dim: int) -> int:
        """Raise ArgumentError: smoothed contexts need no exploration   (Sec. 4.2)."""
        raise ArgumentError(
            "SmoothedTheory has no exploration length; use Theory or Tuned for policies that explore"
        )

    def phases(self, n_users: int, dim: int) -> Schedule:
        """Raise ArgumentError: smoothed contexts need no exploration   (Sec. 4.2)."""
        raise ArgumentError("SmoothedTheory has no exploration phases; use Theory or Tuned for PhaseUniCLUB")


@dataclass(frozen=True, slots=True)
class Tuned:
    """Constants that you choose, and the ones to play with.

    Parameters
    ----------
    alpha : float
        Factor α of the radius f, at least 0, in the unit of rewards: two users are separated when their
        estimates differ by more than f(T₁) + f(T₂). Set it to 15 times the standard deviation σ of the noise
        (1.5 for σ = 0.1, 7.5 for clicks) and try half and twice as much: too small and every user ends up
        alone, too large and users are never separated. Longer runs need larger values.
    beta : float
        Factor β of the bonus, at least 0, in the unit of rewards. Set it to σ: 0.1 for σ = 0.1, 0.5 for
        clicks. Smaller exploits more, larger explores more.
    explore : int, optional
        Uniform rounds at the start, summed over all users: T0 for UniCLUB and UniSCLUB (which explores for
        2·T0), T_init for PhaseUniCLUB. Start with 10 times the number of users. These policies need it, 0 for
        none; others ignore it.
    phase : int, optional
        Uniform rounds T⁽⁰⁾ of the first phase, for PhaseUniCLUB; phase s has 2ˢ times as many. Start with 4
        times the number of users; with 0 there are no phases. Other policies ignore it.
    growth : float, default 2.0
        Growth of the phases, positive; the paper's α in "phase s lasts 2^(αs)·T⁽ˢ⁾ rounds". Keep 2, the case
        of Theorem 3.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    The radius is that of Gentile et al. (2014, Fig. 1), with T the number of rewards of a user:

        f(T) = α √((1 + ln(1 + T))/(1 + T))

    α ≈ 15σ finds the clusters in the paper's synthetic setup (50 users in 10 clusters, d = 50, unit vectors,
    20,000 rounds); it is a place to start, not a law.

    Examples
    --------
    >>> confidence = Tuned(alpha=1.5, beta=0.1, explore=500)
    >>> confidence.exploration(50, 50)
    500
    >>> round(confidence.shape(50, 50, 1.0).at(400), 3)
    0.198
    """

    alpha: float
    beta: float
    explore: int | None = None
    phase: int | None = None
    growth: float = 2.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        nonnegative("alpha", self.alpha)
        nonnegative("beta", self.beta)
        for name, length in (("explore", self.explore), ("phase", self.phase)):
            if length is not None:
                whole(name, length, 0, FOREVER)
        positive("growth", self.growth)

    def bonus(self, dim: int, ridge: float) -> float:
        """β is `beta`."""
        return float(self.beta)

    def shape(self, n_users: int, dim: int, ridge: float) -> Radius:
        """f(T) = α √((1 + ln(1 + T))/(1 + T))   (Gentile et al. 2014, Fig. 1)."""
        square = float(self.alpha) ** 2
        return Radius(base=square, slope=square, scale=1.0, shift=0.0, floor=1.0, growth=1.0)

    def exploration(self, n_users: int, dim: int) -> int:
        """T0 is `explore`, which must be given; 0 turns exploration off."""
        if self.explore is None:
            raise ArgumentError(
                f"Tuned needs explore for a policy that explores first, such as explore={10 * n_users} "
                "(10 rounds a user); explore=0 turns exploration off"
            )
        return int(self.explore)

    def phases(self, n_users: int, dim: int) -> Schedule:
        """T_init is `explore`, T⁽⁰⁾ is `phase`, α is `growth`."""
        if self.explore is None and self.phase is None:
            raise ArgumentError(
                "Tuned needs explore or phase for a policy that explores in phases, such as "
                f"explore={10 * n_users}, phase={4 * n_users}; explore=0 turns exploration off"
            )
        return Schedule(int(self.explore or 0), float(self.phase or 0), float(self.growth))


KINDS: dict[str, type[Theory] | type[SmoothedTheory] | type[Tuned]] = {
    "Theory": Theory,
    "SmoothedTheory": SmoothedTheory,
    "Tuned": Tuned,
}
"""The kinds of confidence by name, for snapshots and the command line."""


EXAMPLES = {"alpha": 1.5, "beta": 0.1, "explore": 500, "phase": 200}
"""Constants that an error message shows."""


def choose_confidence(policy: str, confidence: Confidence | None, **constants: float | None) -> Confidence:
    """The confidence that a policy was given, or `Tuned` with the constants that it was given instead.

    >>> choose_confidence("CLUB", None, alpha=1.5, beta=0.1)
    Tuned(alpha=1.5, beta=0.1, explore=None, phase=None, growth=2.0)
    """
    given: dict[str, Any] = {name: value for name, value in constants.items() if value is not None}
    shown = ", ".join(f"{name}={EXAMPLES[name]}" for name in constants if name in EXAMPLES)
    example = f"{policy}(n_users, dim, {shown})"
    if confidence is not None and given:
        raise ArgumentError(f"{policy} takes {next(iter(given))} or confidence, not both: give {example}")
    if confidence is not None:
        return confidence
    if missing := [name for name in ("alpha", "beta") if name not in given]:
        raise ArgumentError(f"{policy} needs {' and '.join(missing)}, such as {example}, or a confidence")
    return Tuned(**given)


def constants_of(confidence: Confidence, n_users: int, dim: int, ridge: float) -> dict[str, Any]:
    """β and f, as learners that compare users take them."""
    return {"beta": confidence.bonus(dim, ridge), "shape": confidence.shape(n_users, dim, ridge)}
