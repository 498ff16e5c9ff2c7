"""What a simulation found, and how it shows itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from coterie.extras import need
from coterie.types import Floats, Ints
from coterie.validation import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """Cumulative regret and reward, clusters and their adjusted Rand index, at evenly spaced rounds.

    Regret is pseudo-regret: what the best arm would have given in expectation less what the chosen arm
    gives. `explored` is the share of uniform rounds so far. Where a policy tells no clusters their number is
    −1 and the index NaN. `seconds` are those of playing, not of drawing the rounds.
    """

    policy: str
    seed: int
    rounds: Ints
    regret: Floats
    reward: Floats
    clusters: Ints
    ari: Floats
    explored: Floats
    seconds: float

    def named(self, name: str) -> Trace:
        """The same trace under another name."""
        return replace(self, policy=name)

    def __repr__(self) -> str:
        """All that matters in one line."""
        pace = 1e6 * self.seconds / int(self.rounds[-1])
        clusters = int(self.clusters[-1])
        found = f", {counted(clusters, 'cluster')} (ARI {self.ari[-1]:.2f})" if clusters >= 0 else ""
        return (
            f"{self.policy} (seed {self.seed}): regret {self.regret[-1]:,.1f} "
            f"after {counted(int(self.rounds[-1]), 'round')}{found}, {pace:.1f} µs a round"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a recorded point, as a pandas frame."""
        need("pandas", "a frame")
        import pandas as pd

        columns = ("rounds", "regret", "reward", "clusters", "ari", "explored")
        frame = pd.DataFrame({name: getattr(self, name) for name in columns})
        frame.insert(0, "policy", self.policy)
        frame.insert(1, "seed", self.seed)
        return frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw cumulative regret over rounds; returns the axes."""
        need("matplotlib", "a plot")
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        ax.plot(self.rounds, self.regret, label=self.policy)
        ax.set_xlabel("round")
        ax.set_ylabel("cumulative regret")
        ax.legend()
        return ax
