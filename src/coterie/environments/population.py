"""Populations: users drawn from a dataset, their clusters and preferences, and when each user appears."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np

from coterie.datasets.dataset import Dataset
from coterie.environments._sampling import products
from coterie.environments.blocks import BLOCK
from coterie.environments.delays import Delay, as_delay
from coterie.environments.deviations import Deviations
from coterie.environments.noise import Noise, as_noise
from coterie.errors import ArgumentError
from coterie.seeding import check_seed, stream
from coterie.types import Bools, Floats, Ints
from coterie.validation import counted, nonnegative, shown, whole

MOST_ENTRIES = 2**22
"""Maximal number of entries of a temporary table of clusters by items or clusters by clusters: 32 MiB."""


@dataclass(frozen=True)
class Population:
    """Users in clusters; the preference of a cluster is the mean of its members' vectors   (Sec. 6.3).

    The parameters are those of `Stochastic`.
    """

    dataset: Dataset
    n_users: int
    n_clusters: int
    seed: int
    sizes: Literal["equal", "zipf"] = "equal"
    zipf: float = 0.0
    late: float = 0.0
    settled: int = 10_000
    drift: float = 0.0
    jumps: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_seed(self.seed)
        known = len(self.dataset.users)
        if not 1 <= whole("n_users", self.n_users, 1) <= known:
            raise ArgumentError(
                f"n_users must be from 1 to {known}, the users of the dataset, got {self.n_users!r}"
            )
        if not 1 <= whole("n_clusters", self.n_clusters, 1) <= self.n_users:
            raise ArgumentError(f"n_clusters must be from 1 to {self.n_users}, got {self.n_clusters!r}")
        if self.sizes not in ("equal", "zipf"):
            raise ArgumentError(f"sizes must be 'equal' or 'zipf', got {self.sizes!r}")
        nonnegative("zipf", self.zipf)
        nonnegative("drift", self.drift)
        if nonnegative("jumps", self.jumps) and (self.jumps < 1 or self.n_clusters == 1):
            raise ArgumentError(
                f"jumps must be 0, or at least 1 with at least two clusters, got {self.jumps!r}"
            )
        whole("settled", self.settled, 1)
        if nonnegative("late", self.late) >= 1:
            raise ArgumentError(f"late must be a fraction below 1, got {self.late!r}")

    @cached_property
    def members(self) -> Ints:
        """Rows of the users in the dataset."""
        return stream(self.seed, "users").permutation(len(self.dataset.users))[: self.n_users]

    @cached_property
    def labels(self) -> Ints:
        """True cluster of each user; every cluster has at least one user."""
        rng = stream(self.seed, "clusters")
        if self.sizes == "equal":
            return rng.permutation(np.arange(self.n_users) % self.n_clusters)
        weights = 1.0 / np.arange(1, self.n_clusters + 1)
        rest = rng.choice(self.n_clusters, self.n_users - self.n_clusters, p=weights / weights.sum())
        return rng.permutation(np.concatenate([np.arange(self.n_clusters), rest]))

    @cached_property
    def preferences(self) -> Floats:
        """Preference θ of each cluster at the start: the mean of its members' vectors."""
        order = np.argsort(self.labels, kind="stable")
        starts = np.searchsorted(self.labels[order], np.arange(1, self.n_clusters))
        members = np.split(self.members[order], starts)
        return np.array([self.dataset.users[rows].mean(axis=0) for rows in members])

    @cached_property
    def gamma(self) -> float:
        """Smallest distance between the preferences of two clusters; infinite for a single cluster."""
        least, some = np.inf, max(1, MOST_ENTRIES // self.preferences.size)
        for start in range(0, self.n_clusters, some):
            these = self.preferences[start : start + some]
            apart = np.linalg.norm(these[:, None] - self.preferences[None, :], axis=2)
            apart[np.arange(len(these)), start + np.arange(len(these))] = np.inf
            least = min(least, float(apart.min()))
        return least

    @cached_property
    def weights(self) -> Floats:
        """Arrival weight of each user; arrival probabilities are proportional to it."""
        ranks = stream(self.seed, "arrivals").permutation(self.n_users) + 1.0
        return np.asarray(ranks**-self.zipf, np.float64)

    @cached_property
    def appears(self) -> Ints:
        """First block in which each user may arrive, ascending with the user's number."""
        early = self.n_users - int(self.late * self.n_users)
        blocks = max(1, self.settled // BLOCK)
        n_late = self.n_users - early
        starts = 1 + np.arange(n_late) * blocks // max(n_late, 1)
        return np.concatenate([np.zeros(early, np.int64), starts]).astype(np.int64)

    def present(self, block: int) -> int:
        """Count the users that may arrive in a block; they have the lowest numbers."""
        return int(np.searchsorted(self.appears, block, side="right"))

    def arrivals(self, rng: np.random.Generator, block: int, n: int) -> Ints:
        """Draw the users of n rounds."""
        shares = self._shares(self.present(block))
        drawn = np.searchsorted(shares, rng.random(n) * shares[-1], side="right")
        return np.asarray(np.minimum(drawn, len(shares) - 1), np.int64)

    def _shares(self, present: int) -> Floats:
        """Cumulative weights of the users present, cached until new users appear."""
        known = self._last.get("shares")
        if known is None or known[0] != present:
            known = self._last["shares"] = (present, np.cumsum(self.weights[:present]))
        return known[1]

    def preferences_in(self, block: int) -> Floats:
        """Compute the preference θ of each cluster during a block."""
        if self.drift == 0 or block == 0:
            return self.preferences
        step = self.drift * np.sqrt(BLOCK / 1000.0)
        begin, now = self._last.get("place", (0, self.preferences))
        if begin > block:
            begin, now = 0, self.preferences
        for b in range(begin, block):
            now = _drifted(now, step, stream(self.seed, "drift", str(b)))
        self._last["place"] = (block, now)
        return now

    def clusters_of(self, users: Ints, block: int) -> Ints:
        """Return the cluster of the user of each round of a block."""
        if self.jumps == 0:
            return np.asarray(self.labels[users], np.int64)
        rounds, clusters = BLOCK * block + np.arange(len(users)), np.empty(len(users), np.int64)
        for user in np.unique(users):
            mine = users == user
            clusters[mine] = self._stays_of(int(user)).at(rounds[mine])
        return clusters

    def _stays_of(self, user: int) -> Stays:
        """Return the clusters of a user over time (cached)."""
        if user not in self._stays:
            # `jumps` is in rounds of the user, `Stays` in rounds of all users.
            mean = float((self.jumps * self._all_weights) / self.weights[user])
            self._stays[user] = Stays(int(self.labels[user]), self.n_clusters, mean, self.seed, user)
        return self._stays[user]

    @cached_property
    def _all_weights(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def _stays(self) -> dict[int, Stays]:
        return {}

    @cached_property
    def _last(self) -> dict[str, tuple[int, Floats]]:
        return {}


class Stays:
    """The sequence of clusters that a user belongs to, and the round in which each stay ends.

    The length of a stay is uniform between 2/7 and 12/7 of its mean: 500 to 3,000 for 1,750, as in the
    experiments of DyClu. Then the user moves to a uniformly random other cluster.
    """

    def __init__(self, cluster: int, n_clusters: int, mean: float, seed: int, user: int) -> None:
        """Start in a cluster."""
        self._first, self._n_clusters, self._mean = cluster, n_clusters, mean
        self._seed, self._user = seed, user
        self._known = self._drawn(8)

    def _drawn(self, n: int) -> tuple[Floats, Ints]:
        """Draw the ends and clusters of the first n stays; a larger n only appends stays."""
        draws = stream(self._seed, "jumps", str(self._user)).random((n, 2))
        ends = np.cumsum(self._mean * (2.0 + 10.0 * draws[:, 0]) / 7.0)
        steps = 1 + (draws[:-1, 1] * (self._n_clusters - 1)).astype(np.int64)
        return ends, (self._first + np.concatenate([[0], np.cumsum(steps)])) % self._n_clusters

    def at(self, rounds: Ints) -> Ints:
        """Return the cluster in each of some ascending rounds."""
        ends, clusters = self._known
        while ends[-1] <= rounds[-1]:
            ends, clusters = self._known = self._drawn(2 * len(ends))
        return np.asarray(clusters[np.searchsorted(ends, rounds, side="right")], np.int64)


class PopulationEnvironment:
    """Base class of environments with a population: their common attributes."""

    dataset: Dataset
    population: Population
    delay: int | Delay
    n_arms: int
    seed: int

    def present(self, number: int) -> int:
        """Count the users that may arrive in a block; they have the lowest numbers.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        int
            Number of users.
        """
        return self.population.present(number)

    @property
    def longest_delay(self) -> int:
        """Largest delay of feedback, in rounds."""
        return as_delay(self.delay).most

    def __repr__(self) -> str:
        """Show the class, the users, the arms and the seed."""
        clusters = counted(self.population.n_clusters, "cluster")
        users = f"{counted(self.n_users, 'user')} in {clusters}"
        arms = f"{self.n_arms:,} of {len(self.dataset.items):,} items a round, dim {self.dim}"
        return f"<{type(self).__name__} on {self.dataset.name}: {users}, {arms}, seed {self.seed}>"

    @property
    def n_users(self) -> int:
        """Number of users, including those that appear later."""
        return self.population.n_users

    @property
    def dim(self) -> int:
        """Length of an arm's vector."""
        return int(self.dataset.items.shape[1])

    @property
    def labels(self) -> Ints:
        """True cluster of each user, shape (n_users,); with `jumps`, the cluster at the start."""
        return self.population.labels

    @property
    def preferences(self) -> Floats:
        """True preference θ of each cluster at the start, shape (n_clusters, dim)."""
        return self.population.preferences

    @property
    def gamma(self) -> float:
        """True gap γ between clusters (Assumption 2)."""
        return self.population.gamma


@dataclass(eq=False, repr=False)
class LinearEnvironment(PopulationEnvironment):
    """Common base of `Stochastic` and `Smoothed`: their parameters and population."""

    dataset: Dataset
    n_users: int = 50
    n_clusters: int = 10
    n_arms: int = 100
    noise: float | Noise = 0.1
    seed: int = 0
    _: KW_ONLY
    sizes: Literal["equal", "zipf"] = "equal"
    zipf: float = 0.0
    late: float = 0.0
    settled: int = 10_000
    drift: float = 0.0
    delay: int | Delay = 0
    misspecification: float = 0.0
    corrupted: float = 0.0
    corruption: Literal["flip", "random"] = "flip"
    corrupted_rounds: int = 10_000
    jumps: float = 0.0

    def __post_init__(self) -> None:
        """Draw the users and their clusters."""
        if not isinstance(self.dataset, Dataset):
            raise ArgumentError(f"dataset must come from coterie.datasets.load, got {shown(self.dataset)}")
        shared = {one.name: getattr(self, one.name) for one in fields(Population)}
        self.population = Population(**shared)
        self.noise, self.delay = as_noise(self.noise), as_delay(self.delay)
        if not 1 <= whole("n_arms", self.n_arms, 1) <= len(self.dataset.items):
            items = len(self.dataset.items)
            raise ArgumentError(f"n_arms must be from 1 to {items}, the number of items, got {self.n_arms!r}")
        self.deviations = Deviations(
            n_users=self.population.n_users,
            n_items=len(self.dataset.items),
            seed=self.seed,
            misspecification=self.misspecification,
            corrupted=self.corrupted,
            corruption=self.corruption,
            corrupted_rounds=self.corrupted_rounds,
        )
        if self.noise.binary:
            check_probabilities(self.preferences, self.dataset.items, self.misspecification)

    @property
    def liars(self) -> Bools:
        """Mask of the users with corrupted rewards, shape (n_users,)."""
        return self.deviations.liars


def expected_rewards(preferences: Floats, items: Floats) -> Floats:
    """Compute xᵀθ of every item for every preference.

    This does not use BLAS, whose last digits depend on the processor.
    """
    everything = np.broadcast_to(np.arange(len(items)), (len(preferences), len(items)))
    return products(items, np.ascontiguousarray(everything), preferences, np.arange(len(preferences)))


def check_probabilities(preferences: Floats, items: Floats, deviation: float = 0.0) -> None:
    """Check that all means are in [0, 1], including deviations, as Bernoulli rewards require."""
    least, most, some = np.inf, -np.inf, max(1, MOST_ENTRIES // len(items))
    for start in range(0, len(preferences), some):
        means = expected_rewards(preferences[start : start + some], items)
        least, most = min(least, means.min()), max(most, means.max())
    check_range(least - deviation, most + deviation)


def check_range(least: float, most: float) -> None:
    """Check that means are in [0, 1]."""
    if least < 0 or most > 1:
        raise ArgumentError(
            f"Bernoulli rewards need means in [0, 1], got {least:.3g} to {most:.3g}; "
            "coterie.environments.lifted(dataset) maps means from [-1, 1] to [0, 1]"
        )


def _drifted(preferences: Floats, step: float, rng: np.random.Generator) -> Floats:
    """Move each preference by a step in a random direction, and restore its length."""
    lengths = np.linalg.norm(preferences, axis=1, keepdims=True)
    push = rng.standard_normal(preferences.shape)
    moved = preferences + step * push / np.linalg.norm(push, axis=1, keepdims=True)
    return np.asarray(moved * lengths / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-300))
