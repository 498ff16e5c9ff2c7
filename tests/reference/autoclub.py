"""AutoCLUB, as docs/algorithms/autoclub.md states it and in its order.

"Row n" is the n-th row of the table there, with what its appendix says of it.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import numpy as np

from reference.columns import Columns
from reference.effects import Effects
from reference.hier import Seated
from reference.lists import observed
from reference.users import Array, solve

T, RSS, LEFT, KNOWN, PENALTY, INFORMATION, LEVEL, KAPPA, SHIFT, GROUND = range(10)
"""A user's terms in sums: T, RSS and T − tr H by fair share, tr H, λ‖δ‖², tr H², tr H² ln λ, κ, and
numerator and denominator of m."""


@dataclass(eq=False)
class User:
    """Its sums, sizes of its rewards and vectors, energies, ω, φ, terms, v, next review, and mixture."""

    number: int
    S: Array
    b: Array
    s: Array
    votes: Array
    rest: Array
    q: float = 0.0
    total: float = 0.0
    pulls: int = 0
    sizes: list[int] = field(default_factory=lambda: [0, 0])
    energy: float = 0.0
    own_energy: float = 0.0
    omega: float = 1.0
    fair: float = 1.0
    terms: Array = field(default_factory=lambda: np.zeros(10))
    due: int = 4
    share: float = 1.0
    change: float = 0.0
    errors: float = 0.0


@dataclass(eq=False)
class Cluster:
    """Its members, Λ as when it was built, and μ and m as then or in a member's last round."""

    members: list[User]
    ridge: float
    mean: Array
    offset: float


@dataclass(eq=False)
class Candidate:
    """A place where a user may be: a cluster, None if it is a new one; the others there; and its log odds."""

    cluster: Cluster | None
    others: list[User]
    odds: float


