"""Ranked lists: a user scans a list from the top and clicks the first attractive arm (cascade model)."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.environments.blocks import Block
from coterie.environments.noise import as_noise
from coterie.environments.payoffs import Payoffs
from coterie.environments.recorded import Stream
from coterie.environments.smoothed import Smoothed
from coterie.environments.stochastic import Stochastic
from coterie.errors import ArgumentError
from coterie.seeding import stream
from coterie.validation import shown, whole


class Cascade:
    """Rounds of another environment in which the policy shows a list of arms and observes the first click.

    Users, arms and preferences are those of the base.

    Parameters
    ----------
    base : Stochastic, Smoothed, Payoffs or Stream
        Environment whose rewards are clicks. `Stochastic` and `Smoothed` need `noise=Bernoulli()`, so that
        xᵀθ are probabilities (see `lifted`); payoffs must be 0 or 1.
    length : int
        Number of arms in a list, from 1 to the base's n_arms.

    Raises
    ------
    ArgumentError
        If the base is another environment or has other rewards, or `length` is outside its range.

    Notes
    -----
    Arm a is attractive with probability wₐ = xₐᵀθ, independently of the others; with real feedback it is
    attractive if its payoff is 1. The user scans the list from the top, clicks the first attractive arm and
    stops; the reward is then 1. The expected reward of a list is 1 − Π(1 − wₐ), and regret is relative to the
    `length` most attractive arms. The model is from Craswell et al. 2008; Zong et al. 2016 make it a linear
    bandit, and Li and Zhang 2018 add clusters of users, and real feedback of 0 and 1.

    References
    ----------
    Zong, Ni, Sung, Ke, Wen and Kveton, *Cascading bandits for large-scale recommendation problems*, UAI 2016.
    Li and Zhang, *Online clustering of contextual cascading bandits*, AAAI 2018.

    Examples
    --------
    >>> import coterie
    >>> from coterie.environments import Bernoulli, Stochastic, lifted
    >>> data = lifted(coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100))
    >>> base = Stochastic(data, n_users=8, n_clusters=2, n_arms=10, noise=Bernoulli(), seed=1)
    >>> Cascade(base, length=3).block(0).noise.shape
    (256, 3)
    """

    def __init__(self, base: Stochastic | Smoothed | Payoffs | Stream, length: int) -> None:
        """Show lists in the rounds of an environment."""
        if not _clicked(base):
            raise ArgumentError(
                "base must be Stochastic or Smoothed with noise=Bernoulli(), Stream, or Payoffs of 0 and 1, "
                f"got {shown(base)}"
            )
        if getattr(base, "corrupted", 0):
            raise ArgumentError("lists cannot have corrupted users: corrupted must be 0")
        self.base, self.length = base, whole("length", length, 1, base.n_arms)

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the base."""
        if name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)

    def __repr__(self) -> str:
        """Show the base and the length of lists."""
        return f"<{type(self).__name__} of {self.length} in {self.base!r}>"

    def block(self, number: int) -> Block:
        """Generate rounds number·256 to number·256 + 255, with a uniform number for each position.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
        block = self.base.block(number)
        uniforms = stream(self.seed, "cascade", str(number)).random((len(block.users), self.length))
        return block._replace(noise=uniforms, binary=True, length=self.length)


def _clicked(base: object) -> bool:
    """Return whether the rewards of this environment are clicks, 0 or 1."""
    if isinstance(base, Payoffs):
        return base.default in (0.0, 1.0) and bool(np.isin(base.table.payoffs.values, (0.0, 1.0)).all())
    if isinstance(base, Stochastic | Smoothed):
        return as_noise(base.noise).binary
    return isinstance(base, Stream)
