"""What determines a run, as data: a policy with its parameters, and an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import signature
from math import isfinite, sqrt
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from coterie.datasets.dataset import Dataset
from coterie.environments import Bernoulli, Cascade, Gaussian, Noise, Smoothed, Stochastic, Uniform, lifted
from coterie.errors import ArgumentError
from coterie.policies.makers import find_maker, tuned_confidence
from coterie.seeding import stream
from coterie.types import Bools, Floats
from coterie.validation import nonnegative, shown, whole

Value: TypeAlias = bool | int | float | str
World: TypeAlias = Stochastic | Smoothed | Cascade


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
        """How many there are."""
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
    """A value as people write it: numbers to six digits."""
    return str(value) if isinstance(value, str | bool) else f"{value:g}"


def _plain(name: str, value: object) -> Value:
    """The value as a bool, int, float or str."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and isfinite(value):
        return float(value)
    raise ArgumentError(f"{name} must be a finite number, text, true or false, got {shown(value)}")


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A policy by name, and the parameters that it is made with.

    Parameters
    ----------
    name : str
        A registered name such as `CLUB`, or `package.module:Attribute` for a policy of your own.
    params : mapping, optional
        What the policy takes; the rest is as its maker has it. A policy that takes `confidence` takes the
        fields of `Tuned`: alpha, beta, explore, phase, growth.

    Examples
    --------
    >>> print(PolicySpec("CLUB", {"beta": 0.1, "alpha": 1.5}))
    CLUB (alpha 1.5, beta 0.1)
    """

    name: str
    params: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Freeze the parameters."""
        object.__setattr__(self, "params", Params(self.params))

    @property
    def label(self) -> str:
        """The name in a table or a legend: of an own policy, that of its class."""
        return self.name.rpartition(":")[2]

    def __str__(self) -> str:
        """The name, and the parameters in brackets."""
        return f"{self.name} ({self.params})" if self.params else self.name

    def make(self, world: World, seed: int) -> Any:
        """The policy before its first round, with `recommend` and `update`.

        Its maker is given what it names of n_users (those present at the start), dim, seed and the
        parameters; only one that names `labels` or `graph` is told the true clusters.

        Raises
        ------
        ArgumentError, UnknownName
            If the policy cannot be found or made, or does not take a parameter.
        """
        maker = find_maker(self.name)
        maker.check(self.params)
        n_users = world.population.present(0)
        labels = world.labels[:n_users]
        asked: dict[str, Callable[[], Any]] = {
            "labels": lambda: labels,
            "graph": lambda: same_cluster(labels),
            "confidence": lambda: tuned_confidence(self.name, self.params),
        }
        made = {name: asked[name]() for name in asked if name in maker.arguments}
        offered = {"n_users": n_users, "dim": world.dim, "seed": seed, **self.params}
        offered.update((name, value) for name, value in made.items() if value is not None)
        return maker({name: value for name, value in offered.items() if maker.passes(name)})


def labels_of(specs: Sequence[PolicySpec]) -> tuple[str, ...]:
    """A label for each spec, no two alike: parameters are told where a name is shared.

    >>> labels_of([PolicySpec("CLUB", {"beta": 1}), PolicySpec("CLUB", {"beta": 2}), PolicySpec("SCLUB")])
    ('CLUB (beta 1)', 'CLUB (beta 2)', 'SCLUB')
    """
    short = [spec.label for spec in specs]
    longer = [f"{spec.label} ({spec.params})" if spec.params else spec.label for spec in specs]
    every = zip(short, longer, specs, strict=True)
    return tuple(
        one if short.count(one) == 1 else two if longer.count(two) == 1 else str(spec)
        for one, two, spec in every
    )


def same_cluster(labels: np.ndarray[Any, Any]) -> Bools:
    """The graph that joins users of one cluster (App. G.4)."""
    joined: Bools = (labels[:, None] == labels[None, :]) & ~np.eye(len(labels), dtype=np.bool_)
    return joined


