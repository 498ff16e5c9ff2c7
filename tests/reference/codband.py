"""CoDBand, as docs/algorithms/codband.md states it.

"Row n" is the n-th row of the table there. A period keeps its samples, and likelihoods are those of all
samples together; nothing is a sum that is updated.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from reference.lists import observed
from reference.users import Array, solve

WORD = 2**64


class Sample(NamedTuple):
    """A reward, and the number that it was the how-many-th of all."""

    x: Array
    reward: float
    number: int


Period = list[Sample]


def scrambled(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
    return z ^ (z >> 31)


def uniforms(key: int, number: int) -> Iterator[float]:
    """The random numbers of one reward: SplitMix64, started by the key and the number of the reward."""
    state = scrambled(key ^ scrambled(number))
    while True:
        state = (state + 0x9E3779B97F4A7C15) % WORD
        yield (scrambled(state) >> 11) / 2**53


def normal(u: Iterator[float]) -> float:
    """Marsaglia's polar method."""
    while True:
        a, b = 2 * next(u) - 1, 2 * next(u) - 1
        if 0 < (s := a * a + b * b) < 1:
            return a * math.sqrt(-2 * math.log(s) / s)


def gamma(u: Iterator[float], shape: float) -> float:
    """Marsaglia and Tsang's method."""
    d = shape - 1 / 3
    while True:
        x = normal(u)
        v = (1 + x / math.sqrt(9 * d)) ** 3
        if v > 0 and math.log(1 - next(u)) < x * x / 2 + d - d * v + d * math.log(v):
            return d * v


