"""Duels: a user is shown two arms, and the feedback is which one the user prefers."""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import Any

from coterie.environments.blocks import BLOCK, Block
from coterie.environments.payoffs import Payoffs
from coterie.environments.population import PopulationEnvironment
from coterie.environments.smoothed import Smoothed
from coterie.environments.stochastic import Stochastic
from coterie.errors import ArgumentError
from coterie.seeding import stream
from coterie.validation import positive, shown


class Duel(PopulationEnvironment):
    """Rounds of another environment in which two arms are shown and the preferred one is the feedback.

    Users, arms and preferences are those of the base; its noise is not used.

    Parameters
    ----------
    base : Stochastic or Smoothed
        Environment without delays and without corrupted users.
    sharpness : float, default 1.0
        Slope s of the logistic function, positive: the larger, the more often the better arm wins. The paper
        uses 1.

    Raises
    ------
    ArgumentError
        If the base is another environment or has delays or corrupted users, or `sharpness` is not positive.

    Notes
    -----
    Arm x₁ is preferred to x₂ with probability 1/(1 + exp(−s(x₁ᵀθ − x₂ᵀθ))), where s is the sharpness. The
    regret of a round is 2x*ᵀθ − x₁ᵀθ − x₂ᵀθ, where x* is the best arm, and its reward is x₁ᵀθ + x₂ᵀθ. This is
    the model of Wang et al., *Online clustering of dueling bandits* (ICML 2025), as far as we know it.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> env = Duel(Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=1), sharpness=5.0)
    >>> policy = coterie.CLUB(8, 5, confidence=coterie.Tuned(alpha=5.0, beta=0.5))
    >>> trace = coterie.simulate(policy, env, 600, record=2)
    >>> bool(trace.regret[1] < 2 * trace.regret[0])
    True
    """

    def __init__(self, base: Stochastic | Smoothed, sharpness: float = 1.0) -> None:
        """Show pairs of arms in the rounds of an environment."""
        if not isinstance(base, Stochastic | Smoothed):
            raise ArgumentError(f"base must be Stochastic or Smoothed, got {shown(base)}")
        if base.corrupted or base.longest_delay:
            raise ArgumentError("duels have no delays and no corrupted users: corrupted and delay must be 0")
        self.base, self.sharpness = base, positive("sharpness", sharpness)
        self.dataset, self.population, self.delay = base.dataset, base.population, base.delay
        self.seed, self.n_arms, self.noise = base.seed, base.n_arms, base.noise

    def __repr__(self) -> str:
        """Show the base and the sharpness."""
        return f"<{type(self).__name__} of sharpness {self.sharpness:g} in {self.base!r}>"

    @cached_property
    def lambda_x(self) -> float:
        """Smallest eigenvalue of E[XXᵀ] of the base (Assumption 3)."""
        return self.base.lambda_x

    def block(self, number: int) -> Block:
        """Generate rounds number·256 to number·256 + 255, with a uniform number for each duel.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
        uniforms = stream(self.seed, "duels", str(number)).random(BLOCK)
        return self.base.block(number)._replace(noise=uniforms, binary=True, sharpness=self.sharpness)


class PayoffDuel:
    """Duels of real feedback: the user prefers the arm with the larger recorded payoff.

    Every pair of arms has a true answer; equal payoffs are decided by a coin. The regret of a round is twice
    the best payoff on offer less those of the two arms, and its reward is their sum.

    Parameters
    ----------
    base : Payoffs
        Environment of real feedback in which items may be shown again (`once=False`), such as people's
        orders of sushi (`load_payoffs("sushi")`).

    Raises
    ------
    ArgumentError
        If the base is another environment, or shows items once.

    Examples
    --------
    >>> import coterie, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> items = rng.normal(size=(10, 3))
    >>> env = PayoffDuel(coterie.environments.Payoffs(rng.normal(size=(6, 3)) @ items.T, items, n_arms=5))
    >>> policy = coterie.COLDB(6, 3, confidence=coterie.Tuned(alpha=1.0, beta=0.3))
    >>> trace = coterie.simulate(policy, env, 300, record=2)
    >>> bool(trace.regret[1] < 2 * trace.regret[0])
    True
    """

    def __init__(self, base: Payoffs) -> None:
        """Show pairs of arms in the rounds of an environment."""
        if not isinstance(base, Payoffs) or base.once:
            raise ArgumentError(f"base must be Payoffs that may show items again, got {shown(base)}")
        self.base = base

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the base."""
        if name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)

    def __repr__(self) -> str:
        """Show the base."""
        return f"<{type(self).__name__} in {self.base!r}>"

    def block(self, number: int) -> Block:
        """Generate rounds number·256 to number·256 + 255, with a uniform number for each duel.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
        uniforms = stream(self.base.seed, "duels", str(number)).random(BLOCK)
        return self.base.block(number)._replace(noise=uniforms, binary=True, sharpness=inf)
