"""One policy while it serves: requests are checked, become events, and the events change the state."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError, Conflict
from coterie.policies.base import too_long
from coterie.service.core import log_events as events
from coterie.service.core import rewards
from coterie.service.core.choice import choose
from coterie.service.core.decisions import (
    Decision,
    Offer,
    RewardResult,
    answer,
    decision_event,
    inline_offer,
    new_id,
    same_request,
)
from coterie.service.core.ids import checked_id
from coterie.service.core.log_events import Event, detail
from coterie.service.core.state import PolicyState
from coterie.service.storage.increments import Base
from coterie.service.storage.snapshot_writer import Retry
from coterie.types import Floats
from coterie.validation import arms_matrix, finite, shown, whole

if TYPE_CHECKING:
    from coterie.service.core.engine import PolicyEngine

REMEMBERED = 50_000
"""Decisions whose events are kept in memory; others are looked up in the store."""
EXPIRED_AT_ONCE = 1_000
"""Decisions that expire in one go, so that requests come between."""


@dataclass(slots=True)
class RewardTotals:
    """Rewards since the start of the process: of the policy's own choices, and of those drawn uniformly."""

    own: float = 0.0
    own_count: int = 0
    drawn: float = 0.0
    drawn_count: int = 0

    def add(self, reward: float, drawn: bool) -> None:
        """One more reward."""
        if drawn:
            self.drawn, self.drawn_count = self.drawn + reward, self.drawn_count + 1
        else:
            self.own, self.own_count = self.own + reward, self.own_count + 1


class Recovered(NamedTuple):
    """A state that was read from a store: the last snapshot, of that event and time, and the log since."""

    state: PolicyState
    snapshot_seq: int = 0
    snapshot_at: float | None = None


