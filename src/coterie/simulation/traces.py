"""Traces: the recorded results of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from coterie.extras import need
from coterie.types import Floats, Ints
from coterie.validation import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """Regret, reward and clusters of a run at evenly spaced rounds, as returned by `simulate`.

    Parameters
    ----------
    policy : str
        Name of the policy.
    seed : int
        Seed of the environment.
    rounds : array of int, shape (n,)
        Rounds at which the other arrays were recorded.
    regret : array of float, shape (n,)
        Cumulative pseudo-regret: the sum of the expected reward of the best arm minus that of the chosen arm.
    reward : array of float, shape (n,)
        Cumulative reward.
    uniform : array of float, shape (n,)
        Cumulative expected reward of uniformly random decisions in the same rounds.
    clusters : array of int, shape (n,)
        Number of clusters; −1 if the policy has no `labels`.
    ari : array of float, shape (n,)
        Adjusted Rand index between the clusters and the true ones, at most 1; NaN if the policy has no
        `labels` or the environment has no true clusters.
    explored : array of float, shape (n,)
        Fraction of uniform rounds so far.
    seconds : float
        Time of the policy in seconds, without the time of generating the rounds.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> env = coterie.environments.Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=1)
    >>> trace = coterie.simulate(coterie.LinUCBInd(8, 5, beta=0.1), env, 600)
    >>> bool(trace.regret[-1] < 600)
    True
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
        """Reward divided by that of uniformly random decisions; NaN if the latter is not positive."""
        # Sums of exact zeros carry rounding errors: anything below 1e-9 per round counts as not positive.
        earned = np.where(self.uniform > 1e-9 * self.rounds, self.uniform, np.nan)
        return np.asarray(self.reward / earned)

    def named(self, name: str) -> Trace:
        """Rename the trace.

        Parameters
        ----------
        name : str
            New name of the policy.

        Returns
        -------
        Trace
            The same trace under the new name.
        """
        return replace(self, policy=name)

    def __repr__(self) -> str:
        """Summarise the result in one line."""
        pace = 1e6 * self.seconds / int(self.rounds[-1])
        clusters = int(self.clusters[-1])
        found = f", {counted(clusters, 'cluster')}" if clusters >= 0 else ""
        found += f" (ARI {self.ari[-1]:.2f})" if self.ari[-1] == self.ari[-1] else ""
        return (
            f"{self.policy} (seed {self.seed}): regret {self.regret[-1]:,.1f} "
            f"after {counted(int(self.rounds[-1]), 'round')}{found}, {pace:.1f} µs a round"
        )

    def to_frame(self) -> pd.DataFrame:
        """Convert to a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row per recorded point: policy, seed, rounds, regret, reward, uniform, clusters, ari,
            explored.
        """
        need("pandas", "a frame")
        import pandas as pd

        columns = ("rounds", "regret", "reward", "uniform", "clusters", "ari", "explored")
        frame = pd.DataFrame({name: getattr(self, name) for name in columns})
        frame.insert(0, "policy", self.policy)
        frame.insert(1, "seed", self.seed)
        return frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the cumulative regret over rounds with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        need("matplotlib", "a plot")
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        ax.plot(self.rounds, self.regret, label=self.policy)
        ax.set_xlabel("round")
        ax.set_ylabel("cumulative regret")
        ax.legend()
        return ax
