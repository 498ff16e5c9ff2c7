"""What a recommender does, naively: a list of what happened, and a policy that is taught it from scratch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import coterie


class MadeDecision(NamedTuple):
    """A decision: for whom, among what, what was chosen, and until when it waits."""

    user: str
    items: tuple[str, ...]
    chosen: str
    x: list[float]
    expires: float


class Learnt(NamedTuple):
    """A user came (without a vector), or gave a reward for the vector of a decision."""

    decision: str
    user: str
    x: list[float] | None
    reward: float


class Refused(Exception):
    """An error is expected; its text is the name of the kind."""


class NaiveRecommender:
    """Ridge regression for each user, one item a decision; everything is recomputed for each request."""

    def __init__(self, items: dict[str, list[float]], wait: float, default: float, late: str) -> None:
        self.items, self.wait, self.default, self.late = dict(items), wait, default, late
        self.time = 0.0
        self.made: dict[str, MadeDecision] = {}
        self.waiting: list[str] = []
        self.settled: dict[str, float] = {}
        self.happened: list[Learnt] = []

    def taught(self) -> tuple[coterie.LinearBandit, list[str]]:
        """The policy after all that happened, and its users."""
        policy = coterie.LinUCBInd(1, 2)
        users: list[str] = []
        for one in self.happened:
            if one.user not in users:
                if users:
                    policy.add_users(1)
                users.append(one.user)
            if one.x is not None:
                policy.update(users.index(one.user), np.array(one.x), one.reward)
        return policy, users

    def decide(self, user: str, items: list[str], decision: str) -> str:
        if decision in self.made:
            first = self.made[decision]
            if (first.user, first.items) != (user, tuple(items)):
                raise Refused("Conflict")
            return first.chosen
        if any(item not in self.items for item in items):
            raise Refused("UnknownName")
        self.happened.append(Learnt(decision, user, None, 0.0))
        policy, users = self.taught()
        vectors = np.array([self.items[item] for item in items])
        chosen: str = items[policy.recommend(users.index(user), vectors)]
        self.made[decision] = MadeDecision(
            user, tuple(items), chosen, self.items[chosen], self.time + self.wait
        )
        self.waiting.append(decision)
        return chosen

    def expire(self, only: str | None = None) -> None:
        for decision in sorted(self.waiting, key=lambda one: self.made[one].expires):
            if self.made[decision].expires <= self.time and only in (None, decision):
                self.waiting.remove(decision)
                self._learn(decision, self.default)

    def reward(self, decision: str, reward: float) -> str:
        if decision not in self.made:
            raise Refused("UnknownName")
        if decision in self.settled:
            if self.settled[decision] != reward:
                raise Refused("Conflict")
            return "duplicate"
        self.expire(decision)
        self.settled[decision] = reward
        in_time = decision in self.waiting
        if in_time:
            self.waiting.remove(decision)
        elif self.late == "ignore":
            return "recorded"
        elif self.late == "correct":
            kept = [one for one in self.happened if one.decision != decision or one.x is None]
            self.happened = kept
        self._learn(decision, reward)
        return "counted" if in_time else "late"

    def _learn(self, decision: str, reward: float) -> None:
        made = self.made[decision]
        self.happened.append(Learnt(decision, made.user, made.x, reward))

    def remove(self, user: str) -> None:
        if user not in self.taught()[1]:
            raise Refused("UnknownName")
        self.happened = [one for one in self.happened if one.user != user]
        for decision in [one for one, made in self.made.items() if made.user == user]:
            del self.made[decision]
            self.settled.pop(decision, None)
            if decision in self.waiting:
                self.waiting.remove(decision)