class LivePolicy:
    """What can be asked of a policy. Results are promises until the engine says that they are durable."""

    def __init__(self, engine: PolicyEngine, name: str, recovered: Recovered) -> None:
        """A policy of an engine, in the state that its log tells."""
        self.engine = engine
        self.name = name
        self.state = recovered.state
        self._recent: OrderedDict[str, list[Event]] = OrderedDict()
        self.duplicates = 0
        self.totals = RewardTotals()
        self.epoch = 0
        self.base: Base | None = None
        self.retry = Retry()
        self.snapshot_seq, self.snapshot_at = recovered.snapshot_seq, recovered.snapshot_at

    def decide(
        self,
        user: str,
        *,
        items: Sequence[str] | None = None,
        arms: Mapping[str, ArrayLike] | ArrayLike | None = None,
        k: int = 1,
        decision_id: str | None = None,
    ) -> Decision:
        """Choose among items of the catalogue (all by default), or among arms that bring their vectors."""
        with self.engine.turn:
            checked_id("user", user)
            if decision_id is not None:
                known = self.events_of(checked_id("decision_id", decision_id))
                if known:
                    return self._repeated(known, user, items, arms, k)
            offer = self._offer(items, arms)
            if type(k) is not int or not 1 <= k <= len(offer.ids):
                k = whole("k", k, 1, len(offer.ids))
            self.state.check_newcomer(user)
            self.engine.check_room(len(self.state.waiting))
            with self.engine.change:
                outcome = choose(self.state, user, offer.arms, k)
                event = decision_event(
                    self.engine.next_seq,
                    self.name,
                    self.engine.now(),
                    decision=decision_id or new_id(),
                    user=user,
                    offer=offer,
                    outcome=outcome,
                    version=self.state.seq,
                )
                self.happen(event)
            return answer(event)

    def _offer(self, items: Sequence[str] | None, arms: Any) -> Offer:
        """What is on offer, with vectors that the policy can take."""
        if items is not None and arms is not None:
            raise ArgumentError("give items of the catalogue or arms with vectors, not both")
        dim = self.state.settings.dim
        if arms is not None:
            offer = inline_offer(arms, dim)
            self.check_length("arms", offer.arms)
        else:
            if isinstance(items, str):
                raise ArgumentError(f"items must be a list of ids, got {shown(items)}")
            ids = tuple(items) if items is not None else tuple(self.state.catalogue.ids)
            if not ids:
                raise ArgumentError("items must name at least one item, got none; the catalogue may be empty")
            if len(set(ids)) != len(ids):
                raise ArgumentError("items must name each item once")
            offer = Offer(ids, self.state.catalogue.vectors(ids), "all" if items is None else "items")
        self.engine.limits.check_offer(len(offer.ids))
        return offer

    def _repeated(
        self, known: list[Event], user: str, items: Sequence[str] | None, arms: Any, k: int
    ) -> Decision:
        """The first answer to the same request, whatever became of the catalogue since."""
        decision = events.first(known, events.DECISION)
        inline = None if arms is None else inline_offer(arms, self.state.settings.dim)
        if decision is None or not same_request(decision, user, items, inline, k):
            raise Conflict(f"decision_id {shown(known[0].decision)} was used for another request")
        self.duplicates += 1
        return answer(decision)

    def reward(
        self, decision_id: str, reward: float, *, item: str | None = None, x: ArrayLike | None = None
    ) -> RewardResult:
        """Count the reward of a decision once.

        `item` is what was clicked in a list; in shadow mode `item` or `x` is what was shown instead.
        """
        with self.engine.turn:
            return rewards.give_reward(self, decision_id, reward, item, x)

    def feedback(
        self,
        user: str,
        reward: float,
        *,
        item: str | None = None,
        x: ArrayLike | None = None,
        feedback_id: str | None = None,
    ) -> RewardResult:
        """Count a reward for an item that something else chose; the same `feedback_id` is counted once."""
        with self.engine.turn:
            return rewards.give_feedback(self, rewards.FeedbackRequest(user, reward, item, x, feedback_id))

    def change_items(
        self,
        put: Mapping[str, ArrayLike] | None = None,
        *,
        remove: Sequence[str] = (),
        replace_all: bool = False,
    ) -> int:
        """Set items of the catalogue and remove others, in one step; how many there are then."""
        with self.engine.turn:
            ids = [checked_id("an item's id", one) for one in put or {}]
            vectors = np.empty((0, self.state.settings.dim))
            if put:
                rows: Any = list(put.values())
                vectors = finite("items", arms_matrix(rows, self.state.settings.dim, "items"))
                self.check_length("items", vectors)
            if remove:
                self.state.catalogue.vectors(list(remove))
            if replace_all or put or remove:
                told = detail(put=ids, removed=list(remove) or None, all=replace_all or None)
                with self.engine.change:
                    self.happen(self.event(events.ITEMS, x=vectors.tobytes(), detail=told))
            return len(self.state.catalogue)

    def configure(self, **changes: Any) -> None:
        """Change settings that may change while a policy runs."""
        with self.engine.turn:
            settings = self.state.settings.changed(**changes)
            if settings != self.state.settings:
                with self.engine.change:
                    self.happen(self.event(events.CONFIGURED, detail=settings.to_json()))

    def expire(self) -> int:
        """Count the default reward of decisions whose time is over; how many there were."""
        with self.engine.turn:
            now, timers, count = self.engine.now(), self.state.timers, 0
            while timers and timers[0][0] <= now and count < EXPIRED_AT_ONCE:
                count += self.expire_one(heappop(timers)[1])
            return count

    def expire_one(self, decision_id: str) -> bool:
        """Count the default reward of a decision if its time is over."""
        waiting = self.state.waiting.get(decision_id)
        if waiting is None or waiting.expires is None or waiting.expires > self.engine.now():
            return False
        with self.engine.change:
            default = self.state.settings.default_reward
            self.happen(self.event(events.EXPIRED, decision=decision_id, user=waiting.user, reward=default))
        return True

    def remove_user(self, user: str) -> None:
        """Forget a user: id, history and statistics; the policy learns anew from what remains."""
        self.engine.forget_user(self.name, user)

    @contextmanager
    def reading(self) -> Iterator[PolicyState]:
        """The state, which does not change meanwhile."""
        with self.engine.turn:
            yield self.state

    def stored_history(self, user: str, limit: int) -> list[Event]:
        """The latest events of a user."""
        checked_id("user", user)
        limit = whole("limit", limit, 1, 10_000)
        self.engine.flush()
        return self.engine.store.history(self.name, user, limit)

    def reset(self, recovered: Recovered) -> None:
        """Go on from what was read from the store."""
        self.state, self.base = recovered.state, None
        self.snapshot_seq, self.snapshot_at = recovered.snapshot_seq, recovered.snapshot_at
        self._recent.clear()

    def check_length(self, name: str, vectors: Floats) -> None:
        """Refuse vectors that rounding could not bear."""
        if not self.state.policy.learner.accepts(vectors):
            raise too_long(name, self.state.policy.arguments["ridge"])

    def events_of(self, decision_id: str) -> list[Event]:
        """Everything that happened to a decision's id."""
        known = self._recent.get(decision_id)
        return self.engine.store.find(self.name, decision_id) if known is None else known

    def event(self, kind: str, **fields: Any) -> Event:
        return Event(self.engine.next_seq, self.name, kind, self.engine.now(), **fields)

    def happen(self, event: Event) -> None:
        """Change the state and queue the event for the store."""
        self.state.apply(event)
        self.engine.journal.append(event)
        if event.decision is not None:
            known = self._recent.get(event.decision)
            if known is None:
                if event.kind == events.EXPIRED:
                    return  # it is not waiting any more, which is all that a late reward asks
                found = (
                    self.engine.store.find(self.name, event.decision) if event.kind == events.REWARD else ()
                )
                self._recent[event.decision] = [*found, event]
            else:
                self._recent[event.decision] = [*known, event]
                self._recent.move_to_end(event.decision)
            if len(self._recent) > REMEMBERED:
                self._forget_old()

    def _forget_old(self) -> None:
        """Remember no more than so many decisions, and whatever is not durable yet."""
        while len(self._recent) > REMEMBERED:
            oldest = next(iter(self._recent))
            if self._recent[oldest][-1].seq > self.engine.journal.durable:
                return
            del self._recent[oldest]
