"""What the decisions of a policy have brought: a function of the log, as the policy itself is.

A decision counts with the default reward as soon as it is made, and its own reward corrects that when it
comes. Otherwise only rewards that came would count until `reward_wait` is over, and every mean would be too
high. Where there is no default, a decision counts from its reward on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(slots=True)
class ChoiceCounts:
    """Decisions made in one way: by the policy itself, or drawn uniformly.

    `counted` decisions have a reward, or the default until it comes; `reward` is the sum of these, and
    `squares` that of their squares. `answered` decisions have got a reward of their own.
    """

    decisions: int = 0
    counted: int = 0
    answered: int = 0
    reward: float = 0.0
    squares: float = 0.0

    def fields(self) -> tuple[float, ...]:
        """Return all fields, in order; `dataclasses.astuple` takes ten times as long."""
        return self.decisions, self.counted, self.answered, self.reward, self.squares


@dataclass(slots=True)
class Counts:
    """Decisions and rewards of some time.

    `propensity` is the sum of the probabilities of `propensities` decisions, where they are known.
    `new_items` counts decisions for items that were shown fewer than ten times before. Of `named` decisions
    the item has an id; `pairs` counts the pairs of them, within the same hour, that show the same item.
    """

    policy: ChoiceCounts
    uniform: ChoiceCounts
    propensities: int = 0
    propensity: float = 0.0
    new_items: int = 0
    named: int = 0
    pairs: int = 0

    @classmethod
    def zero(cls) -> Counts:
        """Return counts of nothing."""
        return cls(ChoiceCounts(), ChoiceCounts())

    def fields(self) -> tuple[Any, ...]:
        """Return all fields, in order."""
        others = self.propensities, self.propensity, self.new_items, self.named, self.pairs
        return self.policy.fields(), self.uniform.fields(), *others

    @classmethod
    def from_fields(cls, fields: Any) -> Counts:
        """Return the counts of which these are the fields."""
        policy, uniform, *others = fields
        return cls(ChoiceCounts(*policy), ChoiceCounts(*uniform), *others)


class Settled(NamedTuple):
    """A decision that is counted, or gets another reward than it was counted with.

    `decisions` is 1 if it was not counted before, −1 if it is not counted any more, else 0; `reward` is what
    is added to the sum, and `answered` is 1 if a reward came for the first time.
    """

    at: float
    user: str
    drawn: bool
    experiment: str | None
    decisions: int
    reward: float
    answered: int = 0


class UserSums(NamedTuple):
    """Decisions of a user in an experiment that are counted, and their rewards."""

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
        """Add what a decision of a user has brought."""
        n, r = self.users.get(settled.user, UserSums(0, 0.0))
        now = UserSums(n + settled.decisions, r + settled.reward)
        self.users[settled.user] = now
        sums = self.sums
        self.sums = ArmSums(
            users=sums.users + (now.decisions > 0) - (n > 0),
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
        Counts by the hour since 1970 in which a decision was made, or a reward came.
    items : array of shape (n, 4)
        For each item by its number: how often it was shown, how often that was counted, the sum of rewards,
        and when it was first shown.
    experiments : dict
        What each experiment has brought in which the policy takes part, by its name.
    """

    def __init__(self) -> None:
        """Start at zero."""
        self.total = Counts.zero()
        self.hours: dict[int, Counts] = {}
        self.experiments: dict[str, ExperimentOutcomes] = {}
        self._items: Floats = np.zeros((0, 4))
        self._hour = -1
        self._shown: dict[int, int] = {}  # how often each item was shown in the latest hour

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
        """Count a decision; `item` is the number of the first one that was chosen, if it was shown."""
        hour, new, pairs = self._counts_of(at), 0, 0
        if item is not None:
            row = self._row(item)
            shown = row.item(0)
            new = int(shown < NEW_ITEM)
            if not shown:
                row[3] = at
            row[0] = shown + 1
            pairs = self._shown.get(item, 0)
            self._shown[item] = pairs + 1
        for counts in (self.total, hour):
            choice = counts.uniform if drawn else counts.policy
            choice.decisions += 1
            if propensity is not None:
                counts.propensities += 1
                counts.propensity += propensity
            if item is not None:
                counts.new_items += new
                counts.named += 1
                counts.pairs += pairs
        if experiment is not None:
            self.experiments.setdefault(experiment, ExperimentOutcomes()).add_user(user)

    def settle(self, settled: Settled) -> None:
        """Count the reward of a decision."""
        count, reward = settled.decisions, settled.reward
        for counts in (self.total, self._counts_of(settled.at)):
            choice = counts.uniform if settled.drawn else counts.policy
            choice.counted += count
            choice.answered += settled.answered
            choice.reward += reward
            choice.squares += reward * reward
        if settled.experiment is not None:
            self.experiments.setdefault(settled.experiment, ExperimentOutcomes()).settle(settled)

    def credit(self, item: int | None, *, counted: int, reward: float, shown: int = 0) -> None:
        """Add a reward to those of an item; `shown` is 1 if only its reward says that it was shown."""
        if item is not None:
            row = self._row(item)
            if shown:
                row[0] += shown
            if counted:
                row[1] += counted
            if reward:
                row[2] += reward

    def _counts_of(self, at: float) -> Counts:
        """Return the counts of an hour, and forget the oldest one if there are too many."""
        hour = int(at // HOUR)
        if hour != self._hour:
            self._hour = hour
            self._shown.clear()
        found = self.hours.get(hour)
        if found is None:
            found = self.hours[hour] = Counts.zero()
            if len(self.hours) > HOURS_KEPT:
                del self.hours[min(self.hours)]
        return found

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
            "total": self.total.fields(),
            "hours": [(hour, counts.fields()) for hour, counts in self.hours.items()],
            "hour": self._hour,
            "shown": list(self._shown.items()),
            "experiments": [
                [name, list(one.users.items()), list(one.days.items()), one.sums]
                for name, one in self.experiments.items()
            ],
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], items: Floats) -> Outcomes:
        """Return what `as_json` described."""
        made = cls()
        made.total = Counts.from_fields(fields["total"])
        made.hours = {hour: Counts.from_fields(counts) for hour, counts in fields["hours"]}
        made._hour, made._shown = fields["hour"], dict(fields["shown"])
        for name, users, days, sums in fields["experiments"]:
            one = made.experiments[name] = ExperimentOutcomes()
            one.users = {user: UserSums(*values) for user, values in users}
            one.days = {day: UserSums(*values) for day, values in days}
            one.sums = ArmSums(*sums)
        made._items = items
        return made
