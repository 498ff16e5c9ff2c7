"""How long to play uniformly: T0, T_init, T^(s), as the real numbers the paper writes."""

from __future__ import annotations

import math


def pulls_needed(
    n_users: int, dim: int, *, gamma: float, lambda_x: float, delta: float, norm: float
) -> float:
    """max{8L²/λ_x ln(ud/δ), 512d/(γ²λ_x) ln(u/δ)}, the pulls of each user that make f ≤ γ/4   (Eq. 5).

    >>> round(pulls_needed(50, 50, gamma=0.5, lambda_x=0.02, delta=1e-5, norm=1.0))
    78975736
    """
    spanning = 8 * norm**2 / lambda_x * math.log(n_users * dim / delta)
    separating = 512 * dim / (gamma**2 * lambda_x) * math.log(n_users / delta)
    return max(spanning, separating)


def t0(n_users: int, dim: int, *, gamma: float, lambda_x: float, delta: float, norm: float) -> float:
    """T0 = 16u ln(u/δ) + 4u max{8L²/λ_x ln(ud/δ), 512d/(γ²λ_x) ln(u/δ)}   (Eq. 3; Alg. 1).

    UniSCLUB explores for 2·T0 (Alg. 3; Lemma 6).

    >>> f"{t0(50, 50, gamma=0.5, lambda_x=0.02, delta=1e-5, norm=1.0):.3e}"
    '1.580e+10'
    """
    pulls = pulls_needed(n_users, dim, gamma=gamma, lambda_x=lambda_x, delta=delta, norm=norm)
    return 16 * n_users * math.log(n_users / delta) + 4 * n_users * pulls


def t_init(n_users: int, dim: int, *, lambda_x: float, delta: float, norm: float) -> float:
    """T_init = 16u ln(u/δ) + 4u · 8L²/λ_x ln(ud/δ)   (Sec. 3.4; Alg. 2).

    >>> round(t_init(50, 50, lambda_x=0.02, delta=1e-5, norm=1.0))
    1559298
    """
    spanning = 8 * norm**2 / lambda_x * math.log(n_users * dim / delta)
    return 16 * n_users * math.log(n_users / delta) + 4 * n_users * spanning


def t_phase(s: int, *, n_users: int, dim: int, lambda_x: float, delta: float) -> float:
    """T^(s) = 4u · 512d/(2⁻ˢ λ_x) ln(u/δ), the uniform rounds of phase s = 0, 1, …   (Sec. 3.4; Alg. 2).

    Phase 0 is what the appendix calls C_p; each further phase is twice as long.

    >>> f"{t_phase(3, n_users=50, dim=50, lambda_x=0.02, delta=1e-5):.3e}"
    '3.159e+10'
    """
    return 4 * n_users * 512 * dim / (2.0**-s * lambda_x) * math.log(n_users / delta)


def whole(x: float) -> int:
    """The fewest whole rounds that are at least x.

    >>> whole(2.1), whole(2.0)
    (3, 2)
    """
    return math.ceil(x)
