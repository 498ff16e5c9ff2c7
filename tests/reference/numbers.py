"""The paper's formulas, number by number. Nothing is rounded: the lengths are real numbers."""

import math


def theory_radius(
    pulls: int, *, n_users: int, dim: int, delta: float, ridge: float, bound: float, lambda_x: float
) -> float:
    """f(T_i). Alg. 1, 2 and 3, initialization; `bound` is L."""
    u, d, L, lam, T = n_users, dim, bound, ridge, pulls
    numerator = math.sqrt(2 * math.log(u / delta) + d * math.log(1 + T * L**2 / (lam * d))) + math.sqrt(lam)
    denominator = math.sqrt(lam + T * lambda_x / 2)
    return numerator / denominator


def exploration_length(
    *, n_users: int, dim: int, delta: float, bound: float, lambda_x: float, gamma: float
) -> float:
    """T_0. Alg. 1 and 3, initialization (Alg. 3 explores for 2 T_0 rounds)."""
    u, d, L = n_users, dim, bound
    first = 8 * L**2 / lambda_x * math.log(u * d / delta)
    second = 512 * d / (gamma**2 * lambda_x) * math.log(u / delta)
    return 16 * u * math.log(u / delta) + 4 * u * max(first, second)


def initial_length(*, n_users: int, dim: int, delta: float, bound: float, lambda_x: float) -> float:
    """T^init of Section 3.4 (Alg. 2, line 1)."""
    u, d, L = n_users, dim, bound
    return 16 * u * math.log(u / delta) + 4 * u * (8 * L**2 / lambda_x) * math.log(u * d / delta)


def phase_length(s: int, *, n_users: int, dim: int, delta: float, lambda_x: float) -> float:
    """T^(s) of Section 3.4: the uniform rounds of phase s (Alg. 2, lines 7 and 10)."""
    u, d = n_users, dim
    return 4 * u * (512 * d / (2.0 ** (-s) * lambda_x)) * math.log(u / delta)


def confidence(*, horizon: int, dim: int, delta: float, ridge: float, bound: float) -> float:
    """The beta of Section 3.3 (Alg. 1, line 9)."""
    T, d, L, lam = horizon, dim, bound, ridge
    return math.sqrt(d * math.log(1 + T * L**2 / (d * lam)) + 2 * math.log(1 / delta)) + math.sqrt(lam)


def lambda_tilde(*, sigma: float, n_arms: int, constant: float) -> float:
    """c_1 sigma^2 / log K, which takes the place of lambda_x in SACLUB and SASCLUB."""
    return constant * sigma**2 / math.log(n_arms)


def smoothed_bound(*, dim: int, truncation: float) -> float:
    """1 + sqrt(d) R, which takes the place of L in SACLUB and SASCLUB."""
    return 1 + math.sqrt(dim) * truncation
