"""The entries of the registry: what a policy is, when to use it, what is tuned, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import signature
from types import MappingProxyType
from typing import NamedTuple, ParamSpec

from coterie.policies.base import LinearBandit
from coterie.policies.plans import PLANS, Plan

P = ParamSpec("P")

BUDGET = 24
"""Points that a grid has: as many for one policy as for any other."""


class Style(NamedTuple):
    """How a policy is drawn in figures, and its name in the legend.

    Colours are those of Okabe and Ito, which people of every colour vision can tell apart. Policies with
    uniform exploration are solid lines, their counterparts dashed, so that grey prints work.

    Parameters
    ----------
    label : str
        Name in the legend.
    colour : str
        Colour as "#rrggbb".
    marker : str
        Marker of matplotlib, such as "o".
    line : str
        Line style of matplotlib, such as "--".

    Examples
    --------
    >>> from coterie.policies import find
    >>> find("CLUB").style
    Style(label='CLUB', colour='#E69F00', marker='o', line='--')
    """

    label: str
    colour: str
    marker: str
    line: str


class Grid:
    """Values to try when a policy is tuned, by parameter; all combinations are played.

    Parameters
    ----------
    **values : tuple of float
        Values of each parameter. `alpha`, `beta` and `noise` are in units of the noise σ, `explore` and
        `phase` in rounds per user; other parameters are taken as they are.

    Examples
    --------
    >>> dict(Grid(beta=(0.5, 1.0)).axes())
    {'beta': (0.5, 1.0)}
    """

    def __init__(self, **values: tuple[float, ...]) -> None:
        """Keep the values."""
        self._values = MappingProxyType(dict(values))

    def axes(self) -> Iterator[tuple[str, tuple[float, ...]]]:
        """Iterate over the parameters that are tuned.

        Yields
        ------
        tuple of (str, tuple of float)
            Name of a parameter and its values.
        """
        yield from self._values.items()


class PolicyEntry(NamedTuple):
    """What the registry knows of a policy.

    Parameters
    ----------
    name : str
        Name of the policy, the same as in `coterie`.
    make : callable
        Maker, such as `coterie.CLUB`.
    summary : str
        What it is, in one line.
    use_when : str
        When to use it, in one line.
    grid : Grid
        Values to try when it is tuned.
    style : Style
        How it is drawn.
    cost : float
        About how many microseconds a round takes among 50 users.
    clusters : bool
        Whether it looks for clusters, so that a round takes longer among more users.
    parameters : tuple of str
        Names of the maker's parameters.

    Examples
    --------
    >>> from coterie.policies import find
    >>> find("AutoCLUB").use_when
    'you have no reason to choose another'
    """

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
    """Enter a policy into the registry under the name of the function that plans it.

    Used as a decorator. The function takes the parameters of the policy and returns its `Plan`; what the
    decorator returns takes the same parameters and makes the policy.

    Parameters
    ----------
    summary, use_when, style, grid, cost, clusters
        Fields of the `PolicyEntry`; see there. The defaults are no grid and 12 microseconds.
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


def maker(plan: Callable[P, Plan]) -> Callable[P, LinearBandit]:
    """Turn a function that plans a policy into one that makes it."""
    name, parameters = plan.__name__, signature(plan)
    PLANS[name] = plan

    @wraps(plan)
    def make(*args: P.args, **kwargs: P.kwargs) -> LinearBandit:
        try:
            bound = parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}{_example(str(error))}") from None
        bound.apply_defaults()
        return LinearBandit(name, dict(bound.arguments))

    make.__annotations__ = {**plan.__annotations__, "return": LinearBandit}
    vars(make)["__signature__"] = parameters.replace(return_annotation=LinearBandit)
    return make


def geometric(low: float, high: float, n: int) -> tuple[float, ...]:
    """List n values from low to high, each the same multiple of the one before.

    >>> geometric(0.1, 10.0, 3)
    (0.1, 1.0, 10.0)
    """
    return tuple(float(f"{low * (high / low) ** (k / (n - 1)):.3g}") for k in range(n))


ALPHAS = (1.0, 2.5, 5.0, 10.0, 15.0, 20.0)
"""From clusters that fall apart at once to clusters that hardly part in 100,000 rounds."""


def _example(error: str) -> str:
    """End the sentence of an error with what would do."""
    examples = {
        "missing a required argument: 'confidence'": ", such as confidence=Tuned(alpha=1.5, beta=0.1)",
        "missing a required argument: 'labels'": ", such as labels=[0, 0, 1], the cluster of each user",
        "missing a required argument: 'graph'": ", such as graph=[[0, 1], [1, 0]], the weights between users",
        "missing a required argument: 'dim'": ", such as dim=5, the length of an arm's vector",
        "too many positional arguments": "; n_users and dim come first, the rest is given by name",
    }
    return examples.get(error, "")
