"""Ways to change the environment, as data: what the rows or panels of a figure differ in."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.experiments.results import Limit
from coterie.experiments.specs import EnvironmentSpec

PLAIN = EnvironmentSpec()
"""The environment of Fig. 1."""

PAPER = ("synthetic", "movielens", "lastfm", "yelp")
"""The paper's four datasets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One way to change the environment: its label, the quantity that changes and its value.

    `policies` and `horizon` are instead of the figure's, and `datasets` are those of the figure's that it
    is played on; None changes nothing. `limit` is what AutoCLUB should keep there.
    """

    label: str = ""
    quantity: str = ""
    value: float = 0.0
    environment: EnvironmentSpec = PLAIN
    datasets: tuple[str, ...] | None = None
    policies: tuple[str, ...] | None = None
    horizon: int | None = None
    limit: Limit | None = None
