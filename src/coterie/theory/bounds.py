"""The full right-hand sides of Theorems 1–4, term by term, as in the appendix before the O(·)."""

from __future__ import annotations

import math
from typing import NamedTuple

from coterie.theory.lengths import t0, t_init, t_phase
from coterie.theory.radii import beta
from coterie.theory.setup import Setup


class Bound(NamedTuple):
    """An upper bound on the expected regret E[R(T)], and its terms.

    Parameters
    ----------
    algorithm : str
        Name of the algorithm.
    exploration : float
        Regret of the uniform rounds, counted as 1 each.
    misclustering : float
        Regret of rounds in which the cluster still contains users of another cluster; nonzero only for
        PhaseUniCLUB.
    learning : float
        Regret of the linear bandit of each true cluster, the √T term.
    failure : float
        Regret if the confidence sets do not hold, an event of probability about 1/T.

    Examples
    --------
    >>> bound = Bound("UniCLUB", exploration=100.0, misclustering=0.0, learning=50.0, failure=4.0)
    >>> bound.total, bound.vacuous(1000)
    (154.0, False)
    """

    algorithm: str
    exploration: float
    misclustering: float
    learning: float
    failure: float

    @property
    def total(self) -> float:
        """The full right-hand side, the sum of the four terms."""
        return self.exploration + self.misclustering + self.learning + self.failure

    def vacuous(self, horizon: float) -> bool:
        """Return whether the bound is no better than the trivial R(T) ≤ 2T.

        Parameters
        ----------
        horizon : float
            Number T of rounds, each with a regret of at most 2.

        Returns
        -------
        bool
            Whether `total` is at least 2T.
        """
        return self.total >= 2 * horizon


def theorem_1(setup: Setup) -> Bound:
    """Compute the regret bound of UniCLUB   (Theorem 1; App. B, after Eq. 23).

    Parameters
    ----------
    setup : Setup
        The problem.

    Returns
    -------
    Bound
        The four terms and their sum.

    Notes
    -----
    E[R(T)] ≤ 4 + T0 + 2β √(2dmT ln(1 + TL²/(λd + 4L²))), with δ = 1/T (App. B, after Eq. 23).

    Examples
    --------
    >>> setup = Setup(n_users=50, dim=5, n_clusters=10, n_arms=20, horizon=10**9, gamma=1.0, lambda_x=0.2)
    >>> bound = theorem_1(setup)
    >>> f"{bound.exploration:.3e} + {bound.learning:.3e} + {bound.failure:g}"
    '6.309e+07 + 3.459e+07 + 4'
    """
    return Bound("UniCLUB", _t0(setup), 0.0, _learning(setup), 4.0)


def theorem_2(setup: Setup) -> Bound:
    """Compute the regret bound of UniSCLUB   (Theorem 2; App. C.2).

    Parameters
    ----------
    setup : Setup
        The problem.

    Returns
    -------
    Bound
        The four terms and their sum.

    Notes
    -----
    E[R(T)] ≤ 4 + 2T0 + 2β √(2dmT ln(1 + TL²/(λd + 4L²))), with δ = 1/T (App. C.2, proof of Theorem 2).

    Examples
    --------
    >>> setup = Setup(n_users=50, dim=5, n_clusters=10, n_arms=20, horizon=10**9, gamma=1.0, lambda_x=0.2)
    >>> theorem_2(setup).exploration == 2 * theorem_1(setup).exploration
    True
    """
    return Bound("UniSCLUB", 2 * _t0(setup), 0.0, _learning(setup), 4.0)