NOISES: Mapping[str, Callable[[float], Noise]] = MappingProxyType(
    {"gaussian": Gaussian, "uniform": Uniform, "bernoulli": lambda sigma: Bernoulli()}
)
"""How rewards scatter, by name, for a given σ."""

ENVIRONMENTS: Mapping[str, type[Stochastic] | type[Smoothed]] = MappingProxyType(
    {"stochastic": Stochastic, "smoothed": Smoothed}
)
"""Kinds of environments, by `EnvironmentSpec.setting`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSpec:
    """Everything that determines an environment but its seed; the defaults are those of Fig. 1.

    The fields are the arguments of `Stochastic` and `Smoothed` under their names, but for these:

    Parameters
    ----------
    dataset, dim, scale : str, int, str
        Name, dimension and scale of `coterie.datasets.load`.
    pool_users, pool_items, data_seed : int
        Its `n_users`, `n_items` and `seed`, which matters to 'synthetic' only.
    setting : {"stochastic", "smoothed"}
        The kind of environment; `sigma`, `truncation` and `adversary` matter to 'smoothed' only.
    noise, rewards : float, {"gaussian", "uniform", "bernoulli"}
        How far and how rewards scatter.
    spread : float
        Multiplies the gap between clusters, see `with_smaller_gap`.
    list_length : int
        Arms shown in a round, as a list that is scanned until the first click (`Cascade`); 1 for no list.

    Examples
    --------
    >>> EnvironmentSpec(n_users=20).setting
    'stochastic'
    """

    dataset: str = "synthetic"
    setting: Literal["stochastic", "smoothed"] = "stochastic"
    n_users: int = 50
    n_clusters: int = 10
    n_arms: int = 100
    noise: float = 0.1
    rewards: Literal["gaussian", "uniform", "bernoulli"] = "gaussian"
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
    sigma: float = sqrt(0.1)
    truncation: float = 1.0
    adversary: str = "random"
    list_length: int = 1

    def __post_init__(self) -> None:
        """Refuse what no environment would notice."""
        if self.setting not in ENVIRONMENTS:
            raise ArgumentError(f"setting must be 'stochastic' or 'smoothed', got {self.setting!r}")
        if self.rewards not in NOISES:
            raise ArgumentError(f"rewards must be one of {', '.join(NOISES)}, got {self.rewards!r}")
        nonnegative("noise", self.noise)
        if not 0 < self.spread <= 1:
            raise ArgumentError(f"spread must be above 0 and at most 1, got {self.spread!r}")
        if whole("list_length", self.list_length, 1) > 1 and self.rewards != "bernoulli":
            raise ArgumentError(
                f"lists are clicked or not: rewards must be 'bernoulli', got {self.rewards!r}"
            )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(one.name for one in fields(cls))

    @property
    def reward_deviation(self) -> float:
        """The standard deviation σ of a reward, or the most it can be."""
        return {"gaussian": self.noise, "uniform": self.noise / sqrt(3.0)}.get(self.rewards, 0.0) or 0.5

    def data_options(self) -> dict[str, Any]:
        """The keyword arguments of `coterie.datasets.load`."""
        return {
            "dim": self.dim,
            "n_users": self.pool_users,
            "n_items": self.pool_items,
            "scale": self.scale,
            "seed": self.data_seed,
        }

    def make(self, dataset: Dataset, seed: int) -> World:
        """The environment of a seed, made from the dataset's vectors."""
        data = with_smaller_gap(dataset, self)
        kind = ENVIRONMENTS[self.setting]
        taken = [name for name in signature(kind).parameters if name in self.names()]
        arguments: dict[str, Any] = {name: getattr(self, name) for name in taken}
        arguments["dataset"] = lifted(data) if self.rewards == "bernoulli" else data
        arguments["noise"] = NOISES[self.rewards](self.noise)
        world = kind(**arguments, seed=seed)
        return world if self.list_length == 1 else Cascade(world, self.list_length)


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
