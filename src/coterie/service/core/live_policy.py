"""One policy while it serves: requests are checked, become events, and the events change the state."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import blake2b
from heapq import heappop
from math import fsum
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError, Conflict, StoreError, UnknownName
from coterie.policies.base import too_long
from coterie.policies.catalogue.tag_sets import check_tag
from coterie.service.core.decisions import (
    Decision,
    Offer,
    RewardResult,
    Status,
    answer,
    catalogue_offer,
    choose,
    clicked_position,
    decision_event,
    inline_offer,
    named_offer,
)
from coterie.service.core.ids import checked_id, new_id
from coterie.service.core.known_items import MOST_TAGS, Tags
from coterie.service.core.lifecycle import Lifecycle, Phase
from coterie.service.core.outcomes import HOUR
from coterie.service.core.recovery import DamagedPolicy, Recovered, recover_policy
from coterie.service.core.state import PolicyState, Waiting
from coterie.service.core.watching import Watch
from coterie.service.item_tables import ItemTable, item_table
from coterie.service.limits import Limiter
from coterie.service.storage import event_store as events
from coterie.service.storage.event_store import Event, EventStore, detail, one_line
from coterie.service.storage.journal import Holder, PendingResult, RequestLock
from coterie.service.storage.snapshot_writer import Retry, SnapshotWriter
from coterie.types import Floats
from coterie.validation import arm_vector, arms_matrix, finite, number, reals, shown, whole

R = TypeVar("R")
logger = logging.getLogger(__name__)
IMPORTED_AT_ONCE = 25
"""Lines of an import that are learnt and committed in one go, so that requests come between."""
SOON = 1.0
"""Seconds that pass at most between a look at a decision and the turn of its reward, in the event loop."""
MOST_PARTS = 20
"""Parts that the reward of a decision may have."""
HELD = "reward"
"""Name of the part that the reward of a deferred decision is until the decision is activated."""
EXPIRED_AT_ONCE = 1_000
"""Decisions that expire in one go, so that requests come between."""


class RequestedDecision(NamedTuple):
    """A request for a decision: who is asked for, and what may be shown."""

    user: str
    items: Sequence[str] | None
    arms: Mapping[str, ArrayLike] | ArrayLike | None
    exclude: Sequence[str] | None
    only: Sequence[str] | None
    k: int
    deferred: bool = False

    def digest(self) -> str:
        """Return a digest: a repeat with the same id must have the same one.

        It stands in the log, so that nothing else of the request has to be kept to recognise a repeat.
        """
        arms: Any = self.arms
        names = list(arms) if isinstance(arms, Mapping) else None
        vectors = list(arms.values()) if isinstance(arms, Mapping) else arms
        listed = [None if one is None else list(one) for one in (self.items, self.exclude, self.only, names)]
        said = (self.user, self.k, *listed, *(["deferred"] if self.deferred else []))
        found = blake2b(repr(said).encode("utf-8", "surrogatepass"), digest_size=16)
        if arms is not None:
            found.update(reals("arms", vectors, "a matrix").tobytes())
        return found.hexdigest()


class GivenReward(NamedTuple):
    """A reward of a decision, or the part of this name."""

    decision_id: str
    value: float
    part: str | None
    item: str | None
    x: ArrayLike | None


def known_parts(decided: Waiting, settled: Sequence[Event]) -> dict[str, float]:
    """Return the parts of a decision's reward so far: of one that waits, or from all its rewards."""
    found = dict(decided.parts)
    for one in settled:
        found |= one.fields().get("parts", {})
    return found


def with_part(learnt: Event, given: GivenReward) -> Event:
    """Return a reward that was learnt with one part more in its sum."""
    parts = {**learnt.fields().get("parts", {}), given.part: given.value}
    return learnt._replace(reward=fsum(parts.values()), detail=detail(**{**learnt.fields(), "parts": parts}))


def too_late_to_activate(decision_id: str) -> Conflict:
    """Return the refusal of a deferred decision whose time is over."""
    return Conflict(f"{shown(decision_id)} was not activated in time, so nothing of it counts")


class FeedbackRequest(NamedTuple):
    """A reward for something that the policy did not choose; the same `id` is counted once."""

    user: str
    reward: float
    item: str | None
    x: ArrayLike | None
    id: str | None


def _checked_tags(tags: Tags | None) -> dict[str, list[str]] | None:
    """Return tags of items, as the log keeps them."""
    if tags is None:
        return None
    for listed in tags.values():
        if isinstance(listed, str) or len(set(listed)) > MOST_TAGS:
            raise ArgumentError(f"tags of an item must be a list of at most {MOST_TAGS}, got {shown(listed)}")
    return {one: sorted({check_tag(tag) for tag in listed}) for one, listed in tags.items()}