class AutoCLUB:
    """`margin` is how far the closest comparison of the last round was from a tie."""

    exploring = False

    def __init__(self, n_users: int, dim: int, *, ridge: float, slots: int = 4096) -> None:
        self.dim, self.ridge = dim, ridge
        self.users: list[User] = []
        self.current: list[int] = []
        self.rounds = self.skipped = 0
        self.noise2, self.lam, self.offset, self.mu = 1.0, ridge, 0.0, np.zeros(dim)
        self.givers: dict[float, set[int]] = {}
        self.whole: list[float] = []
        self.partition = [Cluster([], ridge, np.zeros(dim), 0.0)]
        self.hierarchy = Seated(0, dim, ridge=ridge, seats=slots)
        self.odds = 0.0
        self.items, self.pairs = Effects(), Effects(least=0.02, most=0.5, most_weight=32.0)
        self.columns = Columns(dim)
        self.margin = math.inf
        self.moves = self.splits = self.merges = self.reweighted = self.limited = self.changes = 0
        self.welcome(n_users)

    def welcome(self, newcomers: int) -> None:
        """`users` are all, those included who have changed since; `current` says which of them a user is."""
        for number in range(len(self.users), len(self.users) + newcomers):
            self.current.append(number)
            self.users.append(User(number, np.zeros((self.dim, self.dim)), *np.zeros((4, self.dim))))
        self.hierarchy.welcome(newcomers)

    @property
    def seen(self) -> list[User]:
        return [self.users[number] for number in self.hierarchy.arrived]

    @property
    def learnt(self) -> int:
        return self.rounds - self.skipped

    def exceeds(self, difference: float) -> bool:
        """Whether the difference is above 0; the margin remembers by how little."""
        self.margin = min(self.margin, abs(difference))
        return difference > 0

    # Row 1: what a reward counts for.

    @staticmethod
    def quorum(n: int) -> int:
        return min(2 + math.isqrt(n), n // 2 + 1)

    def most(self, kind: int) -> float:
        """2^(e+2), with 2^e what the rewards (0) or vectors (1) of a quorum have reached."""
        known = sorted((each.sizes[kind] for each in self.users if each.sizes[kind] > 0), reverse=True)
        return 2.0 ** (known[self.quorum(len(known)) - 1] - 999) if known else math.inf

    def factor(self, user: User, x: Array, reward: float) -> tuple[float, float]:
        """What a reward and its vector are multiplied by, and the reward as effects learn it."""
        length = float(np.linalg.norm(x))
        for kind, size in enumerate((abs(reward), length)):
            user.sizes[kind] = max(user.sizes[kind], math.frexp(size)[1] + 1000 if size > 0 else 0)
        largest, longest = self.most(0), self.most(1)
        factor = min(1.0, largest / max(abs(reward), 1e-300), longest / max(length, 1e-300))
        self.limited += factor < 1
        return factor, min(largest, max(-largest, reward))

    def level(self, user: User, x: Array) -> None:
        """Other units of columns: everything follows."""
        if (times := self.columns.revised(x, user.pulls)) is None:
            return
        before = self.usual_lam()[1]
        for each in self.users:
            each.S, each.b, each.s = each.S * np.outer(times, times), each.b * times, each.s * times
            each.votes, each.rest = each.votes / times, each.rest / times
        growth = self.usual_lam()[1] / before
        self.lam, self.mu = self.lam * growth, self.mu / times
        for each in self.users:
            each.terms[LEVEL] += each.terms[INFORMATION] * math.log(growth)
        for cluster in self.partition:
            self.rebuild(cluster)
        self.hierarchy.rescale(times, growth)

    # Row 2: a user's own regression.

    def sums(self, members: list[User], offset: float) -> tuple[Array, Array]:
        """S and b − ms, with ω."""
        gram, moment = np.zeros((self.dim, self.dim)), np.zeros(self.dim)
        for user in members:
            gram = gram + user.omega * user.S
            moment = moment + user.omega * (user.b - offset * user.s)
        return gram, moment

    def regress(self, user: User) -> float:
        """Sets φ, terms and v of a user; returns RSS."""
        gram, moment = self.sums([user], self.offset)
        omega, m, s, pulls = user.omega, self.offset, user.s, user.pulls
        inverse = np.linalg.inv(self.lam * np.eye(self.dim) + gram)
        c = moment - gram @ self.mu
        delta, hat = inverse @ c, inverse @ gram
        penalty, known, information = (
            self.lam * float(delta @ delta),
            float(np.trace(hat)),
            float(np.sum(hat * hat.T)),
        )
        about = user.q - 2 * m * user.total + m**2 * pulls
        rss = max(0.0, omega * about - float(self.mu @ (moment + c) + c @ delta) - penalty)
        ground = omega * (pulls - omega * float(s @ inverse @ s))
        shift = omega * (user.total - m * pulls - float(s @ (self.mu + delta))) + m * ground
        kappa = min(1.0, information / known) if known > 1e-100 else 0.0
        left, level = max(0.0, pulls - known), information * math.log(self.lam)
        user.fair = fair = self.fair_share(user, left)
        terms = (pulls, fair * rss, fair * left, known, penalty, information, level, kappa, shift, ground)
        user.terms, user.votes = np.array(terms, dtype=np.float64), delta + kappa * self.mu
        return rss

    # Row 3: noise.

    def others(self, user: User) -> tuple[int, Array]:
        """How many others have been reviewed, and the sums of their terms."""
        found = [each.terms for each in self.users if each is not user and each.terms[T] > 0]
        return len(found), np.sum(found, axis=0) if found else np.zeros(10)

    def least_noise(self) -> float:
        """1e-8 of the square of what a quorum's rewards have reached."""
        return (
            max(1e-8 * self.most(0) ** 2 / 16, 1e-100)
            if any(user.sizes[0] for user in self.users)
            else 1e-100
        )

    def settled(self) -> bool:
        """Whether a quorum has been reviewed."""
        return sum(1 for user in self.users if user.terms[T] > 0) >= self.quorum(len(self.seen))

    def fair_share(self, user: User, left: float) -> float:
        """φ."""
        n, sums = self.others(user)
        if user.omega < 1:
            return 0.0
        if n and sums[LEFT] < 1e-6:  # no digits are left
            self.margin = 0.0
        return 4 * float(sums[LEFT]) / (n * left) if 4 * sums[LEFT] < n * left else 1.0

    def is_shared(self, user: User, value: float) -> bool:
        """Whether a quorum has given this value by now."""
        givers, known = self.givers.setdefault(value, set()), len(self.givers.get(value, ()))
        givers.add(self.hierarchy.number(user.number) % 64)
        return known > 0 and len(givers) >= min(32, self.quorum(len(self.seen)))

    def judged(self, user: User, settled: bool, rss: float) -> float:
        """ω."""
        others = self.others(user)[1]
        if not (settled and others[LEFT] > 1e-12 * others[T]):
            return 1.0
        usual = max(others[RSS] / others[LEFT], self.least_noise())
        rss *= user.own_energy / user.energy if user.energy > 0 else 1.0
        level = (rss / user.omega / usual + 10) / (user.terms[T] - user.terms[KNOWN] + 10)
        return float(min(1.0, 2.0 / level))

    # Row 4: the prior.

    def usual_lam(self) -> tuple[float, float]:
        """Σ‖x‖², and ρ: the ridge times the mean of ‖x‖²."""
        reach = sum(float(np.trace(user.S)) for user in self.users)
        return reach, self.ridge * reach / self.learnt if reach > 0 else self.ridge

    def shrunk(self, estimate: float, variance: float) -> float:
        """m."""
        return estimate * max(0.0, 1 - 16 * variance / estimate**2) if estimate**2 > 0 else 0.0

    def guess(self) -> None:
        """m, σ̂² and λ before a quorum was reviewed, from rewards that were not shrunk."""
        n = len(self.whole)
        mean, square = sum(self.whole) / max(n, 1), sum(r**2 for r in self.whole) / max(n, 1)
        variance = max(square - mean**2, 1e-12 * square)
        self.offset = self.shrunk(mean, variance / n) if n > 1 else 0.0
        self.noise2 = max(square - self.offset * (2 * mean - self.offset), self.least_noise())
        self.lam = self.usual_lam()[1]

    def settle(self, sums: Array) -> None:
        k, (reach, usual), total = (
            self.dim / 5,
            self.usual_lam(),
            np.sum([user.votes for user in self.users], axis=0),
        )
        if sums[GROUND] > 1e-12 * sums[T]:
            self.offset = self.shrunk(float(sums[SHIFT] / sums[GROUND]), self.noise2 / float(sums[GROUND]))
        slope = sums[KNOWN] - sums[PENALTY] / self.noise2
        target = (sums[LEVEL] + k * math.log(usual) + slope) / (sums[INFORMATION] + k)
        step = min(0.5, max(-0.5, target - math.log(self.lam)))
        self.lam = max(self.lam * math.exp(step), 1e-12 * reach)
        length, spread = float(total @ total), sum(float(user.votes @ user.votes) for user in self.users)
        shrink = max(0.0, 1 - spread / length) if length > 0 else 0.0
        self.mu = shrink * total / max(sums[KAPPA], 1e-12 * sum(user.terms[T] > 0 for user in self.users))

    # Row 5: evidence and odds.

    def evidence(self, members: list[User]) -> float:
        """E."""
        gram, moment = self.sums(members, self.offset)
        matrix, c = self.lam * np.eye(self.dim) + gram, moment - gram @ self.mu
        explained = float(c @ solve(matrix, c)) / self.noise2
        return 0.5 * (self.dim * math.log(self.lam) - float(np.linalg.slogdet(matrix)[1]) + explained)

    def size(self, members: list[User]) -> float:
        """n(h)."""
        return sum((1 + float(user.terms[KNOWN])) / (1 + self.dim) for user in members)

    def misfit(self, user: User, cluster: Cluster) -> float:
        theta = self.theta(cluster)
        residual = float(theta @ user.S @ theta - 2 * (user.b - self.offset * user.s) @ theta)
        return user.omega * residual / (2 * self.noise2) - math.log(self.size(cluster.members))

    def candidates(self, user: User) -> list[Candidate]:
        """The best first."""
        own, alone = self.home(user), self.evidence([user]) + math.log(self.size(self.seen) / 3)
        near = sorted((c for c in self.partition if c is not own), key=lambda c: self.misfit(user, c))
        if len(near) > 2:
            self.exceeds(self.misfit(user, near[2]) - self.misfit(user, near[1]))
        found = [Candidate(None, [], alone)]
        for cluster in [own, *near[:2]]:
            if others := [each for each in cluster.members if each is not user]:
                gain = self.evidence([*others, user]) - self.evidence(others)
                found.append(Candidate(cluster, others, gain + math.log(self.size(others))))
        found.sort(key=lambda candidate: -candidate.odds)
        for first, second in pairwise(found):
            self.exceeds(first.odds - second.odds)
        return found

    # Row 6: the review of a user.

    def review(self, user: User) -> None:
        came, before, settled = self.home(user), user.omega, self.settled()
        omega = self.judged(user, settled, self.regress(user))
        if self.exceeds(abs(math.log(omega / before)) - 0.1):
            user.omega = omega
            self.reweighted += 1
            self.rebuild(came)
            self.regress(user)
        sums = np.sum([each.terms for each in self.users], axis=0)
        if self.settled() and sums[LEFT] > 1e-12 * sums[T]:
            self.noise2 = max(float(sums[RSS] / sums[LEFT]), self.least_noise())
        found = self.candidates(user)
        self.mix(user, found)
        if self.settled():
            self.settle(sums)
        stayed = self.move(user, came, found[0].cluster)
        merged = self.merge(user, came, found)
        sure = self.exceeds(user.share - 0.99)
        pace = Fraction(13, 10) if stayed and not merged and sure else Fraction(11, 10)
        user.due = max(user.pulls + 1, math.ceil(pace * user.pulls))
        self.reweigh(user.number, user.omega / before)

    def rebuild(self, cluster: Cluster) -> None:
        cluster.ridge, cluster.mean, cluster.offset = self.lam, self.mu, self.offset

    def move(self, user: User, came: Cluster, best: Cluster | None) -> bool:
        """Returns whether the user stayed."""
        if best is came or (best is None and len(came.members) == 1):
            if self.exceeds(abs(math.log(self.lam / came.ridge)) - 0.1):
                self.rebuild(came)
            return True
        self.moves, self.splits = self.moves + 1, self.splits + (best is None)
        target = best or Cluster([], self.lam, self.mu, self.offset)
        came.members.remove(user)
        target.members.append(user)
        self.partition = [c for c in self.partition if c.members and c is not target] + [target]
        self.rebuild(came)
        self.rebuild(target)
        return False

    def merge(self, user: User, came: Cluster, found: list[Candidate]) -> bool:
        own = self.home(user)
        others = [one.cluster for one in found if one.cluster is not None and one.cluster not in (came, own)]
        if len(own.members) == 1 or not others:
            return False
        both = own.members + others[0].members
        n, m = self.size(own.members), self.size(others[0].members)
        gain = self.evidence(both) - self.evidence(own.members) - self.evidence(others[0].members)
        gain += math.lgamma(n + m) - math.lgamma(n) - math.lgamma(m) - math.log(self.size(self.seen) / 3)
        if not self.exceeds(gain):
            return False
        own.members = both
        self.partition.remove(others[0])
        self.rebuild(own)
        self.merges += 1
        return True

    # Row 7: what clusters say.

    def home(self, user: User) -> Cluster:
        """The cluster of a user; one without rewards acts in the largest."""
        own = [cluster for cluster in self.partition if user in cluster.members]
        return max(own or self.partition, key=lambda cluster: self.size(cluster.members))

    def clusters(self) -> list[frozenset[int]]:
        homes = [self.home(self.users[number]) for number in self.current]
        return [frozenset(k for k, other in enumerate(homes) if other is home) for home in homes]

    def theta(self, cluster: Cluster) -> Array:
        """θ̂ of a cluster."""
        gram, moment = self.sums(cluster.members, cluster.offset)
        return solve(cluster.ridge * np.eye(self.dim) + gram, moment + cluster.ridge * cluster.mean)

    def mix(self, user: User, found: list[Candidate]) -> None:
        weights = np.exp([one.odds - found[0].odds for one in found])
        user.share, user.rest = float(1 / weights.sum()), np.zeros(self.dim)
        for one, weight in zip(found[1:], weights[1:] / weights.sum(), strict=True):
            gram, moment = self.sums([*one.others, user], self.offset)
            theta = self.mu + solve(self.lam * np.eye(self.dim) + gram, moment - gram @ self.mu)
            user.rest = user.rest + weight * theta

    def mixture(self, user: User) -> Array:
        return user.share * self.theta(self.home(user)) + user.rest

    def width2(self, user: User, x: Array) -> float:
        gram = self.sums(self.home(user).members, 0.0)[0]
        return float(x @ solve(self.home(user).ridge * np.eye(self.dim) + gram, x))

    # Row 8: the hierarchical model.

    def reweigh(self, number: int, times: float) -> None:
        """Its sums have the new ω at once, its posterior with the next fit."""
        self.hierarchy.S[number] = times * self.hierarchy.S[number]
        self.hierarchy.b[number] = times * self.hierarchy.b[number]
        self.hierarchy.q[number] *= times

    # Row 9: the weight of each model.

    def trust(self) -> float:
        """w."""
        weight = 1.0 / (1.0 + math.exp(-min(50.0, max(-50.0, self.odds))))
        return 0.0 if weight < 0.001 else 1.0 if weight > 0.999 else weight

    def predicted(self, user: User, x: Array) -> list[tuple[float, float]]:
        """Mean and variance of a reward, by clusters and by the hierarchical model."""
        own, full = 1.0 / user.omega, self.hierarchy.lengthened(x)
        m, V = self.hierarchy.posterior(user.number)
        return [
            (self.offset + float(x @ self.mixture(user)), self.noise2 * (own + self.width2(user, x))),
            (float(full @ m), self.noise2 * (own + float(full @ V @ full))),
        ]

    def compare(self, reward: float, predicted: list[tuple[float, float]], fair: float) -> None:
        if self.learnt < 2:
            return
        first, second = (-0.5 * (math.log(var) + (reward - mean) ** 2 / var) for mean, var in predicted)
        kept = max(0.0, 1.0 - 4.0 / self.learnt)
        self.odds = kept * self.odds + fair * min(1.0, max(-1.0, second - first))

    # Row 10: effects, and the arm.

    def update(self, number: int, x: Array, reward: float) -> None:
        self.update_list(number, np.array([x]), None, [reward])

    def update_list(
        self, number: int, xs: Array, clicked: int | None, rewards: list[float] | None = None
    ) -> None:
        """A review comes if the pulls reach their mark anywhere in the list; it and a fit see all of it."""
        user, self.margin = self.users[self.current[number]], math.inf
        for x, reward in observed(xs, clicked) if rewards is None else zip(xs, rewards, strict=True):
            self.learn(user, x, reward)
        if (changed := self.has_changed(user)) or user.pulls >= user.due:
            self.review(user)
        self.hierarchy.noise2, fits = self.noise2, self.hierarchy.fits
        self.hierarchy.review()
        if self.hierarchy.fits > fits and self.hierarchy.margin < 1e-7:
            self.margin = 0.0
        if changed:
            self.restart(user)

    def learn(self, user: User, x: Array, reward: float) -> None:
        """Effects first, then both models; equal vectors are one item."""
        item, pair, trust = x.tobytes(), (user.number, x.tobytes()), self.trust()
        shared, (factor, cut) = self.is_shared(user, reward), self.factor(user, x, reward)
        (first, one), (second, other) = self.predicted(user, self.columns.inside(x))
        mean, a = (1 - trust) * first + trust * second, self.noise2 / ((1 - trust) * one + trust * other)
        effect, known = self.items.effect(item).mean, pair in self.pairs.P
        if reviewed := user.terms[T] > 0 and self.noise2 > 1e-100:
            self.pairs.learn(pair, cut, mean + effect, a)
        self.rounds += 1
        if reviewed and known and self.pairs.tau2 > 0:
            self.skipped += 1
        else:
            self.items.learn(item, cut - mean, 0.0, a)
            self.whole += [reward - effect] if factor == 1 else []
            self.level(user, x)
            self.learn_both(user, self.columns.inside(factor * x), factor * (reward - effect), shared)
        self.margin = min(self.margin, self.items.margin, self.pairs.margin)

    def learn_both(self, user: User, x: Array, reward: float, shared: bool) -> None:
        user.energy += (reward - self.offset) ** 2
        user.own_energy += 0.0 if shared else (reward - self.offset) ** 2
        home, predicted = self.home(user), self.predicted(user, x)
        if self.trust() > 0.0 or self.hierarchy.sits(user.number):
            self.hierarchy.sit(user.number)
            self.compare(reward, predicted, user.fair)
            self.hierarchy.absorb(user.number, x, reward, user.omega)
        else:
            self.hierarchy.learn_apart(user.number, x, reward, user.omega)
        self.look_for_change(user, x, reward, *predicted[0])
        home.members += [] if user.pulls else [user]
        user.S, user.b, user.s = user.S + np.outer(x, x), user.b + reward * x, user.s + x
        user.q, user.total, user.pulls = user.q + reward**2, user.total + reward, user.pulls + 1
        if not self.settled():
            self.guess()
        home.mean, home.offset = self.mu, self.offset

    # Row 11: users who change.

    def look_for_change(self, user: User, x: Array, reward: float, mean: float, variance: float) -> None:
        """The log likelihood ratio of the prior and of what is known of the user, since its last minimum."""
        if user.terms[T] == 0:
            return
        usual = self.offset + float(self.mu @ x)
        wide = self.noise2 * (1 / user.omega + float(x @ x) / self.lam)
        noisier = max(1.0, (20 + user.errors) / (20 + user.pulls))
        ratio = (reward - mean) ** 2 / (variance * noisier) - (reward - usual) ** 2 / (wide * noisier)
        user.errors += min(100.0, (reward - mean) ** 2 / variance) if user.change < 2 else 0.0
        user.change = max(0.0, user.change + min(2.0, 0.5 * (math.log(variance / wide) + ratio)))

    def has_changed(self, user: User) -> bool:
        return self.exceeds(user.change - math.log(1e6) - 2 * math.log(max(1, user.pulls)))

    def restart(self, user: User) -> None:
        """The user is a new one; only the sizes of its rewards and vectors stay its own."""
        owner = self.current.index(user.number)
        self.welcome(1)
        self.current[owner] = self.current.pop()
        new = self.users[self.current[owner]]
        new.sizes, user.sizes = user.sizes, new.sizes
        self.changes += 1

    def scores(self, number: int, arms: Array) -> Array:
        user, trust, sigma = self.users[self.current[number]], self.trust(), math.sqrt(self.noise2)
        m, V = self.hierarchy.posterior(user.number)
        theta, pulls = self.mixture(user), sum(each.pulls for each in self.home(user).members)
        found = []
        for x in arms:
            item, pair_key = self.items.effect(x.tobytes()), (user.number, x.tobytes())
            x = self.columns.inside(x)
            full = self.hierarchy.lengthened(x)
            mean = (1 - trust) * (self.offset + float(x @ theta)) + trust * float(full @ m) + item.mean
            bonus = (1 - trust) * self.raised(self.width2(user, x), pulls / self.dim)
            bonus += trust * self.raised(max(0.0, float(full @ V @ full)), user.pulls / (1 + self.dim))
            pair = self.pairs.effect(pair_key, mean)
            bonus = (1.0 - pair.share) * sigma * math.hypot(bonus, math.sqrt(item.variance))
            found.append(mean + pair.mean + bonus)
        return np.array(found)

    @staticmethod
    def raised(width2: float, times: float) -> float:
        """√(w² max(1, 2 ln(w² times)))."""
        return math.sqrt(width2 * max(1.0, 2 * math.log(max(1.0, width2 * times))))
