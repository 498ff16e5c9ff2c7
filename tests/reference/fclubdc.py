"""FCLUB_DC, as docs/algorithms/fclubdc.md states it.

"Row n" is the n-th row of the table there. Every server keeps the rewards themselves; sums and determinants
are computed anew whenever they are needed.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reference.users import Array, solve


class Reward(NamedTuple):
    user: int
    x: Array
    value: float


class Local:
    """A local cluster: its users, the rewards that it knows of, and those it has to send and to get."""

    def __init__(self, users: set[int], known: list[Reward]) -> None:
        self.users, self.known = users, known
        self.up: list[Reward] = []
        self.down: list[Reward] = []


class Group:
    """A global cluster: its local clusters, and all rewards that were sent."""

    def __init__(self, members: list[Local]) -> None:
        self.members = members
        self.rewards = [one for local in members for one in local.known]


class FCLUBDC:
    """The servers, and what they send."""

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        n_servers: int,
        ridge: float,
        beta: float,
        radius: Callable[[int], float],
        merging: float,
        upload: float,
        download: float,
    ) -> None:
        self.n_users, self.dim, self.n_servers, self.ridge, self.beta = n_users, dim, n_servers, ridge, beta
        self.radius, self.merging, self.upload, self.download = radius, merging, upload, download
        self.rewards: list[Reward] = []
        self.apart: set[frozenset[int]] = set()
        self.phase, self.next_phase = 1, 2
        self.cuts = self.uploads = self.downloads = self.messages = self.merges = 0
        self.margin = math.inf
        self.start_phase()
        self.messages = 0

    @property
    def rounds(self) -> int:
        return len(self.rewards)

    def welcome(self, newcomers: int) -> None:
        """Row 1: alone until the next phase."""
        for user in range(self.n_users, self.n_users + newcomers):
            self.groups.append(Group([Local({user}, [])]))
        self.n_users += newcomers

    def matrix(self, rewards: list[Reward]) -> Array:
        total = self.ridge * np.eye(self.dim)
        for one in rewards:
            total += np.outer(one.x, one.x)
        return total

    def fit(self, rewards: list[Reward]) -> Array:
        b = np.sum([one.value * one.x for one in rewards], axis=0) if rewards else np.zeros(self.dim)
        return solve(self.matrix(rewards), np.asarray(b))

    def logdet(self, rewards: list[Reward]) -> float:
        return float(np.linalg.slogdet(self.matrix(rewards))[1])

    def own(self, users: set[int]) -> list[Reward]:
        return [one for one in self.rewards if one.user in users]

    def home(self, user: int) -> tuple[Group, Local]:
        return next((g, local) for g in self.groups for local in g.members if user in local.users)

    def clusters(self) -> list[frozenset[int]]:
        groups = [self.home(user)[0] for user in range(self.n_users)]
        return [frozenset(j for j, g in enumerate(groups) if g is own) for own in groups]

    def scores(self, user: int, arms: Array) -> Array:
        """Row 5."""
        _, local = self.home(user)
        M, theta = self.matrix(local.known + local.up), self.fit(local.known + local.up)
        return np.array([float(x @ theta) + self.beta * math.sqrt(float(x @ solve(M, x))) for x in arms])

    def update(self, user: int, x: Array, value: float) -> None:
        self.margin = math.inf
        reward = Reward(user, x, value)
        self.rewards.append(reward)
        group, local = self.home(user)
        local.up.append(reward)  # Row 6
        if self.exceeds(self.logdet(local.known + local.up) - self.logdet(local.known), self.upload):
            self.send(group, local)
        if self.rounds == self.next_phase:
            self.phase += 1
            self.next_phase += 2**self.phase
            self.start_phase()

    def exceeds(self, growth: float, ratio: float) -> bool:
        self.margin = min(self.margin, abs(growth - math.log(ratio)))
        return growth >= math.log(ratio)

    def send(self, group: Group, local: Local) -> None:
        """Rows 7 and 8."""
        self.uploads += 1
        self.messages += 1
        group.rewards += local.up
        for other in group.members:
            if other is not local:
                other.down += local.up
        local.known, local.up = local.known + local.up, []
        for other in group.members:
            if other.down and self.exceeds(
                self.logdet(group.rewards) - self.logdet(other.known), self.download
            ):
                other.known, other.down = other.known + other.down, []
                self.downloads += 1
                self.messages += 1

    def near(self, one: list[Reward], other: list[Reward]) -> float:
        """The distance of two estimates, relative to the radii of both."""
        found = float(np.linalg.norm(self.fit(one) - self.fit(other)))
        reach = self.radius(len(one)) + self.radius(len(other))
        return found / reach

    def start_phase(self) -> None:
        """Rows 2 to 4."""
        for i in range(self.n_users):
            for j in range(i % self.n_servers, i, self.n_servers):
                if frozenset((i, j)) not in self.apart:
                    ratio = self.near(self.own({i}), self.own({j}))
                    self.margin = min(self.margin, abs(ratio - 1))
                    if ratio > 1:
                        self.apart.add(frozenset((i, j)))
                        self.cuts += 1
        joined = components(range(self.n_users), self.share)
        locals_ = [Local(users, self.own(users)) for users in joined]
        close = components(range(len(locals_)), lambda a, b: self.close(locals_[a], locals_[b]))
        self.merges += len(locals_) - len(close)
        self.groups = [Group([locals_[k] for k in sorted(found)]) for found in close]
        for group in self.groups:
            for local in group.members:
                local.known = list(group.rewards)
        self.messages += 2 * len(locals_)

    def share(self, i: int, j: int) -> bool:
        return i % self.n_servers == j % self.n_servers and frozenset((i, j)) not in self.apart

    def close(self, one: Local, other: Local) -> bool:
        ratio = self.near(one.known, other.known)
        self.margin = min(self.margin, abs(ratio - self.merging))
        return ratio < self.merging


def components(nodes: range, joined: Callable[[int, int], bool]) -> list[set[int]]:
    """Components, in order of their lowest nodes."""
    left, found = set(nodes), []
    while left:
        part, waiting = {min(left)}, [min(left)]
        left -= part
        while waiting:
            fresh = {j for j in left if joined(waiting[-1], j)}
            waiting.pop()
            part |= fresh
            left -= fresh
            waiting += fresh
        found.append(part)
    return found
