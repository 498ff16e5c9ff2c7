"""One protocol for the constants of every policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coterie.errors import ArgumentError
from coterie.experiments.contenders import Contender
from coterie.experiments.grids import candidates
from coterie.experiments.runs import Run
from coterie.experiments.store import Store
from coterie.experiments.worlds import World

FIRST_SEED = 1000
"""Seeds from here on are for tuning; those below may be reported."""


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
    """A policy to be tuned in a world, for results of some horizon."""

    world: World
    policy: str
    rounds: int
    data: str | None


class Choice(NamedTuple):
    """The constants chosen in a study, their mean regret there, and how many points were tried."""

    study: Study
    contender: Contender
    regret: float
    tried: int


def trials(study: Study, protocol: Protocol) -> list[list[Run]]:
    """The runs of a study: for each point of the grid one a seed."""
    return [
        [
            Run(
                world=study.world,
                contender=contender,
                horizon=study.rounds,
                seed=seed,
                record=20,
                data=study.data,
            )
            for seed in protocol.seeds
        ]
        for contender in candidates(study.policy, study.world)
    ]


def needed(studies: Iterable[Study], protocol: Protocol) -> list[Run]:
    """All runs that must be finished before constants can be chosen; none where there is no choice."""
    points = [trials(study, protocol) for study in studies]
    return [run for study in points if len(study) > 1 for point in study for run in point]


def choose(study: Study, protocol: Protocol, store: Store) -> Choice:
    """The best point of a study whose runs are finished."""
    points = trials(study, protocol)
    if len(points) == 1:
        return Choice(study, points[0][0].contender, float("nan"), 1)
    regrets = [float(np.mean([store.read(run).regret[-1] for run in point])) for point in points]
    best = int(np.argmin(regrets))
    return Choice(study, points[best][0].contender, regrets[best], len(points))


def check_reported(seeds: Sequence[int]) -> None:
    """Refuse to report a seed that constants were tuned on."""
    if wrong := [seed for seed in seeds if seed >= FIRST_SEED]:
        raise ArgumentError(
            f"seeds from {FIRST_SEED} on are for tuning and cannot be reported, got {wrong[0]}"
        )
