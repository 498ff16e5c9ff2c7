"""What a policy declares of itself beside its parameters: summary, tuning grid, style in figures, cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

Feedback: TypeAlias = Literal["rewards", "lists", "duels", "logs"]
"""What a policy is made to learn from: single rewards, clicks on lists, duels, or a log."""

BUDGET = 24
"""Points that a grid has: as many for one policy as for any other."""


class Style(NamedTuple):
    """How a policy is drawn in figures, and its name in the legend.

    Colours are those of Okabe and Ito, which are distinct for every kind of colour vision. Policies with
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
    >>> import coterie
    >>> coterie.CLUB.declared.style
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


NO_GRID = Grid()
"""That of policies without constants to tune."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Metadata of a policy, in the attribute `declared` of its class.

    Parameters
    ----------
    summary : str
        What it is, in one line.
    use_when : str
        When to use it, in one line.
    style : Style
        How it is drawn.
    grid : Grid, optional
        Values to try when it is tuned; none by default.
    cost : float, default 12.0
        About how many microseconds a round takes among 50 users.
    clusters : bool, default True
        Whether it looks for clusters, so that a round takes longer among more users.
    feedback : {"rewards", "lists", "duels", "logs"}, default "rewards"
        What it is made to learn from.
    figures : tuple of str, default ("real", "field")
        Figures of `coterie reproduce` that play every policy which names them; policies that need
        known clusters or a graph are in neither.

    Examples
    --------
    >>> import coterie
    >>> coterie.COLDB.declared.feedback
    'duels'
    """

    summary: str
    use_when: str
    style: Style
    grid: Grid = NO_GRID
    cost: float = 12.0
    clusters: bool = True
    feedback: Feedback = "rewards"
    figures: tuple[str, ...] = ("real", "field")


def geometric(low: float, high: float, n: int) -> tuple[float, ...]:
    """List n values from low to high, each the same multiple of the one before.

    >>> geometric(0.1, 10.0, 3)
    (0.1, 1.0, 10.0)
    """
    return tuple(float(f"{low * (high / low) ** (k / (n - 1)):.3g}") for k in range(n))


ALPHAS = (1.0, 2.5, 5.0, 10.0, 15.0, 20.0)
"""From clusters that fall apart at once to clusters that hardly part in 100,000 rounds."""

CLUSTER_GRID = Grid(alpha=ALPHAS, beta=(0.25, 0.5, 1.0, 2.0))
"""Of policies that compare users by a radius α f(T)."""
UNIFORM_GRID = Grid(alpha=ALPHAS, beta=(0.5, 1.0), explore=(2.0, 20.0))
"""The same, after uniform rounds."""
BONUS_GRID = Grid(beta=geometric(0.1, 5.0, BUDGET))
"""Of policies whose only constant is the factor β of the bonus."""
GRAPH_GRID = Grid(alpha=geometric(0.1, 5.0, 12), ridge=(0.1, 1.0))
"""Of policies with a given graph."""
