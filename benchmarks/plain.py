"""The same policies in plain, vectorised NumPy, for comparison only.

Sherman–Morrison updates, all arms scored with one matrix product, edges as a Boolean matrix. They play
through `coterie.simulate`, as all policies do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.sparse.csgraph import connected_components

from coterie.policies.confidence import Schedule
from coterie.types import Bools, Floats, Ints

Radius = Callable[[Floats], Floats]


def tuned(alpha: float) -> Radius:
    return lambda pulls: alpha * np.sqrt((1 + np.log(1 + pulls)) / (1 + pulls))


def uniform_rounds(schedule: Schedule, horizon: int) -> Bools:
    """Which rounds are played uniformly   (Alg. 2, lines 7-10)."""
    uniform = np.arange(horizon) < schedule.first
    start, phase = schedule.first, 0
    while schedule.phase > 0 and start < horizon:
        length = math.ceil(2**phase * schedule.phase)
        uniform[start : start + length] = True
        start, phase = start + math.ceil(2 ** (schedule.growth * phase) * length), phase + 1
    return uniform


class Rows:
    """Ridge statistics of many rows."""

    def __init__(self, n: int, dim: int, ridge: float) -> None:
        self.inverse = np.repeat(np.eye(dim)[None] / ridge, n, axis=0)
        self.gram = np.zeros((n, dim, dim))
        self.moment = np.zeros((n, dim))
        self.estimate = np.zeros((n, dim))
        self.pulls = np.zeros(n)
        self.ridge = ridge

    def add(self, row: int, x: Floats, reward: float, *, gram: bool = True) -> None:
        inverse = self.inverse[row]
        gain = inverse @ x
        inverse -= np.outer(gain, gain / (1.0 + x @ gain))
        self.moment[row] += reward * x
        self.estimate[row] = inverse @ self.moment[row]
        self.pulls[row] += 1
        if gram:
            self.gram[row] += np.outer(x, x)

    def gather(self, row: int, users: Rows, members: Ints) -> None:
        self.gram[row] = users.gram[members].sum(axis=0)
        self.moment[row] = users.moment[members].sum(axis=0)
        self.pulls[row] = users.pulls[members].sum()
        self.inverse[row] = np.linalg.inv(self.gram[row] + self.ridge * np.eye(len(self.moment[row])))
        self.estimate[row] = self.inverse[row] @ self.moment[row]

    def best(self, row: int, arms: Floats, beta: float) -> int:
        widths = np.sqrt(((arms @ self.inverse[row]) * arms).sum(axis=1))
        return int(np.argmax(arms @ self.estimate[row] + beta * widths))


class LinUCB:
    def __init__(self, labels: Ints, dim: int, *, ridge: float, beta: float) -> None:
        self.row_of, self.beta = labels, beta
        self.rows = Rows(int(labels.max()) + 1, dim, ridge)

    def recommend(self, user: int, arms: Floats) -> int:
        return self.rows.best(self.row_of[user], arms, self.beta)

    def update(self, user: int, x: Floats, reward: float) -> None:
        self.rows.add(self.row_of[user], x, reward, gram=False)


class CLUB:
    def __init__(
        self, n: int, dim: int, *, ridge: float, beta: float, radius: Radius, explore: int = 0, seed: int = 0
    ) -> None:
        self.users, self.pools = Rows(n, dim, ridge), Rows(n, dim, ridge)
        self.edges: Bools = ~np.eye(n, dtype=bool)
        self.row_of = np.zeros(n, np.int64)
        self.beta, self.radius, self.left = beta, radius, explore
        self.rng = np.random.default_rng(seed)

    def recommend(self, user: int, arms: Floats) -> int:
        if self.left > 0:
            return int(self.rng.integers(len(arms)))
        return self.pools.best(self.row_of[user], arms, self.beta)

    def update(self, user: int, x: Floats, reward: float) -> None:
        self.left -= 1
        self.users.add(user, x, reward)
        self.pools.add(self.row_of[user], x, reward, gram=False)
        if self.cut(user).size:
            count, labels = connected_components(self.edges, directed=False)
            if count != self.row_of.max() + 1:
                self.row_of = labels.astype(np.int64)
                for row in range(count):
                    self.pools.gather(row, self.users, np.flatnonzero(labels == row))

    def cut(self, user: int) -> Ints:
        others = np.flatnonzero(self.edges[user])
        apart = np.linalg.norm(self.users.estimate[others] - self.users.estimate[user], axis=1)
        radii = self.radius(self.users.pulls[others]) + self.radius(self.users.pulls[user : user + 1])
        far: Ints = others[apart > radii]
        self.edges[user, far] = self.edges[far, user] = False
        return far


class PhaseUniCLUB(CLUB):
    """Pools of every user's neighbourhood, updated all at once."""

    def __init__(
        self, n: int, dim: int, *, ridge: float, beta: float, radius: Radius, uniform: Bools
    ) -> None:
        super().__init__(n, dim, ridge=ridge, beta=beta, radius=radius)
        self.rounds, self.uniform = 0, uniform

    def recommend(self, user: int, arms: Floats) -> int:
        if self.uniform[self.rounds]:
            return int(self.rng.integers(len(arms)))
        return self.pools.best(user, arms, self.beta)

    def update(self, user: int, x: Floats, reward: float) -> None:
        self.rounds += 1
        self.users.add(user, x, reward)
        pools, rows = self.pools, np.append(np.flatnonzero(self.edges[user]), user)
        gains = pools.inverse[rows] @ x
        shrink = 1.0 / (1.0 + gains @ x)
        pools.inverse[rows] -= gains[:, :, None] * (gains * shrink[:, None])[:, None, :]
        pools.estimate[rows] += gains * (shrink * (reward - pools.estimate[rows] @ x))[:, None]
        pools.pulls[rows] += 1
        far = self.cut(user)
        for row in np.append(far, user) if far.size else far:
            pools.gather(row, self.users, np.append(np.flatnonzero(self.edges[row]), row))