class Turn:
    """`with turn`: the turn of a request of one policy, whose state is sound."""

    def __init__(self, live: LivePolicy, requests: RequestLock) -> None:
        """Start without a request."""
        self._live, self._requests = live, requests

    def __enter__(self) -> None:
        """Take the lock of all requests, and see to it that the state may be believed."""
        self._requests.__enter__()
        try:
            if not self._live.lifecycle.serving:
                self._recover()
        except BaseException:
            self._requests.__exit__()
            raise

    def _recover(self) -> None:
        # Where requests may not wait, housekeeping recovers: reading the log would hold up all others.
        if self._requests.patience >= 0 or self._live.lifecycle.phase is not Phase.SUSPECT:
            raise self._live.lifecycle.error()
        self._live.recover()

    def __exit__(self, *_: object) -> None:
        """Let the next request have its turn."""
        self._requests.__exit__()


class Change:
    """`with change`: the state and its event change together; an error puts the state in doubt."""

    def __init__(self, live: LivePolicy) -> None:
        """Guard changes of a policy."""
        self._live = live

    def __enter__(self) -> None:
        """Begin, unless too many events wait for the store."""
        self._live.make_room()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Distrust the state in memory after an error."""
        if kind is None or error is None:
            return
        why = "there is not enough memory" if issubclass(kind, MemoryError) else one_line(error)
        refusal = StoreError(
            f"policy {self._live.name!r} is read from its log again, since a change broke off: {why}"
        )
        self._live.lifecycle.doubt(refusal)
        if issubclass(kind, MemoryError):
            raise StoreError(str(refusal)) from None


class LivePolicy:
    """A policy of an engine: decisions, rewards, feedback, items and settings.

    What a method returns counts only once its event is durable: `PendingResult` has the event's number.

    When a change breaks off, the policy's state is no longer a function of its log, and `lifecycle` says so;
    the state is read again before the next request of this policy. Other policies go on.

    Parameters
    ----------
    name : str
        The policy's name.
    recovered : Recovered
        Its state, as the store has it.
    requests : RequestLock
        Shared by all policies of an engine: one request at a time.
    limiter : Limiter
        Shared by all policies of an engine: refuses what goes beyond a limit.
    learners : callable
        Returns the other policies of an experiment that learn from the rewards of this one.
    """

    def __init__(
        self,
        name: str,
        recovered: Recovered,
        requests: RequestLock,
        limiter: Limiter,
        learners: Callable[[str, str], list[LivePolicy]],
    ) -> None:
        """Go on from a state."""
        self.name = name
        self.state = recovered.state
        self._requests, self._limiter, self._learners = requests, limiter, learners
        self.lifecycle = Lifecycle()
        self._turn, self._change = Turn(self, requests), Change(self)
        self._retry = Retry()
        self._journal, self._store = requests.journal, requests.journal.store
        self._uncommitted: OrderedDict[str, list[Event]] = OrderedDict()
        self.duplicates = 0
        self.watch = Watch(name)
        self.snapshots = SnapshotWriter(
            name,
            lambda: self.state,
            requests,
            self.lifecycle,
            seq=recovered.snapshot_seq,
            at=recovered.snapshot_at,
        )

    @contextmanager
    def reading(self) -> Iterator[PolicyState]:
        """Lend the state, which does not change meanwhile."""
        with self._turn:
            yield self.state

    # The state, when it is in doubt.

    def recover(self) -> None:
        """Read the state from the store again; StoreError if that cannot be done.

        The lock of requests is taken only to exchange the state: this policy takes no requests meanwhile, and
        the others go on.
        """
        self.lifecycle.begin()
        self.snapshots.epoch += 1
        epoch = self.snapshots.epoch
        try:
            self._journal.flush()  # events of earlier requests are sound, and belong to the state
            found = recover_policy(self._store, self.name)
            with self._requests.lock:
                if self.snapshots.epoch != epoch:
                    raise StoreError("its log was changed meanwhile")
                self.reset(found)
                self.lifecycle.serve()
            self._retry = Retry()
        except DamagedPolicy as error:
            logger.error("%s", error)
            self.lifecycle.fail(StoreError(str(error)))
            self.lifecycle.check()
        except Exception as error:  # MemoryError too: nothing but this policy may suffer from it
            self._retry.fail(one_line(error))
            self.lifecycle.doubt(
                StoreError(f"policy {self.name!r} is out of service until it can be read: {one_line(error)}")
            )
            raise self.lifecycle.error() from None

    def recover_due(self) -> None:
        """Read the state again if it is in doubt, unless that has failed just now; never raises."""
        if self.lifecycle.phase is Phase.SUSPECT and self._retry.is_due():
            with suppress(StoreError):
                self.recover()

    def watch_due(self) -> None:
        """Compare the latest decisions with earlier ones, if it is time; StoreError if it does not serve."""
        if self.watch.is_due():
            with self._turn:
                self.watch.look(self.state.outcomes.hours, int(self._requests.now // HOUR))

    def restore(self, found: Recovered) -> None:
        """Go on from a state that the engine has read from the store; the caller has the lock."""
        self.lifecycle.begin()
        self.reset(found)
        self.lifecycle.serve()

    # Decisions.

    def decide(
        self,
        user: str,
        *,
        items: Sequence[str] | None = None,
        arms: Mapping[str, ArrayLike] | ArrayLike | None = None,
        exclude: Sequence[str] | None = None,
        only: str | Sequence[str] | None = None,
        k: int = 1,
        decision_id: str | None = None,
        experiment: str | None = None,
        deferred: bool = False,
    ) -> PendingResult[Decision]:
        """Choose among items of the catalogue (all by default), or among arms with their own vectors.

        `experiment` is the name of the one that the decision is made in. A `deferred` decision may never be
        shown: neither its reward nor the default counts unless `activate` is called in time.
        """
        only = [only] if isinstance(only, str) else only
        asked = RequestedDecision(user, items, arms, exclude, only, k, deferred)
        with self._turn:
            checked_id("user", user)
            if decision_id is not None:
                known = self.events_of(checked_id("decision_id", decision_id))
                if known:
                    return self._repeated(known, asked)
            offer = self._offer(asked)
            if type(k) is not int or not 1 <= k <= len(offer):
                k = whole("k", k, 1, len(offer))
            self._check_arms(k)
            if deferred and (k > 1 or self.state.settings.mode == "shadow"):
                raise ArgumentError("a deferred decision is of one item, and not in shadow mode")
            self._check_new_user(user)
            self._limiter.check("waiting", self.state.waiting_bytes)
            self._join(user)
            with self._change:
                outcome = choose(self.state, user, offer, k)
                event = decision_event(
                    self._journal.next_seq,
                    self.name,
                    self._requests.now,
                    decision=decision_id or new_id(user),
                    user=user,
                    offer=offer,
                    outcome=outcome,
                    version=self.state.seq,
                    catalogue=self.state.catalogue_version,
                    # An id that the service has chosen is known to nobody who could repeat it.
                    request=None if decision_id is None else asked.digest(),
                    experiment=experiment,
                    deferred=deferred,
                )
                self._apply(event)
            return PendingResult(answer(event), event.seq)

    def _offer(self, asked: RequestedDecision) -> Offer:
        """Return what a request may choose from, with vectors that the policy can take."""
        items, known = asked.items, self.state.items
        if items is not None and asked.arms is not None:
            raise ArgumentError("give items of the catalogue or arms with vectors, not both")
        if items is None and asked.arms is None:
            return catalogue_offer(known, asked.exclude, asked.only)
        if asked.exclude is not None or asked.only is not None:
            raise ArgumentError("exclude and only choose from the whole catalogue: leave items and arms out")
        if asked.arms is None:
            named = named_offer(known, items or ())
            self._check_arms(len(named))
            return named
        inline = inline_offer(known, asked.arms, keep_all=self.state.settings.log_offers == "all")
        self._check_length("arms", inline.arms.vectors)
        self._check_arms(len(inline))
        if inline.arms.numbers is not None:  # items of the catalogue are known already
            new = int(np.count_nonzero(inline.arms.numbers >= len(known.known)))
            self._limiter.check("known_item", len(known.known), new)
        return inline

    def _check_arms(self, count: int) -> None:
        """Refuse too many arms in one request."""
        if count > self._limiter.most("arms"):
            raise ArgumentError(f"{self._limiter.reached('arms')}: there are {count}")

    def _repeated(self, known: list[Event], asked: RequestedDecision) -> PendingResult[Decision]:
        """Return the first answer to the same request, whatever has happened to the catalogue since."""
        decision = events.first(known, events.DECISION)
        fields = {} if decision is None else decision.fields()
        if decision is None or fields.get("request") != asked.digest():
            raise Conflict(f"decision_id {shown(known[0].decision)} was used for another request")
        if "scores" not in fields:
            who = shown(decision.decision)
            raise Conflict(f"decision_id {who} was used before, and compaction has removed its answer")
        self.duplicates += 1
        return self._known(answer(decision), decision)

    # Rewards of decisions.

    def reward(
        self,
        decision_id: str,
        reward: float,
        *,
        part: str | None = None,
        item: str | None = None,
        x: ArrayLike | None = None,
    ) -> PendingResult[RewardResult]:
        """Count the reward of a decision once, or one part of it.

        `item` is what was clicked in a list; in shadow mode `item` or `x` is what was shown instead.
        """
        with self._turn:
            checked_id("decision_id", decision_id)
            value = number("reward", reward)
            if part is not None:
                checked_id("part", part)
            self._expire_one(decision_id)
            # A decision that waits has no reward yet: nothing has to be looked up.
            waiting = self.state.waiting.get(decision_id)
            decided, settled = (waiting, []) if waiting is not None else self._looked_up(decision_id)
            if decided.items == (item,) and self.state.settings.mode != "shadow":
                item = None
            given = GivenReward(decision_id, value, part, item, x)
            if decided.deferred:
                return self._hold_reward(given, waiting)
            known = self._known_reward(given, decided, settled)
            if known is not None:
                return known
            fields = self._reward_fields(decided, given)
            if waiting is None:
                return self._take_late(given, decided, settled, fields)
            if part is not None and (waiting.parts or self.state.settings.learn_parts == "at_close"):
                return self._add_part(given, waiting, fields)
            return self._count_reward(self._reward_event(given, decided, fields), decided)

    def activate(self, decision_id: str) -> PendingResult[bool]:
        """Let a deferred decision wait for its reward, since it was shown; a reward that came already counts.

        Returns whether it was deferred until now. One whose time is over is a Conflict.
        """
        with self._turn:
            checked_id("decision_id", decision_id)
            self._expire_one(decision_id)
            waiting = self.state.waiting.get(decision_id)
            decided = self._looked_up(decision_id)[0] if waiting is None else waiting
            if not decided.deferred:
                return self._latest(False)
            if waiting is None:
                raise too_late_to_activate(decision_id)
            return self._activate(decision_id, waiting)

    def _activate(self, decision_id: str, waiting: Waiting) -> PendingResult[bool]:
        decision = events.first(self.events_of(decision_id), events.DECISION)
        known = detail(propensity=None if decision is None else decision.fields().get("propensity"))
        activated = self._event(events.ACTIVATED, decision=decision_id, user=waiting.user, detail=known)
        with self._change, self._journal.together():
            self._apply(activated)
            for _, value in waiting.parts:
                held = self._reward_event(GivenReward(decision_id, value, None, None, None), waiting, {})
                self._apply(held)
        return self._latest(True)

    def _hold_reward(self, given: GivenReward, waiting: Waiting | None) -> PendingResult[RewardResult]:
        """Keep the reward of a deferred decision, which counts as soon as the decision is activated."""
        if waiting is None:
            raise too_late_to_activate(given.decision_id)
        if given.part is not None or given.item is not None or given.x is not None:
            raise ArgumentError("a deferred decision takes one reward, without part, item or x")
        if waiting.parts:
            who, before = shown(given.decision_id), waiting.parts[0][1]
            if before != given.value:
                raise Conflict(f"{who} has got reward {before:g}, got {given.value:g}")
            self.duplicates += 1
            return self._latest(RewardResult(given.decision_id, "duplicate"))
        event = self._event(
            events.PART,
            decision=given.decision_id,
            user=waiting.user,
            reward=given.value,
            detail=detail(part=HELD),
        )
        with self._change:
            self._apply(event)
        return PendingResult(RewardResult(given.decision_id, "recorded"), event.seq)

    def _known_reward(
        self, given: GivenReward, decided: Waiting, settled: list[Event]
    ) -> PendingResult[RewardResult] | None:
        """Return the result of a reward that came before; refuse one that contradicts what came before."""
        parts, who = known_parts(decided, settled), shown(given.decision_id)
        if given.part is None:
            if parts:
                raise Conflict(f"{who} has got parts of its reward: name this part")
            if not settled:
                return None
            result, event = self._duplicate(settled[0], given.value, given.item, given.x), settled[0]
            self.duplicates += 1
            return self._known(result, event)
        if settled and not parts:
            raise Conflict(f"{who} was settled with reward {settled[0].reward:g}, which had no parts")
        if given.part not in parts:
            if len(parts) >= MOST_PARTS:
                raise ArgumentError(f"a reward may have {MOST_PARTS} parts, and {who} has them")
            return None
        if parts[given.part] != given.value:
            before = f"{parts[given.part]:g}, got {given.value:g}"
            raise Conflict(f"part {shown(given.part)} of {who} was {before}")
        self.duplicates += 1
        return self._latest(RewardResult(given.decision_id, "duplicate"))

    def _add_part(
        self, given: GivenReward, waiting: Waiting, fields: dict[str, Any]
    ) -> PendingResult[RewardResult]:
        """Add a part to the sum of a decision that waits."""
        if waiting.expires is None:
            raise ArgumentError(
                "parts of a reward are learnt when reward_wait is over, and this policy waits for ever: set "
                "reward_wait, or learn_parts to at_once"
            )
        instead = None if "x" not in fields else (given.item, fields["x"])
        if waiting.parts and waiting.instead != instead:
            raise Conflict(f"an earlier part of {shown(given.decision_id)} names something else as shown")
        self._limiter.check("waiting", self.state.waiting_bytes)
        event = self._event(
            events.PART,
            decision=given.decision_id,
            user=waiting.user,
            item=given.item,
            reward=given.value,
            x=fields.get("x"),
            detail=detail(part=given.part),
        )
        with self._change:
            self._apply(event)
        status: Status = "recorded" if self.state.settings.mode == "frozen" else "added"
        return PendingResult(RewardResult(given.decision_id, status), event.seq)

    def awaits(self, decision_id: str) -> bool:
        """Tell whether a decision waits for its reward, and still will in a moment: nothing is looked up."""
        waiting = self.state.waiting.get(decision_id)
        return waiting is not None and (
            waiting.expires is None or waiting.expires > self._journal.now() + SOON
        )

    def _looked_up(self, decision_id: str) -> tuple[Waiting, list[Event]]:
        """Return what a decision that does not wait has shown, and its rewards, if it has any."""
        known = self.events_of(decision_id)
        decision = events.first(known, events.DECISION)
        if decision is None:
            raise UnknownName(f"no decision {shown(decision_id)}: it was not made here, or was removed")
        found = self.state.shown_by(decision)
        deferred = found.deferred and events.first(known, events.ACTIVATED) is None
        return found._replace(deferred=deferred), [one for one in known if one.kind in events.REWARDED]

    def _reward_fields(self, decided: Waiting, given: GivenReward) -> dict[str, Any]:
        """Return what else the event of a reward says: the vector shown instead, or the click in a list."""
        item, x = given.item, given.x
        ranking = decided.items if len(decided.items) > 1 else None
        if ranking is not None and given.part is not None:
            raise ArgumentError("a list takes one reward, the click: leave part out")
        parts = {} if given.part is None else {"parts": {given.part: given.value}}
        if self.state.settings.mode == "shadow":
            if item is None and x is None:
                raise ArgumentError("in shadow mode a reward names what was shown: give item or x")
            return {"x": self._vector(item, x), "shadow": True, **parts}
        if x is not None or (item is not None and ranking is None):
            raise ArgumentError(
                f"the decision chose {shown(decided.items[0])}; give what was shown instead as feedback"
            )
        if ranking is None:
            return parts
        return {"clicked": clicked_position(ranking, item, given.value)}

    def _reward_event(self, given: GivenReward, decided: Waiting, fields: dict[str, Any]) -> Event:
        details = {name: one for name, one in fields.items() if name != "x"}
        return self._event(
            events.REWARD,
            decision=given.decision_id,
            user=decided.user,
            item=given.item,
            reward=given.value,
            x=fields.get("x"),
            detail=detail(**details) if details else None,
        )

    def _count_reward(self, event: Event, decided: Waiting) -> PendingResult[RewardResult]:
        self._apply_for_all(event, decided)
        learnt = self.state.settings.mode != "frozen" and not event.fields().get("ignored")
        result = RewardResult(event.decision or "", "counted" if learnt else "recorded")
        return PendingResult(result, event.seq)

    def _take_late(
        self, given: GivenReward, decided: Waiting, settled: list[Event], fields: dict[str, Any]
    ) -> PendingResult[RewardResult]:
        """Take a reward after another, or the default, was counted: count it too, or instead, or not at all.

        A part that comes in time, after an earlier one was learnt at once, always corrects it.
        """
        late = self.state.settings.late
        in_time = bool(settled) and (decided.expires is None or decided.expires > self._requests.now)
        learnt = next((one for one in settled if not one.fields().get("ignored")), None)
        if learnt is not None and (in_time or late == "correct"):
            if learnt.x is not None and fields.get("x", learnt.x) != learnt.x:
                who = shown(given.decision_id)
                raise Conflict(f"an earlier part of {who} names something else as shown")
            corrected = with_part(learnt, given)
            self.rewrite(lambda store: store.correct_reward(corrected))
            return PendingResult(RewardResult(given.decision_id, "counted" if in_time else "late"), 0)
        event = self._reward_event(given, decided, fields)
        expired = events.first(self.events_of(given.decision_id), events.EXPIRED)
        # The decision does not wait any more: the event itself says what was shown, and what was counted.
        before = 0.0 if settled else None if expired is None or late == "correct" else expired.reward
        details = {
            **event.fields(),
            "items": decided.items if decided.named else None,
            "ignored": late == "ignore" or None,
            "drawn": decided.drawn or None,
            "experiment": decided.experiment,
            "before": before,
            "again": bool(settled) or None,
        }
        event = event._replace(x=decided.x if event.x is None else event.x, detail=detail(**details))
        if late == "correct" and expired is not None:
            self.rewrite(lambda store: store.replace_default(expired, event), added=event.seq)
            return PendingResult(RewardResult(given.decision_id, "late"), 0)  # a commit of its own
        result, seq = self._count_reward(event, decided)
        return PendingResult(result._replace(status="late") if result.status == "counted" else result, seq)

    def _duplicate(self, settled: Event, value: float, item: str | None, x: ArrayLike | None) -> RewardResult:
        """Accept the same reward once more; refuse another one."""
        who = shown(settled.decision)
        if settled.reward != value:
            raise Conflict(f"{who} was settled with reward {settled.reward:g}, got {value:g}")
        if settled.item != item:
            raise Conflict(f"{who} was settled for {shown(settled.item)}, got {shown(item)}")
        if x is not None and self._given_vector(x) != settled.x:
            raise Conflict(f"{who} was settled for another vector x")
        return RewardResult(settled.decision or "", "duplicate")

    def _apply_for_all(self, event: Event, decided: Waiting) -> None:
        """Settle a decision; other policies of its experiment may learn from it, too, in the same commit."""
        experiment = decided.experiment
        others = (
            [] if experiment is None or not self._teaches(event) else self._learners(experiment, self.name)
        )
        if not others:
            with self._change:
                self._apply(event)
            return
        x = event.x if event.x is not None else decided.x
        for other in others:
            other._check_new_user(decided.user)
            other._check_length("x", np.frombuffer(x).reshape(1, -1))
        with ExitStack() as stack:
            for live in (self, *others):
                stack.enter_context(live._change)
            stack.enter_context(self._journal.together())
            self._apply(event)
            for other in others:
                other._take_shared(event, decided)

    def _teaches(self, event: Event) -> bool:
        """Tell whether the event of a reward says what was shown, and what that brought."""
        unknown = self.state.settings.mode == "shadow" and event.x is None
        return event.reward is not None and not unknown and not event.fields().get("ignored")

    def _take_shared(self, event: Event, decided: Waiting) -> None:
        """Learn from the reward of another policy; the caller has begun a change of this one."""
        instead = bool(event.fields().get("shadow"))
        named = event.item if instead else decided.items[0] if decided.named else None
        if self.state.settings.mode != "frozen":
            self.state.join(decided.user)
        self._apply(
            self._event(
                events.FEEDBACK,
                decision=new_id(),
                user=decided.user,
                item=named,
                reward=event.reward,
                x=event.x if instead else decided.x,
            )
        )

    # Feedback: rewards for what something else chose.

    def feedback(
        self,
        user: str,
        reward: float,
        *,
        item: str | None = None,
        x: ArrayLike | None = None,
        feedback_id: str | None = None,
    ) -> PendingResult[RewardResult]:
        """Count a reward for an item that something else chose; the same `feedback_id` is counted once."""
        with self._turn:
            event = self.check_feedback(FeedbackRequest(user, reward, item, x, feedback_id))
            if isinstance(event, PendingResult):
                self.duplicates += 1
                return event
            self._join(user)
            with self._change:
                self._apply(event)
            frozen = self.state.settings.mode == "frozen"
            result = RewardResult(event.decision or "", "recorded" if frozen else "counted")
            return PendingResult(result, event.seq)

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Keep other requests of this policy away, while those of other policies go on."""
        with self._turn:
            self.lifecycle.occupy(
                StoreError(f"policy {self.name!r} is learning from an imported log; try again soon")
            )
            state = self.state
        try:
            self._journal.flush()  # lines that are known already count once their events are durable
            yield
        finally:
            with self._requests.lock:
                if self._occupied(state):
                    self.lifecycle.serve()

    def _occupied(self, state: PolicyState) -> bool:
        """Tell whether an import that began with this state still has the policy; a recovery ends it."""
        return self.state is state and self.lifecycle.phase is Phase.IMPORTING

    def import_feedback(self, feedback: Sequence[Event]) -> None:
        """Count feedback that `check_feedback` made since the caller began `importing`, all or none.

        Decisions of other policies are made and committed between two pieces.
        """
        if not feedback:
            return
        state = self.state
        new = {event.user for event in feedback if state.users.find(event.user or "") is None}
        self._limiter.check("user", len(state.users), len(new))
        named = {event.item for event in feedback if event.item is not None} - {*state.items.known.ids}
        self._limiter.check("known_item", len(state.items.known), len(named))
        try:
            self._journal.run(partial(self._store.begin_import, self.name, state.seq))
            for start in range(0, len(feedback), IMPORTED_AT_ONCE):
                self._import_some(state, feedback[start : start + IMPORTED_AT_ONCE])
                self._journal.flush()
            self._journal.run(partial(self._store.end_import, self.name))
        except BaseException as error:
            with self._requests.lock:
                if self._occupied(state):
                    self._abandon_import(error)
            raise

    def _import_some(self, state: PolicyState, feedback: Sequence[Event]) -> None:
        with self._requests:
            if not self._occupied(state):
                raise StoreError("the import was broken off, and nothing of it was counted; try again")
            with self._change:
                for event in feedback:
                    self._apply(event._replace(seq=self._journal.next_seq, at=self._requests.now))

    def _abandon_import(self, error: BaseException) -> None:
        """Have the state read again, from a log without the import."""
        self.lifecycle.doubt(
            StoreError(f"policy {self.name!r} is read again, since an import broke off: {one_line(error)}")
        )

        def remove() -> None:
            self._store.remove_import(self.name)
            self._journal.pass_over(0)

        with suppress(StoreError):  # a store that cannot be written is read again, which removes it, too
            self._journal.run(remove)

    def check_feedback(self, request: FeedbackRequest) -> Event | PendingResult[RewardResult]:
        """Return the event of a feedback, or the result of one that is known already; nothing changes."""
        checked_id("user", request.user)
        value = number("reward", request.reward)
        if request.item is None and request.x is None:
            raise ArgumentError("give an item of the catalogue, or the vector x that was shown")
        if request.id is not None:
            known = self.events_of(checked_id("feedback_id", request.id))
            if known and known[0].kind != events.FEEDBACK:
                raise Conflict(f"feedback_id {shown(request.id)} is the id of a decision")
            if known and known[0].user != request.user:
                raise Conflict(f"feedback_id {shown(request.id)} was used for another user")
            if known:
                return self._known(self._duplicate(known[0], value, request.item, request.x), known[0])
        vector = self._vector(request.item, request.x)
        self._check_new_user(request.user)
        return self._event(
            events.FEEDBACK,
            decision=request.id or new_id(),
            user=request.user,
            item=request.item,
            reward=value,
            x=vector,
        )

    def _check_new_user(self, user: str) -> None:
        """Refuse a user who may not join."""
        if self.state.users.find(user) is None:
            self.state.check_new_user(user)
            if self.state.settings.mode != "frozen":
                self._limiter.check("user", len(self.state.users))

    def _join(self, user: str) -> None:
        """Let a new user join, whose event follows at once.

        A policy without memory for another user is as it was, so it need not be read again.
        """
        if self.state.settings.mode == "frozen" or self.state.users.find(user) is not None:
            return
        self.make_room()
        try:
            self.state.join(user)
        except MemoryError:
            self._limiter.reached("user")
            raise StoreError(
                f"there is not enough memory for one more user of policy {self.name!r}"
            ) from None

    def _vector(self, item: str | None, x: ArrayLike | None) -> bytes:
        """Return the vector of an item of the catalogue, or the one given."""
        if item is not None:
            checked_id("item", item)
        if x is not None:  # of an item of any id: what was shown may have changed since
            if item is not None and item not in self.state.items.known:
                self._limiter.check("known_item", len(self.state.items.known))
            return self._given_vector(x)
        vector = self.state.items.vectors([item or ""])
        self._check_length("x", vector)
        return vector.tobytes()

    def _given_vector(self, x: ArrayLike) -> bytes:
        """Return a vector that came with a request."""
        dim = self.state.settings.dim
        vector = finite("x", arm_vector(x, dim)).reshape(1, dim)
        self._check_length("x", vector)
        return vector.tobytes()

    def _check_length(self, name: str, vectors: Floats) -> None:
        """Refuse vectors so long that the inverse of their sum of squares would lose its precision."""
        if not self.state.policy.learner.accepts(vectors):
            raise too_long(name, self.state.policy.arguments["ridge"])

    # Items, settings, timers.

    def change_items(
        self,
        put: ItemTable | Mapping[str, ArrayLike] | None = None,
        *,
        tags: Tags | None = None,
        remove: Sequence[str] = (),
        replace_all: bool = False,
    ) -> PendingResult[int]:
        """Set items of the catalogue and remove others, in one step; return how many there are then."""
        # Before this request has its turn: a large catalogue takes long to convert.
        table = put if isinstance(put, ItemTable) else item_table(put or {}, tags=tags)
        ids, dim = list(table.ids), self.state.settings.dim
        vectors = arms_matrix(table.vectors, dim, "items") if ids else np.empty((0, dim))
        labels = _checked_tags(table.tags)
        with self._turn:
            if ids:
                self._check_length("items", vectors)
            items = self.state.items
            if remove:
                items.numbers([checked_id("one of items", one) for one in remove])
                if len(set(remove)) != len(remove):
                    raise ArgumentError("remove must name each item once")
            kept = 0 if replace_all else len(items)
            self._limiter.check("item", kept, sum(replace_all or one not in items for one in ids))
            self._limiter.check("known_item", len(items.known), sum(one not in items.known for one in ids))
            if replace_all or ids or remove:
                fields = detail(put=ids, tags=labels, removed=list(remove) or None, all=replace_all or None)
                with self._change:
                    self._apply(self._event(events.ITEMS, x=vectors.tobytes(), detail=fields))
            return self._latest(len(items))

    def configure(self, **changes: Any) -> PendingResult[None]:
        """Change settings that may change while a policy runs."""
        with self._turn:
            settings = self.state.settings.changed(**changes)
            if settings != self.state.settings:
                with self._change:
                    self._apply(self._event(events.CONFIGURED, detail=settings.to_json()))
            return self._latest(None)

    def expire(self) -> PendingResult[int]:
        """Count the default reward of decisions whose time is over; return how many there were."""
        with self._turn:
            now, timers, count = self._requests.now, self.state.timers, 0
            while timers and timers[0][0] <= now and count < EXPIRED_AT_ONCE:
                count += self._expire_one(timers[0][1])
                heappop(timers)  # after it was settled: a refusal must not lose the timer
            return self._latest(count)

    def _expire_one(self, decision_id: str) -> bool:
        """Count the sum of its parts, or the default reward, of a decision if its time is over."""
        waiting = self.state.waiting.get(decision_id)
        if waiting is None or waiting.expires is None or waiting.expires > self._requests.now:
            return False
        if waiting.parts and not waiting.deferred:
            item, x = waiting.instead or (None, None)
            value = fsum(one for _, one in waiting.parts)
            fields: dict[str, Any] = {"parts": dict(waiting.parts)}
            if x is not None:
                fields |= {"x": x, "shadow": True}
            given = GivenReward(decision_id, value, None, item, None)
            self._count_reward(self._reward_event(given, waiting, fields), waiting)
            return True
        # Of a decision that was never shown nothing is known.
        default = None if waiting.deferred else self.state.settings.default_reward
        expired = self._event(events.EXPIRED, decision=decision_id, user=waiting.user, reward=default)
        self._apply_for_all(expired, waiting)
        return True

    # Events and the log.

    def _event(self, kind: str, **fields: Any) -> Event:
        return Event(self._journal.next_seq, self.name, kind, self._requests.now, **fields)

    def _known(self, result: R, event: Event) -> PendingResult[R]:
        """Return the result of a request that was made before, which counts once its event is durable."""
        return PendingResult(result, self._journal.number_to_await(event.seq))

    def _latest(self, result: R) -> PendingResult[R]:
        """Return a result that rests on the latest event of the policy, even if this request added none."""
        return PendingResult(result, self._journal.number_to_await(self.state.seq))

    def _apply(self, event: Event) -> None:
        """Change the state and queue the event for the store."""
        self.state.apply(event)
        self._journal.append(event)
        self._remember(event)

    def make_room(self) -> None:
        """Wait or refuse, as requests do for their turn, while too many events wait for the store."""
        if self._journal.queued_bytes < self._limiter.most("queue"):
            return
        if self._requests.patience >= 0:
            raise self._limiter.reached("queue")
        self._journal.flush()

    def _remember(self, event: Event) -> None:
        """Keep an event until it can be found in the store; bounded by the limit of uncommitted events."""
        if event.decision is None:
            return
        kept, durable = self._uncommitted, self._journal.durable
        while kept and kept[oldest := next(iter(kept))][-1].seq <= durable:
            del kept[oldest]
        kept[event.decision] = [*kept.get(event.decision, ()), event]
        kept.move_to_end(event.decision)

    def events_of(self, decision_id: str) -> list[Event]:
        """Return everything that happened to a decision's id."""
        found = self._store.find(self.name, decision_id)
        last = found[-1].seq if found else 0
        return [*found, *(one for one in self._uncommitted.get(decision_id, ()) if one.seq > last)]

    def stored_history(self, user: str, limit: int) -> list[Event]:
        """Return the latest events of a user."""
        checked_id("user", user)
        limit = whole("limit", limit, 1, 10_000)
        self._journal.flush()
        return self._store.history(self.name, user, limit)

    def rewrite(self, task: Callable[[EventStore], None], *, added: int = 0) -> None:
        """Change what is in the log, and learn anew from what is there then.

        `added` is the number of the event that the task adds, if it adds one. The caller has its turn.
        """

        def perform() -> None:
            self.snapshots.epoch += 1  # on the journal's thread, where snapshots are completed, too
            task(self._store)
            self._journal.pass_over(added)

        with self._requests.held(Holder.REWRITE):
            self._journal.run(perform)
            self.lifecycle.doubt(
                StoreError(f"policy {self.name!r} is learning anew from its log; try again soon")
            )
            self.recover()

    def reset(self, recovered: Recovered) -> None:
        """Go on from what was read from the store."""
        self.state = recovered.state
        self.snapshots.seq, self.snapshots.at = recovered.snapshot_seq, recovered.snapshot_at
        self._uncommitted.clear()
