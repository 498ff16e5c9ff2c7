"""Ranked lists: users scan a list from the top and click the first arm that attracts them."""

from __future__ import annotations

from functools import cached_property

from coterie.environments.blocks import BLOCK, Block
from coterie.environments.noise import as_noise
from coterie.environments.population import Peopled
from coterie.environments.smoothed import Smoothed
from coterie.environments.stochastic import Stochastic
from coterie.errors import ArgumentError
from coterie.seeding import stream
from coterie.validation import shown, whole


class Cascade(Peopled):
    """Rounds of another environment in which a list of arms is shown and the first click is the feedback.

    Users, arms and preferences are those of the base.

    Parameters
    ----------
    base : Stochastic or Smoothed
        Environment with `noise=Bernoulli()`, so that xᵀθ are probabilities; see `lifted`.
    length : int
        Arms shown in a round, from 1 to the base's n_arms.

    Raises
    ------
    ArgumentError
        If the base is another environment or has other noise, or `length` is outside its range.

    Notes
    -----
    Arm a attracts with probability xₐᵀθ, independently. The list is scanned from the top until an arm
    attracts: that is the click, and the reward is 1. The expected reward of a list is 1 − Π(1 − xₐᵀθ); regret
    is against the `length` most attractive arms. The model is that of Craswell et al. 2008, as a linear
    bandit of Zong et al. 2016, with clusters of users of Li and Zhang 2018.

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

    def __init__(self, base: Stochastic | Smoothed, length: int) -> None:
        """Show lists in the rounds of an environment."""
        if not isinstance(base, Stochastic | Smoothed) or not as_noise(base.noise).binary:
            raise ArgumentError(
                f"base must be Stochastic or Smoothed with noise=Bernoulli(), got {shown(base)}"
            )
        if base.corrupted:
            raise ArgumentError("users who lie are for single arms, not for lists: corrupted must be 0")
        self.base, self.length = base, whole("length", length, 1, base.n_arms)
        self.dataset, self.population, self.delay = base.dataset, base.population, base.delay
        self.seed, self.n_arms, self.noise = base.seed, base.n_arms, base.noise

    def __repr__(self) -> str:
        """Show the base and the length of lists."""
        return f"<{type(self).__name__} of {self.length} in {self.base!r}>"

    @cached_property
    def lambda_x(self) -> float:
        """Least eigenvalue of E[XXᵀ] of the base (Assumption 3)."""
        return self.base.lambda_x

    def block(self, number: int) -> Block:
        """Draw rounds number·256 to number·256 + 255, with a uniform number for each position.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
        uniforms = stream(self.seed, "cascade", str(number)).random((BLOCK, self.length))
        return self.base.block(number)._replace(noise=uniforms, length=self.length)
