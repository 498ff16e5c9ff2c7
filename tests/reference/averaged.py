"""AutoCLUB as it acts, as docs/algorithms/autoclub.md states it: rows 12 to 17, beside those of clusters."""

import math

import numpy as np

from reference.autoclub import ByEvidence
from reference.effects import Effects
from reference.hier import Seated
from reference.lists import observed
from reference.users import Array, solve


class AutoCLUB(ByEvidence):
    """Clusters by evidence, and beside them people who differ by degrees."""

    def __init__(self, n_users: int, dim: int, *, ridge: float, seats: int = 4096) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.people = Seated(n_users, dim, ridge=ridge, seats=seats)
        self.odds = 0.0  # Row 13
        self.errors = [0.0, 0.0]  # Row 13
        self.amended = self.misled = 0
        self.effects = Effects()
        self.pairs = Effects(least=0.02, most=1.0, most_weight=32.0)  # Row 16

    def trust(self) -> float:
        """Row 14."""
        weight = 1.0 / (1.0 + math.exp(-min(50.0, max(-50.0, self.odds))))
        return 0.0 if weight < 0.001 else 1.0 if weight > 0.999 else weight

    def scores(self, user: int, arms: Array) -> Array:
        """Rows 14 and 17, and row 6 of item-effects.md, where equal vectors are one item."""
        trust, pulls, size = self.trust(), self.pulls[user], self.people.size
        m, V = self.people.posterior(user)
        scale = (1.0 - trust) * math.sqrt(self.noise2) + trust * math.sqrt(self.people.noise2)
        found = []
        for x, (by_clusters, cluster_bonus) in zip(arms, self.parts(user, arms), strict=True):
            full = self.people.lengthened(x)
            by_people, width2 = float(full @ m), max(0.0, float(full @ V @ full))
            more = 2.0 * math.log(max(1.0, pulls * width2 / size))
            bonus = trust * math.sqrt(self.people.noise2 * width2 * max(1.0, more))
            bonus += (1.0 - trust) * cluster_bonus
            item = self.effects.effect(x.tobytes())
            mean = (1.0 - trust) * by_clusters + trust * by_people + item.mean
            bonus = math.hypot(bonus, scale * math.sqrt(item.variance))
            pair = self.pairs.effect((user, x.tobytes()), mean)  # Row 17
            found.append(mean + pair.mean + (1.0 - pair.share) * bonus)
        return np.array(found)

    def learn(self, user: int, x: Array, reward: float) -> None:
        """Row 16."""
        item, pair = x.tobytes(), (user, x.tobytes())
        trust, (mean, variance, other, others) = self.trust(), self.foretold(user, x)
        a = 1.0 / ((1.0 - trust) * variance / self.noise2 + trust * others / self.people.noise2)
        mean = (1.0 - trust) * mean + trust * other
        effect, known = self.effects.effect(item).mean, pair in self.pairs.P
        self.pairs.learn(pair, reward, mean + effect, a)
        self.margin = min(self.margin, self.pairs.margin)
        if known and self.pairs.tau2 > 0:
            self.rounds += 1
            self.skipped += 1
            return
        self.effects.learn(item, reward - mean, 0.0, a)
        self.margin = min(self.margin, self.effects.margin)
        super().learn(user, x, reward - effect)

    def update(self, user: int, x: Array, reward: float) -> None:
        super().update(user, x, reward)
        self.fit()

    def update_list(self, user: int, xs: Array, clicked: int | None) -> None:
        """A review comes if the pulls reach their mark anywhere in the list; it and a fit see all of it."""
        self.margin = math.inf
        for x, reward in observed(xs, clicked):
            self.learn(user, x, reward)
        if self.pulls[user] >= self.due[user]:
            self.review(user)
        self.fit()

    def listen(self, user: int, x: Array, reward: float) -> None:
        """Rows 12 and 13."""
        most = 2 * self.second()
        before = [min(most, max(-most, told[2])) for told in self.told]
        asked = self.trust() > 0.0 or self.people.sits(user)
        if asked:
            self.people.sit(user)
        foretold = self.foretold(user, x)
        super().listen(user, x, reward)
        most = 2 * self.second()
        for old, (i, y, r) in zip(before, self.told, strict=False):
            self.amend(i, y, old, min(most, max(-most, r)))
        counted = min(most, max(-most, reward))
        if asked:
            self.compare(counted, *foretold)
            self.people.absorb(user, x, counted, self.omega[user])
        else:
            self.people.learn_apart(user, x, counted, self.omega[user])

    def foretold(self, user: int, x: Array) -> tuple[float, float, float, float]:
        """Mean and variance of a reward, by clusters and by people. Row 13."""
        cluster, own = self.home(user), 1.0 / self.omega[user]
        matrix = cluster.floor * np.eye(self.dim) + self.sums(cluster.members)[0]
        theta = self.share[user] * self.theta(cluster) + self.rest[user]
        m, V = self.people.posterior(user)
        full = self.people.lengthened(x)
        return (
            self.offset + float(x @ theta),
            self.noise2 * (own + float(x @ solve(matrix, x))),
            float(full @ m),
            self.people.noise2 * (own + float(full @ V @ full)),
        )

    def compare(self, r: float, mean: float, variance: float, other: float, others: float) -> None:
        """Row 13."""
        kept = max(0.0, 1.0 - 4.0 / self.learnt)
        first, second = variance * max(1.0, self.errors[0]), others * max(1.0, self.errors[1])
        step = math.log(first / second) + (r - mean) ** 2 / first - (r - other) ** 2 / second
        self.odds = kept * self.odds + min(1.0, max(-1.0, 0.5 * step))
        for k, z2 in enumerate(((r - mean) ** 2 / variance, (r - other) ** 2 / others)):
            self.errors[k] = kept * self.errors[k] + (1 - kept) * min(100.0, z2)

    def amend(self, user: int, y: Array, old: float, new: float) -> None:
        """A reward counts for something else than it did. Row 12."""
        if new == old:
            return
        full, weight = self.people.lengthened(y), self.omega[user]
        self.people.b[user] = self.people.b[user] + weight * (new - old) * full
        self.people.q[user] += weight * (new**2 - old**2)
        self.people.m[user] = self.people.m[user] + weight * (new - old) * self.people.V[user] @ full
        self.amended += 1

    def review(self, user: int) -> None:
        """After row 4, the sums of people have the new ω. Row 12."""
        before = self.omega[user]
        super().review(user)
        times = self.omega[user] / before
        self.people.S[user] = times * self.people.S[user]
        self.people.b[user] = times * self.people.b[user]
        self.people.q[user] *= times
        if times < 0.25:
            self.people.due = self.learnt
            self.effects.restart()
            self.pairs.restart()
            self.misled += 1

    def fit(self) -> None:
        """Row 15."""
        fits = self.people.fits
        self.people.review()
        if self.people.fits > fits and self.people.margin < 1e-7:
            self.margin = 0.0

    def welcome(self, newcomers: int) -> None:
        super().welcome(newcomers)
        self.people.welcome(newcomers)
