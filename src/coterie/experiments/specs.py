"""Specifications of a policy and of an environment, as plain data that can be compared, hashed and stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from inspect import signature
from math import isfinite, sqrt
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from coterie.datasets import Dataset, PayoffTable
from coterie.datasets.real_feedback import SETTINGS as REAL
from coterie.environments import (
    Bernoulli,
    Cascade,
    Cauchy,
    Contaminated,
    Disturbed,
    Duel,
    Gaussian,
    Noise,
    PayoffDuel,
    Payoffs,
    Shifted,
    Smoothed,
    Stochastic,
    Stream,
    Uniform,
    lifted,
    low_rank,
    onehot,
    rescaled,
)
from coterie.errors import ArgumentError
from coterie.policies.factories import find_factory, is_own
from coterie.seeding import stream
from coterie.types import Bools, Floats, Ints
from coterie.validation import nonnegative, positive, shown, whole

Value: TypeAlias = bool | int | float | str


class Params(Mapping[str, Value]):
    """Parameters by name: immutable, hashable, in alphabetical order."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        """Copy the values; what JSON cannot hold is refused."""
        self._values = {name: _plain(name, values[name]) for name in sorted(values)}

    def __getitem__(self, name: str) -> Value:
        """The value of a parameter."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """The names in order."""
        return iter(self._values)

    def __len__(self) -> int:
        """The number of parameters."""
        return len(self._values)

    def __hash__(self) -> int:
        """Equal parameters have equal hashes."""
        return hash(tuple(self._values.items()))

    def __str__(self) -> str:
        """Names and values, as in a table."""
        return ", ".join(f"{name} {format_value(value)}" for name, value in self.items())

    def __repr__(self) -> str:
        """As a dict."""
        return repr(self._values)


def format_value(value: Value) -> str:
    """Format a value for display: numbers to six digits."""
    return str(value) if isinstance(value, str | bool) else f"{value:g}"


def _plain(name: str, value: object) -> Value:
    """Convert a value to a bool, int, float or str."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and isfinite(value):
        return float(value)
    raise ArgumentError(f"{name} must be a finite number, text, true or false, got {shown(value)}")


World: TypeAlias = (
    Stochastic | Smoothed | Cascade | Duel | PayoffDuel | Disturbed | Payoffs | Stream | Shifted
)
"""Environments that policies can play in."""


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A policy by name, and the parameters that it is made with.

    Parameters
    ----------
    name : str
        Registered name such as `CLUB`, or `package.module:Attribute` for a policy of your own.
    params : mapping, default {}
        Parameters by name; the rest is as the maker has it. A policy that takes `confidence` takes the fields
        of `Tuned` instead: alpha, beta, explore, phase, growth.

    Examples
    --------
    >>> print(PolicySpec("CLUB", {"beta": 0.1, "alpha": 1.5}))
    CLUB (alpha 1.5, beta 0.1)
    """

    name: str
    params: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Freeze the parameters."""
        # Frozen dataclass: the mapping is replaced by one that can be hashed and compared.
        object.__setattr__(self, "params", Params(self.params))

    @property
    def label(self) -> str:
        """Name in a table or a legend; for a policy of your own, the name of its class."""
        return self.name.rpartition(":")[2]

    def __str__(self) -> str:
        """Format as the name, with the parameters in brackets."""
        return f"{self.name} ({self.params})" if self.params else self.name

    def make(self, world: World, seed: int) -> Any:
        """Make the policy, before its first round.

        The maker is given those of n_users (the users present at the start), dim, seed and the parameters
        that its signature names; only one that names `labels` or `graph` gets the true clusters. Where
        there are none, the graph is that of friendships. `catalogue` is the vectors of all items.

        Parameters
        ----------
        world : Environment
            Environment that the policy will play in, from `EnvironmentSpec.make`.
        seed : int
            Seed of the policy.

        Returns
        -------
        Policy
            An object with `recommend` and `update`.

        Raises
        ------
        ArgumentError, UnknownName
            If the policy cannot be found or made, or does not take a parameter.
        """
        return self.make_for(world.present(0), world.dim, seed, world=world)

    def make_for(self, n_users: int, dim: int, seed: int, *, world: World | None = None) -> Any:
        """Make the policy for a number of users, without an environment unless one is given.

        Parameters
        ----------
        n_users : int
            Number of users.
        dim : int
            Length of an arm's vector.
        seed : int
            Seed of the policy.
        world : Environment, optional
            Environment with true clusters or friendships, as for `make`.

        Returns
        -------
        Policy
            An object with `recommend` and `update`.
        """
        factory = find_factory(self.name)
        factory.check(self.params)
        special: dict[str, Callable[[], Any]] = {
            "labels": lambda: None if world is None else self._labels(world),
            "graph": lambda: None if world is None else self._graph(world),
            "catalogue": lambda: None if world is None else self._catalogue(world),
        }
        made = {name: special[name]() for name in special if name in factory.arguments}
        offered = {"n_users": n_users, "dim": dim, "seed": seed, **self.params}
        offered.update((name, value) for name, value in made.items() if value is not None)
        return factory({name: value for name, value in offered.items() if factory.passes(name)})

    def _labels(self, world: World) -> Ints | None:
        """The true clusters of the users present; only a policy of your own can do without."""
        if world.labels is not None:
            return np.asarray(world.labels[: world.present(0)])
        if is_own(self.name):
            return None
        raise ArgumentError(f"{self.name} needs the true clusters, and real feedback has none: leave it out")

    def _catalogue(self, world: World) -> Floats | None:
        """The vectors of all items, whose ids are their rows; only a policy of your own can do without."""
        block = world.block(0)
        if block.lasting and block.ids is None:
            return block.items
        if is_own(self.name):
            return None
        raise ArgumentError(f"{self.name} needs a catalogue of items that stay the same: leave it out")

    def _graph(self, world: World) -> Bools | Floats | None:
        """The graph that joins users of one cluster, or that of friendships."""
        if world.labels is not None:
            return same_cluster(np.asarray(world.labels[: world.present(0)]))
        if is_own(self.name) or world.graph is not None:
            return world.graph
        raise ArgumentError(
            f"{self.name} needs a graph of the users, and only 'lastfm-2014' has one: its friendships"
        )


