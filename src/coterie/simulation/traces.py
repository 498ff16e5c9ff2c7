"""What a simulation found, and how it shows itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from coterie.types import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """Cumulative regret and reward, clusters and their adjusted Rand index, at evenly spaced rounds.

    Regret is pseudo-regret: what the best arm would have given in expectation less what the chosen arm
    gives. `uniform` is what uniform play would have earned in expectation in the same rounds, and `relative`
    the reward divided by it. `explored` is the share of uniform rounds so far. Where a policy tells no
    clusters their number is −1; the index is NaN there, and where a world has no true clusters. `seconds` are
    those of playing, not of drawing the rounds.
    """

    policy: str
    seed: int
    rounds: Ints
    regret: Floats
    reward: Floats
    uniform: Floats
    clusters: Ints
    ari: Floats
    explored: Floats
    seconds: float

    @property
    def relative(self) -> Floats:
        """Reward as a multiple of that of uniform play; NaN where uniform play earns nothing or loses."""
        earned = np.where(self.uniform > 1e-9 * self.rounds, self.uniform, np.nan)  # less is rounding
        return np.asarray(self.reward / earned)

    def named(self, name: str) -> Trace:
        """The same trace under another name."""
        return replace(self, policy=name)

    def __repr__(self) -> str:
        """All that matters in one line."""
        pace = 1e6 * self.seconds / int(self.rounds[-1])
        found = f", {self.clusters[-1]} clusters" if self.clusters[-1] >= 0 else ""
        found += f" (ARI {self.ari[-1]:.2f})" if self.ari[-1] == self.ari[-1] else ""
        return (
            f"{self.policy} (seed {self.seed}): regret {self.regret[-1]:,.1f} "
            f"after {self.rounds[-1]:,} rounds{found}, {pace:.1f} µs a round"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a recorded point, as a pandas frame."""
        import pandas as pd

        columns = ("rounds", "regret", "reward", "uniform", "clusters", "ari", "explored")
        frame = pd.DataFrame({name: getattr(self, name) for name in columns})
        frame.insert(0, "policy", self.policy)
        frame.insert(1, "seed", self.seed)
        return frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw cumulative regret over rounds; returns the axes."""
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        ax.plot(self.rounds, self.regret, label=self.policy)
        ax.set_xlabel("round")
        ax.set_ylabel("cumulative regret")
        ax.legend()
        return ax
