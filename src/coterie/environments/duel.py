"""Duels: users are shown two arms and prefer one of them."""

from __future__ import annotations

from functools import cached_property

from coterie.environments.blocks import BLOCK, Block
from coterie.environments.population import Peopled
from coterie.environments.smoothed import Smoothed
from coterie.environments.stochastic import Stochastic
from coterie.errors import ArgumentError
from coterie.seeding import stream
from coterie.validation import positive, shown


class Duel(Peopled):
    """Rounds of another environment in which two arms are shown and the preferred one is the feedback.

    Users, arms and preferences are those of the base; its noise is not used.

    Parameters
    ----------
    base : Stochastic or Smoothed
        Environment without delays and corrupted users.
    sharpness : float, default 1.0
        How surely the better arm wins, positive; 1 as in the paper.

    Raises
    ------
    ArgumentError
        If the base is another environment, has delays or corrupted users, or `sharpness` is not positive.

    Notes
    -----
    Arm x₁ is preferred to x₂ with probability 1/(1 + exp(−s(x₁ᵀθ − x₂ᵀθ))), s the sharpness. Regret of a
    round is 2x*ᵀθ − x₁ᵀθ − x₂ᵀθ, with x* the best arm, and its reward is x₁ᵀθ + x₂ᵀθ: the duels of Wang et
    al., *Online clustering of dueling bandits* (ICML 2025), as far as they are known to us.

    Examples
    --------
    >>> import coterie
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> world = Duel(Stochastic(data, n_users=8, n_clusters=2, n_arms=10, seed=1), sharpness=5.0)
    >>> policy = coterie.CLUB(8, 5, confidence=coterie.Tuned(alpha=5.0, beta=0.5))
    >>> trace = coterie.simulate(policy, world, 600, record=2)
    >>> bool(trace.regret[1] < 2 * trace.regret[0])
    True
    """

    def __init__(self, base: Stochastic | Smoothed, sharpness: float = 1.0) -> None:
        """Show pairs of arms in the rounds of an environment."""
        if not isinstance(base, Stochastic | Smoothed):
            raise ArgumentError(f"base must be Stochastic or Smoothed, got {shown(base)}")
        if base.corrupted or base.longest_delay:
            raise ArgumentError("duels are answered at once and honestly: corrupted and delay must be 0")
        self.base, self.sharpness = base, positive("sharpness", sharpness)
        self.dataset, self.population, self.delay = base.dataset, base.population, base.delay
        self.seed, self.n_arms, self.noise = base.seed, base.n_arms, base.noise

    def __repr__(self) -> str:
        """Show the base and the sharpness."""
        return f"<{type(self).__name__} of sharpness {self.sharpness:g} in {self.base!r}>"

    @cached_property
    def lambda_x(self) -> float:
        """Least eigenvalue of E[XXᵀ] of the base (Assumption 3)."""
        return self.base.lambda_x

    def block(self, number: int) -> Block:
        """Draw rounds number·256 to number·256 + 255, with a uniform number for each duel.

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