def theorem_3(setup: Setup, growth: float = 2.0) -> Bound:
    """Compute the regret bound of PhaseUniCLUB   (Theorem 3; App. D, before Eq. 36).

    Parameters
    ----------
    setup : Setup
        The problem.
    growth : float, default 2.0
        Growth α of the phases, above 1/2; Theorem 3 itself is the case α = 2.

    Returns
    -------
    Bound
        The four terms and their sum.

    Notes
    -----
    With phases of 2^(αs) T^(s) rounds, C_p = 2048ud ln(uT)/λ_x and δ = 1/T, E[R(T)] is at most the sum of

        16u ln(uT) + 4u · 8L²/λ_x ln(udT)                  T_init
        + 2T^(1/(α+1)) C_p^(α/(α+1)) + 2C_p                uniform rounds of the phases
        + 8L²/(γ^(2α+1) λ_x) C_p                           misclustering, while 2^(-s/2) > γ
        + 2β √(2mTd ln(1 + TL²/(λd + 4L²)))                learning
        + 4/(α+1) log₂(2^(α+1) 2048udT/λ_x + 1)            failure

    The step to the misclustering term requires α > 1/2 (the paper says α > 0), and α > 1 keeps the phase
    term below √T.

    Examples
    --------
    >>> setup = Setup(n_users=50, dim=5, n_clusters=10, n_arms=20, horizon=10**9, gamma=1.0, lambda_x=0.2)
    >>> f"{theorem_3(setup).misclustering:.3e}"
    '2.523e+09'
    """
    u, d, horizon, delta = setup.n_users, setup.dim, setup.horizon, setup.delta
    lambda_x, power = setup.lambda_x, growth + 1
    initial = t_init(u, d, lambda_x=lambda_x, delta=delta, norm=setup.norm)
    c_p = t_phase(0, n_users=u, dim=d, lambda_x=lambda_x, delta=delta)
    phases = 2 * horizon ** (1 / power) * c_p ** (growth / power) + 2 * c_p
    misclustering = 8 * setup.norm**2 / (setup.gamma ** (2 * growth + 1) * lambda_x) * c_p
    failure = 4 / power * math.log2(2**power * 2048 * u * d * horizon / lambda_x + 1)
    return Bound("PhaseUniCLUB", initial + phases, misclustering, _learning(setup), failure)


def theorem_4(setup: Setup) -> Bound:
    """Compute the regret bound of SACLUB   (Theorem 4; App. E).

    Parameters
    ----------
    setup : Setup
        The problem.

    Returns
    -------
    Bound
        The four terms and their sum.

    Notes
    -----
    Theorem 1 with λ̃_x for λ_x and 1 + √d R for L. The paper gives no explicit right-hand side; it says
    that the proof of Theorem 1 carries over with these replacements, and this function makes them.
    `exploration` is the time until the clusters are correct, counted as 1 per round: SACLUB has no uniform
    rounds.

    Examples
    --------
    >>> setup = Setup(n_users=50, dim=5, n_clusters=10, n_arms=20, horizon=10**9, gamma=1.0, lambda_x=0.2)
    >>> theorem_4(setup).algorithm
    'SACLUB'
    """
    return theorem_1(setup.smoothed())._replace(algorithm="SACLUB")


def theorem_4_sets(setup: Setup) -> Bound:
    """Compute the regret bound of SASCLUB   (Theorem 4; App. E).

    Parameters
    ----------
    setup : Setup
        The problem.

    Returns
    -------
    Bound
        The four terms and their sum.

    Notes
    -----
    Theorem 2 with λ̃_x for λ_x and 1 + √d R for L, derived in the same way as `theorem_4`.

    Examples
    --------
    >>> setup = Setup(n_users=50, dim=5, n_clusters=10, n_arms=20, horizon=10**9, gamma=1.0, lambda_x=0.2)
    >>> theorem_4_sets(setup).exploration == 2 * theorem_4(setup).exploration
    True
    """
    return theorem_2(setup.smoothed())._replace(algorithm="SASCLUB")


def _t0(setup: Setup) -> float:
    """T0 of a setup   (Eq. 3)."""
    return t0(
        setup.n_users,
        setup.dim,
        gamma=setup.gamma,
        lambda_x=setup.lambda_x,
        delta=setup.delta,
        norm=setup.norm,
    )


def _learning(setup: Setup) -> float:
    """2β √(2dmT ln(1 + TL²/(λd + 4L²)))   (Eq. 23, by Lemma 5)."""
    squared, horizon = setup.norm**2, setup.horizon
    factor = beta(horizon, setup.dim, ridge=setup.ridge, delta=setup.delta, norm=setup.norm)
    growth = math.log1p(horizon * squared / (setup.ridge * setup.dim + 4 * squared))
    return 2 * factor * math.sqrt(2 * setup.dim * setup.n_clusters * horizon * growth)
