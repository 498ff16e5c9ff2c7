"""DyClu: neighbours by a test of homogeneity, and a detector of changes."""

from __future__ import annotations

from coterie.errors import ArgumentError
from coterie.policies.base import LinearBandit, Plan
from coterie.policies.declarations import Declaration, Grid, Style, geometric
from coterie.policies.dynamic.homogeneous_users import HomogeneousUsers
from coterie.validation import flag, nonnegative, number, positive, whole

SURPRISE = 0.01
"""Level of the test of a single reward, υ_e."""


class DyClu(LinearBandit):
    """Neighbours by a test of homogeneity, and changes detected (Li et al. 2021).

    Two users are neighbours if one preference explains the rewards of both as well as two do, up to the
    noise. Edges can come back. A user whose rewards stop fitting its own data is reset; its earlier data
    is kept for users to whom it is similar.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    beta : float, optional
        Factor of the width, at least 0, in the unit of rewards. By default that of the theory, which explores
        much; set it to the standard deviation σ of the noise or less.
    level : float, default 0.01
        Level υ of the test, above 0 and below 1: the share of pairs with equal preferences that are parted by
        mistake. Smaller parts users later.
    noise : float, optional
        Standard deviation σ of rewards, positive; estimated by default.
    window : int, default 20
        Number of a user's last rewards that change detection uses, from 0 to 64; 0 if users do not change.
    outdated : bool, default True
        Whether data from before a change serves others.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; meant for a given `beta`,
        since that of the theory grows already.
    ridge : float, default 1.0
        λ of the pooled ridge regressions, positive. The test itself has no ridge.
    seed : int, default 0
        Seed of the policy's random numbers, at least 0; DyClu draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    s = b₁ᵀS₁⁺b₁ + b₂ᵀS₂⁺b₂ − bᵀS⁺b with S = S₁ + S₂ and b = b₁ + b₂ is by how much the squared residuals of
    one joint fit exceed those of two. Users are neighbours while s/σ² is below the 1 − υ quantile of χ² with
    rank S₁ + rank S₂ − rank S degrees of freedom. The test depends neither on the scale nor on the basis of
    the features.

    Examples
    --------
    >>> policy = DyClu(n_users=2, dim=1, noise=0.1)
    >>> for _ in range(3):
    ...     policy.update(0, [1.0], 1.0)
    ...     policy.update(1, [1.0], -1.0)
    >>> policy.labels().tolist()
    [0, 1]
    """

    declared = Declaration(
        summary="neighbours by a homogeneity test; resets users who change",
        use_when="users' preferences jump from one cluster's to another's",
        style=Style("DyClu", "#B5651D", "P", "-."),
        grid=Grid(beta=geometric(0.1, 5.0, 6), level=(0.05, 0.01, 0.001, 0.0001)),
        cost=300.0,
        figures=("field",),
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        beta: float | None = None,
        level: float = 0.01,
        noise: float | None = None,
        window: int = 20,
        outdated: bool = True,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            beta=beta,
            level=level,
            noise=noise,
            window=window,
            outdated=outdated,
            growing=growing,
            ridge=ridge,
            seed=seed,
        )

    @staticmethod
    def _plan(
        n_users: int,
        dim: int,
        *,
        beta: float | None,
        level: float,
        noise: float | None,
        window: int,
        outdated: bool,
        growing: bool,
        ridge: float,
        seed: int,
    ) -> Plan:
        settings = {
            "beta": None if beta is None else nonnegative("beta", beta),
            "noise": None if noise is None else positive("noise", noise),
            "critical": [float("inf"), *(_critical(freedom, level) for freedom in range(1, dim + 1))],
            "sharp": _critical(1, SURPRISE),
            "window": whole("window", window, 0, 64),
            "outdated": flag("outdated", outdated),
        }
        return Plan(HomogeneousUsers, settings, growing=growing)


def _critical(freedom: int, level: float) -> float:
    """What χ² exceeds with this probability; twelve digits, so that it does not depend on the machine."""
    from scipy.special import chdtri

    if not 1e-12 <= number("level", level) < 1:
        raise ArgumentError(f"level must be above 0 and below 1, got {level!r}")
    return float(f"{chdtri(freedom, level):.12g}")
