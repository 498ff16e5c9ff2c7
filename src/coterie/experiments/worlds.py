"""What determines an environment, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from coterie.datasets.dataset import Dataset
from coterie.environments import Bernoulli, Gaussian, Noise, Smoothed, Stochastic, Uniform, lifted
from coterie.errors import ArgumentError
from coterie.seeding import stream
from coterie.types import Floats

Place: TypeAlias = Stochastic | Smoothed

NOISES: Mapping[str, Callable[[float], Noise]] = MappingProxyType(
    {"gaussian": Gaussian, "uniform": Uniform, "bernoulli": lambda sigma: Bernoulli()}
)
"""How rewards scatter, by name, for a given σ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that determines an environment but its seed; the defaults are those of Fig. 1.

    `dim`, `pool_users`, `pool_items` and `scale` say how the dataset is made, `data_seed` matters to
    'synthetic' only. `spread` multiplies the gap between clusters, see `drawn_together`; `blur`,
    `truncation` and `adversary` matter to smoothed contexts only.

    >>> World(n_users=20).setting
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
    blur: float = sqrt(0.1)
    truncation: float = 1.0
    adversary: str = "random"

    def __post_init__(self) -> None:
        """Refuse what no environment would notice."""
        if self.setting not in ("stochastic", "smoothed"):
            raise ArgumentError(f"setting must be 'stochastic' or 'smoothed', got {self.setting!r}")
        if self.rewards not in NOISES:
            raise ArgumentError(f"rewards must be one of {', '.join(NOISES)}, got {self.rewards!r}")
        if not 0 < self.spread <= 1:
            raise ArgumentError(f"spread must be above 0 and at most 1, got {self.spread!r}")

    def environment(self, dataset: Dataset, seed: int) -> Place:
        """The world of a seed, made from the dataset's vectors."""
        data = drawn_together(dataset, self)
        stochastic = Stochastic(
            lifted(data) if self.rewards == "bernoulli" else data,
            n_users=self.n_users,
            n_clusters=self.n_clusters,
            n_arms=self.n_arms,
            noise=NOISES[self.rewards](self.noise),
            seed=seed,
            sizes=self.sizes,
            zipf=self.zipf,
            late=self.late,
            settled=self.settled,
            drift=self.drift,
            delay=self.delay,
        )
        return stochastic if self.setting == "stochastic" else self._smoothed(stochastic)

    def _smoothed(self, base: Stochastic) -> Smoothed:
        return Smoothed(
            base.dataset,
            n_users=self.n_users,
            n_clusters=self.n_clusters,
            n_arms=self.n_arms,
            noise=base.noise,
            seed=base.seed,
            sigma=self.blur,
            truncation=self.truncation,
            adversary=self.adversary,
            sizes=self.sizes,
            zipf=self.zipf,
            late=self.late,
            settled=self.settled,
            drift=self.drift,
            delay=self.delay,
        )


def drawn_together(dataset: Dataset, world: World) -> Dataset:
    """The dataset with every user moved towards one common taste c: θ ↦ (1 − s)c + sθ, s the spread.

    The gap γ between any two clusters becomes s·γ exactly. c has the length √(m/u), which the mean of
    u/m random unit vectors has, so that rewards keep their size.
    """
    if world.spread == 1.0:
        return dataset
    direction: Floats = stream(0, "common taste").standard_normal(int(dataset.users.shape[1]))
    length = sqrt(world.n_clusters / world.n_users)
    common = direction * (length / float(np.linalg.norm(direction)))
    users: Floats = (1.0 - world.spread) * common + world.spread * dataset.users
    users.flags.writeable = False
    return dataset._replace(users=users)
