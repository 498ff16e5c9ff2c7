"""What the decisions of a policy have brought: a function of the log, as the policy itself is."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import Any, NamedTuple

import numpy as np

from coterie.service.core.confidence_sequence import ArmSums
from coterie.types import Floats

HOUR, DAY = 3_600, 86_400
HOURS_KEPT = 35 * 24
"""Hours of which counts are kept."""
DAYS_KEPT = 400
"""Days of an experiment of which counts are kept."""
NEW_ITEM = 10
"""How often an item must have been shown before it is no longer new."""


class Counts(NamedTuple):
    """Decisions and rewards of some time: those chosen by the policy itself, and those drawn uniformly.

    `rewarded` counts decisions that are settled, with a reward or the default; `reward` is their sum.
    `propensity` is the sum of the probabilities of `propensities` decisions, where they are known.
    """

    decisions: int = 0
    rewarded: int = 0
    reward: float = 0.0
    drawn: int = 0
    drawn_rewarded: int = 0
    drawn_reward: float = 0.0
    propensities: int = 0
    propensity: float = 0.0
    new_items: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return the sum of both."""
        added: Any = map(add, self, other)
        return Counts(*added)


class Settled(NamedTuple):
    """A decision that got its reward, or the default, or another reward after one of them.

    `decisions` is 0 if the decision was settled before; `reward` is then what is added to the sum.
    """

    at: float
    user: str
    drawn: bool
    experiment: str | None
    item: int | None
    decisions: int
    reward: float


class UserSums(NamedTuple):
    """Settled decisions of a user in an experiment, and their rewards."""

    decisions: int
    reward: float


class ExperimentOutcomes:
    """What one arm of an experiment has brought, by user and by day."""

    def __init__(self) -> None:
        """Start without users."""
        self.users: dict[str, UserSums] = {}
        self.days: dict[int, UserSums] = {}
        self.sums = ArmSums()

    def add_user(self, user: str) -> None:
        """Count a user, who may get no reward for long."""
        self.users.setdefault(user, UserSums(0, 0.0))

    def settle(self, settled: Settled) -> None:
        """Add a settled decision of a user."""
        n, r = self.users.get(settled.user, UserSums(0, 0.0))
        now = UserSums(n + settled.decisions, r + settled.reward)
        self.users[settled.user] = now
        sums = self.sums
        self.sums = ArmSums(
            users=sums.users + (n == 0 and now.decisions > 0),
            decisions=sums.decisions + settled.decisions,
            reward=sums.reward + settled.reward,
            # A later reward of the same decision adds its own square: the two are taken for separate ones.
            squares=sums.squares + settled.reward**2,
            nn=sums.nn + now.decisions**2 - n**2,
            nr=sums.nr + now.decisions * now.reward - n * r,
            rr=sums.rr + now.reward**2 - r**2,
        )
        day = int(settled.at // DAY)
        before = self.days.get(day, UserSums(0, 0.0))
        self.days[day] = UserSums(before.decisions + settled.decisions, before.reward + settled.reward)
        if len(self.days) > DAYS_KEPT:
            del self.days[min(self.days)]


class Outcomes:
    """Counts of decisions and rewards in all, by hour, by item, and by experiment.

    Attributes
    ----------
    total : Counts
        All of them.
    hours : dict
        Counts by the hour since 1970 in which a decision was made, or settled.
    items : array of shape (n, 4)
        For each item by its number: how often it was shown, how often that was settled, the sum of rewards,
        and when it was first shown.
    experiments : dict
        What each experiment has brought in which the policy takes part, by its name.
    """

    def __init__(self) -> None:
        """Start at zero."""
        self.total = Counts()
        self.hours: dict[int, Counts] = {}
        self.experiments: dict[str, ExperimentOutcomes] = {}
        self._items: Floats = np.zeros((0, 4))

    @property
    def items(self) -> Floats:
        """What is known of each item."""
        return self._items

    def decide(
        self,
        at: float,
        user: str,
        *,
        drawn: bool,
        propensity: float | None,
        item: int | None,
        experiment: str | None,
    ) -> None:
        """Count a decision; `item` is the number of the first one that was chosen."""
        new = False
        if item is not None:
            row = self._row(item)
            new = bool(row[0] < NEW_ITEM)
            row[3] = row[3] or at
            row[0] += 1
        self._add(
            at,
            Counts(
                decisions=int(not drawn),
                drawn=int(drawn),
                propensities=int(propensity is not None),
                propensity=propensity or 0.0,
                new_items=int(new),
            ),
        )
        if experiment is not None:
            self.experiments.setdefault(experiment, ExperimentOutcomes()).add_user(user)

    def settle(self, settled: Settled) -> None:
        """Count the reward of a decision."""
        count, reward = settled.decisions, settled.reward
        if settled.item is not None:
            row = self._row(settled.item)
            row[1] += count
            row[2] += reward
        if settled.drawn:
            self._add(settled.at, Counts(drawn_rewarded=count, drawn_reward=reward))
        else:
            self._add(settled.at, Counts(rewarded=count, reward=reward))
        if settled.experiment is not None:
            self.experiments.setdefault(settled.experiment, ExperimentOutcomes()).settle(settled)

    def _add(self, at: float, counts: Counts) -> None:
        self.total = self.total.plus(counts)
        hour = int(at // HOUR)
        self.hours[hour] = self.hours.get(hour, Counts()).plus(counts)
        if len(self.hours) > HOURS_KEPT:
            del self.hours[min(self.hours)]

    def _row(self, item: int) -> Floats:
        if item >= len(self._items):
            grown = np.zeros((max(item + 1, 2 * len(self._items)), 4))
            grown[: len(self._items)] = self._items
            self._items = grown
        row: Floats = self._items[item]
        return row

    # As a snapshot has it.

    def as_json(self) -> dict[str, Any]:
        """Return all but the items as values that JSON can have; nothing of it changes any more."""
        return {
            "total": self.total,
            "hours": list(self.hours.items()),
            "experiments": [
                [name, list(one.users.items()), list(one.days.items()), one.sums]
                for name, one in self.experiments.items()
            ],
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], items: Floats) -> Outcomes:
        """Return what `as_json` described."""
        made = cls()
        made.total = Counts(*fields["total"])
        made.hours = {hour: Counts(*counts) for hour, counts in fields["hours"]}
        for name, users, days, sums in fields["experiments"]:
            one = made.experiments[name] = ExperimentOutcomes()
            one.users = {user: UserSums(*values) for user, values in users}
            one.days = {day: UserSums(*values) for day, values in days}
            one.sums = ArmSums(*sums)
        made._items = items
        return made