def same_cluster(labels: np.ndarray[Any, Any]) -> Bools:
    """Build the graph that joins users of one cluster (App. G.4)."""
    joined: Bools = (labels[:, None] == labels[None, :]) & ~np.eye(len(labels), dtype=np.bool_)
    return joined


Data: TypeAlias = Dataset | PayoffTable
"""Data that environments are made of: vectors of users and items, or payoffs of real feedback."""


NOISES: Mapping[str, Callable[[float], Noise]] = MappingProxyType(
    {
        "gaussian": Gaussian,
        "uniform": Uniform,
        "bernoulli": lambda sigma: Bernoulli(),
        "cauchy": Cauchy,
        "contaminated": Contaminated,
    }
)
"""Kinds of noise by name, for a given σ."""

DISTURBANCES: Mapping[str, float] = MappingProxyType(
    {"liars": 0, "outlier": 0.0, "uneven": 1.0, "within": 0.0}
)
"""Parameters of `Disturbed` with their neutral values."""

ENVIRONMENTS: Mapping[str, type[Stochastic] | type[Smoothed]] = MappingProxyType(
    {"stochastic": Stochastic, "smoothed": Smoothed}
)
"""Kinds of environments, by `EnvironmentSpec.setting`."""


STOCHASTIC_PARAMETERS = (
    *("sizes", "zipf", "late", "settled", "drift", "delay", "jumps"),
    *("misspecification", "corrupted", "corruption", "corrupted_rounds"),
)
SMOOTHED_ONLY = ("sigma", "truncation", "adversary")
SIMULATED_ONLY = (
    *STOCHASTIC_PARAMETERS,
    *SMOOTHED_ONLY,
    *("n_clusters", "rewards", "pool_users", "scale", "spread"),
)
REAL_ONLY = (
    *("threshold", "unit", "vectors", "conversation", "offers"),
    *("default_payoff", "window", "connected", "once"),
)
"""Parameters of `EnvironmentSpec` that have an effect only in some settings."""

