"""Experiments: policies that share users by a hash of their ids, and what each of them has brought."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from math import inf, isfinite
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from coterie.errors import ArgumentError, Conflict, StoreError, UnknownName, unknown
from coterie.service.core.confidence_sequence import RATIO_ALPHA, ArmSums, difference, sample_ratio
from coterie.service.core.decisions import Decision
from coterie.service.core.ids import checked_id
from coterie.service.core.live_policy import LivePolicy
from coterie.service.core.outcomes import DAY, ExperimentOutcomes, UserSums
from coterie.service.limits import Limiter
from coterie.service.storage.event_store import DECISION, EventStore
from coterie.service.storage.journal import Journal, PendingResult, RequestLock
from coterie.validation import number, shown

Learn = Literal["own", "all"]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""What names of policies and experiments are made of; the latter stand in every decision of an experiment."""
MOST_POLICIES = 10
"""Policies of an experiment."""
OUT_OF_SERVICE = "out of service"
"""The mode of a policy whose log cannot be replayed now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Two or more policies that share users.

    Parameters
    ----------
    name : str
        Its name, which was never used before.
    shares : mapping
        The share of users of each policy, by name, in any unit. The first is the champion, with which the
        others are compared.
    learn : {"own", "all"}
        Whether each policy learns from its own users, or from the rewards of all.
    alpha : float
        The probability, at most, that an interval is ever wrong. Several challengers share it.
    least_effect : float, optional
        The smallest gain that matters: when no policy can be better than the champion by this, an end is
        proposed.
    created, stopped : float, float or None
        Times, in seconds since 1970.
    kept : str or None
        The policy that decides for all users since the end.
    retired : mapping
        What policies have brought that were retired since the end.
    """

    name: str
    shares: Mapping[str, float]
    learn: Learn = "own"
    alpha: float = 0.05
    least_effect: float | None = None
    created: float = 0.0
    stopped: float | None = None
    kept: str | None = None
    retired: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every field."""
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise ArgumentError(
                "an experiment's name must be 1 to 64 letters, digits, '-', '_' or '.', "
                f"got {shown(self.name)}"
            )
        if not 2 <= len(self.shares) <= MOST_POLICIES:
            raise ArgumentError(f"an experiment needs 2 to {MOST_POLICIES} policies, got {len(self.shares)}")
        for policy, share in self.shares.items():
            if not (isfinite(number("share", share)) and 0 < share < 1e9):
                raise ArgumentError(f"the share of {policy!r} must be above 0, got {shown(share)}")
        if self.learn not in get_args(Learn):
            raise ArgumentError(f"learn must be one of {', '.join(get_args(Learn))}, got {shown(self.learn)}")
        if not 0 < number("alpha", self.alpha) <= 0.5:
            raise ArgumentError(f"alpha must be above 0 and at most 0.5, got {shown(self.alpha)}")
        if self.least_effect is not None and not number("least_effect", self.least_effect) > 0:
            raise ArgumentError(f"least_effect must be above 0, got {shown(self.least_effect)}")

    @property
    def champion(self) -> str:
        """The policy that the others are compared with."""
        return next(iter(self.shares))

    def normalised(self) -> dict[str, float]:
        """Return the shares, whose sum is 1."""
        total = sum(self.shares.values())
        return {policy: share / total for policy, share in self.shares.items()}

    def policy_of(self, user: str) -> str:
        """Return the policy that a user is assigned to: a function of the two names alone."""
        digest = blake2b(f"{self.name}\0{user}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        place = int.from_bytes(digest, "big") / 2**64
        for policy, share in self.normalised().items():
            place -= share
            if place < 0:
                return policy
        return list(self.shares)[-1]  # rounding

    def to_json(self) -> str:
        """Return all fields as JSON."""
        return json.dumps(asdict(self))


class ArmOutcomes(NamedTuple):
    """What one policy has brought to an experiment, and its mode."""

    mode: str
    users: int = 0
    sums: ArmSums = ArmSums()
    days: Mapping[int, UserSums] = MappingProxyType({})

    @classmethod
    def of(cls, live: LivePolicy, experiment: str) -> ArmOutcomes:
        """Return what a policy has brought so far; the caller has the lock of requests."""
        found = live.state.outcomes.experiments.get(experiment, ExperimentOutcomes())
        return cls(live.state.settings.mode, len(found.users), found.sums, dict(found.days))

    def to_json(self) -> list[Any]:
        """Return values that JSON can have."""
        return [self.users, list(self.sums), [[day, list(both)] for day, both in self.days.items()]]

    @classmethod
    def from_json(cls, mode: str, values: list[Any]) -> ArmOutcomes:
        """Return what `to_json` made values of."""
        users, sums, days = values
        return cls(mode, users, ArmSums(*sums), {day: UserSums(*both) for day, both in days})


class ArmResult(NamedTuple):
    """What one policy of an experiment has brought; differences are to the champion.

    `users` have had a decision; `decisions` count with their reward, or the default until it comes; `reward`
    is the mean of those. `low` and `high` hold at all times at once; they are None while there is too little
    data. `mode` is that of the policy, or `retired`, or `out of service`.
    """

    policy: str
    share: float
    mode: str
    users: int
    decisions: int
    reward: float | None
    difference: float | None
    low: float | None
    high: float | None
    uplift: float | None


class DayResult(NamedTuple):
    """A day (UTC): decisions, mean reward and uplift over the champion of each policy, in order."""

    day: str
    decisions: list[int]
    reward: list[float | None]
    uplift: list[float | None]


class ExperimentResult(NamedTuple):
    """An experiment, its results so far, and what they suggest; nothing happens by itself."""

    experiment: Experiment
    arms: list[ArmResult]
    days: list[DayResult]
    ratio_p: float
    ratio_ok: bool
    proposal: str


class Experiments:
    """The experiments of a store.

    What they have brought is in the state of their policies; the store keeps only what they are.

    Parameters
    ----------
    journal, requests, limiter
        Of the engine.
    find : callable
        Returns the policy of a name.
    """

    def __init__(
        self, journal: Journal, requests: RequestLock, limiter: Limiter, find: Callable[[str], LivePolicy]
    ) -> None:
        """Read the experiments of the store."""
        self._journal, self._requests, self._limiter, self._find = journal, requests, limiter, find
        self._store: EventStore = journal.store
        self._known: dict[str, Experiment] = {}
        self.read()

    def read(self) -> None:
        """Read all experiments from the store."""
        self._known = {name: Experiment(**json.loads(text)) for name, text in self._store.experiments()}

    def all(self) -> list[Experiment]:
        """Return all experiments, in the order in which they were made."""
        return sorted(self._known.values(), key=lambda one: one.created)

    def find(self, name: str) -> Experiment:
        """Return the experiment of this name."""
        if name not in self._known:
            raise unknown("experiment", name, self._known, "`coterie experiment status` lists all")
        return self._known[name]

    def running_with(self, policy: str) -> Experiment | None:
        """Return the experiment that runs with a policy, if there is one."""
        for one in self._known.values():
            if one.stopped is None and policy in one.shares:
                return one
        return None

    def create(self, experiment: Experiment) -> Experiment:
        """Begin an experiment; it is durable when this returns."""
        with self._requests:
            if experiment.name in self._known:
                raise Conflict(f"there is, or was, an experiment {experiment.name!r}")
            self._limiter.check("experiment", len(self._known))
            lives = [self._find(policy) for policy in experiment.shares]
            for live in lives:
                other = self.running_with(live.name)
                if other is not None:
                    raise Conflict(f"policy {live.name!r} takes part in experiment {other.name!r}")
            dims = {live.state.settings.dim for live in lives}
            if experiment.learn == "all" and len(dims) > 1:
                raise ArgumentError(
                    f"policies that learn from all must have one dim, got {', '.join(map(str, sorted(dims)))}"
                )
            return self._keep(replace(experiment, created=self._requests.now))

    def stop(self, name: str, keep: str) -> Experiment:
        """End an experiment: the policy `keep` decides for all users who are asked for through it."""
        with self._requests:
            experiment = self.find(name)
            if keep not in experiment.shares:
                named = ", ".join(experiment.shares)
                raise ArgumentError(f"keep must be a policy of the experiment ({named}), got {shown(keep)}")
            if experiment.stopped is not None:
                if experiment.kept == keep:
                    return experiment
                raise Conflict(f"experiment {name!r} has ended, and {experiment.kept!r} was kept")
            return self._keep(replace(experiment, stopped=self._requests.now, kept=keep))

    def keep_results(self, policy: str) -> None:
        """Keep what a policy that is to be retired has brought; the caller has the lock of requests."""
        for one in [one for one in self._known.values() if policy in one.shares]:
            mine = self._outcomes(one, policy)
            self._keep(replace(one, retired={**one.retired, policy: mine.to_json()}))

    def _keep(self, experiment: Experiment) -> Experiment:
        # No event depends on it yet: a failure leaves the store and memory as they were.
        put = partial(self._store.put_experiment, experiment.name, experiment.to_json())
        self._journal.attempt(put)
        self._known[experiment.name] = experiment
        return experiment

    # Decisions and rewards.

    def decide(
        self, name: str, user: str, *, decision_id: str | None = None, k: int = 1, **offer: Any
    ) -> tuple[LivePolicy, PendingResult[Decision]]:
        """Let the policy decide that a user is assigned to; return it, too."""
        checked_id("user", user)
        with self._requests:
            if self.find(name).learn == "all" and k != 1:
                raise ArgumentError("policies that learn from all show one item at a time: k must be 1")
            live, counted = self._policy_for(name, user, decision_id)
            return live, live.decide(user, decision_id=decision_id, k=k, experiment=counted, **offer)

    def _policy_for(self, name: str, user: str, decision_id: str | None) -> tuple[LivePolicy, str | None]:
        """Return the policy that decides for a user, and the experiment that this counts for, if it does."""
        experiment = self.find(name)
        # An id means one decision of the experiment: a repeat gets its first answer, even after the end, and
        # the id of another policy's decision is refused there.
        if decision_id is not None:
            for live in self._serving(experiment):
                if live.events_of(decision_id):
                    return live, None
        if experiment.stopped is None:
            return self._find(experiment.policy_of(user)), name
        return self._find(experiment.kept or experiment.champion), None

    def _serving(self, experiment: Experiment) -> Iterator[LivePolicy]:
        """Yield the policies of an experiment but those that were retired; StoreError unless all serve."""
        for policy in experiment.shares:
            with suppress(UnknownName):
                yield self._find(policy)

    def policy_that_made(self, name: str, decision_id: str) -> LivePolicy:
        """Return the policy of an experiment that has made a decision."""
        lives = list(self._serving(self.find(name)))
        for live in lives:
            if decision_id in live.state.waiting:
                return live
        for live in lives:
            if any(event.kind == DECISION for event in live.events_of(decision_id)):
                return live
        raise UnknownName(f"no decision {shown(decision_id)} in experiment {name!r}")

    def learners(self, name: str, policy: str) -> list[LivePolicy]:
        """Return the other policies that learn from the rewards of this one; StoreError unless all serve."""
        experiment = self._known.get(name)
        if experiment is None or experiment.learn == "own" or experiment.stopped is not None:
            return []
        found = [self._find(other) for other in experiment.shares if other != policy]
        for live in found:
            live.lifecycle.check()
        return found

    # Results.

    def result(self, name: str) -> ExperimentResult:
        """Return what an experiment has brought so far."""
        experiment = self.find(name)
        with self._requests:
            found = [self._outcomes(experiment, policy) for policy in experiment.shares]
        arms = _arms(experiment, found)
        ratio = sample_ratio([one.users for one in found], list(experiment.normalised().values()))
        proposal = _proposal(experiment, arms, ratio)
        return ExperimentResult(experiment, arms, _days(found), ratio, ratio >= RATIO_ALPHA, proposal)

    def _outcomes(self, experiment: Experiment, policy: str) -> ArmOutcomes:
        """Return what a policy has brought, even if it cannot be used now or was retired."""
        try:
            return ArmOutcomes.of(self._find(policy), experiment.name)
        except StoreError:
            return ArmOutcomes(OUT_OF_SERVICE)
        except UnknownName:
            kept = experiment.retired.get(policy)
            return ArmOutcomes("retired") if kept is None else ArmOutcomes.from_json("retired", kept)


def _arms(experiment: Experiment, outcomes: Sequence[ArmOutcomes]) -> list[ArmResult]:
    champion, alpha = outcomes[0].sums, experiment.alpha / (len(outcomes) - 1)
    found = []
    for one, (policy, share) in zip(outcomes, experiment.normalised().items(), strict=True):
        mine = one.sums
        reward = float(mine.mean) if mine.decisions else None
        estimate = low = high = uplift = None
        if one is not outcomes[0] and mine.decisions and champion.decisions:
            between = difference(mine, champion, alpha)
            estimate = float(between.estimate)
            uplift = _ratio(estimate, float(champion.mean))
            if float(between.high) < inf:
                low, high = float(between.low), float(between.high)
        found.append(
            ArmResult(policy, share, one.mode, one.users, mine.decisions, reward, estimate, low, high, uplift)
        )
    return found


def _ratio(difference: float, base: float) -> float | None:
    """Return a difference relative to the champion's mean, where that is above 0."""
    return difference / base if base > 0 else None


