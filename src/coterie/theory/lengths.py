"""Lengths of uniform exploration: T0, T_init and T^(s), not rounded to whole rounds."""

from __future__ import annotations

import math


def pulls_needed(
    n_users: int, dim: int, *, gamma: float, lambda_x: float, delta: float, norm: float
) -> float:
    """Compute the number of uniform rounds of each user that ensure f ≤ γ/4   (Eq. 5).

    Parameters
    ----------
    n_users : int
        Number of users u.
    dim : int
        Length d of an arm's vector.
    gamma : float
        Gap γ: the smallest distance between the preferences of two clusters, positive and at most 2.
    lambda_x : float
        Smallest eigenvalue λ_x of E[XXᵀ], positive and at most L²/d. 1/d is its order for uniform unit
        vectors.
    delta : float
        Probability δ of failure, between 0 and 1; the proofs use 1/T.
    norm : float
        Bound L on the length of an arm's vector; 1 for unit vectors.

    Returns
    -------
    float
        Rounds per user.

    Notes
    -----
    max{8L²/λ_x ln(ud/δ), 512d/(γ²λ_x) ln(u/δ)} (Eq. 5).

    Examples
    --------
    >>> round(pulls_needed(50, 50, gamma=0.5, lambda_x=0.02, delta=1e-5, norm=1.0))
    78975736
    """
    spanning = 8 * norm**2 / lambda_x * math.log(n_users * dim / delta)
    separating = 512 * dim / (gamma**2 * lambda_x) * math.log(n_users / delta)
    return max(spanning, separating)


def t0(n_users: int, dim: int, *, gamma: float, lambda_x: float, delta: float, norm: float) -> float:
    """Compute T0, the uniform rounds of UniCLUB   (Eq. 3; Alg. 1).

    Parameters
    ----------
    n_users : int
        Number of users u.
    dim : int
        Length d of an arm's vector.
    gamma : float
        Gap γ: the smallest distance between the preferences of two clusters, positive and at most 2.
    lambda_x : float
        Smallest eigenvalue λ_x of E[XXᵀ], positive and at most L²/d. 1/d is its order for uniform unit
        vectors.
    delta : float
        Probability δ of failure, between 0 and 1; the proofs use 1/T.
    norm : float
        Bound L on the length of an arm's vector; 1 for unit vectors.

    Returns
    -------
    float
        T0, the total number of rounds of all users.

    Notes
    -----
    T0 = 16u ln(u/δ) + 4u max{8L²/λ_x ln(ud/δ), 512d/(γ²λ_x) ln(u/δ)} (Eq. 3). UniSCLUB explores for 2·T0
    (Alg. 3; Lemma 6).

    Examples
    --------
    >>> f"{t0(50, 50, gamma=0.5, lambda_x=0.02, delta=1e-5, norm=1.0):.3e}"
    '1.580e+10'
    """
    pulls = pulls_needed(n_users, dim, gamma=gamma, lambda_x=lambda_x, delta=delta, norm=norm)
    return 16 * n_users * math.log(n_users / delta) + 4 * n_users * pulls


def t_init(n_users: int, dim: int, *, lambda_x: float, delta: float, norm: float) -> float:
    """Compute T_init, the uniform rounds of PhaseUniCLUB before its phases   (Sec. 3.4; Alg. 2).

    Parameters
    ----------
    n_users : int
        Number of users u.
    dim : int
        Length d of an arm's vector.
    lambda_x : float
        Smallest eigenvalue λ_x of E[XXᵀ], positive and at most L²/d. 1/d is its order for uniform unit
        vectors.
    delta : float
        Probability δ of failure, between 0 and 1; the proofs use 1/T.
    norm : float
        Bound L on the length of an arm's vector; 1 for unit vectors.

    Returns
    -------
    float
        T_init, the total number of rounds of all users.

    Notes
    -----
    T_init = 16u ln(u/δ) + 4u · 8L²/λ_x ln(ud/δ) (Sec. 3.4).

    Examples
    --------
    >>> round(t_init(50, 50, lambda_x=0.02, delta=1e-5, norm=1.0))
    1559298
    """
    spanning = 8 * norm**2 / lambda_x * math.log(n_users * dim / delta)
    return 16 * n_users * math.log(n_users / delta) + 4 * n_users * spanning


def t_phase(s: int, *, n_users: int, dim: int, lambda_x: float, delta: float) -> float:
    """Compute T^(s), the uniform rounds of phase s of PhaseUniCLUB   (Sec. 3.4; Alg. 2).

    Parameters
    ----------
    s : int
        Phase, from 0.
    n_users : int
        Number of users u.
    dim : int
        Length d of an arm's vector.
    lambda_x : float
        Smallest eigenvalue λ_x of E[XXᵀ], positive and at most L²/d. 1/d is its order for uniform unit
        vectors.
    delta : float
        Probability δ of failure, between 0 and 1; the proofs use 1/T.

    Returns
    -------
    float
        T^(s), the total number of rounds of all users.

    Notes
    -----
    T^(s) = 4u · 512d/(2⁻ˢ λ_x) ln(u/δ) (Sec. 3.4). The appendix calls phase 0 C_p; each phase is twice as
    long as the one before.

    Examples
    --------
    >>> f"{t_phase(3, n_users=50, dim=50, lambda_x=0.02, delta=1e-5):.3e}"
    '3.159e+10'
    """
    return 4 * n_users * 512 * dim / (2.0**-s * lambda_x) * math.log(n_users / delta)


def whole(x: float) -> int:
    """Round a length up to a whole number of rounds.

    Parameters
    ----------
    x : float
        Length in rounds, such as `t0` returns.

    Returns
    -------
    int
        The smallest integer that is at least x.

    Examples
    --------
    >>> whole(2.1), whole(2.0)
    (3, 2)
    """
    return math.ceil(x)
