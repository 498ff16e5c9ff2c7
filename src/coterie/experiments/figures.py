"""The paper's figures and tables, and ours, declared as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from coterie.errors import unknown
from coterie.experiments.claims import AsLong, Below, Claim, Finds, Flat, Grows, Headlines, Slower, Within
from coterie.experiments.field import FIELD_POLICIES, FIELD_WORLDS
from coterie.experiments.results import Limit
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.variations import HARD_WORLDS, PLAIN, Variation
from coterie.policies.registry import REGISTRY

FIG_1 = ("LinUCBOne", "LinUCBInd", "CLUB", "SCLUB", "UniCLUB", "UniSCLUB")
CLUSTERING = ("CLUB", "SCLUB", "UniCLUB", "UniSCLUB", "PhaseUniCLUB", "AutoCLUB")
GRAPHS = ("GraphUCB", "GOBLin")


PAPER_DATASETS = ("synthetic", "movielens", "lastfm", "yelp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What is played, how it is shown, and which claims it bears on.

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
    """Can it be shown with the theory's β too?"""

    trial_seeds: int | None = None
    """Seeds that a point of a grid is played on, at most; None for those of the protocol."""

    def on(self, datasets: tuple[str, ...]) -> Figure:
        """The same figure on other datasets."""
        return replace(self, datasets=datasets) if self.datasets else self


def _sharing_helps(*policies: str) -> tuple[Claim, ...]:
    """Each of these is below both policies that let nobody learn from those alike."""
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
"""Datasets of the worlds that are about users, not about arms."""
_LARGE = (*_TWO, "yelp")
"""Datasets of the worlds of 500 users: of Last.fm's 500 busiest, one has none of the items."""

_MANY = EnvironmentSpec(n_users=500, n_clusters=20, pool_users=500, sizes="zipf", zipf=1.0)
"""Many users, most of them seldom there, in clusters of very unequal sizes."""


def _both_horizons(variation: Variation) -> tuple[Variation, Variation]:
    """The same for the figure's horizon, and for 100,000 rounds."""
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
"""The environments of the figure `auto`; those without a limit are reported all the same."""

REAL_POLICIES = tuple(name for name, entry in REGISTRY.items() if "real" in entry.figures)
"""Every policy that names the figure `real`."""

_LISTENS = EnvironmentSpec(setting="lastfm-2014", n_users=2000, n_arms=25, dim=25, noise=0.2)
_RATED = EnvironmentSpec(setting="rated", n_users=500, n_arms=10, dim=20, noise=0.25)
_STREAM = EnvironmentSpec(setting="stream", n_users=2000, n_arms=25, dim=25, noise=0.2)
_UNTUNED = tuple(name for name in REAL_POLICIES if not dict(REGISTRY[name].grid.axes()))
_FRIENDS = replace(_LISTENS, n_users=150, dim=10, connected=True)
_BESIDE_GRAPHS = tuple(
    name
    for name in ("LinUCBOne", "LinUCBInd", "CLUB", "SCLUB", "AutoCLUB", "HierUCB", "HierTS", *GRAPHS)
    if name in REGISTRY
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
    Variation(
        label="150 users and their friendships",
        environment=_FRIENDS,
        datasets=("lastfm",),
        policies=_BESIDE_GRAPHS,
        horizon=3_000,
    ),
)
"""The worlds of the figure `real`; `noise` is the deviation of rewards under uniform play, rounded."""

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
        title="AutoCLUB in every kind of world",
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
        datasets=("lastfm", "movielens", "yelp"),
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
        title="The field: regret as a multiple of the least in each world",
        view="winners",
        variations=FIELD_WORLDS,
        policies=FIELD_POLICIES,
        horizon=20_000,
        claims=(Headlines(),),
        trial_seeds=1,
    ),
)

FIGURES: Mapping[str, Figure] = MappingProxyType({figure.name: figure for figure in _ALL})
"""Everything that `coterie reproduce` knows."""


def find_figure(name: str) -> Figure:
    """Find a figure or table of the paper by name.

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
