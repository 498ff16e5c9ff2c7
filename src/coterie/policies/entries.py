"""What the registry holds of each policy: what it is, when to use it, what is tuned, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from types import MappingProxyType
from typing import NamedTuple, ParamSpec

from coterie.policies.base import LinearBandit, Plan, maker

P = ParamSpec("P")

BUDGET = 24
"""Points that a grid has: as many for one policy as for any other."""


class Style(NamedTuple):
    """How a policy is drawn, and how its name is written in a legend.

    Colours are Okabe and Ito's, told apart by people of every colour vision. A family shares its colour's
    neighbourhood; what explores uniformly is drawn solid, its counterpart dashed, so that grey prints work.
    """

    label: str
    colour: str
    marker: str
    line: str


class Grid:
    """Values to be crossed when a policy is tuned, by parameter.

    `alpha` and `beta` are in units of the noise σ, `explore` and `phase` in rounds per user: tuning knows
    σ and the number of users, and nothing else about the world. Other parameters are taken as they are.

    >>> dict(Grid(beta=(0.5, 1.0)).axes())
    {'beta': (0.5, 1.0)}
    """

    def __init__(self, **values: tuple[float, ...]) -> None:
        """The values to try of each parameter."""
        self._values = MappingProxyType(dict(values))

    def axes(self) -> Iterator[tuple[str, tuple[float, ...]]]:
        """The parameters that are tuned, each with its values."""
        yield from self._values.items()


class PolicyEntry(NamedTuple):
    """A policy as people choose it; `cost` is about how many microseconds a round takes among 50 users."""

    name: str
    make: Callable[..., LinearBandit]
    summary: str
    use_when: str
    grid: Grid
    style: Style
    cost: float
    clusters: bool
    parameters: tuple[str, ...]


ENTRIES: dict[str, PolicyEntry] = {}
"""Filled as the modules of the families are imported; `registry` imports all of them."""


def register(
    *,
    summary: str,
    use_when: str,
    style: Style,
    grid: Grid | None = None,
    cost: float = 12.0,
    clusters: bool = True,
) -> Callable[[Callable[P, Plan]], Callable[P, LinearBandit]]:
    """Make a policy of a function that plans one, and enter it under the function's name.

    `clusters` says that the policy looks for clusters, so that a round takes longer among more users.
    """

    def enter(plan: Callable[P, Plan]) -> Callable[P, LinearBandit]:
        make, name = maker(plan), plan.__name__
        ENTRIES[name] = PolicyEntry(
            name=name,
            make=make,
            summary=summary,
            use_when=use_when,
            grid=grid or Grid(),
            style=style,
            cost=cost,
            clusters=clusters,
            parameters=tuple(signature(plan).parameters),
        )
        return make

    return enter


def geometric(low: float, high: float, n: int) -> tuple[float, ...]:
    """n values from low to high, each the same multiple of the one before.

    >>> geometric(0.1, 10.0, 3)
    (0.1, 1.0, 10.0)
    """
    return tuple(float(f"{low * (high / low) ** (k / (n - 1)):.3g}") for k in range(n))


ALPHAS = (1.0, 2.5, 5.0, 10.0, 15.0, 20.0)
"""From clusters that fall apart at once to clusters that hardly part in 100,000 rounds."""
