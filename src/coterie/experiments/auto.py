"""The worlds that AutoCLUB is tried in, and the regret that it should not exceed there."""

from __future__ import annotations

from dataclasses import replace

from coterie.experiments.results import Limit
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.variations import Variation

OURS = ("AutoCLUB", "LinUCBOracle")
ALONE = ("LinUCBOne", "LinUCBInd")
CUT = ("CLUB", "SCLUB")
TWO = ("synthetic", "movielens")
"""Datasets of the worlds that are about users, not about arms."""
CROWDED = (*TWO, "yelp")
"""Datasets of the worlds of 500 users: of Last.fm's 500 busiest, one has none of the items."""

MANY = EnvironmentSpec(n_users=500, n_clusters=20, pool_users=500, sizes="zipf", zipf=1.0)
"""Many users, most of them seldom there, in clusters of very unequal sizes."""


def twice(variation: Variation) -> tuple[Variation, Variation]:
    """The same for the figure's rounds, and for 100,000."""
    return variation, replace(variation, horizon=100_000)


WORLDS = (
    *twice(Variation(label="clusters", limit=Limit(0.65))),
    *twice(Variation(label="σ = 0.3", environment=EnvironmentSpec(noise=0.3), limit=Limit(1.02))),
    *twice(Variation(label="σ = 0.03", environment=EnvironmentSpec(noise=0.03), limit=Limit(1.02))),
    Variation(
        label="smoothed",
        environment=EnvironmentSpec(setting="smoothed"),
        policies=(*ALONE, "SACLUB", "SASCLUB", *OURS),
        limit=Limit(0.8),
    ),
    *twice(
        Variation(
            label="no clusters",
            environment=EnvironmentSpec(n_clusters=50),
            datasets=TWO,
            policies=(*ALONE, *OURS),
            limit=Limit(1.1, of="LinUCBInd"),
        )
    ),
    *twice(
        Variation(
            label="one cluster",
            environment=EnvironmentSpec(n_clusters=1),
            datasets=TWO,
            policies=(*ALONE, *OURS),
            limit=Limit(2.0, of="LinUCBOne"),
        )
    ),
    *twice(
        Variation(
            label="500 users, Zipf",
            environment=MANY,
            datasets=CROWDED,
            policies=("LinUCBInd", *CUT, *OURS),
            limit=Limit(0.8),
        )
    ),
    Variation(
        label="0/1 rewards",
        environment=EnvironmentSpec(rewards="bernoulli"),
        datasets=("synthetic",),
        policies=(*ALONE, *CUT, *OURS),
    ),
)
"""What no limit is set for is reported all the same."""