UNUSED_BY_SETTING: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "stream": ("offers", "default_payoff", "window", "connected"),
        "payoffs": ("dim", "pool_items", "threshold"),
        "lastfm-2014": ("pool_items", "threshold"),
    }
)
NEEDED: Mapping[str, str] = MappingProxyType(
    {"settled": "late", "corruption": "corrupted", "corrupted_rounds": "corrupted", "liar_sd": "liars"}
)
"""Parameters that have an effect only where another one is not 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSpec:
    """Everything that determines an environment but its seed; the defaults are those of Fig. 1.

    Parameters
    ----------
    dataset : str, default "synthetic"
        Name for `coterie.datasets.load`.
    setting : str, default "stochastic"
        Kind of environment. Simulated rewards: "stochastic" or "smoothed" (`Stochastic`, `Smoothed`). Real
        feedback: "lastfm-2014", "rated", "complete", "stream" or "payoffs", see
        `coterie.datasets.load_payoffs`.
    n_users, n_clusters, n_arms : int, default 50, 10 and 100
        Numbers of users, clusters and arms in a round. Real feedback has no clusters, and at most `n_users`
        users are served.
    noise : float, default 0.1
        Size of the noise: σ of Gaussian noise, the width of uniform noise, the scale of Cauchy noise, σ of
        most contaminated noise; Bernoulli rewards ignore it. Real
        feedback has no noise: there it is the unit in which constants of policies are tuned, the standard
        deviation of rewards under uniform play, 0.5 at most.
    rewards : {"gaussian", "uniform", "bernoulli", "cauchy", "contaminated"}, default "gaussian"
        Kind of noise.
    dim : int, default 50
        Dimension of the vectors that `load` makes.
    pool_users, pool_items : int, default 200 and 5000
        `n_users` and `n_items` of `load`: what users and arms are drawn from.
    scale : str, default "unit"
        `scale` of `load`.
    data_seed : int, default 0
        `seed` of `load`, which matters to 'synthetic' only, or of `load_payoffs`.
    spread : float, default 1.0
        Factor of the gap between clusters, above 0 and at most 1.
    sizes, zipf, late, settled, drift, delay, jumps
        As for `Stochastic`.
    misspecification, corrupted, corruption, corrupted_rounds
        As for `Stochastic`.
    sigma, truncation, adversary
        As for `Smoothed`; other settings ignore them.
    offset : float, default 0.0
        Added to every reward, see `Shifted`.
    intercept : bool, default False
        Whether every arm has one more coordinate, the same for all.
    threshold, unit, vectors, conversation
        As for `load_payoffs`; only for real feedback.
    offers, window, connected, once
        As for `Payoffs`; "" offers what is usual for the setting.
    default_payoff : float, default 0.0
        `default` of `Payoffs`.
    list_length : int, default 1
        Arms shown in a round, as a list that is scanned until the first click (`Cascade`); 1 for no list.
    attraction : float, default 1.0
        `attraction` of `lifted`: the largest probability of a reward of 1; only for Bernoulli rewards.
    duels : float, default 0.0
        `sharpness` of duels between two arms, in place of rewards (`Duel`); 0 for none. Of real feedback
        0 or 1: with 1 the arm with the larger payoff is preferred (`PayoffDuel`).
    liars, liar_sd, outlier, uneven, within
        As for `Disturbed`; only for simulated rewards that are not 0 or 1.
    onehot : bool, default False
        Whether the vectors of items are the unit vectors (`onehot`).
    feature_scale, feature_spread : float, default 1.0
        `scale` and `spread` of `rescaled`, which gives the features other units.
    rank : int, default 0
        Dimension of the subspace that users' vectors are drawn from (`low_rank`); 0 for those of the dataset.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Examples
    --------
    >>> EnvironmentSpec(n_users=20).setting
    'stochastic'
    """

    dataset: str = "synthetic"
    setting: Literal["stochastic", "smoothed", "lastfm-2014", "rated", "complete", "stream", "payoffs"] = (
        "stochastic"
    )
    n_users: int = 50
    n_clusters: int = 10
    n_arms: int = 100
    noise: float = 0.1
    rewards: Literal["gaussian", "uniform", "bernoulli", "cauchy", "contaminated"] = "gaussian"
    dim: int = 50
    pool_users: int = 200
    pool_items: int = 5000
    scale: str = "unit"
    data_seed: int = 0
    spread: float = 1.0
    sizes: Literal["equal", "zipf"] = "equal"
    zipf: float = 0.0
    late: float = 0.0
    settled: int = 10_000
    drift: float = 0.0
    delay: int = 0
    misspecification: float = 0.0
    corrupted: float = 0.0
    corruption: Literal["flip", "random"] = "flip"
    corrupted_rounds: int = 10_000
    jumps: float = 0.0
    sigma: float = sqrt(0.1)
    truncation: float = 1.0
    adversary: str = "random"
    list_length: int = 1
    attraction: float = 1.0
    duels: float = 0.0
    offset: float = 0.0
    intercept: bool = False
    threshold: float | None = None
    unit: bool = False
    vectors: str = "users"
    conversation: str = ""
    offers: Literal["", "all", "known", "one-positive", "window"] = ""
    default_payoff: float = 0.0
    window: int = 50_000
    connected: bool = False
    once: bool = False
    liars: int = 0
    liar_sd: float = 5.0
    outlier: float = 0.0
    uneven: float = 1.0
    within: float = 0.0
    onehot: bool = False
    feature_scale: float = 1.0
    feature_spread: float = 1.0
    rank: int = 0

    def __post_init__(self) -> None:
        """Check what the environment itself would not."""
        if self.setting not in (*ENVIRONMENTS, *REAL):
            known = ", ".join((*ENVIRONMENTS, *REAL))
            raise ArgumentError(f"setting must be one of {known}, got {self.setting!r}")
        if nonnegative("duels", self.duels) and (self.list_length > 1 or self.disturbances or self.once):
            raise ArgumentError("duels are rounds without lists, disturbances and once")
        if self.duels and self.is_real and (self.setting == "stream" or self.duels != 1):
            raise ArgumentError(
                "duels of real feedback have recorded answers: duels must be 1, without a stream"
            )
        if self.rewards not in NOISES:
            raise ArgumentError(f"rewards must be one of {', '.join(NOISES)}, got {self.rewards!r}")
        if self.disturbances and (self.is_real or self.rewards == "bernoulli"):
            names = " and ".join(self.disturbances)
            raise ArgumentError(f"{names}: only for simulated rewards that are not 0 or 1")
        if self.is_real and (self.onehot, self.feature_scale, self.feature_spread, self.rank) != (0, 1, 1, 0):
            raise ArgumentError(f"the setting {self.setting!r} has features and users of its own")
        if self.once and self.list_length > 1:
            raise ArgumentError("once is for single arms: list_length must be 1")
        if self.attraction != 1 and (self.is_real or self.rewards != "bernoulli"):
            raise ArgumentError("attraction is for simulated rewards of 0 or 1: rewards must be 'bernoulli'")
        nonnegative("noise", self.noise)
        whole("rank", self.rank, 0)
        for name in ("feature_scale", "feature_spread"):
            positive(name, getattr(self, name))
        if not 0 < self.spread <= 1:
            raise ArgumentError(f"spread must be above 0 and at most 1, got {self.spread!r}")
        lists = whole("list_length", self.list_length, 1) > 1
        if lists and not self.is_real and self.rewards != "bernoulli":
            raise ArgumentError(
                f"list_length above 1 needs clicks: rewards must be 'bernoulli', got {self.rewards!r}"
            )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """List the names of the parameters.

        Returns
        -------
        tuple of str
            Names, in order.
        """
        return tuple(one.name for one in fields(cls))

    def without_effect(self, given: Iterable[str]) -> list[str]:
        """Find parameters that change nothing in this environment.

        Parameters
        ----------
        given : iterable of str
            Names of parameters that somebody has set.

        Returns
        -------
        list of str
            Those of them that this setting, or the value of another parameter, makes irrelevant.
        """
        kind = ENVIRONMENTS.get(self.setting)
        if kind is None:
            unused = {*SIMULATED_ONLY, *UNUSED_BY_SETTING.get(self.setting, ())}
            unused |= set() if self.setting == "lastfm-2014" else {"unit"}
            unused |= set() if self.offers == "window" else {"window"}
        else:
            unused = {*REAL_ONLY, *(SMOOTHED_ONLY if self.setting == "stochastic" else ())}
            unused |= set(STOCHASTIC_PARAMETERS) - set(signature(kind).parameters)
            unused |= {"noise"} if self.rewards == "bernoulli" else set()
        for name, other in NEEDED.items():
            unused |= set() if getattr(self, other) else {name}
        return [name for name in given if name in unused]

    @property
    def is_real(self) -> bool:
        """Whether rewards are real feedback, not simulated."""
        return self.setting in REAL

    @property
    def reward_deviation(self) -> float:
        """Standard deviation σ of a reward, or the most it can be; of uneven noise, that of most rewards."""
        if self.is_real:
            return min(self.noise, 0.5) or 0.5
        if self.rewards == "bernoulli" or self.duels:
            return 0.5
        return (self.noise / sqrt(3.0) if self.rewards == "uniform" else self.noise) or 0.5

    def data_options(self) -> dict[str, Any]:
        """Collect the keyword arguments of `coterie.datasets.load`, or of `load_payoffs`.

        Returns
        -------
        dict
            dim, n_users, n_items, scale and seed; for real feedback setting, dim, n_items, threshold, unit,
            vectors, conversation and seed.
        """
        if self.is_real:
            return {
                "setting": self.setting,
                "dim": self.dim,
                "n_items": self.pool_items,
                "threshold": self.threshold,
                "unit": self.unit,
                "vectors": self.vectors,
                "conversation": self.conversation,
                "seed": self.data_seed,
            }
        return {
            "dim": self.dim,
            "n_users": self.pool_users,
            "n_items": self.pool_items,
            "scale": self.scale,
            "seed": self.data_seed,
        }

    @property
    def disturbances(self) -> dict[str, Any]:
        """Parameters of `Disturbed` that differ from their neutral values."""
        given = {name: getattr(self, name) for name in DISTURBANCES}
        return {name: value for name, value in given.items() if value != DISTURBANCES[name]}

    def make(self, dataset: Data, seed: int) -> World:
        """Make the environment for a seed.

        Parameters
        ----------
        dataset : Dataset or PayoffTable
            Vectors of users and items, or for real feedback the payoffs.
        seed : int
            Seed of users, clusters and rounds, at least 0.

        Returns
        -------
        Environment
            `Stochastic`, `Smoothed`, `Cascade`, `Duel`, `PayoffDuel`, `Disturbed`, `Payoffs` or `Stream`, in
            `Shifted` where there is an offset or an intercept.

        Raises
        ------
        ArgumentError
            If the dataset is not what the setting is made of.
        """
        # Checked here, since the data comes from another object than the specification.
        if isinstance(dataset, PayoffTable) != self.is_real:
            raise ArgumentError(f"the setting {self.setting!r} is not made of {shown(dataset)}")
        world = self._real(dataset, seed) if isinstance(dataset, PayoffTable) else self._made(dataset, seed)
        if self.offset == 0 and not self.intercept:
            return world
        return Shifted(world, self.offset, intercept=self.intercept)

    def _real(self, table: PayoffTable, seed: int) -> Payoffs | Stream | Cascade | PayoffDuel:
        """Make an environment of real feedback, with at most `n_users` of its users."""
        options: dict[str, Any] = {"n_arms": self.n_arms, "seed": seed, "once": self.once}
        kind: type[Payoffs | Stream] = Stream
        if self.setting != "stream":
            kind = Payoffs
            options |= {"offers": self.offers or None, "default": self.default_payoff}
            options |= {"window": self.window, "connected": self.connected}
        world = kind(table, **options)
        # How many users can be served is known only after those with too few payoffs are left out.
        if world.n_users > self.n_users:
            world = kind(table, **options, n_users=self.n_users)
        if self.duels and isinstance(world, Payoffs):
            return PayoffDuel(world)
        return world if self.list_length == 1 else Cascade(world, self.list_length)

    def _made(self, dataset: Dataset, seed: int) -> Stochastic | Smoothed | Cascade | Disturbed | Duel:
        """Make an environment with simulated rewards."""
        data = self._reshaped(dataset)
        kind = ENVIRONMENTS[self.setting]
        # Stochastic and Smoothed take different parameters; both sets are fields of this specification.
        taken = [name for name in signature(kind).parameters if name in self.names()]
        arguments: dict[str, Any] = {name: getattr(self, name) for name in taken}
        arguments["dataset"] = lifted(data, self.attraction) if self.rewards == "bernoulli" else data
        arguments["noise"] = NOISES[self.rewards](self.noise)
        world = kind(**arguments, seed=seed)
        if disturbances := self.disturbances:
            return Disturbed(world, **disturbances, liar_sd=self.liar_sd)
        if self.duels:
            return Duel(world, self.duels)
        return world if self.list_length == 1 else Cascade(world, self.list_length)

    def _reshaped(self, dataset: Dataset) -> Dataset:
        """The dataset with the preferences and features of this specification."""
        data = with_smaller_gap(low_rank(dataset, self.rank) if self.rank else dataset, self)
        data = onehot(data) if self.onehot else data
        if self.feature_scale == self.feature_spread == 1:
            return data
        return rescaled(data, self.feature_scale, self.feature_spread)


def with_smaller_gap(dataset: Dataset, environment: EnvironmentSpec) -> Dataset:
    """The dataset with every user moved towards one common taste c: θ ↦ (1 − s)c + sθ, s the spread.

    The gap γ between any two clusters becomes s·γ exactly. c has the length √(m/u), which the mean of
    u/m random unit vectors has, so that rewards keep their size.
    """
    spread = environment.spread
    if spread == 1.0:
        return dataset
    direction: Floats = stream(0, "common taste").standard_normal(int(dataset.users.shape[1]))
    length = sqrt(environment.n_clusters / environment.n_users)
    common = direction * (length / float(np.linalg.norm(direction)))
    users: Floats = (1.0 - spread) * common + spread * dataset.users
    users.flags.writeable = False
    return dataset._replace(users=users)
