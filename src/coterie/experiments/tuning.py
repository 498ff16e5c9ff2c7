"""The tuning protocol of every policy: the parameters that are tried, and the choice among them.

Grids are in units that fit every environment: α, β and σ in units of the noise, lengths of exploration in
rounds a user. The protocol knows σ and the number of users, and nothing else about the environment. The
factor β of the confidence widths is tuned too, or set to the value of the theory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from coterie.errors import ArgumentError
from coterie.experiments.run_store import Run, Store
from coterie.experiments.specs import EnvironmentSpec, Params, PolicySpec, Value
from coterie.policies.factories import TUNED, find_factory, is_own
from coterie.policies.registry import find
from coterie.theory import beta
from coterie.validation import shown

FIRST_SEED = 1000
"""Seeds from here on are for tuning; those below may be reported."""

BUDGET = 24
"""Points tried for every policy that has a grid."""

NOTHING_FIXED = Params({})

Widths: TypeAlias = Literal["tuned", "theory"]
"""Source of β: a grid, as for other parameters, or the theory."""

USUAL: Mapping[str, float] = MappingProxyType(
    {"alpha": 15.0, "beta": 1.0, "explore": 10.0, "phase": 4.0, "noise": 1.0}
)
"""Parameters to start from, in the units of grids."""


def in_units(name: str, value: float, environment: EnvironmentSpec) -> float:
    """A value of a grid in the units of an environment.

    >>> in_units("beta", 2.0, EnvironmentSpec(noise=0.1))
    0.2
    >>> in_units("explore", 2.0, EnvironmentSpec(n_users=50))
    100
    """
    if name in ("alpha", "beta", "noise"):
        # Rounded, so that ids of runs do not depend on the last bits of a product.
        return float(f"{value * environment.reward_deviation:.6g}")
    if name in ("explore", "phase"):
        return round(value * environment.n_users)
    return value


def theory_beta(environment: EnvironmentSpec, horizon: int, *, ridge: float = 1.0) -> float:
    """β = σ√(2 ln(1/δ) + d ln(1 + T/(λd))) + √λ with δ = 1/T   (Lemma 4, for noise of size σ).

    >>> theory_beta(EnvironmentSpec(noise=0.1), 60_000)
    2.94049
    """
    one = beta(horizon, environment.dim, ridge=ridge, delta=1 / horizon, norm=1.0) - sqrt(ridge)
    return float(f"{environment.reward_deviation * one + sqrt(ridge):.6g}")


def candidates(
    policy: str,
    environment: EnvironmentSpec,
    *,
    widths: Widths = "tuned",
    horizon: int = 1,
    fixed: Mapping[str, Value] = NOTHING_FIXED,
) -> list[PolicySpec]:
    """The points of a policy's grid in an environment; one point if it has no grid.

    With `widths="theory"` the factor of the width is that of the theory for this horizon, and the rest of
    the grid is tried. Parameters that are `fixed` have one value. A policy of your own may have a grid as an
    attribute of its class: `grid = {"epsilon": [0.05, 0.1, 0.2]}`.

    >>> [str(spec) for spec in candidates("AutoCLUB", EnvironmentSpec())]
    ['AutoCLUB']
    """
    points = {**_grid(policy, environment), **{name: [value] for name, value in fixed.items()}}
    width = width_parameter(policy)
    if widths == "tuned" or width not in points:
        return _crossed(policy, points)
    others = _crossed(policy, {name: values for name, values in points.items() if name != width})
    return [_with_theory_width(spec, width, environment, horizon) for spec in others]


def _grid(policy: str, environment: EnvironmentSpec) -> dict[str, Sequence[Value]]:
    """The values of each parameter that are tried, in the units of the environment."""
    if is_own(policy):
        return own_grid(policy)
    axes = find(policy).grid.axes()
    return {name: [in_units(name, value, environment) for value in values] for name, values in axes}


def own_grid(policy: str) -> dict[str, Sequence[Value]]:
    """The grid that the class of your own policy has, checked; empty if it has none."""
    maker = find_factory(policy)
    given = getattr(maker.make, "grid", {})
    lists = given.values() if isinstance(given, Mapping) else [None]
    if not all(isinstance(values, list | tuple) and values for values in lists):
        raise ArgumentError(f"{policy}.grid must map parameters to lists of values, got {shown(given)}")
    maker.check(given)
    return dict(given)


def _crossed(policy: str, points: Mapping[str, Sequence[Value]]) -> list[PolicySpec]:
    """A policy with every combination of these values."""
    return [PolicySpec(policy, dict(zip(points, point, strict=True))) for point in product(*points.values())]


def _with_theory_width(
    spec: PolicySpec, width: str, environment: EnvironmentSpec, horizon: int
) -> PolicySpec:
    beta = theory_beta(environment, horizon, ridge=float(spec.params.get("ridge", 1.0)))
    return PolicySpec(spec.name, {**spec.params, width: beta})


def width_parameter(policy: str) -> str:
    """The parameter that multiplies a policy's confidence width: alpha for those that take a graph."""
    return "alpha" if "graph" in find_factory(policy).arguments else "beta"


