"""The constants that are tried for each policy: as many points for one as for any other.

α, β and the α of GOBLin and GraphUCB are in units of the noise σ, lengths of exploration in rounds per
user: the protocol knows σ and the number of users, and nothing else about the world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import sqrt
from types import MappingProxyType

from coterie.experiments.contenders import Contender
from coterie.experiments.worlds import World

BUDGET = 24
"""Points tried for every policy that has constants."""

SIGMA = MappingProxyType({"gaussian": 1.0, "uniform": 1 / sqrt(3.0), "bernoulli": 0.0})
"""The standard deviation of rewards as a multiple of `World.noise`; see `noise_of` for Bernoulli."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Values to be crossed; an empty tuple leaves a constant out.

    >>> [c.beta for c in Grid(beta=(1.0, 2.0)).candidates("LinUCBInd", World())]
    [0.1, 0.2]
    """

    alpha: tuple[float, ...] = ()
    beta: tuple[float, ...] = ()
    explore: tuple[float, ...] = ()
    phase: tuple[float, ...] = ()
    ridge: tuple[float, ...] = ()

    def candidates(self, policy: str, world: World) -> list[Contender]:
        """Every point of the grid, in the units of a world."""
        sigma, users = noise_of(world), world.n_users
        axes = (self.alpha, self.beta, self.explore, self.phase, self.ridge)
        return [
            Contender(
                policy=policy,
                alpha=_scaled(alpha, sigma),
                beta=_scaled(beta, sigma),
                explore=_whole(explore, users),
                phase=_whole(phase, users),
                ridge=ridge,
            )
            for alpha, beta, explore, phase, ridge in product(*(axis or (None,) for axis in axes))
        ]


def noise_of(world: World) -> float:
    """The standard deviation σ of a reward, or the most it can be."""
    return world.noise * SIGMA[world.rewards] or 0.5


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else float(f"{value * unit:.6g}")


def _whole(value: float | None, unit: int) -> int | None:
    return None if value is None else round(value * unit)


def _geometric(low: float, high: float, n: int) -> tuple[float, ...]:
    return tuple(float(f"{low * (high / low) ** (k / (n - 1)):.3g}") for k in range(n))


_ALPHAS = (1.0, 2.5, 5.0, 10.0, 15.0, 20.0)
"""From clusters that fall apart at once to clusters that hardly part in 100,000 rounds."""

_ALONE = Grid(beta=_geometric(0.1, 5.0, BUDGET))
_CLUSTERS = Grid(alpha=_ALPHAS, beta=(0.25, 0.5, 1.0, 2.0))
_UNIFORM = Grid(alpha=_ALPHAS, beta=(0.5, 1.0), explore=(2.0, 20.0))
_PHASES = Grid(alpha=_ALPHAS, beta=(0.5,), explore=(2.0, 20.0), phase=(1.0, 10.0))
_GRAPH = Grid(alpha=_geometric(0.1, 5.0, 12), ridge=(0.1, 1.0))

GRIDS: Mapping[str, Grid] = MappingProxyType(
    {
        **dict.fromkeys(("LinUCBOne", "LinUCBInd", "LinUCBOracle"), _ALONE),
        **dict.fromkeys(("CLUB", "SCLUB", "SACLUB", "SASCLUB"), _CLUSTERS),
        **dict.fromkeys(("UniCLUB", "UniSCLUB"), _UNIFORM),
        "PhaseUniCLUB": _PHASES,
        **dict.fromkeys(("GOBLin", "GraphUCB"), _GRAPH),
    }
)
"""Policies that are not here have no constants to tune, and are used as they are."""


def candidates(policy: str, world: World) -> list[Contender]:
    """What is tried for a policy in a world."""
    return GRIDS.get(policy, Grid()).candidates(policy, world)
