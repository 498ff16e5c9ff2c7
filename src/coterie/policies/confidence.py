"""The numbers that decide how sure a policy is: β, the radius f(T), and lengths of exploration.

`Theory` and `SmoothedTheory` are what the paper proves with; `Tuned` is what people can use. At the paper's
own setup (d = u = 50, γ ≈ 0.5, λ_x ≈ 0.017) the theory asks for about 10¹⁰ rounds of exploration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from coterie import theory
from coterie.errors import ArgumentError
from coterie.policies.schedule import Schedule
from coterie.theory import Radius
from coterie.validation import nonnegative, positive, probability, whole

FOREVER = 2**62
"""More rounds than anyone plays; keeps lengths inside 64 bits."""


@runtime_checkable
class Confidence(Protocol):
    """What a policy asks of its constants."""

    def bonus(self, dim: int, ridge: float) -> float:
        """β, the factor of the width."""

    def shape(self, n_users: int, dim: int, ridge: float) -> Radius:
        """The radius f(T) as six numbers."""

    def exploration(self, n_users: int, dim: int) -> int:
        """T0, in whole rounds."""

    def phases(self, n_users: int, dim: int) -> Schedule:
        """T_init, T⁽⁰⁾ and the paper's α, for PhaseUniCLUB."""


@dataclass(frozen=True, slots=True)
class Theory:
    """β, f, T0, T_init and T⁽ˢ⁾ exactly as the paper states them; δ = 1/horizon unless given.

    `gamma` is the gap between clusters (Assumption 2), needed for T0 only; `lambda_x` the least eigenvalue
    of E[XXᵀ] and `norm` the bound L on ‖X‖ (Assumption 3).

    >>> Theory(horizon=100_000, lambda_x=0.02, gamma=0.5).exploration(50, 50)
    15795159574
    """

    horizon: int
    lambda_x: float
    gamma: float | None = None
    delta: float | None = None
    norm: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what the formulas have no meaning for."""
        whole("horizon", self.horizon, 2, FOREVER)
        positive("lambda_x", self.lambda_x)
        positive("norm", self.norm)
        if self.gamma is not None:
            positive("gamma", self.gamma)
        if self.delta is not None:
            probability("delta", self.delta)

    @property
    def _delta(self) -> float:
        return 1.0 / self.horizon if self.delta is None else self.delta

    def bonus(self, dim: int, ridge: float) -> float:
        """β = √(d ln(1 + TL²/(dλ)) + 2 ln(1/δ)) + √λ   (Lemma 4)."""
        return theory.beta(self.horizon, dim, ridge=ridge, delta=self._delta, norm=self.norm)

    def shape(self, n_users: int, dim: int, ridge: float) -> Radius:
        """f(T) of Alg. 1."""
        return theory.radius_shape(
            n_users, dim, ridge, lambda_x=self.lambda_x, delta=self._delta, norm=self.norm
        )

    def exploration(self, n_users: int, dim: int) -> int:
        """T0 of Alg. 1, rounded up."""
        if self.gamma is None:
            raise ArgumentError(
                "T0 needs the gap between clusters: give Theory(..., gamma=...), e.g. gamma=0.5"
            )
        length = theory.t0(
            n_users, dim, gamma=self.gamma, lambda_x=self.lambda_x, delta=self._delta, norm=self.norm
        )
        return theory.whole(min(length, FOREVER))

    def phases(self, n_users: int, dim: int) -> Schedule:
        """T_init and T⁽⁰⁾ of Alg. 2 with α = 2 (Theorem 3)."""
        first = theory.t_init(n_users, dim, lambda_x=self.lambda_x, delta=self._delta, norm=self.norm)
        phase = theory.t_phase(0, n_users=n_users, dim=dim, lambda_x=self.lambda_x, delta=self._delta)
        return Schedule(theory.whole(min(first, FOREVER)), phase, 2.0)


@dataclass(frozen=True, slots=True)
class SmoothedTheory:
    """Theory for smoothed adversarial contexts: λ̃_x = c₁σ²/ln K, L = 1 + √d·R (Assumption 4, Theorem 4).

    `sigma` is the standard deviation of the perturbation, `truncation` its bound R in each coordinate.

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
        """Refuse what the formulas have no meaning for."""
        whole("horizon", self.horizon, 2, FOREVER)
        whole("n_arms", self.n_arms, 1, FOREVER)
        positive("sigma", self.sigma)
        positive("truncation", self.truncation)
        positive("c1", self.c1)
        if self.delta is not None:
            probability("delta", self.delta)

    @property
    def _delta(self) -> float:
        return 1.0 / self.horizon if self.delta is None else self.delta

    def bonus(self, dim: int, ridge: float) -> float:
        """β with L = 1 + √d·R, the bound that smoothed arms obey."""
        norm = theory.norm_tilde(dim, self.truncation)
        return theory.beta(self.horizon, dim, ridge=ridge, delta=self._delta, norm=norm)

    def shape(self, n_users: int, dim: int, ridge: float) -> Radius:
        """f(T) of Alg. 1 with λ̃_x and L = 1 + √d·R (Sec. 4.2)."""
        eigenvalue = theory.lambda_tilde(self.sigma, self.n_arms, c1=self.c1)
        norm = theory.norm_tilde(dim, self.truncation)
        return theory.radius_shape(n_users, dim, ridge, lambda_x=eigenvalue, delta=self._delta, norm=norm)

    def exploration(self, n_users: int, dim: int) -> int:
        """No length: smoothed contexts need no exploration (Sec. 4.2)."""
        raise ArgumentError(
            "SmoothedTheory has no exploration length; use Theory or Tuned for policies that explore"
        )

    def phases(self, n_users: int, dim: int) -> Schedule:
        """No phases either."""
        raise ArgumentError("SmoothedTheory has no exploration phases; use Theory or Tuned for PhaseUniCLUB")


