"""A policy with its constants, as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.experiments.worlds import Place
from coterie.policies.base import MAKERS, Policy
from coterie.policies.catalogue import find
from coterie.policies.confidence import Tuned


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A policy by name, and the constants that it takes; what it does not take stays None.

    For GOBLin and GraphUCB `alpha` multiplies the width; for the others it is that of the radius.

    >>> print(Contender(policy="CLUB", alpha=1.5, beta=0.1))
    CLUB (alpha 1.5, beta 0.1)
    """

    policy: str
    alpha: float | None = None
    beta: float | None = None
    explore: int | None = None
    phase: int | None = None
    growth: float | None = None
    ridge: float | None = None

    def constants(self) -> Iterator[tuple[str, float]]:
        """The constants that are set, by name."""
        for name in ("alpha", "beta", "explore", "phase", "growth", "ridge"):
            if (value := getattr(self, name)) is not None:
                yield name, value

    def __str__(self) -> str:
        """The name, and the constants in brackets."""
        shown = ", ".join(f"{name} {value:g}" for name, value in self.constants())
        return f"{self.policy} ({shown})" if shown else self.policy

    def make(self, world: Place, seed: int) -> Policy:
        """The policy before its first round; only a policy that asks for the true clusters is told them."""
        entry = find(self.policy)
        wanted = MAKERS[self.policy].arguments
        offered = {**self._plain(), **self._composed(world, wanted)}
        chosen = {name: offered[name] for name in wanted if name in offered}
        return entry.make(world.population.present(0), world.dim, seed=seed, **chosen)

    def _plain(self) -> dict[str, Any]:
        return {name: value for name, value in self.constants() if name in ("alpha", "beta", "ridge")}

    def _composed(self, world: Place, wanted: tuple[str, ...]) -> dict[str, Any]:
        """What is made of constants or of the world: a confidence, a graph of friends, the true labels."""
        made: dict[str, Any] = {}
        if "confidence" in wanted and self.alpha is not None:
            made["confidence"] = Tuned(
                alpha=self.alpha,
                beta=self.beta or 0.0,
                explore=self.explore or 0,
                phase=self.phase or 0,
                growth=2.0 if self.growth is None else self.growth,
            )
        labels = world.labels[: world.population.present(0)]
        if "graph" in wanted:  # App. G.4: users of one cluster are joined
            made["graph"] = (labels[:, None] == labels[None, :]) & ~np.eye(len(labels), dtype=np.bool_)
        if "labels" in wanted:
            made["labels"] = labels
        return made
