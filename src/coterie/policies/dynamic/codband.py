"""CoDBand: clusters drawn from their posterior, and Thompson sampling on them."""

from __future__ import annotations

from coterie.errors import ArgumentError
from coterie.policies.base import LinearBandit, Plan
from coterie.policies.declarations import Declaration, Grid, Style, geometric
from coterie.policies.dynamic.gibbs_clusters import GibbsClusters
from coterie.seeding import stream
from coterie.validation import number, positive, whole


class CoDBand(LinearBandit):
    """A Dirichlet process over clusters, one Gibbs step a reward (Li et al. 2021).

    Every cluster has a preference. After each reward the user draws its cluster anew, from the probability
    of all its data in each of them; decisions draw the preference. A user whose rewards stop fitting its
    data starts a new period, without data.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    noise : float, default 0.5
        Standard deviation σ of rewards, positive. Too small, and clusters shatter; too large, and they merge.
    scale : float, default 0.1
        Part of the posterior's standard deviation by which samples deviate, positive; 1 is plain Thompson
        sampling, which explores more.
    concentration : float, optional
        Concentration α₀ of the Dirichlet process, positive: how readily new clusters are opened. By default
        it is drawn along with the clusters.
    shape, rate : float, default 15.0 and 1.0
        Parameters of the Gamma distribution that α₀ has beforehand; the shape is at least 1, the rate
        positive. Smaller shapes make fewer clusters.
    window : int, default 20
        Number of a user's last rewards that change detection uses, from 0 to 64; 0 if users do not change.
    ridge : float, default 1.0
        λ of the ridge regressions, positive: preferences have the variance σ²/λ beforehand.
    seed : int, default 0
        Seed of all draws, at least 0.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    A decision draws θ̃ ~ N(θ̂_V, c²σ²M_V⁻¹), with V the user's cluster and c the scale, and plays the arm of
    largest xᵀθ̃. A reward makes one collapsed Gibbs step: cluster k in proportion to n_k p(data of i | data
    of k), a new one to α₀ p(data of i).

    Examples
    --------
    >>> policy = CoDBand(n_users=3, dim=2, noise=0.1)
    >>> for _ in range(5):
    ...     policy.update(0, [1.0, 0.0], 1.0)
    ...     policy.update(0, [0.0, 1.0], 0.0)
    >>> policy.recommend(0, [[0.1, 0.0], [0.9, 0.0]])
    1
    """

    declared = Declaration(
        summary="Thompson sampling; clusters from a Chinese restaurant process",
        use_when="the noise is known, and preferences may change abruptly",
        style=Style("CoDBand", "#7A4988", "X", "-."),
        grid=Grid(noise=(0.5, 1.0, 2.0), scale=geometric(0.03, 1.0, 8)),
        cost=200.0,
        figures=("field",),
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        noise: float = 0.5,
        scale: float = 0.1,
        concentration: float | None = None,
        shape: float = 15.0,
        rate: float = 1.0,
        window: int = 20,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            noise=noise,
            scale=scale,
            concentration=concentration,
            shape=shape,
            rate=rate,
            window=window,
            ridge=ridge,
            seed=seed,
        )

    @staticmethod
    def _plan(
        n_users: int,
        dim: int,
        *,
        noise: float,
        scale: float,
        concentration: float | None,
        shape: float,
        rate: float,
        window: int,
        ridge: float,
        seed: int,
    ) -> Plan:
        settings = {
            "noise": positive("noise", noise),
            "scale": positive("scale", scale),
            "concentration": None if concentration is None else positive("concentration", concentration),
            "shape": _shape(shape),
            "rate": positive("rate", rate),
            "window": whole("window", window, 0, 64),
            "key": int(stream(seed, "clusters").integers(2**63)),
        }
        return Plan(GibbsClusters, settings)


def _shape(value: float) -> float:
    """The shape of the prior of α₀, at least 1."""
    if number("shape", value) < 1:
        raise ArgumentError(f"shape must be at least 1, got {value!r}")
    return float(value)
