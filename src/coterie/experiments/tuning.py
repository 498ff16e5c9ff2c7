"""One protocol for the parameters of every policy: which are tried, and which is chosen.

Grids are in units that fit every environment: α and β in units of the noise σ, lengths of exploration in
rounds a user. The protocol knows σ and the number of users, and nothing else about the environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from coterie.errors import ArgumentError
from coterie.experiments.makers import find_maker, is_own
from coterie.experiments.runs import Run
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.experiments.store import Store
from coterie.policies.registry import find

FIRST_SEED = 1000
"""Seeds from here on are for tuning; those below may be reported."""

BUDGET = 24
"""Points tried for every policy that has a grid."""

USUAL: Mapping[str, float] = MappingProxyType({"alpha": 15.0, "beta": 1.0, "explore": 10.0, "phase": 4.0})
"""Places to start from, in the units of grids."""


def in_units(name: str, value: float, environment: EnvironmentSpec) -> float:
    """A value of a grid in the units of an environment.

    >>> in_units("beta", 2.0, EnvironmentSpec(noise=0.1))
    0.2
    >>> in_units("explore", 2.0, EnvironmentSpec(n_users=50))
    100
    """
    if name in ("alpha", "beta"):
        return float(f"{value * environment.reward_deviation:.6g}")
    if name in ("explore", "phase"):
        return round(value * environment.n_users)
    return value


def candidates(policy: str, environment: EnvironmentSpec) -> list[PolicySpec]:
    """What is tried for a policy in an environment: every point of its grid; one point if it has none.

    >>> [str(spec) for spec in candidates("AutoCLUB", EnvironmentSpec())]
    ['AutoCLUB']
    """
    axes = [] if is_own(policy) else list(find(policy).grid.axes())
    names = [name for name, _ in axes]
    points = product(*([in_units(name, value, environment) for value in values] for name, values in axes))
    return [PolicySpec(policy, dict(zip(names, point, strict=True))) for point in points]


def usual_spec(policy: str, environment: EnvironmentSpec) -> PolicySpec:
    """A policy with parameters to start from; what an own policy has defaults for stays as it is.

    >>> print(usual_spec("UniCLUB", EnvironmentSpec()))
    UniCLUB (alpha 1.5, beta 0.1, explore 500)
    """
    maker = find_maker(policy)
    usual = {name: in_units(name, value, environment) for name, value in USUAL.items()}
    if "graph" in maker.arguments:  # their alpha multiplies the width, as beta does elsewhere
        usual["alpha"] = usual["beta"]
    ours = not is_own(policy) or "confidence" in maker.arguments
    return PolicySpec(policy, {name: usual[name] for name in usual if ours and name in maker.parameters})


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Every policy is tried at every point of its grid, on seeds that are never reported.

    The point of least mean regret is used, of equals the first. Trials last as long as the reported runs,
    because the best α depends on how long: `horizon` rounds at most.
    """

    horizon: int = 100_000
    n_seeds: int = 2

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of tuning."""
        return tuple(range(FIRST_SEED, FIRST_SEED + self.n_seeds))

    def rounds(self, horizon: int) -> int:
        """How long a trial is for a figure of this horizon."""
        return min(self.horizon, horizon)


class Study(NamedTuple):
    """A policy to be tuned in an environment, for results of some horizon."""

    environment: EnvironmentSpec
    policy: str
    rounds: int
    data: str | None


class Choice(NamedTuple):
    """The parameters chosen in a study, their mean regret there, and how many points were tried."""

    study: Study
    spec: PolicySpec
    regret: float
    tried: int


def trials(study: Study, protocol: Protocol) -> list[list[Run]]:
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
            for seed in protocol.seeds
        ]
        for spec in candidates(study.policy, study.environment)
    ]


def needed(studies: Iterable[Study], protocol: Protocol) -> list[Run]:
    """All runs that must be finished before constants can be chosen; none where there is no choice."""
    points = [trials(study, protocol) for study in studies]
    return [run for study in points if len(study) > 1 for point in study for run in point]


def choose(study: Study, protocol: Protocol, store: Store) -> Choice:
    """The best point of a study whose runs are finished."""
    points = trials(study, protocol)
    if len(points) == 1:
        return Choice(study, points[0][0].policy, float("nan"), 1)
    regrets = [float(np.mean([store.read(run).regret[-1] for run in point])) for point in points]
    best = int(np.argmin(regrets))
    return Choice(study, points[best][0].policy, regrets[best], len(points))


def check_reported(seeds: Sequence[int]) -> None:
    """Refuse to report a seed that constants were tuned on."""
    if wrong := [seed for seed in seeds if seed >= FIRST_SEED]:
        raise ArgumentError(
            f"seeds from {FIRST_SEED} on are for tuning and cannot be reported, got {wrong[0]}"
        )