def _days(outcomes: Sequence[ArmOutcomes]) -> list[DayResult]:
    """Return results by day."""
    found = []
    for day in sorted(set().union(*[one.days for one in outcomes])):
        rows = [one.days.get(day, UserSums(0, 0.0)) for one in outcomes]
        means = [one.reward / one.decisions if one.decisions else None for one in rows]
        first = means[0]
        uplift = [None if one is None or first is None else _ratio(one - first, first) for one in means]
        date = datetime.fromtimestamp(day * DAY, UTC).date().isoformat()
        found.append(DayResult(date, [one.decisions for one in rows], means, [None, *uplift[1:]]))
    return found


def _proposal(experiment: Experiment, arms: list[ArmResult], ratio: float) -> str:
    """Return what the results suggest, in a sentence."""
    if experiment.stopped is not None:
        return f"ended: {experiment.kept} decides for all users"
    missing = [one.policy for one in arms if one.mode == OUT_OF_SERVICE]
    if missing:
        return f"go on when {', '.join(missing)} can be used again: it is out of service"
    if ratio < RATIO_ALPHA:
        return (
            f"look into the assignment before you believe any difference: the numbers of users are not the "
            f"shares (p = {ratio:.2g})"
        )
    champion, challengers = arms[0].policy, arms[1:]
    better = [one for one in challengers if one.low is not None and one.low > 0]
    if better:
        best = max(better, key=lambda one: one.low or 0.0)
        return f"stop and keep {best.policy}: it is better than {champion}"
    if all(one.high is not None and one.high < 0 for one in challengers):
        return f"stop and keep {champion}: it is better than all others"
    least = experiment.least_effect
    if least is not None and all(one.high is not None and one.high < least for one in challengers):
        return f"stop and keep {champion}: no other is better by {least:g} or more"
    worse = [one.policy for one in challengers if one.high is not None and one.high < 0]
    also = f"; worse than {champion}: {', '.join(worse)}" if worse else ""
    if any(one.low is None for one in challengers):
        return f"go on: too little data for an interval{also}"
    return f"go on: no challenger is known to be better{also}"