class CoDBand:
    """Clusters are lists of periods, in the rows of a table; a user's last period is its present one.

    `margin` is how far the last draw of a cluster was from another outcome.
    """

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        noise: float,
        scale: float,
        ridge: float,
        concentration: float | None,
        shape: float,
        rate: float,
        window: int,
        key: int,
        rng: np.random.Generator,
    ) -> None:
        self.n_users, self.dim, self.ridge = n_users, dim, ridge
        self.noise, self.scale = noise, scale
        self.learns, self.shape, self.rate = concentration is None, shape, rate
        self.concentration = 1.0 if concentration is None else concentration
        self.window, self.key, self.rng = window, key, rng
        self.periods: list[Period] = [[] for _ in range(n_users)]
        self.rows: list[list[Period]] = []
        self.outcomes: list[list[bool]] = [[] for _ in range(n_users)]
        self.rounds = self.splits = self.merges = 0
        self.moves = self.opened = self.closed = self.changes = self.forgotten = 0
        self.margin = math.inf
        self.known: dict[tuple[int, ...], float] = {}

    @property
    def exploring(self) -> bool:
        return False

    def welcome(self, newcomers: int) -> None:
        """Newcomers are in no cluster. Row 1."""
        self.periods += [[] for _ in range(newcomers)]
        self.outcomes += [[] for _ in range(newcomers)]
        self.n_users += newcomers

    def row_of(self, user: int) -> int | None:
        """The cluster of a user's present period; None if it has no data."""
        for row, members in enumerate(self.rows):
            if any(period is self.periods[user] for period in members):
                return row
        return None

    def clusters(self) -> list[frozenset[int]]:
        rows = [self.row_of(user) for user in range(self.n_users)]
        return [
            frozenset({i} if rows[i] is None else {j for j in range(self.n_users) if rows[j] == rows[i]})
            for i in range(self.n_users)
        ]

    def posterior(self, samples: Period) -> tuple[Array, Array]:
        """M = λI + Σxxᵀ and θ̂ = M⁻¹Σrx. Row 2."""
        matrix, moment = self.ridge * np.eye(self.dim), np.zeros(self.dim)
        for x, reward, _ in samples:
            matrix, moment = matrix + np.outer(x, x), moment + reward * x
        return matrix, solve(matrix, moment)

    def shown(self, row: int | None) -> tuple[Array, Array]:
        """M and θ̂ of a cluster, all its periods together; of a new one, those of no data."""
        return self.posterior([] if row is None else [one for period in self.rows[row] for one in period])

    def scores(self, user: int, arms: Array) -> Array:
        """xᵀθ̂ + cσ√(xᵀM⁻¹x) of the user's cluster."""
        matrix, theta = self.shown(self.row_of(user))
        deviation = [self.scale * self.noise * math.sqrt(float(x @ solve(matrix, x))) for x in arms]
        return np.asarray(arms @ theta + deviation)

    def sample(self, user: int, arms: Array) -> Array:
        """xᵀθ̃ of every arm; the next numbers of the generator are used up. Rows 3 and 4."""
        row = self.row_of(user)
        if row is None:
            counts = [len(members) for members in self.rows]
            row = drawn([*counts, self.concentration], self.rng.random())
            row = None if row == len(counts) else row
        matrix, theta = self.shown(row)
        factor = np.linalg.cholesky(solve(matrix, np.eye(self.dim)))
        deviation = factor @ self.rng.standard_normal(self.dim)
        return np.asarray(arms @ (theta + self.scale * self.noise * deviation))

    def update(self, user: int, x: Array, reward: float) -> None:
        self.absorb(user, x, reward)
        self.review(user)

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        for x, reward in observed(xs, clicked):
            self.absorb(user, x, reward)
        self.review(user)

    def absorb(self, user: int, x: Array, reward: float) -> None:
        """Rows 5 and 6."""
        self.rounds += 1
        matrix, theta = self.posterior(self.periods[user])
        grown = self.dim * math.log(1 + len(self.periods[user]) / (self.dim * self.ridge))
        factor = self.noise * math.sqrt(grown + 2 * math.log(1 / 0.01)) + math.sqrt(self.ridge)
        width = math.sqrt(float(x @ solve(matrix, x)))
        self.outcomes[user].append(abs(reward - float(x @ theta)) > factor * width + 3 * self.noise)
        self.periods[user].append(Sample(x, reward, self.rounds))

    def review(self, user: int) -> None:
        u = uniforms(self.key, self.rounds)
        self.draw_cluster(user, next(u))
        if self.learns:
            self.draw_concentration(u)
        if self.window and self.changed(self.outcomes[user][-self.window :]):
            self.periods[user], self.outcomes[user] = [], []  # Row 11
            self.changes += 1

    def likelihood(self, periods: list[Period]) -> float:
        """ln N(y; 0, σ²I + σ²/λ XXᵀ) of all samples of some periods. Row 7."""
        samples = [one for period in periods for one in period]
        if not samples:
            return 0.0
        key = tuple(sorted(one.number for one in samples))
        if key not in self.known:
            xs, y = np.array([one.x for one in samples]), np.array([one.reward for one in samples])
            covariance = self.noise**2 * (np.eye(len(y)) + xs @ xs.T / self.ridge)
            logdet = np.linalg.slogdet(covariance)[1]
            fit = float(y @ solve(covariance, y))
            self.known[key] = -0.5 * (len(y) * math.log(2 * math.pi) + float(logdet) + fit)
        return self.known[key]

    def draw_cluster(self, user: int, u: float) -> None:
        """Rows 7 to 9."""
        own, source = self.periods[user], self.row_of(user)
        if source is not None:
            self.rows[source] = [period for period in self.rows[source] if period is not own]
        logs = []
        for members in self.rows:
            more = self.likelihood([*members, own]) - self.likelihood(members)
            logs.append(math.log(len(members)) + more if members else -math.inf)
        logs.append(math.log(self.concentration) + self.likelihood([own]))
        weights = [math.exp(log - max(logs)) for log in logs]
        target = drawn(weights, u)
        limits = np.cumsum(weights)[:-1] / sum(weights)
        self.margin = float(np.abs(u - limits).min(initial=1.0))
        if target == len(self.rows):
            alone = source is not None and not self.rows[source]
            target = source if alone and source is not None else self.free_row()
            self.opened += not alone
        self.rows[target].append(own)
        if source is not None and target != source:
            self.moves += 1
            self.closed += not self.rows[source]

    def free_row(self) -> int:
        """The lowest empty row; if all 2n are full, the deserted one with the fewest periods. Row 9."""
        for row, members in enumerate(self.rows):
            if not members:
                return row
        if len(self.rows) < 2 * self.n_users:
            self.rows.append([])
            return len(self.rows) - 1
        taken = {self.row_of(user) for user in range(self.n_users)}
        deserted = [row for row in range(len(self.rows)) if row not in taken]
        least = min(deserted, key=lambda row: len(self.rows[row]))
        self.rows[least] = []
        self.forgotten += 1
        return least

    def draw_concentration(self, u: Iterator[float]) -> None:
        """Row 10."""
        n, k = sum(map(len, self.rows)), sum(1 for members in self.rows if members)
        first, second = gamma(u, self.concentration + 1), gamma(u, n)
        rate = self.rate - math.log(first / (first + second))
        one_more = next(u) < 1 / (1 + n * rate / (self.shape + k - 1))
        self.concentration = gamma(u, self.shape + k - 1 + one_more) / rate

    def changed(self, last: list[bool]) -> bool:
        """Row 11."""
        return sum(last) / len(last) > 0.01 + math.sqrt(math.log(1 / 0.1) / (2 * len(last)))


def drawn(weights: list[float], u: float) -> int:
    """The first index at which the cumulated weight is above u of the total, the last one if none is."""
    passed, total = 0.0, math.fsum(weights)
    for index, weight in enumerate(weights[:-1]):
        passed += weight
        if u * total < passed:
            return index
    return len(weights) - 1