class SCLUB:
    def __init__(
        self, n: int, dim: int, *, ridge: float, beta: float, radius: Radius, explore: int = 0, seed: int = 0
    ) -> None:
        self.users, self.pools = Rows(n, dim, ridge), Rows(2 * n, dim, ridge)
        self.row_of = np.zeros(n, np.int64)
        self.checked = np.zeros(n, bool)
        self.order = [0]
        self.beta, self.radius, self.left, self.rounds = beta, radius, explore, 0
        self.rng = np.random.default_rng(seed)

    def recommend(self, user: int, arms: Floats) -> int:
        if self.left > 0:
            return int(self.rng.integers(len(arms)))
        return self.pools.best(self.row_of[user], arms, self.beta)

    def update(self, user: int, x: Floats, reward: float) -> None:
        self.left -= 1
        self.rounds += 1
        if self.rounds & (self.rounds - 1) == 0:
            self.checked[:] = False
        self.users.add(user, x, reward)
        slot = int(self.row_of[user])
        self.pools.add(slot, x, reward, gram=False)
        touched = {slot}
        members = np.flatnonzero(self.row_of == slot)
        apart = np.linalg.norm(self.users.estimate[members] - self.users.estimate[user], axis=1)
        reach = self.radius(self.users.pulls[members]) + self.radius(self.users.pulls[user : user + 1])
        if (apart > reach).any():
            fresh = min(set(range(2 * len(self.row_of))) - set(self.order))
            self.row_of[user] = fresh
            self.order.append(fresh)
            self.pools.gather(slot, self.users, members[members != user])
            self.pools.gather(fresh, self.users, np.array([user]))
            touched.add(fresh)
        self.checked[user] = True
        self.merge(touched)

    def merge(self, touched: set[int]) -> None:
        unchecked = set(self.row_of[~self.checked].tolist())
        again = True
        while again:
            again = False
            ready = [slot for slot in self.order if slot not in unchecked]
            for slot in [slot for slot in ready if slot in touched]:
                apart = np.linalg.norm(self.pools.estimate[ready] - self.pools.estimate[slot], axis=1)
                reach = self.radius(self.pools.pulls[ready]) + self.radius(self.pools.pulls[slot : slot + 1])
                close = [other for other, near in zip(ready, apart < reach, strict=True) if near]
                if len(close) > 1:
                    older, younger = sorted((slot, next(o for o in close if o != slot)), key=self.order.index)
                    self.row_of[self.row_of == younger] = older
                    self.order.remove(younger)
                    self.pools.gather(older, self.users, np.flatnonzero(self.row_of == older))
                    touched.add(older)
                    again = True
                    break
