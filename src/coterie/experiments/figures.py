"""The paper's figures and tables, and ours, declared as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from coterie.errors import unknown
from coterie.experiments.claims import AsLong, Below, Claim, Finds, Flat, Grows, Headlines, Slower, Within
from coterie.experiments.results import ORACLE, Headline, Limit
from coterie.experiments.specs import EnvironmentSpec
from coterie.policies.declarations import Feedback
from coterie.policies.registry import REGISTRY

PLAIN = EnvironmentSpec()
"""The environment of Fig. 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One way to change the environment: its label, the quantity that changes and its value.

    `policies` and `horizon` replace those of the figure, and `datasets` selects some of the figure's; None
    changes nothing. `limit` is an upper limit on AutoCLUB's regret, and `headlines` are claims of papers
    about such an environment.
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


FIG_1 = ("LinUCBOne", "LinUCBInd", "CLUB", "SCLUB", "UniCLUB", "UniSCLUB")
CLUSTERING = ("CLUB", "SCLUB", "UniCLUB", "UniSCLUB", "PhaseUniCLUB", "AutoCLUB")
GRAPHS = ("GraphUCB", "GOBLin")


PAPER_DATASETS = ("synthetic", "movielens", "lastfm", "yelp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure or table: what is played, how it is shown, and the claims it is tested on.

    Every dataset meets every variation, unless the variation names its own. Constants are tuned in
    `tuned_in`, on the same dataset; None tunes in each variation's own environment. `view` names how it is
    drawn, see `plotting` and `tables`.
    """

    name: str
    title: str
    view: str
    datasets: tuple[str, ...] = PAPER_DATASETS
    variations: tuple[Variation, ...] = (Variation(),)
    tuned_in: EnvironmentSpec | None = None
    policies: tuple[str, ...] = FIG_1
    horizon: int = 100_000
    claims: tuple[Claim, ...] = ()
    timed: bool = False
    has_widths: bool = False
    """Whether it can also be shown with the theory's β."""

    trial_seeds: int | None = None
    """Maximum number of seeds for a point of a grid; None for that of the protocol."""

    def on(self, datasets: tuple[str, ...]) -> Figure:
        """The same figure on other datasets."""
        return replace(self, datasets=datasets) if self.datasets else self


RIVALS = ("LinUCBOne", "LinUCBInd", "CLUB", "SCLUB", "UniSCLUB", "HierUCB", "AutoCLUB", "LinUCBOracle")
"""Policies in the hard environments; the last two are ours and the oracle."""

# The figure `auto`: environments that are hard for AutoCLUB.

ALMOST_BEST, EXTREME = Limit(1.05), 1.15
"""Limits on regret: of the best other policy, and of LinUCBInd or LinUCBOne where no or all users agree."""

_HARD = EnvironmentSpec(dim=20, pool_items=1000)
_HOT = EnvironmentSpec(dim=10, n_arms=10, pool_items=10, onehot=True)
_FIXED = EnvironmentSpec(dim=20, n_arms=10, pool_items=10, noise=0.03)


def _hard(
    label: str, environment: EnvironmentSpec = _HARD, limit: Limit = ALMOST_BEST, **changed: Any
) -> Variation:
    """A hard environment, on synthetic data only."""
    return Variation(
        label=label,
        environment=replace(environment, **changed),
        datasets=("synthetic",),
        policies=RIVALS,
        limit=limit,
    )


def _without_clusters(n_users: int, dim: int) -> Variation:
    """As many preferences as users."""
    environment = replace(_HARD, n_users=n_users, n_clusters=n_users, pool_users=1000, dim=dim)
    return _hard(f"{n_users:,} users, none alike", environment, Limit(EXTREME, of="LinUCBInd"))


def _hard_worlds() -> Iterator[Variation]:
    """Noisy users and rewards, features of other kinds, and clusters that are not exact."""
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
    one = Limit(EXTREME, of="LinUCBOne")
    yield _hard("one cluster, d = 20", limit=one, n_clusters=1)
    yield _hard("one cluster, σ = 1, K = 5", limit=one, n_clusters=1, noise=1.0, n_arms=5)
    yield from (_without_clusters(50, 20), _without_clusters(200, 10), _without_clusters(1000, 10))
    yield _hard("drift 1", drift=1.0)
    yield _hard("rewards + 5", offset=5.0)
    for share in (0.05, 0.1, 0.2, 0.4):
        yield _hard(f"spread {share:.0%} of γ".replace("%", " %"), within=share)
    for n_users in (50, 200):
        yield _hard(f"continuum, {n_users} users", rank=3, n_users=n_users, n_clusters=n_users)


HARD_WORLDS = tuple(_hard_worlds())
"""Hard environments of the figure `auto`; unless given, 50 users in 10 clusters, d = 20, σ = 0.1."""


# The figure `field`: the environment of Figure 1, those of other papers, and real feedback.

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
"""Policies that play duels: those made for them, and some of the others, by differences of arms."""

LISTING = (*_SOME, *_made_for("lists"), ORACLE)
"""Policies that show lists: those made for them, and some of the others."""

_WITH_ORACLE = (*FIELD_POLICIES, ORACLE)
_SMALLER = EnvironmentSpec(dim=25, n_arms=20, pool_items=1000)
_BUSY = 10_000
"""Horizon of environments whose rounds are costly."""

CLUB_2014, SCLUB_2019, UNI_2025 = "Gentile et al. 2014", "Li et al. 2019", "Li et al. 2025"
MISSPECIFIED, CORRUPTED = "Wang et al. 2023, misspecified", "Wang et al. 2023, corrupted"
DYNUCB, DYCLU, CODBAND = "Nguyen and Lauw 2014", "Li et al. 2021, DyClu", "Li et al. 2021, CoDBand"
CAB, LOCB, COLDB = "Gentile et al. 2017", "Ban and He 2021", "Wang et al. 2025"
COFIBA = "Li et al. 2016"
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
    *_below(COFIBA, "COFIBA", "CLUB", "DynUCB"),
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
"""Parameters that are not given are those of Figure 1; those of other papers are smaller, d = 25, K = 20."""


# Claims, and the environments of the figures `auto` and `real`.


def _sharing_helps(*policies: str) -> tuple[Claim, ...]:
    """Each of these is below both policies without clusters: one model for all users, one for each."""
    return tuple(Below(policy, alone) for policy in policies for alone in ("LinUCBOne", "LinUCBInd"))


def _auto_is_least(*rivals: str) -> tuple[Claim, ...]:
    """AutoCLUB is below each of these."""
    return tuple(Below("AutoCLUB", rival) for rival in rivals)


_UNIFORM_HELPS = (Below("UniCLUB", "CLUB"), Below("UniSCLUB", "SCLUB"))
_AS_LONG = (AsLong("UniCLUB", "CLUB"), AsLong("UniSCLUB", "SCLUB"))
_GRAPHS_LOSE = (Below("UniSCLUB", "GOBLin"), Below("UniSCLUB", "GraphUCB"), Below("UniCLUB", "GOBLin"))
_SMALL = EnvironmentSpec(n_users=20, n_clusters=4, n_arms=20)

_OURS = ("AutoCLUB", "LinUCBOracle")
_ALONE = ("LinUCBOne", "LinUCBInd")
_CUT = ("CLUB", "SCLUB")
_TWO = ("synthetic", "movielens")
"""Datasets of environments that are about users, not about arms."""
_LARGE = (*_TWO, "yelp")
"""Datasets for 500 users: of the 500 most active users of Last.fm, one has none of the items."""

_MANY = EnvironmentSpec(n_users=500, n_clusters=20, pool_users=500, sizes="zipf", zipf=1.0)
"""Many users of unequal activity, in clusters of very unequal sizes."""


def _both_horizons(variation: Variation) -> tuple[Variation, Variation]:
    """A variation with the figure's horizon, and with 100,000 rounds."""
    return variation, replace(variation, horizon=100_000)


_AUTO_WORLDS = (
    *_both_horizons(Variation(label="clusters", limit=Limit(0.65))),
    *_both_horizons(Variation(label="σ = 0.3", environment=EnvironmentSpec(noise=0.3), limit=Limit(1.02))),
    *_both_horizons(Variation(label="σ = 0.03", environment=EnvironmentSpec(noise=0.03), limit=Limit(1.02))),
    Variation(
        label="smoothed",
        environment=EnvironmentSpec(setting="smoothed"),
        policies=(*_ALONE, "SACLUB", "SASCLUB", *_OURS),
        limit=Limit(0.8),
    ),
    *_both_horizons(
        Variation(
            label="no clusters",
            environment=EnvironmentSpec(n_clusters=50),
            datasets=_TWO,
            policies=(*_ALONE, *_OURS),
            limit=Limit(1.1, of="LinUCBInd"),
        )
    ),
    *_both_horizons(
        Variation(
            label="one cluster",
            environment=EnvironmentSpec(n_clusters=1),
            datasets=_TWO,
            policies=(*_ALONE, *_OURS),
            limit=Limit(2.0, of="LinUCBOne"),
        )
    ),
    *_both_horizons(
        Variation(
            label="500 users, Zipf",
            environment=_MANY,
            datasets=_LARGE,
            policies=("LinUCBInd", *_CUT, *_OURS),
            limit=Limit(0.8),
        )
    ),
    Variation(
        label="0/1 rewards",
        environment=EnvironmentSpec(rewards="bernoulli"),
        datasets=("synthetic",),
        policies=(*_ALONE, *_CUT, *_OURS),
    ),
    *HARD_WORLDS,
)
"""Environments of the figure `auto`; those without a limit are reported too."""

REAL_POLICIES = tuple(name for name, entry in REGISTRY.items() if "real" in entry.figures)
"""Every policy that names the figure `real`."""

_LISTENS = EnvironmentSpec(setting="lastfm-2014", n_users=2000, n_arms=25, dim=25, noise=0.2)
_RATED = EnvironmentSpec(setting="rated", n_users=500, n_arms=10, dim=20, noise=0.25)
_STREAM = EnvironmentSpec(setting="stream", n_users=2000, n_arms=25, dim=25, noise=0.2)
_UNTUNED = tuple(name for name in REAL_POLICIES if not dict(REGISTRY[name].grid.axes()))
_FRIENDS = replace(_LISTENS, n_users=150, dim=10, connected=True)
_BESIDE_GRAPHS = tuple(
    name
    for name in (
        "LinUCBOne",
        "LinUCBInd",
        "CLUB",
        "SCLUB",
        "AutoCLUB",
        "HierUCB",
        "HierTS",
        "ItemUCB",
        "ItemTS",
        *GRAPHS,
    )
    if name in REGISTRY
)

_JOKES = EnvironmentSpec(setting="complete", n_users=2000, n_arms=10, dim=20, noise=0.26)
_VOTES = EnvironmentSpec(setting="rated", vectors="text", n_users=1000, n_arms=10, dim=20, noise=0.43)
_COATS = EnvironmentSpec(setting="rated", vectors="features", n_users=300, n_arms=5, dim=30, noise=0.31)
_TWEETS = replace(_STREAM, n_users=8000)


def _with_and_without_repeats(
    label: str, environment: EnvironmentSpec, dataset: str, *horizons: int
) -> tuple[Variation, ...]:
    """Two protocols: an item may be shown to a user again, or it is shown once."""
    repeated, once = horizons or (None, None)
    return (
        Variation(label=label, environment=environment, datasets=(dataset,), horizon=repeated),
        Variation(
            label=f"{label}, each once",
            environment=replace(environment, once=True),
            datasets=(dataset,),
            horizon=once,
        ),
    )


_REAL_WORLDS = (
    Variation(label="one heard of 25", environment=_LISTENS, datasets=("lastfm",)),
    Variation(
        label="one heard of 25, else −1/24",
        environment=replace(_LISTENS, default_payoff=-1 / 24),
        datasets=("lastfm",),
    ),
    Variation(
        label="sliding window",
        environment=replace(_LISTENS, offers="window", window=20_000, noise=0.06),
        datasets=("lastfm",),
    ),
    Variation(label="stream", environment=_STREAM, datasets=("lastfm", "movielens")),
    Variation(label="ratings", environment=_RATED, datasets=("movielens", "yelp")),
    Variation(
        label="ratings above 3.5",
        environment=replace(_RATED, threshold=3.5, noise=0.5),
        datasets=("movielens", "yelp"),
    ),
    *_with_and_without_repeats("all jokes", _JOKES, "jester"),
    Variation(
        label="all jokes by their words, each once",
        environment=replace(_JOKES, vectors="text", once=True),
        datasets=("jester",),
    ),
    *_with_and_without_repeats("votes", replace(_VOTES, conversation="vtaiwan.uberx"), "polis"),
    Variation(
        label="votes in 11 conversations, each once",
        environment=replace(_VOTES, once=True),
        datasets=("polis",),
    ),
    *_with_and_without_repeats("random coats", _COATS, "coat", 5_000, 2_500),
    *_with_and_without_repeats("stream of tweets", _TWEETS, "movietweetings"),
    Variation(
        label="150 users and their friendships",
        environment=_FRIENDS,
        datasets=("lastfm",),
        policies=_BESIDE_GRAPHS,
        horizon=3_000,
    ),
)
"""Environments of the figure `real`; `noise` is the deviation of rewards under uniform play, rounded."""

# The figures themselves.

_ALL = (
    Figure(
        name="fig-1",
        title="Cumulative regret, stochastic contexts",
        view="curves",
        policies=(*FIG_1, "PhaseUniCLUB", "AutoCLUB"),
        claims=(*_UNIFORM_HELPS, *_sharing_helps(*FIG_1[2:]), *_auto_is_least(*FIG_1, "PhaseUniCLUB")),
        has_widths=True,
    ),
    Figure(
        name="fig-2",
        title="Cumulative regret, smoothed adversarial contexts",
        view="curves",
        variations=(Variation(environment=EnvironmentSpec(setting="smoothed")),),
        policies=("LinUCBOne", "LinUCBInd", "SACLUB", "SASCLUB"),
        horizon=20_000,
        claims=_sharing_helps("SACLUB", "SASCLUB"),
        has_widths=True,
    ),
    Figure(
        name="fig-3",
        title="Cumulative regret with different arm-set sizes",
        view="sweep",
        datasets=("yelp",),
        variations=tuple(
            Variation(
                label=f"K = {k}", quantity="arms a round, K", value=k, environment=EnvironmentSpec(n_arms=k)
            )
            for k in (80, 100, 120, 140)
        ),
        tuned_in=PLAIN,
        claims=(Flat("UniCLUB", "K"), Flat("UniSCLUB", "K"), *_UNIFORM_HELPS),
    ),
    Figure(
        name="fig-4",
        title="Cumulative regret with different numbers of users",
        view="sweep",
        datasets=("yelp",),
        variations=tuple(
            Variation(label=f"u = {u}", quantity="users, u", value=u, environment=EnvironmentSpec(n_users=u))
            for u in (40, 50, 60, 70)
        ),
        tuned_in=PLAIN,
        claims=(
            *(Grows(policy, "u") for policy in FIG_1),
            *_UNIFORM_HELPS,
            *_sharing_helps("UniCLUB", "UniSCLUB"),
        ),
    ),
    Figure(
        name="fig-5",
        title="Cumulative regret beside GOB.Lin and GraphUCB",
        view="curves",
        variations=(Variation(environment=_SMALL),),
        policies=(*FIG_1, *GRAPHS),
        horizon=20_000,
        claims=(*_UNIFORM_HELPS, *_GRAPHS_LOSE, *_sharing_helps(*FIG_1[2:], "GOBLin", "GraphUCB")),
        has_widths=True,
    ),
    Figure(
        name="table-1",
        title="Assumptions and regret bounds, in numbers",
        view="bounds",
        policies=(),
    ),
    Figure(
        name="table-2",
        title="Running times of the runs of Fig. 5, in seconds",
        view="times",
        variations=(Variation(environment=_SMALL),),
        policies=(*FIG_1, *GRAPHS),
        horizon=20_000,
        claims=(
            *(Slower(graph, policy) for policy in reversed(FIG_1) for graph in GRAPHS),
            *_AS_LONG,
        ),
        timed=True,
    ),
    Figure(
        name="clusters",
        title="Are the clusters found?",
        view="clusters",
        policies=CLUSTERING,
        claims=tuple(Finds(policy) for policy in CLUSTERING),
    ),
    Figure(
        name="gap",
        title="Regret with the gap between clusters and the noise",
        view="gap",
        datasets=("synthetic",),
        variations=(
            *(
                Variation(
                    label=f"γ × {s:g}", quantity="gap γ", value=s, environment=EnvironmentSpec(spread=s)
                )
                for s in (0.25, 0.5, 0.75, 1.0)
            ),
            *(
                Variation(
                    label=f"σ = {s:g}", quantity="noise σ", value=s, environment=EnvironmentSpec(noise=s)
                )
                for s in (0.05, 0.1, 0.2, 0.4)
            ),
        ),
        policies=(*FIG_1, "PhaseUniCLUB", "AutoCLUB"),
        horizon=20_000,
        claims=_UNIFORM_HELPS,
    ),
    Figure(
        name="auto",
        title="AutoCLUB in every kind of environment",
        view="ratios",
        variations=_AUTO_WORLDS,
        policies=(*FIG_1, "PhaseUniCLUB", *_OURS),
        horizon=20_000,
        claims=(Within("AutoCLUB"),),
    ),
    Figure(
        name="real",
        title="Real feedback: reward relative to uniform play",
        view="relative",
        datasets=("lastfm", "movielens", "yelp", "jester", "polis", "coat", "movietweetings"),
        variations=_REAL_WORLDS,
        policies=REAL_POLICIES,
        horizon=20_000,
        claims=(
            *_auto_is_least(*(name for name in (*REAL_POLICIES, *GRAPHS) if name not in _UNTUNED)),
            *(Below(hier, "AutoCLUB") for hier in _UNTUNED[1:] if hier in REGISTRY),
        ),
    ),
    Figure(
        name="field",
        title="The field: regret as a multiple of the least in each environment",
        view="winners",
        variations=FIELD_WORLDS,
        policies=FIELD_POLICIES,
        horizon=20_000,
        claims=(Headlines(),),
        trial_seeds=1,
    ),
)

FIGURES: Mapping[str, Figure] = MappingProxyType({figure.name: figure for figure in _ALL})
"""Every figure and table of `coterie reproduce`, by name."""


def find_figure(name: str) -> Figure:
    """Find a figure or table by name.

    Parameters
    ----------
    name : str
        Name such as "fig-1"; `FIGURES` has them all.

    Returns
    -------
    Figure
        What it plays, how it is shown, and its claims.

    Raises
    ------
    UnknownName
        If there is no such figure; the message suggests the nearest name.

    Examples
    --------
    >>> find_figure("fig-1").horizon
    100000
    """
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES, f"There are {', '.join(FIGURES)}, and all")
    return FIGURES[name]


def find_figures(names: tuple[str, ...]) -> list[Figure]:
    """The figures of these names in order, each once; 'all' stands for every one."""
    listed = [one for name in names for one in (FIGURES if name == "all" else (name,))]
    return [find_figure(name) for name in dict.fromkeys(listed)]
