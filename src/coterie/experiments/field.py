"""The worlds of the figure `field`: that of Figure 1, those of other papers, and real feedback."""

from __future__ import annotations

from dataclasses import replace

from coterie.experiments.results import ORACLE, Headline
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.variations import Variation
from coterie.policies.declarations import Feedback
from coterie.policies.registry import REGISTRY

FIELD_POLICIES = tuple(name for name, entry in REGISTRY.items() if "field" in entry.figures)
"""Every policy that names the figure `field`: each learns from one reward a round, without known clusters
or a graph.

SACLUB and SASCLUB are not among them: with tuned constants they are CLUB and SCLUB.
"""


def _made_for(feedback: Feedback) -> tuple[str, ...]:
    """The policies that are made to learn from this kind of feedback."""
    return tuple(name for name, entry in REGISTRY.items() if entry.feedback == feedback)


_SOME = ("AutoCLUB", "HierUCB", "LinUCBInd", "LinUCBOne", "CLUB", "SCLUB", "DynUCB", "CoDBand")

DUELLING = (*_SOME, *_made_for("duels"), ORACLE)
"""Who plays duels: COLDB, and some of the others, by differences of arms."""

LISTING = (*_SOME, *_made_for("lists"), ORACLE)
"""Who shows lists: the two that are made for it, and some of the others."""

_WITH_ORACLE = (*FIELD_POLICIES, ORACLE)
_SMALLER = EnvironmentSpec(dim=25, n_arms=20, pool_items=1000)
_BUSY = 10_000
"""Rounds where a round is costly."""

CLUB_2014, SCLUB_2019, UNI_2025 = "Gentile et al. 2014", "Li et al. 2019", "Li et al. 2025"
MISSPECIFIED, CORRUPTED = "Wang et al. 2023, misspecified", "Wang et al. 2023, corrupted"
DYNUCB, DYCLU, CODBAND = "Nguyen and Lauw 2014", "Li et al. 2021, DyClu", "Li et al. 2021, CoDBand"
CAB, LOCB, COLDB = "Gentile et al. 2017", "Ban and He 2021", "Wang et al. 2025"
CASCADE, OURS = "Li and Zhang 2018", "ours"


def _below(paper: str, lower: str, *higher: str) -> tuple[Headline, ...]:
    """A paper's claim against each of these."""
    return tuple(Headline(lower, one, paper) for one in higher)


_AUTO = _below(OURS, "AutoCLUB", "LinUCBInd", "CLUB")

_MADE_UP = (
    Variation(
        label="Figure 1",
        datasets=("synthetic",),
        policies=_WITH_ORACLE,
        horizon=_BUSY,
        headlines=(
            *_below(CLUB_2014, "CLUB", "LinUCBInd", "LinUCBOne"),
            *_below(SCLUB_2019, "SCLUB2019", "CLUB"),
            *_below(UNI_2025, "UniCLUB", "CLUB"),
            *_below(UNI_2025, "UniSCLUB", "SCLUB"),
            *_AUTO,
        ),
    ),
    Variation(
        label="misspecified",
        environment=replace(_SMALLER, misspecification=0.2),
        datasets=("synthetic",),
        policies=_WITH_ORACLE,
        headlines=(
            *_below(MISSPECIFIED, "RCLUMB", "CLUB", "SCLUB", "LinUCBInd"),
            *_below(MISSPECIFIED, "RSCLUMB", "CLUB", "SCLUB", "LinUCBInd"),
            *_AUTO,
        ),
    ),
    Variation(
        label="corrupted users",
        environment=replace(_SMALLER, corrupted=0.1, corrupted_rounds=5_000),
        datasets=("synthetic",),
        policies=_WITH_ORACLE,
        headlines=(*_below(CORRUPTED, "RCLUBWCU", "CLUB", "SCLUB", "LinUCBInd"), *_AUTO),
    ),
    Variation(
        label="jumps",
        environment=replace(_SMALLER, n_users=10, n_clusters=2, n_arms=10, jumps=1750),
        datasets=("synthetic",),
        horizon=30_000,
        headlines=(
            *_below(DYCLU, "DyClu", "CLUB", "SCLUB", "LinUCBInd"),
            *_below(CODBAND, "CoDBand", "CLUB", "SCLUB", "DyClu"),
            *_AUTO,
        ),
    ),
    Variation(
        label="Zipf arrivals",
        environment=replace(_SMALLER, zipf=1.0),
        datasets=("synthetic",),
        policies=_WITH_ORACLE,
        headlines=(*_below(SCLUB_2019, "SCLUB2019", "CLUB"), *_below(UNI_2025, "SCLUB", "CLUB"), *_AUTO),
    ),
)

_ON_REAL = (
    *_below(CLUB_2014, "CLUB", "LinUCBInd", "LinUCBOne"),
    *_below(DYNUCB, "DynUCB", "CLUB", "LinUCBInd"),
    *_below(CAB, "CAB", "CLUB", "DynUCB"),
    *_below(LOCB, "LOCB", "CLUB", "SCLUB"),
    *_below(DYCLU, "DyClu", "CLUB"),
    *_below(CODBAND, "CoDBand", "CLUB", "DyClu"),
    *_AUTO,
)
_SERVED = 150
"""Users of real feedback: CAB and DyClu compare all of them in every round."""

_REAL = (
    Variation(
        label="one heard of 25",
        environment=EnvironmentSpec(setting="lastfm-2014", n_users=_SERVED, n_arms=25, dim=25, noise=0.2),
        datasets=("lastfm",),
        horizon=_BUSY,
        headlines=_ON_REAL,
    ),
    Variation(
        label="ratings",
        environment=EnvironmentSpec(setting="rated", n_users=_SERVED, n_arms=10, dim=20, noise=0.25),
        datasets=("movielens", "yelp"),
        horizon=_BUSY,
        headlines=_ON_REAL,
    ),
)

_DUELS = Variation(
    label="duels",
    environment=EnvironmentSpec(n_clusters=5, n_arms=20, dim=10, pool_items=1000, duels=5.0),
    datasets=("synthetic",),
    policies=DUELLING,
    horizon=_BUSY,
    headlines=(*_below(COLDB, "COLDB", "LinUCBInd", "LinUCBOne"), *_AUTO),
)

_LISTS = Variation(
    label="lists",
    environment=EnvironmentSpec(
        n_users=20, n_clusters=4, dim=10, rewards="bernoulli", list_length=4, attraction=0.4
    ),
    datasets=("synthetic",),
    policies=LISTING,
    horizon=_BUSY,
    headlines=(
        *_below(CASCADE, "CLUBCascade", "CascadeLinUCB"),
        *_AUTO,
        *_below(OURS, "AutoCLUB", "CLUBCascade"),
    ),
)

FIELD_WORLDS = (*_MADE_UP, _DUELS, _LISTS, *_REAL)
"""What is not said is as in Figure 1; the worlds of other papers are smaller, d = 25 and K = 20."""
