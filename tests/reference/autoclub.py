"""AutoCLUB, as docs/algorithms/autoclub.md states it.

"Row n" is the n-th row of the table there, with the point of the list below the table that belongs to it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reference.users import Array, Users, solve


@dataclass(eq=False)
class Cluster:
    """Its members, Λ as when it was built, and μ and m as then or in a member's last round. Row 1."""

    members: list[int]
    floor: float
    mean: Array
    offset: float


@dataclass(eq=False)
class Alternative:
    """A place where a user may be: a cluster, with its members but the user; or None, alone. Row 5."""

    cluster: Cluster | None
    others: list[int]
    odds: float = 0.0
    weight: float = 0.0


class ByEvidence(Users):
    """The clusters of AutoCLUB, rows 1 to 11.

    `margin` is how far the closest comparison of the last round was from a tie.
    """

    def __init__(self, n_users: int, dim: int, *, ridge: float) -> None:
        super().__init__(n_users, dim, ridge=ridge)
        self.q = [0.0] * n_users
        self.s: list[Array] = [np.zeros(dim) for _ in range(n_users)]
        self.total = [0.0] * n_users
        self.offset = 0.0  # Row 8
        self.told: list[tuple[int, Array, float]] = []
        self.omega = [1.0] * n_users  # Row 4
        self.peaks = [0.0] * n_users  # Row 4
        self.noise2 = 1.0  # Row 4
        self.lam = ridge  # Row 8
        self.mu: Array = np.zeros(dim)  # Row 8
        # The terms of each user's last review: T, ωΣr², RSS, tr H, λ‖δ‖², tr H², tr H² ln λ, κ and two for m;
        # and its v.
        self.terms: list[Array] = [np.zeros(10) for _ in range(n_users)]
        self.votes: list[Array] = [np.zeros(dim) for _ in range(n_users)]
        self.due = [4] * n_users
        self.share = [1.0] * n_users
        self.rest: list[Array] = [np.zeros(dim) for _ in range(n_users)]
        self.partition = [Cluster(list(range(n_users)), ridge, np.zeros(dim), 0.0)]
        self.margin = math.inf
        self.reviews = self.moves = self.reweighted = 0
        self.skipped = 0  # Row 16

    @property
    def exploring(self) -> bool:
        return False

    @property
    def learnt(self) -> int:
        """Rewards that were learnt: all but those of row 16."""
        return self.rounds - self.skipped

    @property
    def floor(self) -> float:
        """Λ. Row 1."""
        return self.lam

    def usual_lam(self) -> float:
        """The ridge times the mean of ‖x‖². Row 8."""
        reach = sum(float(np.trace(gram)) for gram in self.S)
        return self.ridge * reach / self.learnt if reach > 0 else self.ridge

    def exceeds(self, difference: float) -> bool:
        """Whether the difference is above 0; the margin remembers by how little."""
        self.margin = min(self.margin, abs(difference))
        return difference > 0

    def home(self, user: int) -> Cluster:
        return next(c for c in self.partition if user in c.members)

    def clusters(self) -> list[frozenset[int]]:
        return [frozenset(self.home(i).members) for i in range(self.n_users)]

    def sums(self, members: list[int], offset: float | None = None) -> tuple[Array, Array]:
        """S and b − ms. Row 1."""
        m = self.offset if offset is None else offset
        gram, moment = np.zeros((self.dim, self.dim)), np.zeros(self.dim)
        for i in members:
            gram = gram + self.omega[i] * self.S[i]
            moment = moment + self.omega[i] * (self.b[i] - m * self.s[i])
        return gram, moment

    def theta(self, cluster: Cluster) -> Array:
        """θ̂ = M(b + Λμ). Row 1."""
        gram, moment = self.sums(cluster.members, cluster.offset)
        return solve(cluster.floor * np.eye(self.dim) + gram, moment + cluster.floor * cluster.mean)

    def estimates(self) -> Array:
        """Each user's mixture. Row 7."""
        return np.array(
            [self.share[i] * self.theta(self.home(i)) + self.rest[i] for i in range(self.n_users)]
        )

    def settle_noise(self) -> None:
        """σ̂². Row 4."""
        pulls, square, residual, freedom, *_ = np.sum(self.terms, axis=0)
        self.noise2 = max(float(residual / (pulls - freedom)), 1e-12 * float(square / pulls), 1e-100)

    def guess(self) -> None:
        """m, σ̂² and λ before the first review. Rows 4 and 8."""
        square, mean = sum(self.q) / self.learnt, sum(self.total) / self.learnt
        variance = max(square - mean**2, 1e-12 * square)
        self.offset = self.shrunk(mean, variance / self.learnt) if self.learnt > 1 else 0.0
        self.noise2 = max(square - self.offset * (2 * mean - self.offset), 1e-12 * square, 1e-100)
        self.lam = self.usual_lam()

    def shrunk(self, estimate: float, variance: float) -> float:
        """m. Row 8."""
        return estimate * max(0.0, 1 - 16 * variance / estimate**2) if estimate**2 > 0 else 0.0

    def scores(self, user: int, arms: Array) -> Array:
        """Row 11."""
        return np.array([mean + bonus for mean, bonus in self.parts(user, arms)])

    def parts(self, user: int, arms: Array) -> list[tuple[float, float]]:
        """xᵀθ̂ and σ̂√(w² max(1, 2 ln(Nw²/d))), w² = xᵀMx. Row 11."""
        cluster = self.home(user)
        pulls = sum(self.pulls[i] for i in cluster.members)
        theta = self.share[user] * self.theta(cluster) + self.rest[user]
        matrix = cluster.floor * np.eye(self.dim) + self.sums(cluster.members)[0]
        sigma = math.sqrt(self.noise2)
        found = []
        for x in arms:
            mean, width2 = self.offset + float(x @ theta), float(x @ solve(matrix, x))
            more = 2 * math.log(max(1.0, pulls * width2 / self.dim))
            found.append((mean, sigma * math.sqrt(width2 * max(1.0, more))))
        return found

    def update(self, user: int, x: Array, reward: float) -> None:
        self.margin = math.inf
        self.learn(user, x, reward)
        if self.pulls[user] >= self.due[user]:
            self.review(user)

    def learn(self, user: int, x: Array, reward: float) -> None:
        self.rounds += 1
        self.listen(user, x, reward)
        if not any(terms[0] for terms in self.terms):
            self.guess()
        self.solved_now(user)

    def solved_now(self, user: int) -> None:
        """A cluster's θ̂ is computed with today's μ and m. Row 1."""
        self.home(user).mean, self.home(user).offset = self.mu, self.offset

    def listen(self, user: int, x: Array, reward: float) -> None:
        """No reward counts for more than twice the second greatest in size. Row 1."""
        self.peaks[user] = max(self.peaks[user], abs(reward - self.offset))
        holder, _, greatest = max(self.told, key=lambda told: abs(told[2]), default=(user, x, 0.0))
        before = min(abs(greatest), 2 * self.second())
        self.absorb(user, x, 0.0)
        self.told.append((user, x, reward))
        most = 2 * self.second()
        if min(abs(greatest), most) > before:
            self.solved_now(holder)
        for i in {user, holder}:
            own = [(y, min(most, max(-most, r))) for j, y, r in self.told if j == i]
            self.b[i] = np.sum([r * y for y, r in own], axis=0)
            self.q[i], self.total[i] = sum(r**2 for _, r in own), sum(r for _, r in own)
            self.s[i] = np.sum([y for y, _ in own], axis=0)

    def second(self) -> float:
        return sorted([0.0, 0.0, *(abs(told[2]) for told in self.told)])[-2]

    def review(self, user: int) -> None:
        """Rows 4 to 10 in this order, then row 3."""
        self.reviews += 1
        came = self.home(user)
        terms, vote = self.regress(user)
        omega = self.judged(user, terms)
        if self.exceeds(abs(math.log(omega / self.omega[user])) - 0.1):
            self.omega[user] = omega
            self.reweighted += 1
            self.rebuild(came)
            terms, vote = self.regress(user)
        self.terms[user], self.votes[user] = terms, vote
        self.settle_noise()
        options = self.alternatives(user)
        best = self.weigh(user, options)
        self.mix(user, options, best)
        self.settle_prior()
        stayed = self.move(user, came, best)
        merged = self.merge(user, came, options)
        sure = self.exceeds(best.weight - 0.99)
        pace = Fraction(13, 10) if stayed and not merged and sure else Fraction(11, 10)
        self.due[user] = max(self.pulls[user] + 1, math.ceil(pace * self.pulls[user]))  # Row 3

    def regress(self, user: int) -> tuple[Array, Array]:
        """The terms of a user, and its v. Row 4."""
        gram, moment = self.sums([user])
        omega, m, s = self.omega[user], self.offset, self.s[user]
        inverse = np.linalg.inv(self.lam * np.eye(self.dim) + gram)
        c = moment - gram @ self.mu
        delta = inverse @ c
        hat = inverse @ gram
        penalty = self.lam * float(delta @ delta)
        about = self.q[user] - 2 * m * self.total[user] + m**2 * self.pulls[user]
        residual = max(0.0, omega * about - self.mu @ (moment + c) - c @ delta - penalty)
        ground = omega * (self.pulls[user] - omega * float(s @ inverse @ s))
        shift = omega * (self.total[user] - m * self.pulls[user] - s @ (self.mu + delta)) + m * ground
        information = float(np.sum(hat * hat.T))
        level = information * math.log(self.lam)
        say = min(1.0, information / np.trace(hat)) if np.trace(hat) > 1e-100 else 0.0
        terms = [
            self.pulls[user],
            omega * self.q[user],
            residual,
            np.trace(hat),
            penalty,
            information,
            level,
            say,
        ]
        return np.array([*terms, shift, ground], dtype=np.float64), delta + say * self.mu

    def judged(self, user: int, terms: Array) -> float:
        """ω. Row 4."""
        others = [terms for i, terms in enumerate(self.terms) if i != user]
        pulls, square, residual, freedom, *_ = np.sum(others, axis=0) if others else np.zeros(10)
        if not pulls - freedom > 1e-12 * pulls:
            return 1.0
        usual = max(residual / (pulls - freedom), 1e-12 * square / pulls, self.least_noise())
        level = (terms[2] / self.omega[user] / usual + 20) / (terms[0] - terms[3] + 20)
        return float(min(1.0, 2.0 / level))

    def least_noise(self) -> float:
        """4^e/2¹⁴, with 2^e a size of rewards that 2 + √n users have had. Row 4."""
        peaks = sorted(self.peaks, reverse=True)
        size = [*peaks, 0.0, 0.0][1 + math.isqrt(self.n_users)]
        return max(4.0 ** (math.frexp(size)[1] - 1) / 2**14, 1e-100) if size > 0 else 1e-100

    def evidence(self, members: list[int]) -> float:
        """E. Row 2."""
        gram, moment = self.sums(members)
        matrix = self.lam * np.eye(self.dim) + gram
        c = moment - gram @ self.mu
        explained = float(c @ solve(matrix, c)) / self.noise2
        return 0.5 * (self.dim * math.log(self.lam) - float(np.linalg.slogdet(matrix)[1]) + explained)

    def alternatives(self, user: int) -> list[Alternative]:
        """Row 5."""
        own = self.home(user)
        found = [Alternative(None, [])]
        if len(own.members) > 1:
            found.append(Alternative(own, [i for i in own.members if i != user]))
        elsewhere = [c for c in self.partition if c is not own]
        elsewhere.sort(key=lambda c: self.misfit(user, c))
        if len(elsewhere) > 2:
            self.exceeds(self.misfit(user, elsewhere[2]) - self.misfit(user, elsewhere[1]))
        return found + [Alternative(c, list(c.members)) for c in elsewhere[:2]]

    def misfit(self, user: int, cluster: Cluster) -> float:
        """ω(θ̂ᵀSᵢθ̂ − 2bᵢᵀθ̂)/(2σ̂²) − ln n(h). Row 5."""
        theta = self.theta(cluster)
        residual = float(
            theta @ self.S[user] @ theta - 2 * (self.b[user] - self.offset * self.s[user]) @ theta
        )
        return self.omega[user] * residual / (2 * self.noise2) - math.log(self.count(list(cluster.members)))

    def count(self, members: list[int]) -> float:
        """n(h). Row 6."""
        return sum((1 + float(self.terms[i][3])) / (1 + self.dim) for i in members)

    def alpha(self) -> float:
        """Row 6."""
        return self.count([i for i in range(self.n_users) if self.pulls[i] > 0]) / 3

    def weigh(self, user: int, options: list[Alternative]) -> Alternative:
        """Row 6; returns the best."""
        for option in options:
            if option.cluster is None:
                option.odds = self.evidence([user]) + math.log(self.alpha())
            else:
                gain = self.evidence([*option.others, user]) - self.evidence(option.others)
                option.odds = gain + math.log(self.count(option.others))
        ranked = sorted(options, key=lambda option: -option.odds)
        if len(ranked) > 1:
            self.exceeds(ranked[0].odds - ranked[1].odds)
        total = sum(math.exp(option.odds - ranked[0].odds) for option in options)
        for option in options:
            option.weight = math.exp(option.odds - ranked[0].odds) / total
        return ranked[0]

    def mix(self, user: int, options: list[Alternative], best: Alternative) -> None:
        """Row 7."""
        self.share[user] = best.weight
        self.rest[user] = np.zeros(self.dim)
        for option in options:
            if option is not best:
                gram, moment = self.sums([*option.others, user])
                c = moment - gram @ self.mu
                theta = self.mu + solve(self.lam * np.eye(self.dim) + gram, c)
                self.rest[user] = self.rest[user] + option.weight * theta

    def settle_prior(self) -> None:
        """Row 8."""
        pulls, _, _, freedom, penalty, information, level, say, shift, ground = np.sum(self.terms, axis=0)
        if ground > 1e-12 * pulls:
            self.offset = self.shrunk(float(shift / ground), self.noise2 / float(ground))
        k = self.dim / 5
        target = level + k * math.log(self.usual_lam()) + freedom - penalty / self.noise2
        step = target / (information + k) - math.log(self.lam)
        total = np.sum(self.votes, axis=0)
        spread = sum(float(vote @ vote) for vote in self.votes)
        length = float(total @ total)
        shrink = max(0.0, 1 - spread / length) if length > 0 else 0.0
        reach = sum(float(np.trace(gram)) for gram in self.S)
        self.lam = max(self.lam * math.exp(min(0.5, max(-0.5, step))), 1e-12 * reach)
        reviewed = sum(terms[0] > 0 for terms in self.terms)
        self.mu = shrink * total / max(say, 1e-12 * reviewed)

    def rebuild(self, cluster: Cluster) -> None:
        """Row 1."""
        cluster.floor, cluster.mean, cluster.offset = self.floor, self.mu, self.offset

    def move(self, user: int, came: Cluster, best: Alternative) -> bool:
        """Row 9; returns whether the user stayed."""
        alone = len(came.members) == 1
        if best.cluster is came or (best.cluster is None and alone):
            if self.exceeds(abs(math.log(self.floor / came.floor)) - 0.1):
                self.rebuild(came)
            return True
        self.moves += 1
        came.members.remove(user)
        self.rebuild(came)
        if not came.members:
            self.partition.remove(came)
        if best.cluster is None:
            self.splits += 1
            self.partition.append(Cluster([user], self.floor, self.mu, self.offset))
        else:
            best.cluster.members.append(user)
            self.rebuild(best.cluster)
        return False

    def merge(self, user: int, came: Cluster, options: list[Alternative]) -> bool:
        """Row 10."""
        own = self.home(user)
        others = [o for o in options if o.cluster is not None and o.cluster not in (came, own)]
        if len(own.members) == 1 or not others:
            return False
        ranked = sorted(others, key=lambda option: -option.odds)
        if len(ranked) > 1:
            self.exceeds(ranked[0].odds - ranked[1].odds)
        other = ranked[0].cluster
        assert other is not None
        n_own, n_other = self.count(own.members), self.count(other.members)
        gain = self.evidence(own.members + other.members)
        gain -= self.evidence(own.members) + self.evidence(other.members)
        gain += math.lgamma(n_own + n_other) - math.lgamma(n_own) - math.lgamma(n_other)
        if not self.exceeds(gain - math.log(self.alpha())):
            return False
        own.members = own.members + other.members
        self.partition.remove(other)
        self.rebuild(own)
        self.merges += 1
        return True

    def welcome(self, newcomers: int) -> None:
        """They start together about μ, where nobody has given a reward. "Where we differ", third point."""
        first = self.n_users
        waiting = [c for c in self.partition if all(self.pulls[i] == 0 for i in c.members)]
        self.n_users += newcomers
        for _ in range(newcomers):
            self.S.append(np.zeros((self.dim, self.dim)))
            self.b.append(np.zeros(self.dim))
            self.pulls.append(0)
            self.q.append(0.0)
            self.s.append(np.zeros(self.dim))
            self.total.append(0.0)
            self.omega.append(1.0)
            self.peaks.append(0.0)
            self.terms.append(np.zeros(10))
            self.votes.append(np.zeros(self.dim))
            self.due.append(4)
            self.share.append(1.0)
            self.rest.append(np.zeros(self.dim))
        if waiting:
            waiting[0].members += range(first, self.n_users)
            waiting[0].mean = self.mu
        else:
            self.partition.append(Cluster(list(range(first, self.n_users)), self.floor, self.mu, self.offset))
