"""Variations of an environment, and the worlds that are hard for AutoCLUB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from coterie.experiments.results import Headline, Limit
from coterie.experiments.specs import EnvironmentSpec

PLAIN = EnvironmentSpec()
"""The environment of Fig. 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One way to change the environment: its label, the quantity that changes and its value.

    `policies` and `horizon` are instead of the figure's, and `datasets` are those of the figure's that it
    is played on; None changes nothing. `limit` is the greatest regret wanted of AutoCLUB there, and
    `headlines` are what papers claim of such a world.
    """

    label: str = ""
    quantity: str = ""
    value: float = 0.0
    environment: EnvironmentSpec = PLAIN
    datasets: tuple[str, ...] | None = None
    policies: tuple[str, ...] | None = None
    horizon: int | None = None
    limit: Limit | None = None
    headlines: tuple[Headline, ...] = ()


RIVALS = ("LinUCBOne", "LinUCBInd", "CLUB", "SCLUB", "UniSCLUB", "HierUCB", "AutoCLUB", "LinUCBOracle")
"""Who plays in a hard world; the last two are ours and the oracle."""

ALMOST_BEST, ALIKE = Limit(1.05), 1.15
"""Regret wanted: of the best other policy, and of LinUCB-Ind or -One where nobody or everybody is alike."""

_HARD = EnvironmentSpec(dim=20, pool_items=1000)
_HOT = EnvironmentSpec(dim=10, n_arms=10, pool_items=10, onehot=True)
_FIXED = EnvironmentSpec(dim=20, n_arms=10, pool_items=10, noise=0.03)


def _hard(
    label: str, environment: EnvironmentSpec = _HARD, limit: Limit = ALMOST_BEST, **changed: Any
) -> Variation:
    """A world that is played on the synthetic data alone."""
    return Variation(
        label=label,
        environment=replace(environment, **changed),
        datasets=("synthetic",),
        policies=RIVALS,
        limit=limit,
    )


def _nobody_alike(n_users: int, dim: int) -> Variation:
    """As many preferences as users."""
    world = replace(_HARD, n_users=n_users, n_clusters=n_users, pool_users=1000, dim=dim)
    return _hard(f"{n_users:,} users, none alike", world, Limit(ALIKE, of="LinUCBInd"))


def _hard_worlds() -> Iterator[Variation]:
    """Wild users and rewards, features of other kinds, and clusters that are not exact."""
    yield _hard("clusters, d = 20")
    for sd in (2.0, 5.0, 10.0):
        yield _hard(f"a liar of sd {sd:g}", liars=1, liar_sd=sd)
    for size in (100.0, 1000.0):
        yield _hard(f"one reward + {size:,.0f}", outlier=size)
    yield _hard("uneven noise", noise=0.05, uneven=20.0)
    yield _hard("Cauchy noise", rewards="cauchy")
    yield _hard("1 % of noise × 50", rewards="contaminated")
    for sigma in (0.01, 0.03, 0.1):
        yield _hard(f"one-hot, σ = {sigma:g}", _HOT, noise=sigma)
    yield _hard("10 fixed arms", _FIXED)
    yield _hard("3 fixed arms", _FIXED, dim=5, n_arms=3, pool_items=3, noise=0.3)
    yield _hard("features × 0.03", feature_scale=0.03)
    yield _hard("columns × 1, 10, 100", feature_spread=100.0)
    one = Limit(ALIKE, of="LinUCBOne")
    yield _hard("one cluster, d = 20", limit=one, n_clusters=1)
    yield _hard("one cluster, σ = 1, K = 5", limit=one, n_clusters=1, noise=1.0, n_arms=5)
    yield from (_nobody_alike(50, 20), _nobody_alike(200, 10), _nobody_alike(1000, 10))
    yield _hard("drift 1", drift=1.0)
    yield _hard("rewards + 5", offset=5.0)
    for share in (0.05, 0.1, 0.2, 0.4):
        yield _hard(f"spread {share:.0%} of γ".replace("%", " %"), within=share)
    for n_users in (50, 200):
        yield _hard(f"continuum, {n_users} users", rank=3, n_users=n_users, n_clusters=n_users)


HARD_WORLDS = tuple(_hard_worlds())
"""Further worlds of the figure `auto`; what is not said is 50 users in 10 clusters, d = 20, σ = 0.1."""
