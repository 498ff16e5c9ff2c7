"""The worlds that AutoCLUB is tried in, and the regret that it should not exceed there."""

from __future__ import annotations

from coterie.experiments.results import Limit
from coterie.experiments.variations import Variation
from coterie.experiments.worlds import World

OURS = ("AutoCLUB", "LinUCBOracle")
ALONE = ("LinUCBOne", "LinUCBInd")
CUT = ("CLUB", "SCLUB")
TWO = ("synthetic", "movielens")
"""Datasets of the worlds that are about users, not about arms."""

MANY = World(n_users=500, n_clusters=20, pool_users=500, sizes="zipf", zipf=1.0)
"""Many users, most of them seldom there, in clusters of very unequal sizes."""

WORLDS = (
    Variation(label="clusters", limit=Limit(0.65)),
    Variation(label="clusters", horizon=100_000, limit=Limit(0.65)),
    Variation(label="σ = 0.3", world=World(noise=0.3), limit=Limit(1.02)),
    Variation(label="σ = 0.3", world=World(noise=0.3), horizon=100_000, limit=Limit(1.02)),
    Variation(label="σ = 0.03", world=World(noise=0.03), limit=Limit(1.02)),
    Variation(label="σ = 0.03", world=World(noise=0.03), horizon=100_000, limit=Limit(1.02)),
    Variation(
        label="smoothed",
        world=World(setting="smoothed"),
        policies=(*ALONE, "SACLUB", "SASCLUB", *OURS),
        limit=Limit(0.8),
    ),
    Variation(
        label="no clusters",
        world=World(n_clusters=50),
        datasets=TWO,
        policies=(*ALONE, *OURS),
        limit=Limit(1.1, of="LinUCBInd"),
    ),
    Variation(
        label="one cluster",
        world=World(n_clusters=1),
        datasets=TWO,
        policies=(*ALONE, *OURS),
        limit=Limit(2.0, of="LinUCBOne"),
    ),
    Variation(
        label="500 users, Zipf",
        world=MANY,
        datasets=TWO,
        policies=("LinUCBInd", *CUT, *OURS),
        limit=Limit(0.8),
    ),
    Variation(
        label="500 users, Zipf",
        world=MANY,
        datasets=TWO,
        horizon=100_000,
        policies=("LinUCBInd", *CUT, *OURS),
        limit=Limit(0.8),
    ),
    Variation(
        label="0/1 rewards",
        world=World(rewards="bernoulli"),
        datasets=("synthetic",),
        policies=(*ALONE, *CUT, *OURS),
    ),
)
"""What no limit is set for is reported all the same."""