def usual_spec(policy: str, environment: EnvironmentSpec) -> PolicySpec:
    """A policy with parameters to start from; a policy of your own keeps its defaults.

    >>> print(usual_spec("UniCLUB", EnvironmentSpec()))
    UniCLUB (alpha 1.5, beta 0.1, explore 500)
    """
    maker = find_factory(policy)
    usual = {name: in_units(name, value, environment) for name, value in USUAL.items()}
    usual[width_parameter(policy)] = usual["beta"]
    if is_own(policy):
        taken = TUNED if "confidence" in maker.arguments else ()
    else:
        taken = tuple(name for name, _ in find(policy).grid.axes())
    return PolicySpec(policy, {name: usual[name] for name in usual if name in taken})


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningProtocol:
    """How parameters are tuned: every point of a policy's grid is played on seeds that are never reported.

    The point of least mean regret is chosen, of equals the first.

    Parameters
    ----------
    horizon : int, default 100_000
        Most rounds of a trial. Trials last as long as the reported runs up to this, because the best α
        depends on the horizon.
    n_seeds : int, default 2
        Number of seeds of each trial.

    Examples
    --------
    >>> TuningProtocol(horizon=10_000).rounds(100_000)
    10000
    """

    horizon: int = 100_000
    n_seeds: int = 2

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the trials."""
        return tuple(range(FIRST_SEED, FIRST_SEED + self.n_seeds))

    def rounds(self, horizon: int) -> int:
        """Compute the length of a trial.

        Parameters
        ----------
        horizon : int
            Rounds of the reported runs.

        Returns
        -------
        int
            Rounds of a trial.
        """
        return min(self.horizon, horizon)


class Study(NamedTuple):
    """A policy to be tuned in an environment, for results of some horizon."""

    environment: EnvironmentSpec
    policy: str
    rounds: int
    data: str | None
    widths: Widths = "tuned"
    trial_seeds: int | None = None
    """Seeds of a trial, at most; None for those of the protocol."""
    fixed: Params = NOTHING_FIXED
    """Parameters that are not tuned."""


class Choice(NamedTuple):
    """The parameters chosen in a study, their mean regret there, and how many points were tried."""

    study: Study
    spec: PolicySpec
    regret: float
    tried: int


def trials(study: Study, protocol: TuningProtocol) -> list[list[Run]]:
    """The runs of a study: for each point of the grid one a seed."""
    return [
        [
            Run(
                environment=study.environment,
                policy=spec,
                horizon=study.rounds,
                seed=seed,
                record=20,
                data=study.data,
            )
            for seed in protocol.seeds[: study.trial_seeds]
        ]
        for spec in candidates(
            study.policy,
            study.environment,
            widths=study.widths,
            horizon=study.rounds,
            fixed=study.fixed,
        )
    ]


def tuning_runs(studies: Iterable[Study], protocol: TuningProtocol) -> list[Run]:
    """All runs that the choice of constants needs; none for a study of a single point."""
    points = [trials(study, protocol) for study in studies]
    return [run for study in points if len(study) > 1 for point in study for run in point]


def choose(study: Study, protocol: TuningProtocol, store: Store) -> Choice:
    """The best point of a study whose runs are finished."""
    points = trials(study, protocol)
    # Nothing to choose: such a policy is not played on tuning seeds at all.
    if len(points) == 1:
        return Choice(study, points[0][0].policy, float("nan"), 1)
    regrets = [float(np.mean([store.read(run).regret[-1] for run in point])) for point in points]
    # The first of equals, so that the choice does not depend on the order of a sort.
    best = int(np.argmin(regrets))
    return Choice(study, points[best][0].policy, regrets[best], len(points))


def chosen_before(study: Study, constants: Mapping[str, float]) -> Choice | None:
    """The point of a study with these constants, given to six digits; None if it has no such point."""
    for spec in candidates(study.policy, study.environment, widths=study.widths, horizon=study.rounds):
        if {name: float(f"{value:.6g}") for name, value in spec.params.items()} == constants:
            return Choice(study, spec, float("nan"), 0)
    return None


def check_reported(seeds: Sequence[int]) -> None:
    """Refuse to report a seed that constants were tuned on."""
    if wrong := [seed for seed in seeds if seed >= FIRST_SEED]:
        raise ArgumentError(
            f"seeds from {FIRST_SEED} on are for tuning and cannot be reported, got {wrong[0]}"
        )