@dataclass(frozen=True, slots=True)
class Tuned:
    """Constants set by hand: radius α√((1 + ln(1 + T))/(1 + T)), constant β, lengths in rounds.

    `explore` is T0 for UniCLUB and UniSCLUB (which explores 2·T0) and T_init for PhaseUniCLUB; `phase` is
    T⁽⁰⁾ with T⁽ˢ⁾ = 2ˢ·T⁽⁰⁾, and `growth` the paper's α. Policies that explore must be given a length, 0 for
    none; others ignore it. With noise σ, α ≈ 15σ and β ≈ σ are places to start.

    >>> Tuned(alpha=1.5, beta=0.1, explore=500).exploration(50, 50)
    500
    """

    alpha: float
    beta: float
    explore: int | None = None
    phase: int | None = None
    growth: float = 2.0

    def __post_init__(self) -> None:
        """Refuse what the formulas have no meaning for."""
        nonnegative("alpha", self.alpha)
        nonnegative("beta", self.beta)
        for name, length in (("explore", self.explore), ("phase", self.phase)):
            if length is not None:
                whole(name, length, 0, FOREVER)
        positive("growth", self.growth)

    def bonus(self, dim: int, ridge: float) -> float:
        """The constant β."""
        return float(self.beta)

    def shape(self, n_users: int, dim: int, ridge: float) -> Radius:
        """α√((1 + ln(1 + T))/(1 + T))   (Gentile et al. 2014, Fig. 1)."""
        square = float(self.alpha) ** 2
        return Radius(base=square, slope=square, scale=1.0, shift=0.0, floor=1.0, growth=1.0)

    def exploration(self, n_users: int, dim: int) -> int:
        """`explore` rounds, which must be given: a policy that never explores says so by explore=0."""
        if self.explore is None:
            raise ArgumentError(
                f"Tuned needs explore for a policy that explores first, such as explore={10 * n_users} "
                "(10 rounds a user); explore=0 turns exploration off"
            )
        return int(self.explore)

    def phases(self, n_users: int, dim: int) -> Schedule:
        """`explore` rounds first, then phases of `phase`·2ˢ."""
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
