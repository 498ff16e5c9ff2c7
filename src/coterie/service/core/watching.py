"""Has something gone wrong? The latest decisions of a policy, compared with those of the weeks before.

Three things can be seen in the counts of a policy alone: it earns much less than it did, rewards no longer
come, and nearly all decisions show one item. Alerts are shown and never acted on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from math import sqrt
from operator import add
from typing import Literal, NamedTuple, get_args

import numpy as np

from coterie.service.core.outcomes import Counts
from coterie.types import Floats

AlertName = Literal["reward", "answers", "variety"]
ALERTS: tuple[AlertName, ...] = get_args(AlertName)
LOOK_EVERY = 10.0
"""Seconds between two looks at a policy."""
RECENT_DECISIONS = 300
"""The latest whole hours with so many decisions are compared with those before."""
RECENT_HOURS = 24
"""There is no judgement of a policy that makes fewer decisions in so many hours."""
PAST_DECISIONS = 1_000
"""Earlier decisions, without which there is nothing to compare with."""
FALL = 0.5
"""The reward of a decision has fallen by this part of what it was."""
CERTAIN = 5.0
"""It has fallen by so many standard errors; decisions of a user are not independent, hence so many."""
ANSWERS_LEFT = 0.1
"""Of the share of decisions that got a reward, this part is left."""
LEAST_ANSWERS = 50
"""Rewards that would have come by now, if they came as before."""
ONE_ITEM, SEVERAL_ITEMS = 1.5, 3.0
"""Effective numbers of items: nearly all decisions show one; it used to be several."""
logger = logging.getLogger(__name__)


class Alert(NamedTuple):
    """Something that has collapsed: a name, and a sentence with both numbers."""

    name: AlertName
    text: str


class PeriodCounts(NamedTuple):
    """Sums over the hours of a period, of both kinds of choice."""

    decisions: float
    counted: float
    answered: float
    reward: float
    squares: float
    named_pairs: float
    same_pairs: float

    @property
    def mean(self) -> float:
        """The reward of a decision."""
        return self.reward / max(self.counted, 1)

    @property
    def variance(self) -> float:
        """The variance of that of one decision."""
        return max(self.squares / max(self.counted, 1) - self.mean**2, 0.0)

    @property
    def answers(self) -> float:
        """Rewards that came, for each decision."""
        return self.answered / max(self.decisions, 1)

    @property
    def effective_items(self) -> float | None:
        """How many equally frequent items would repeat as often; None if there are no two decisions."""
        return _effective(self.named_pairs, self.same_pairs)


def effective_items(counts: Counts) -> float | None:
    """Return how many equally frequent items would repeat as often as those of an hour do."""
    return _effective(pairs_of(counts), counts.pairs)


def pairs_of(counts: Counts) -> float:
    """Return the number of pairs of decisions of an hour."""
    return counts.named * (counts.named - 1) / 2


def _effective(pairs: float, same: float) -> float | None:
    # The share of pairs that show the same item is an estimate of Σp² without bias, however few there are.
    return pairs / max(same, 1.0) if pairs else None


class Watched(NamedTuple):
    """The latest decisions and those before, where there are enough of them, and what has collapsed."""

    recent: PeriodCounts
    past: PeriodCounts
    alerts: tuple[Alert, ...]


def compare(hours: Mapping[int, Counts], hour: int) -> Watched:
    """Compare the latest hours, up to this one, with the ones before."""
    rows = _rows(hours)
    order = np.argsort(rows[:, 0])
    rows = rows[order]
    decisions = rows[::-1, 1].cumsum()
    count = int(np.searchsorted(decisions, RECENT_DECISIONS)) + 1
    recent_rows = rows[-count:]
    recent = PeriodCounts(*recent_rows[:, 1:].sum(axis=0).tolist())
    past = PeriodCounts(*rows[: max(len(rows) - count, 0), 1:].sum(axis=0).tolist())
    enough = recent.decisions >= RECENT_DECISIONS and past.decisions >= PAST_DECISIONS
    if not enough or hour - recent_rows[0, 0] >= RECENT_HOURS:
        return Watched(recent, past, ())
    found = (_reward_alert(recent, past), _answers_alert(recent, past), _variety_alert(recent, past))
    return Watched(recent, past, tuple(one for one in found if one is not None))


def _rows(hours: Mapping[int, Counts]) -> Floats:
    """Return a row for each hour: its number, and the fields of `PeriodCounts`."""
    rows = []
    for hour, counts in hours.items():
        both = map(add, counts.policy.fields(), counts.uniform.fields())
        rows.append([hour, *both, pairs_of(counts), counts.pairs])
    return np.array(rows, np.float64).reshape(len(rows), 8)


def _reward_alert(recent: PeriodCounts, past: PeriodCounts) -> Alert | None:
    if not recent.counted or not past.counted:
        return None
    error = sqrt(past.variance * (1 / recent.counted + 1 / past.counted))
    if past.mean - recent.mean <= max(FALL * abs(past.mean), CERTAIN * error):
        return None
    return Alert("reward", f"the reward of a decision has fallen from {past.mean:.3g} to {recent.mean:.3g}")


def _answers_alert(recent: PeriodCounts, past: PeriodCounts) -> Alert | None:
    if past.answers * recent.decisions < LEAST_ANSWERS or recent.answers >= ANSWERS_LEFT * past.answers:
        return None
    return Alert(
        "answers",
        f"rewards came for {past.answers:.1%} of decisions and come for {recent.answers:.1%} now",
    )


def _variety_alert(recent: PeriodCounts, past: PeriodCounts) -> Alert | None:
    now, before = recent.effective_items, past.effective_items
    if now is None or before is None or now >= ONE_ITEM or before <= SEVERAL_ITEMS:
        return None
    return Alert(
        "variety",
        f"nearly all decisions show one item: there are {now:.1f} in effect, {before:.1f} before",
    )


class Watch:
    """Looks at the counts of one policy from time to time.

    Parameters
    ----------
    policy : str
        Its name, for the log of the service.
    """

    def __init__(self, policy: str) -> None:
        """Start without alerts."""
        self._policy, self._due = policy, 0.0
        self.alerts: tuple[Alert, ...] = ()
        self.effective_items: float | None = None

    def is_due(self) -> bool:
        """Tell whether it is time to look again."""
        return time.monotonic() >= self._due

    def look(self, hours: Mapping[int, Counts], hour: int) -> None:
        """Compare the counts, and log what has changed; the caller has the lock of requests."""
        self._due = time.monotonic() + LOOK_EVERY
        found = compare(hours, hour)
        before, self.alerts = {one.name for one in self.alerts}, found.alerts
        self.effective_items = found.recent.effective_items
        for one in found.alerts:
            if one.name not in before:
                logger.warning("policy %r: %s", self._policy, one.text)
        for name in sorted(before - {one.name for one in found.alerts}):
            logger.info("policy %r: the alert %r has ended", self._policy, name)
